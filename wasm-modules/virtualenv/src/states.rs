//! The state. Packages are installed by the functions of `pip`, which have the grants of their own module.

use brine_guest::host::{files, functions, job};
use brine_guest::keywords::Keywords;
use brine_guest::path::{dirname, normpath};
use brine_guest::program::Program;
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Data, Value, changes};

use crate::Module;
use crate::create::{self, Wanted};
use crate::exports::states::Guest;

/// Arguments of the state that are pip's by another name.
const RENAMED: [(&str, &str); 7] = [
    ("pip_download", "download"),
    ("pip_download_cache", "download_cache"),
    ("pip_exists_action", "exists_action"),
    ("pip_ignore_installed", "ignore_installed"),
    ("pip_upgrade", "upgrade"),
    ("pip_no_cache_dir", "no_cache_dir"),
    ("pip_cache_dir", "cache_dir"),
];
/// Arguments that go to pip by their own names.
const PASSED: [&str; 22] = [
    "cert",
    "disable_version_check",
    "editable",
    "env_vars",
    "extra_args",
    "extra_index_url",
    "find_links",
    "force_reinstall",
    "global_options",
    "index_url",
    "install_options",
    "log",
    "no_binary",
    "no_deps",
    "no_index",
    "pre_releases",
    "proxy",
    "source",
    "target",
    "timeout",
    "trusted_host",
    "user",
];

fn pip(function: &str, keywords: Vec<(Value, Value)>) -> Result<Value, String> {
    functions::call(&format!("pip.{function}"), &[], &Value::Dict(keywords).into())?.value()
}

fn freeze(name: &str, user: Option<&str>) -> Result<Vec<String>, String> {
    let mut keywords = vec![("bin_env".into(), name.into())];
    keywords.extend(user.map(|user| ("user".into(), user.into())));
    match pip("freeze", keywords)? {
        Value::List(packages) => Ok(packages.iter().map(Value::to_text).collect()),
        other => Err(format!("pip.freeze returned {}", other.kind())),
    }
}

/// What the Python of an environment says of its version on standard error, where old ones do.
fn version(python: &str) -> Result<String, String> {
    let command = Program::new([python, "-V"]);
    let done = if is_dry_run() { command.probe() } else { command.run() }?;
    Ok(done.stderr.trim_matches('\n').to_owned())
}

/// Whether the master has a file.
fn is_served(path: &str) -> Result<bool, String> {
    let current = job::state().map(|state| state.saltenv).unwrap_or_else(|| "base".into());
    let (path, saltenv) = path.split_once("?saltenv=").unwrap_or((path, &current));
    Ok(files::read(path, saltenv, 0, 1)?.is_some())
}

/// Compares parts of versions of pip as numbers.
fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// Salt's comment where pip is too old or too new for an option.
fn unsupported(name: &str, keywords: &Keywords) -> Result<Option<String>, String> {
    for (option, lowest, highest) in
        [("use_wheel", "1.4", Some("9.0.3")), ("no_use_wheel", "1.4", Some("9.0.3")), ("no_binary", "7.0.0", None)]
    {
        if !keywords.is_set(option) {
            continue;
        }
        let version = pip("version", vec![("bin_env".into(), name.into())])?.to_text();
        let is_low = numbers(&version) < numbers(lowest);
        let is_high = highest.is_some_and(|highest| numbers(&version) > numbers(highest));
        if is_low || is_high {
            let range = match highest {
                Some(highest) => format!("pip between {lowest} and {highest}"),
                None => format!("pip {lowest} and newer"),
            };
            return Ok(Some(format!(
                "The '{option}' option is only supported in {range}. The version of pip detected was {version}."
            )));
        }
    }
    Ok(None)
}

/// The state while it is made.
struct Made {
    comment: String,
    changes: Vec<(Value, Value)>,
}

impl Made {
    fn ends(self, result: Option<bool>, comment: impl Into<String>) -> StateResult {
        StateResult::new(result, comment, Value::Dict(self.changes))
    }
}

