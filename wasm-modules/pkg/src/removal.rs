//! Removing.

use brine_apt::cache;
use brine_apt::dpkg::{Versions, differences};
use brine_apt::failure::Failure;
use brine_guest::{Result, Value, fnmatch};

use crate::host::{self, How};
use crate::installed;
use crate::targets::{Asked, Targets};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Remove,
    Purge,
}

impl Action {
    pub(crate) fn name(self) -> &'static str {
        if self == Self::Purge { "purge" } else { "remove" }
    }
}

/// Removes packages. Returns what changed: a dict of `old` and `new` by package; with `Purge` one of `installed` and
/// `removed`, each such a dict.
pub(crate) fn uninstall(action: Action, name: Option<&str>, pkgs: &Value) -> core::result::Result<Value, Failure> {
    let asked = Asked { name, version: None, pkgs, sources: &Value::None, normalize: true, saltenv: "base" };
    let none = Value::Dict(Vec::new());
    let Some(Targets::Repository(packages)) = asked.parse()? else { return Ok(none) };
    let wanted: Vec<String> = packages.into_iter().map(|(name, _)| name).collect();
    let (old, old_removed) = (installed::current()?, installed::removed()?);
    let mut targets = matching(&wanted, &old);
    if action == Action::Purge {
        // As in Salt, globs were resolved by what is installed.
        let rest: Vec<String> = wanted.iter().filter(|name| !name.contains('*')).chain(&targets).cloned().collect();
        targets.extend(matching(&rest, &old_removed));
    }
    if targets.is_empty() {
        return Ok(none);
    }
    let mut command: Vec<String> = ["apt-get", "-q", "-y", action.name()].map(str::to_owned).to_vec();
    command.extend(targets);
    let done = host::run_apt(command, How::default())?;
    installed::forget();
    let installed = differences(&old, &installed::current()?);
    let changes = match action {
        Action::Remove => installed,
        Action::Purge => {
            let removed = differences(&old_removed, &installed::removed()?);
            Value::dict([("installed", installed), ("removed", removed)])
        }
    };
    if done.code != 0 && !done.stderr.is_empty() {
        let info = Value::dict([("errors", vec![done.stderr].into()), ("changes", changes)]);
        return Err(Failure::with("Problem encountered removing package(s)", info));
    }
    Ok(changes)
}

/// The packages of the list that the names mean; a name may be a glob.
fn matching(names: &[String], list: &Versions) -> Vec<String> {
    let plain = names.iter().filter(|name| !name.contains('*') && list.contains_key(*name)).cloned();
    let mut found: Vec<String> = plain.collect();
    for glob in names.iter().filter(|name| name.contains('*')) {
        let more: Vec<String> =
            list.keys().filter(|name| fnmatch(glob, name) && !found.contains(name)).cloned().collect();
        found.extend(more);
    }
    found
}

/// Removes what nothing needs any more and returns what changed; with `list_only` returns the names.
pub(crate) fn autoremove(list_only: bool, purge: bool) -> Result<Value> {
    host::check_family()?;
    let old = installed::current()?;
    let mut command = vec!["apt-get", if list_only { "--assume-no" } else { "--assume-yes" }];
    if purge {
        command.push("--purge");
    }
    command.push("autoremove");
    let done = host::run_apt(command.into_iter().map(str::to_owned).collect(), How::default())?;
    if list_only {
        return Ok(cache::superfluous(&done.stdout).into());
    }
    installed::forget();
    Ok(differences(&old, &installed::current()?))
}
