//! The states `removed` and `purged`.

use brine_apt::arguments::{self, Keywords, Packages};
use brine_apt::wanted::{How, fulfilled};
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Result, Value};

use super::joined;
use crate::host;
use crate::installed;
use crate::removal::{self, Action};

/// What is asked for: names and versions.
fn wanted(name: &str, keywords: &Keywords) -> Result<Packages> {
    let normalize = keywords.get("normalize").is_none_or(Value::truthy);
    let architecture = host::architecture();
    let normalized = |name: &str| if normalize { architecture.normalized(name) } else { name.to_owned() };
    match keywords.get("pkgs").filter(|pkgs| pkgs.truthy()) {
        Some(pkgs) => arguments::packages(pkgs, normalized),
        None => Ok(vec![(architecture.normalized(name), keywords.text("version"))]),
    }
}

/// The packages that are there to be removed; else why there are none.
fn targets(wanted: &Packages, ignore_epoch: Option<bool>) -> Result<core::result::Result<Vec<String>, String>> {
    let current = installed::current()?;
    let mut with_version = false;
    let mut found = Vec::new();
    for (name, version) in wanted {
        let Some(have) = current.get(name) else { continue };
        match version {
            None => found.push(name.clone()),
            Some(version) => {
                with_version = true;
                if fulfilled(have, version, How { ignore_epoch, allow_updates: false }) {
                    found.push(name.clone());
                }
            }
        }
    }
    let matching = if with_version { " (matching specified versions)" } else { "" };
    Ok(match found.is_empty() {
        true => Err(format!("All specified packages{matching} are already absent")),
        false => Ok(found),
    })
}

pub(super) fn run(action: Action, name: &str, keywords: &Keywords) -> Result<StateResult> {
    let purge = action == Action::Purge;
    let done = format!("{}d", action.name());
    let wanted = wanted(name, keywords)?;
    if wanted.is_empty() && !purge {
        return Ok(StateResult::bad("Invalidly formatted pkgs parameter. See minion log."));
    }
    let ignore_epoch = keywords.get("ignore_epoch").filter(|value| **value != Value::None).map(Value::truthy);
    let mut targets = match targets(&wanted, ignore_epoch)? {
        Ok(targets) => targets,
        Err(_) if purge => Vec::new(),
        Err(why) => return Ok(StateResult::good(why)),
    };
    if purge {
        let removed = installed::removed()?;
        targets.extend(wanted.iter().map(|(name, _)| name.clone()).filter(|name| removed.contains_key(name)));
    }
    targets.sort();
    if targets.is_empty() {
        let partially = if purge { " or partially installed" } else { "" };
        return Ok(StateResult::good(format!("None of the targeted packages are installed{partially}")));
    }
    if is_dry_run() {
        let change = || Value::dict([("new", done.clone().into()), ("old", "".into())]);
        let changes = Value::Dict(targets.iter().map(|name| (name.clone().into(), change())).collect());
        return Ok(StateResult::would(
            format!("The following packages will be {done}: {}.", joined(&targets)),
            changes,
        ));
    }
    let pkgs = keywords.get("pkgs").cloned().unwrap_or_default();
    let changes = match removal::uninstall(action, Some(name), &pkgs) {
        Ok(changes) => changes,
        Err(failure) if failure.has_info() => {
            return Ok(StateResult::new(Some(false), failure.without_changes(), failure.changes()));
        }
        Err(failure) => {
            let doing = if purge { "purging" } else { "removing" };
            let why = failure.text();
            return Ok(StateResult::bad(format!("An error was encountered while {doing} package(s): {why}")));
        }
    };
    let (current, removed) = (installed::current()?, installed::removed()?);
    let names = || wanted.iter().map(|(name, _)| name.clone());
    let mut failed: Vec<String> = names().filter(|name| current.contains_key(name)).collect();
    if purge {
        failed.extend(names().filter(|name| removed.contains_key(name)));
    }
    failed.sort();
    if !failed.is_empty() {
        let comment = format!("The following packages failed to {}: {}.", action.name(), joined(&failed));
        return Ok(StateResult::new(Some(false), comment, changes));
    }
    let mut absent: Vec<String> = names().filter(|name| !targets.contains(name)).collect();
    absent.sort();
    let comment = match absent.is_empty() {
        true => format!("All targeted packages were {done}."),
        false => format!(
            "The following packages were not installed: {} The following packages were {done}: {}.",
            joined(&absent),
            joined(&targets)
        ),
    };
    Ok(StateResult::changed(comment, changes))
}
