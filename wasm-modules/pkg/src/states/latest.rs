//! The state `latest`.

use brine_apt::arguments::{self, Keywords, Packages};
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Result, Value};

use super::{find, joined};
use crate::available::{self, Question};
use crate::host;
use crate::install::Install;
use crate::installed;

/// Packages that are named one by one in a comment.
const MANY: usize = 10;

pub(super) fn run(name: &str, keywords: &Keywords) -> Result<StateResult> {
    if keywords.truthy("sources") {
        return Ok(StateResult::bad("The \"sources\" parameter is not supported."));
    }
    let pkgs = keywords.get("pkgs").cloned().unwrap_or_default();
    let desired: Vec<String> = match &pkgs {
        Value::List(items) if items.is_empty() => return Ok(StateResult::good("No packages to install provided")),
        pkgs if pkgs.truthy() => {
            let architecture = host::architecture();
            let packages = arguments::packages(pkgs, |name| architecture.normalized(name))?;
            if packages.is_empty() {
                return Ok(StateResult::bad("Invalidly formatted \"pkgs\" parameter. See minion log."));
            }
            packages.into_iter().map(|(name, _)| name).collect()
        }
        _ => vec![name.to_owned()],
    };
    let fromrepo = keywords.text("fromrepo").filter(|repo| !repo.is_empty());
    let mut question = Question::look(fromrepo.clone());
    question.refresh = available::is_due(keywords.get("refresh").unwrap_or(&Value::None))?;
    question.cache_valid_time = keywords.get("cache_valid_time").cloned().unwrap_or_default();
    let newest = match available::latest(&desired, &question) {
        Ok(newest) => by_name(newest.into_value(), &desired),
        Err(why) => {
            return Ok(StateResult::bad(format!(
                "An error was encountered while checking the newest available version of package(s): {why}"
            )));
        }
    };
    let current = match installed::version(&desired, &Keywords::default()) {
        Ok(current) => by_name(current, &desired),
        Err(why) => return Ok(StateResult::bad(why)),
    };
    let of = |versions: &Value, name: &str| versions.get(name).map(Value::to_text).unwrap_or_default();
    let mut targets = Packages::new();
    let mut problems = Vec::new();
    for name in &desired {
        let newest = of(&newest, name);
        if !newest.is_empty() {
            targets.push((name.clone(), Some(newest)));
        } else if of(&current, name).is_empty() {
            problems.push(format!("No information found for '{name}'."));
        }
    }
    if !problems.is_empty() {
        return Ok(StateResult::bad(problems.join(" ")));
    }
    if targets.is_empty() {
        return Ok(StateResult::good(match desired.len() {
            1 => format!("Package {} is already up-to-date", desired[0]),
            many if many > MANY => format!("All {many} packages are up-to-date."),
            _ => format!("All packages are up-to-date ({}).", joined(&sorted(desired))),
        }));
    }
    let is_target = |name: &String| targets.iter().any(|(target, _)| target == name);
    let asked = match &pkgs {
        Value::List(items) => items.iter().map(arguments::first_key).collect(),
        _ => Vec::new(),
    };
    let in_order = sorted(asked.into_iter().filter(|name| !is_target(name)).collect());
    let names = sorted(targets.iter().map(|(name, _)| name.clone()).collect());
    if is_dry_run() {
        let mut comments = vec![format!("The following packages would be installed/upgraded: {}", joined(&names))];
        match in_order.len() {
            0 => (),
            many if many > MANY => comments.push(format!("{many} packages are already up-to-date")),
            _ => {
                let each: Vec<String> =
                    in_order.iter().map(|name| format!("{name} ({})", of(&current, name))).collect();
                comments.push(format!("The following packages are already up-to-date: {}", joined(&each)));
            }
        }
        return Ok(StateResult::would(comments.join("\n"), find::would_install(&targets, &current)?));
    }
    let mut install = Install {
        fromrepo,
        skip_verify: keywords.truthy("skip_verify"),
        pkgs: targets.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().into(),
        reinstall: keywords.truthy("reinstall"),
        normalize: keywords.get("normalize").is_none_or(Value::truthy),
        keywords: keywords.clone(),
        ..Install::default()
    };
    install.keywords.set("saltenv", super::saltenv());
    let changes = match install.run() {
        Ok(changes) => changes,
        Err(failure) => {
            let why = failure.text();
            return Ok(StateResult::bad(format!("An error was encountered while installing package(s): {why}")));
        }
    };
    Ok(told(&targets, names, in_order, changes))
}

/// The result of an installation.
fn told(targets: &Packages, names: Vec<String>, in_order: Vec<String>, changes: Value) -> StateResult {
    if !changes.truthy() {
        let mut comment = match names.len() {
            1 => format!("Package {} failed to update.", names[0]),
            many if many > MANY => format!("{many} targeted packages failed to update. See debug log for details."),
            _ => format!(
                "The following targeted packages failed to update. See debug log for details: ({}).",
                joined(&names)
            ),
        };
        match in_order.len() {
            0 => (),
            many if many > MANY => comment.push_str(&format!("{many} packages were already up-to-date")),
            _ => comment.push_str(&format!(" The following packages were already up-to-date: {}", joined(&in_order))),
        }
        return StateResult::new(Some(false), comment, changes);
    }
    let is_new = |name: &str, version: &str| {
        let Some(change) = changes.get(name).filter(|change| change.truthy()) else { return false };
        let new = change.get("new").map(Value::to_text).unwrap_or_default();
        new.split(',').any(|new| new == version)
    };
    let (done, failed): (Vec<_>, Vec<_>) =
        targets.iter().partition(|(name, version)| is_new(name, version.as_deref().unwrap_or_default()));
    let names = |list: Vec<&(String, Option<String>)>| sorted(list.into_iter().map(|(name, _)| name.clone()).collect());
    let mut comments = Vec::new();
    if !failed.is_empty() {
        comments.push(format!("The following packages failed to update: {}", joined(&names(failed.clone()))));
    }
    if !done.is_empty() {
        let done = joined(&names(done));
        comments.push(format!("The following packages were successfully installed/upgraded: {done}"));
    }
    match in_order.len() {
        0 => (),
        many if many > MANY => comments.push(format!("{many} packages were already up-to-date ")),
        _ => comments.push(format!("The following packages were already up-to-date: {}", joined(&in_order))),
    }
    StateResult::new(Some(failed.is_empty()), comments.join(" "), changes)
}

/// Versions by name: one version alone is that of the first name.
fn by_name(versions: Value, names: &[String]) -> Value {
    match versions {
        Value::Dict(entries) => Value::Dict(entries),
        one => Value::Dict(names.first().map(|name| (name.clone().into(), one)).into_iter().collect()),
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}