impl Guest for Module {
    fn managed(name: String, kwargs: Data) -> Result<StateResult, String> {
        let keywords = Keywords::new(&kwargs, [])?;
        let python = format!("{name}/bin/python");
        let is_there = changes::look(&python, true)?.is_some();
        let requirements = keywords.text("requirements").filter(|file| !file.is_empty());
        if let Some(path) = requirements.as_deref().and_then(|file| file.strip_prefix("salt://"))
            && !is_served(path)?
        {
            return Ok(StateResult::bad(format!("pip requirements file 'salt://{path}' not found")));
        }
        let clears = keywords.is_set("clear");
        let mut made = Made { comment: String::new(), changes: Vec::new() };
        if is_there && clears {
            made.changes.push(("cleared_packages".into(), freeze(&name, None)?.into()));
            made.changes.push(("old".into(), version(&python)?.into()));
        }
        if is_dry_run() {
            return Ok(match (is_there, clears) {
                (true, true) => made.ends(None, format!("Virtualenv {name} is set to be cleared")),
                (true, false) => made.ends(Some(true), format!("Virtualenv {name} is already created")),
                (false, _) => made.ends(None, format!("Virtualenv {name} is set to be created")),
            });
        }
        if is_there && !clears {
            made.comment = "virtualenv exists".into();
        } else {
            let done = create::create(&name, &Wanted::of(&keywords)?)?;
            if !done.succeeded() {
                return Ok(made.ends(Some(false), format!("{}{}", done.stdout, done.stderr)));
            }
            made.changes.push(("new".into(), version(&python)?.into()));
            made.comment = if clears { "Cleared existing virtualenv" } else { "Created new virtualenv" }.into();
        }
        if let Some(comment) = unsupported(&name, &keywords)? {
            return Ok(made.ends(Some(false), comment));
        }
        let packages = keywords.get("pip_pkgs").filter(|packages| packages.truthy()).cloned();
        if requirements.is_none() && packages.is_none() {
            let comment = made.comment.clone();
            return Ok(made.ends(Some(true), comment));
        }
        install(&name, &keywords, requirements.as_deref(), packages, made)
    }
}

/// Has pip install, and tells what changed by it.
fn install(
    name: &str,
    keywords: &Keywords,
    requirements: Option<&str>,
    packages: Option<Value>,
    mut made: Made,
) -> Result<StateResult, String> {
    let user = keywords.text("user");
    let before = match freeze(name, user.as_deref()) {
        Ok(before) => before,
        Err(why) => return Ok(made.ends(Some(false), why)),
    };
    let mut arguments: Vec<(Value, Value)> = vec![("bin_env".into(), name.into())];
    let mut give = |name: &str, value: Option<Value>| arguments.extend(value.map(|value| (name.into(), value)));
    give("pkgs", packages);
    give("requirements", requirements.map(Value::from));
    // Beside a file whose path is no plain one, as in Salt.
    let first = requirements.and_then(|file| file.split(',').next()).filter(|file| !file.starts_with("salt://"));
    let around = first.filter(|file| normpath(file) != **file || !file.starts_with('/'));
    let around = around.map(|file| dirname(&normpath(&format!("/{file}"))).to_owned());
    give("cwd", around.map(Value::from).or_else(|| keywords.get("cwd").cloned()));
    for option in PASSED {
        give(option, keywords.get(option).cloned());
    }
    for (option, of_pip) in RENAMED {
        give(of_pip, keywords.get(option).cloned());
    }
    let state = job::state().map(|state| state.saltenv);
    give("saltenv", state.map(Value::from));
    let done = pip("install", arguments)?;
    let retcode = match done.get("retcode") {
        Some(Value::Int(code)) => *code,
        _ => return Ok(made.ends(Some(false), done.get("comment").map(Value::to_text).unwrap_or_default())),
    };
    let said = |name: &str| done.get(name).map(Value::to_text).unwrap_or_default();
    if retcode > 0 {
        made.comment = format!("{}\n{}\n{}", made.comment, said("stdout"), said("stderr"));
    }
    let after = freeze(name, None)?;
    let only = |these: &[String], those: &[String]| {
        let mut only: Vec<String> = these.iter().filter(|package| !those.contains(package)).cloned().collect();
        only.sort();
        if only.is_empty() { "".into() } else { Value::from(only) }
    };
    let (new, old) = (only(&after, &before), only(&before, &after));
    if new.truthy() || old.truthy() {
        made.changes.push(("packages".into(), Value::dict([("new", new), ("old", old)])));
    }
    let comment = std::mem::take(&mut made.comment);
    Ok(made.ends(Some(retcode == 0), comment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_pip_are_numbers() {
        assert!(numbers("9.0.3") < numbers("22.3.1"));
        assert!(numbers("1.10") > numbers("1.4"));
        assert!(numbers("7") < numbers("7.0.0"));
    }
}
