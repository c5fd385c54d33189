//! The state `downloaded`.

use brine_apt::arguments::{self, Keywords, Packages};
use brine_apt::wanted::{How, fulfilled};
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Result, Value};

use super::find::{verified, with_version};
use super::joined;
use crate::downloads;
use crate::host;
use crate::install::Install;

pub(super) fn run(name: &str, keywords: &Keywords) -> Result<StateResult> {
    let given = |key: &str| keywords.get(key).cloned().unwrap_or_default();
    let mut pkgs = given("pkgs");
    if pkgs == Value::List(Vec::new()) {
        return Ok(StateResult::good("No packages to download provided"));
    }
    if !pkgs.truthy() {
        pkgs = Value::List(vec![match keywords.get("version").filter(|version| version.truthy()) {
            Some(version) => Value::dict([(name, version.to_text().into())]),
            None => name.into(),
        }]);
    }
    let architecture = host::architecture();
    let wanted = arguments::packages(&pkgs, |name| architecture.normalized(name))?;
    if wanted.is_empty() {
        return Ok(StateResult::bad("Invalidly formatted pkgs parameter. See minion log."));
    }
    let ignore_epoch = keywords.get("ignore_epoch").filter(|value| **value != Value::None).map(Value::truthy);
    let have = downloads::versions()?;
    let mut with_versions = false;
    let mut targets = Packages::new();
    for (name, version) in wanted {
        let there = have.get(&name);
        let is_there = match (there, version.as_deref().unwrap_or_default()) {
            (None, _) => false,
            (Some(_), "") => true,
            (Some(versions), version) => {
                with_versions = true;
                fulfilled(versions, version, How { ignore_epoch, allow_updates: false })
            }
        };
        if !is_there {
            targets.push((name, version));
        }
    }
    if targets.is_empty() {
        let matching = if with_versions { " (matching specified versions)" } else { "" };
        return Ok(StateResult::good(format!("All specified packages{matching} are already downloaded")));
    }
    let names: Vec<&String> = targets.iter().map(|(name, _)| name).collect();
    if is_dry_run() {
        let comment = format!("The following packages would be downloaded: {}", joined(&names));
        return Ok(StateResult::would(comment, Value::Dict(Vec::new())));
    }
    let install = Install {
        pkgs,
        refresh: keywords.is_true("refresh", false),
        fromrepo: keywords.text("fromrepo").filter(|repo| !repo.is_empty()),
        skip_verify: keywords.truthy("skip_verify"),
        downloadonly: true,
        ignore_epoch: ignore_epoch.unwrap_or(false),
        normalize: true,
        keywords: keywords.clone(),
        ..Install::default()
    };
    let changes = match install.run() {
        Ok(changes) => changes,
        Err(failure) if failure.has_info() => {
            return Ok(StateResult::new(Some(false), failure.without_changes(), failure.changes()));
        }
        Err(failure) => {
            let why = failure.text();
            return Ok(StateResult::bad(format!("An error was encountered while downloading package(s): {why}")));
        }
    };
    let (_, failed) = verified(&targets, &downloads::versions()?, ignore_epoch);
    if !failed.is_empty() {
        let failed: Vec<String> = failed.iter().map(|name| with_version(name, &targets)).collect();
        let comment = format!("The following packages failed to download: {}", joined(&failed));
        return Ok(StateResult::new(Some(false), comment, changes));
    }
    let comment = if changes.truthy() { String::new() } else { format!("Packages downloaded: {}", joined(&names)) };
    Ok(StateResult::changed(comment, changes))
}
