//! The state `uptodate`.

use brine_apt::arguments::Keywords;
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Result, Value};

use super::joined;
use crate::available;
use crate::installed;

pub(super) fn run(keywords: &Keywords) -> Result<StateResult> {
    let refresh = match keywords.get("refresh") {
        None => false,
        Some(Value::Bool(refresh)) => *refresh,
        Some(_) => return Ok(StateResult::bad("refresh must be either True or False")),
    };
    let only = match keywords.get("pkgs") {
        Some(Value::List(names)) => Some(names.iter().map(Value::to_text).collect::<Vec<_>>()),
        _ => None,
    };
    let dist_upgrade = keywords.get("dist_upgrade").is_none_or(Value::truthy);
    let mut upgrades = match available::list_upgrades(refresh, dist_upgrade, keywords) {
        Ok(upgrades) => upgrades,
        Err(why) => return Ok(StateResult::bad(why)),
    };
    upgrades.retain(|(name, _)| only.as_ref().is_none_or(|only| only.contains(name)));
    if upgrades.is_empty() {
        return Ok(StateResult::good("System is already up-to-date"));
    }
    if is_dry_run() {
        let current = installed::current()?;
        let old = |name: &str| current.get(name).map(|versions| versions.join(",")).unwrap_or_default();
        let change = |name: &str, new: &str| Value::dict([("new", new.into()), ("old", old(name).into())]);
        let changes = upgrades.iter().map(|(name, version)| (name.clone().into(), change(name, version)));
        return Ok(StateResult::would("System update will be performed", Value::Dict(changes.collect())));
    }
    // The state's default for the look differs from the function's for the upgrade, as in Salt.
    let dist_upgrade = keywords.truthy("dist_upgrade");
    let changes = match available::upgrade(refresh, dist_upgrade, keywords) {
        Ok(changes) => changes,
        Err(failure) if failure.has_info() => {
            return Ok(StateResult::new(Some(false), failure.without_changes(), failure.changes()));
        }
        Err(failure) => {
            let why = failure.text();
            return Ok(StateResult::bad(format!("An error was encountered while updating packages: {why}")));
        }
    };
    let missing: Vec<&String> =
        upgrades.iter().map(|(name, _)| name).filter(|name| only.is_some() && changes.get(name).is_none()).collect();
    Ok(match missing.is_empty() {
        true => StateResult::changed("Upgrade ran successfully", changes),
        false => {
            let comment = format!("The following package(s) failed to update: {}", joined(&missing));
            StateResult::new(Some(false), comment, changes)
        }
    })
}
