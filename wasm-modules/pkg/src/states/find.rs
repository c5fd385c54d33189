//! Compares the packages that are asked for with those that there are.

use brine_apt::arguments::{self, Packages};
use brine_apt::dpkg::Versions;
use brine_apt::wanted::{How, fulfilled};
use brine_guest::states::StateResult;
use brine_guest::{Result, Value};

use super::asked::Asked;
use crate::available::{self, Question};
use crate::host;
use crate::installed;
use crate::targets::{cached, file_info};

/// What has to be done.
#[derive(Default)]
pub(super) struct Found {
    /// All that is asked for: names and versions, or names and sources.
    pub desired: Packages,
    pub targets: Packages,
    pub unpurge: Vec<String>,
    pub reinstall: Packages,
    /// Whether the lists of packages were refreshed while looking.
    pub refreshed: bool,
}

/// Either what has to be done, or the result if nothing has to be.
pub(super) enum Look {
    Found(Found),
    Ended(StateResult),
}

fn ended(result: bool, comment: impl Into<String>) -> Look {
    Look::Ended(StateResult { result: Some(result), ..StateResult::good(comment) })
}

/// The installed versions of a package, by its name or its name without an architecture that this host has anyway.
pub(super) fn have<'a>(list: &'a Versions, name: &str) -> &'a [String] {
    let found = list.get(name).or_else(|| list.get(&host::architecture().normalized(name)));
    found.map(|versions| &versions[..]).unwrap_or_default()
}

pub(super) fn targets(asked: &Asked) -> Result<Look> {
    if asked.pkgs.truthy() && asked.sources.truthy() {
        return Ok(ended(false, "Only one of \"pkgs\" and \"sources\" is permitted."));
    }
    let current = installed::current()?;
    let from_files = !asked.pkgs.truthy();
    let desired = match from_files {
        false => arguments::packages(&asked.pkgs, str::to_owned)?,
        true => {
            let architecture = host::architecture();
            let normalize = |name: &str| if asked.normalize { architecture.normalized(name) } else { name.to_owned() };
            let sources = arguments::sources(&asked.sources, normalize);
            sources.into_iter().map(|(name, at)| (name, Some(at))).collect()
        }
    };
    let mut found = Found { desired, ..Found::default() };
    if found.desired.is_empty() {
        let what = if from_files { "sources" } else { "pkgs" };
        return Ok(ended(false, format!("Invalidly formatted '{what}' parameter. See minion log.")));
    }
    let purge_desired = installed::all()?.purge_desired;
    found.unpurge =
        found.desired.iter().map(|(name, _)| name.clone()).filter(|name| purge_desired.contains_key(name)).collect();
    if !from_files {
        resolve_latest(asked, &mut found, &current)?;
    }
    let mut problems: Vec<String> = Vec::new();
    let mut with_version = false;
    for (name, wanted) in &found.desired {
        let have = have(&current, name);
        let one = || (name.clone(), wanted.clone());
        if have.is_empty() {
            found.targets.push(one());
            continue;
        }
        if asked.reinstall {
            found.reinstall.push(one());
            continue;
        }
        let Some(wanted) = wanted else { continue };
        let version = match from_files {
            false => wanted.clone(),
            true => match version_of_file(wanted, &asked.saltenv)? {
                Ok(version) => version,
                Err(problem) => {
                    problems.push(problem);
                    continue;
                }
            },
        };
        with_version = true;
        let how = How { ignore_epoch: asked.ignore_epoch, allow_updates: asked.allow_updates && !from_files };
        if !fulfilled(have, &version, how) {
            found.targets.push(one());
        }
    }
    if !problems.is_empty() {
        return Ok(ended(false, problems.join(" ")));
    }
    if found.targets.is_empty() && found.unpurge.is_empty() && found.reinstall.is_empty() {
        let and = if with_version && !from_files { " and are at the desired version" } else { "" };
        return Ok(ended(true, format!("All specified packages are already installed{and}")));
    }
    Ok(Look::Found(found))
}

