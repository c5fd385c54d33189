//! The states: what is to be synced is. What this minion has no use for is not synced; where the master has files of such a
//! kind, the state fails, because the host would be without what they bring.

use brine_guest::Value;
use brine_guest::host::files::{self, Kind};
use brine_guest::keywords::Keywords;
use brine_guest::states::{StateResult, is_dry_run, no_changes};

use crate::exports::states::Guest as States;
use crate::{Data, Guest, Module, shapes};

/// What each function takes. `sync_sdb` takes no `refresh`; some take `clean_pillar_cache` too.
const ARGUMENTS: [&str; 4] = ["saltenv", "refresh", "extmod_whitelist", "extmod_blacklist"];
const NO_USE: &str = "this minion has no use for";
const ONLY_MODULES: &str = "it runs the modules of salt://_modules alone";
/// Files of the master that a sentence names.
const MAX_NAMED: usize = 3;

/// The error of Python for an argument that a function does not take.
fn unexpected(kind: &str, names: &[&str]) -> Option<String> {
    let takes = |name: &str| match name {
        "refresh" => kind != "sdb",
        "clean_pillar_cache" => matches!(kind, "all" | "grains" | "pillar"),
        name => ARGUMENTS.contains(&name),
    };
    let odd = names.iter().find(|name| !takes(name))?;
    // The function has both names.
    let kind = if kind == "outputters" { "output" } else { kind };
    Some(format!("sync_{kind}() got an unexpected keyword argument '{odd}'"))
}

/// The folders of kinds other than modules that the master has files in.
fn useless_folders(saltenv: Option<Data>) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for saltenv in environments(saltenv)? {
        for file in files::list(&saltenv, None, Kind::Files)? {
            let folder = file.split('/').next().unwrap_or_default();
            let kind = folder.strip_prefix('_').filter(|kind| *kind != "modules" && shapes::is_kind(kind));
            let folder = kind.map(|kind| format!("salt://_{kind}"));
            found.extend(folder.filter(|folder| !found.contains(folder)));
        }
    }
    Ok(found)
}

fn environments(saltenv: Option<Data>) -> Result<Vec<String>, String> {
    let named = saltenv.map(|data| shapes::saltenv(&data)).transpose()?.flatten();
    Ok(named.unwrap_or_else(|| vec!["base".into()]))
}

/// Whether there are modules to fetch. A host without a master has none to fetch from, which matters only if there are.
fn has_modules(saltenv: Option<Data>) -> Result<bool, String> {
    for saltenv in environments(saltenv)? {
        if !files::list(&saltenv, Some("_modules"), Kind::Files)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Says that files of the master, which are below `folder`, are of no use here.
fn useless(folder: &str, found: &[String]) -> String {
    let mut names: Vec<&str> = found.iter().take(MAX_NAMED).map(String::as_str).collect();
    if found.len() > MAX_NAMED {
        names.push("…");
    }
    format!("{NO_USE} {folder} ({}): {ONLY_MODULES}", names.join(", "))
}

/// The master's files of a kind that this minion has no use for.
fn files_of(kind: &str, saltenv: Option<Data>) -> Result<Option<String>, String> {
    let folder = format!("_{}", if kind == "outputters" { "output" } else { kind });
    let mut found = Vec::new();
    for saltenv in environments(saltenv)? {
        found.extend(files::list(&saltenv, Some(&folder), Kind::Files)?);
    }
    Ok((!found.is_empty()).then(|| useless(&format!("salt://{folder}"), &found)))
}

/// What changed, by kind, and what the operator should know.
#[derive(Default)]
struct Synced {
    kinds: Vec<(String, Vec<String>)>,
    warnings: Vec<String>,
}

/// Runs the function behind a state.
fn run(kind: &str, keywords: &mut Keywords) -> Result<Synced, String> {
    let names: Vec<&str> = keywords.iter().map(|(name, _)| name).collect();
    if let Some(why) = unexpected(kind, &names) {
        return Err(why);
    }
    let refresh = keywords.take("refresh").map(|refresh| refresh.truthy());
    let mut data = |name: &str| keywords.take(name).map(Data::from);
    let (saltenv, white, black) = (data("saltenv"), data("extmod_whitelist"), data("extmod_blacklist"));
    let clean = data("clean_pillar_cache").map(|clean| clean.value()).transpose()?.map(|clean| clean.truthy());
    let kinds = match kind {
        "all" | "modules" => {
            let done = match kind {
                "all" => <Module as Guest>::sync_all(saltenv.clone(), refresh, white, black, clean),
                _ => <Module as Guest>::sync_modules(saltenv.clone(), refresh, white, black)
                    .map(|names| vec![(kind.to_owned(), names)]),
            };
            match done {
                Err(why) if has_modules(saltenv.clone())? => return Err(why),
                done => done.unwrap_or_default(),
            }
        }
        kind => {
            if let Some(why) = files_of(kind, saltenv.clone())? {
                return Err(why);
            }
            match kind {
                "grains" => {
                    vec![(kind.into(), <Module as Guest>::sync_grains(saltenv.clone(), refresh, white, black, clean)?)]
                }
                _ => Vec::new(),
            }
        }
    };
    let useless = if kind == "all" { useless_folders(saltenv)? } else { Vec::new() };
    let warnings = match useless.is_empty() {
        true => Vec::new(),
        false => vec![format!("{} {}: {ONLY_MODULES}", NO_USE, useless.join(", "))],
    };
    Ok(Synced { kinds, warnings })
}

fn sync(kind: &str, kwargs: &Data) -> Result<StateResult, String> {
    if is_dry_run() {
        return Ok(StateResult::would(format!("saltutil.sync_{kind} would have been run"), no_changes()));
    }
    let mut keywords = Keywords::new(kwargs, [])?;
    Ok(match run(kind, &mut keywords) {
        Err(why) => StateResult::bad(format!("Failed to run sync_{kind}: {why}")),
        Ok(Synced { mut kinds, warnings }) => {
            kinds.retain(|(_, names)| !names.is_empty());
            let changes = kinds.into_iter().map(|(kind, names)| (kind.into(), names.into())).collect::<Vec<_>>();
            let result = match (changes.is_empty(), kind) {
                (true, _) => StateResult::good("No updates to sync"),
                (false, "all") => StateResult::changed("Sync performed", Value::Dict(changes)),
                (false, kind) => StateResult::changed(format!("Updated {kind}."), Value::Dict(changes)),
            };
            StateResult { warnings, ..result }
        }
    })
}

/// The states, each by its kind.
macro_rules! states {
    ($($name:ident $kind:literal),* $(,)?) => {
        impl States for Module {
            $(fn $name(_name: String, kwargs: Data) -> Result<StateResult, String> {
                sync($kind, &kwargs)
            })*
        }
    };
}

states!(
    sync_all "all",
    sync_beacons "beacons",
    sync_clouds "clouds",
    sync_engines "engines",
    sync_grains "grains",
    sync_executors "executors",
    sync_log_handlers "log_handlers",
    sync_modules "modules",
    sync_output "output",
    sync_outputters "outputters",
    sync_pillar "pillar",
    sync_proxymodules "proxymodules",
    sync_matchers "matchers",
    sync_renderers "renderers",
    sync_returners "returners",
    sync_sdb "sdb",
    sync_states "states",
    sync_tops "tops",
    sync_resources "resources",
    sync_thorium "thorium",
    sync_utils "utils",
    sync_serializers "serializers",
    sync_wrapper "wrapper",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_those_of_the_functions() {
        assert_eq!(unexpected("modules", &["saltenv", "refresh"]), None);
        assert_eq!(unexpected("all", &["clean_pillar_cache"]), None);
        let odd = |kind: &str, name: &str| unexpected(kind, &[name]).unwrap();
        assert_eq!(odd("sdb", "refresh"), "sync_sdb() got an unexpected keyword argument 'refresh'");
        assert_eq!(odd("outputters", "x"), "sync_output() got an unexpected keyword argument 'x'");
        assert!(unexpected("states", &["clean_pillar_cache"]).is_some());
    }

    #[test]
    fn the_files_that_are_of_no_use_are_named() {
        let files: Vec<String> = (0..5).map(|n| format!("_states/{n}.py")).collect();
        let said = useless("salt://_states", &files);
        assert!(said.contains("(_states/0.py, _states/1.py, _states/2.py, …)"), "{said}");
    }
}