/// Replaces the version `latest` by the version that it means now.
fn resolve_latest(asked: &Asked, found: &mut Found, current: &Versions) -> Result<()> {
    let is_latest = |version: &Option<String>| version.as_deref() == Some("latest");
    let names: Vec<String> = found.desired.iter().filter(|(_, v)| is_latest(v)).map(|(name, _)| name.clone()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let valid = asked.keywords.get("cache_valid_time").cloned().unwrap_or_default();
    let question =
        Question { refresh: asked.refresh, cache_valid_time: valid, ..Question::look(asked.fromrepo.clone()) };
    let latest = available::latest(&names, &question)?;
    found.refreshed = asked.refresh;
    for (name, version) in found.desired.iter_mut().filter(|(_, version)| is_latest(version)) {
        *version = Some(latest.of(name)).filter(|version| !version.is_empty());
        if version.is_none() {
            *version = current.get(name).and_then(|versions| versions.last().cloned());
        }
    }
    Ok(())
}

/// The version of a package file, or what is wrong with it.
fn version_of_file(source: &str, saltenv: &str) -> Result<core::result::Result<String, String>> {
    let path = match cached(source, saltenv) {
        Ok(Some(path)) => path,
        Ok(None) => return Ok(Err(format!("Unable to cache {source}: file not found"))),
        Err(why) => return Ok(Err(format!("Unable to cache {source}: {why}"))),
    };
    Ok(Ok(file_info(&path)?.version))
}

/// The packages that are there as asked for, and those that are not.
pub(super) fn verified(desired: &Packages, list: &Versions, ignore_epoch: Option<bool>) -> (Vec<String>, Vec<String>) {
    let is_ok = |name: &str, wanted: Option<&str>| {
        let have = have(list, name.split('=').next().unwrap_or(name));
        let Some(first) = have.first() else { return false };
        match wanted {
            None | Some("" | "latest") => true,
            Some(wanted) => {
                wanted.strip_suffix('*').is_some_and(|start| first.starts_with(start))
                    || fulfilled(have, wanted, How { ignore_epoch, allow_updates: false })
            }
        }
    };
    let (ok, failed): (Vec<_>, Vec<_>) = desired.iter().partition(|(name, wanted)| is_ok(name, wanted.as_deref()));
    let names = |list: Vec<&(String, Option<String>)>| list.into_iter().map(|(name, _)| name.clone()).collect();
    (names(ok), names(failed))
}

/// A package with its version, as apt takes it.
pub(super) fn with_version(name: &str, packages: &Packages) -> String {
    let version = packages.iter().find(|(known, _)| known == name).and_then(|(_, version)| version.as_deref());
    match version.unwrap_or_default() {
        "" => name.into(),
        version if version.starts_with(['<', '>', '=']) => format!("{name}{version}"),
        version => format!("{name}={version}"),
    }
}

/// What would be installed: a dict of `old` and `new` by package.
pub(super) fn would_install(targets: &Packages, current: &Value) -> Result<Value> {
    let has_version = |version: &Option<String>| version.as_deref().is_some_and(|version| !version.is_empty());
    let (exact, any): (Vec<_>, Vec<_>) = targets.iter().partition(|(_, version)| has_version(version));
    let names = |list: &[&(String, Option<String>)]| {
        list.iter().map(|(name, _)| with_version(name, targets)).collect::<Vec<_>>()
    };
    let (exact, any) = (names(&exact), names(&any));
    let mut versions = Value::Dict(Vec::new());
    let mut add = |name: &str, version: &str| versions.update(&Value::dict([(name, version.into())]), false);
    match available::latest(&any, &Question::look(None))?.into_value() {
        Value::Dict(latest) => latest.iter().for_each(|(name, version)| add(&name.to_text(), &version.to_text())),
        version => any.first().into_iter().for_each(|name| add(name, &version.to_text())),
    }
    // Where no versions are asked for, Salt looks at all that there is, the newest first.
    let listed = available::repo_versions(if exact.is_empty() { &any } else { &exact })?;
    listed
        .iter()
        .filter_map(|(name, versions)| Some((name, versions.first()?)))
        .for_each(|(name, first)| add(name, first));
    let change = |name: &str| {
        let new = versions.get(name).filter(|version| version.truthy()).cloned().unwrap_or_else(|| "installed".into());
        Value::dict([("new", new), ("old", current.get(name).cloned().unwrap_or_else(|| "".into()))])
    };
    Ok(Value::Dict(targets.iter().map(|(name, _)| (name.clone().into(), change(name))).collect()))
}
