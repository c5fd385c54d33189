//! The state `installed`.

use brine_apt::arguments::{Keywords, is_true};
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Result, Value};

use super::asked::Asked;
use super::find::{self, Found, Look, with_version};
use super::joined;
use crate::host::{self, How};
use crate::install::Install;
use crate::installed;
use crate::selections::{self, Holding};

pub(super) fn run(name: &str, keywords: &Keywords) -> Result<StateResult> {
    if keywords.get("pkgs") == Some(&Value::List(Vec::new())) {
        return Ok(StateResult::good("No packages to install provided"));
    }
    if matches!(keywords.get("pkg_verify"), Some(Value::Bool(true) | Value::List(_))) {
        return Ok(StateResult::bad("pkg.verify not implemented"));
    }
    let asked = Asked::read(name, keywords)?;
    match find::targets(&asked)? {
        Look::Ended(result) => hold_only(&asked, name, result),
        Look::Found(found) if is_dry_run() => would(&asked, &found),
        Look::Found(found) => apply(&asked, found),
    }
}

fn holdings(hold: bool, names: &[String]) -> Result<Vec<Holding>> {
    if hold { selections::hold(names) } else { selections::unhold(names) }
}

/// Holds packages back that need nothing else.
fn hold_only(asked: &Asked, name: &str, mut result: StateResult) -> Result<StateResult> {
    let Some(hold) = asked.hold() else { return Ok(result) };
    let named = selections::named(Some(name), &asked.pkgs, &asked.sources);
    let held = match named.and_then(|names| holdings(hold, &names)) {
        Ok(held) => held,
        Err(why) => return Ok(StateResult::bad(why)),
    };
    let mut changes = result.changes.value()?;
    let rank = |holding: &Holding| match (holding.changes.truthy(), holding.result) {
        (true, _) => 0,
        (false, Some(true)) => 1,
        (false, _) => 2,
    };
    for kind in 0..3 {
        for holding in held.iter().filter(|holding| rank(holding) == kind) {
            result.comment.push_str(&format!(".\n{}", holding.comment));
            result.result = holding.result;
            if kind == 0 {
                changes.update(&Value::dict([(holding.name.as_str(), holding.changes.clone())]), false);
            }
        }
    }
    result.changes = changes.into();
    Ok(result)
}

fn names(packages: &[(String, Option<String>)]) -> Vec<String> {
    packages.iter().map(|(name, _)| name.clone()).collect()
}

fn set(dict: &mut Value, key: &str, value: Value) {
    let Value::Dict(entries) = dict else { return };
    match entries.iter_mut().find(|(known, _)| known.text() == Some(key)) {
        Some((_, slot)) => *slot = value,
        None => entries.push((key.into(), value)),
    }
}

fn would(asked: &Asked, found: &Found) -> Result<StateResult> {
    let from_files = asked.sources.truthy();
    let as_installed = || Value::dict([("new", "installed".into()), ("old", "".into())]);
    let mut comments = Vec::new();
    let mut changes = Value::Dict(Vec::new());
    let targets = names(&found.targets);
    if !targets.is_empty() {
        match from_files {
            true => targets.iter().for_each(|name| set(&mut changes, name, as_installed())),
            false => changes = find::would_install(&found.targets, &Value::None)?,
        }
        comments.push(format!("The following packages would be installed/updated: {}", joined(&targets)));
    }
    if !found.unpurge.is_empty() {
        comments.push(format!(
            "The following packages would have their selection status changed from 'purge' to 'install': {}",
            joined(&found.unpurge)
        ));
        found.unpurge.iter().for_each(|name| set(&mut changes, name, as_installed()));
    }
    if !found.reinstall.is_empty() {
        let named = |name: &String| if from_files { name.clone() } else { with_version(name, &found.reinstall) };
        let again: Vec<String> = names(&found.reinstall).iter().map(named).collect();
        again.iter().for_each(|name| set(&mut changes, name, as_installed()));
        comments.push(format!("The following packages would be reinstalled: {}", joined(&again)));
    }
    Ok(StateResult::would(comments.join("\n"), changes))
}

/// Takes what is selected to be purged off that list. Returns what changed there.
fn unpurge(names: &[String]) -> Result<Value> {
    let old = installed::all()?.purge_desired;
    let lines: Vec<String> = names.iter().map(|name| format!("{name} install")).collect();
    host::run(&["dpkg", "--set-selections"], How { stdin: Some(lines.join("\n").into_bytes()), ..How::default() })?;
    installed::forget();
    Ok(brine_apt::dpkg::differences(&old, &installed::all()?.purge_desired))
}

fn install(asked: &Asked, found: &Found) -> Install {
    let keywords = &asked.keywords;
    let chosen = || found.targets.iter().chain(&found.reinstall);
    let mut install = Install {
        refresh: asked.refresh && !found.refreshed,
        fromrepo: asked.fromrepo.clone(),
        skip_verify: keywords.truthy("skip_verify"),
        debconf: keywords.text("debconf").filter(|path| !path.is_empty()),
        reinstall: !found.reinstall.is_empty(),
        downloadonly: keywords.truthy("downloadonly"),
        ignore_epoch: asked.ignore_epoch.unwrap_or(false),
        normalize: asked.normalize,
        keywords: keywords.clone(),
        ..Install::default()
    };
    install.keywords.set("split_arch", false);
    install.keywords.set("saltenv", asked.saltenv.clone());
    if asked.pkgs.truthy() {
        let one = |(name, version): &(String, Option<String>)| Value::dict([(name.as_str(), version.clone().into())]);
        install.pkgs = Value::List(chosen().map(one).collect());
    } else if let Value::List(sources) = &asked.sources {
        let is_chosen = |source: &&Value| {
            let name = brine_apt::arguments::first_key(source);
            chosen().any(|(chosen, _)| *chosen == name || *chosen == host::architecture().normalized(&name))
        };
        install.sources = Value::List(sources.iter().filter(is_chosen).cloned().collect());
    }
    install
}

fn apply(asked: &Asked, found: Found) -> Result<StateResult> {
    let from_files = !asked.pkgs.truthy();
    let mut changes = Value::Dict(Vec::new());
    let mut comments: Vec<String> = Vec::new();
    if !found.targets.is_empty() || !found.reinstall.is_empty() {
        match install(asked, &found).run() {
            Ok(made) => changes = made,
            Err(failure) if failure.has_info() => {
                return Ok(StateResult::new(Some(false), failure.without_changes(), failure.changes()));
            }
            Err(failure) => {
                let why = failure.text();
                return Ok(StateResult::bad(format!("An error was encountered while installing package(s): {why}")));
            }
        }
    }
    let reinstalled = changes.clone();
    let mut held = Vec::new();
    if let Some(hold) = asked.hold() {
        match holdings(hold, &names(&found.desired)) {
            Ok(holdings) => held = holdings,
            Err(why) => {
                comments.push(why);
                return Ok(StateResult::new(Some(false), comments.join("\n"), changes));
            }
        }
    }
    if !found.unpurge.is_empty() {
        set(&mut changes, "purge_desired", unpurge(&found.unpurge)?);
    }
    let is_target = |name: &String| found.targets.iter().any(|(target, _)| target == name);
    let is_again = |name: &String| found.reinstall.iter().any(|(again, _)| again == name);
    let (ok, failed) = match from_files {
        true => names(&found.desired).into_iter().partition(|name| !is_target(name) || changes.get(name).is_some()),
        false => find::verified(&found.desired, &installed::current()?, asked.ignore_epoch),
    };
    let modified: Vec<String> = ok.iter().filter(|name| is_target(name)).cloned().collect();
    let not_modified: Vec<String> = ok.iter().filter(|name| !is_target(name) && !is_again(name)).cloned().collect();
    let failed: Vec<String> = failed.into_iter().filter(|name| is_target(name)).collect();
    let named = |name: &String| if from_files { name.clone() } else { with_version(name, &found.desired) };
    let summary = |names: &[String]| joined(&names.iter().map(named).collect::<Vec<_>>());

    if !modified.is_empty() {
        let summary = summary(&modified);
        comments.push(match (summary.chars().count() < 20, modified.len()) {
            (true, _) => format!("The following packages were installed/updated: {summary}"),
            (false, 1) => "1 targeted package was installed/updated.".into(),
            (false, many) => format!("{many} targeted packages were installed/updated."),
        });
    }
    for holding in held.iter().filter(|holding| holding.changes.truthy()) {
        comments.push(holding.comment.clone());
        let text = |value: &Value, key: &str| value.get(key).map(Value::to_text).unwrap_or_default();
        let (old, new) = (text(&holding.changes, "old"), text(&holding.changes, "new"));
        let change = match changes.get(&holding.name).cloned() {
            Some(change) => {
                let after =
                    |was: String, now: &str| if was.is_empty() { now.to_owned() } else { format!("{was}\n{now}") };
                let (new, old) = (after(text(&change, "new"), &new), after(text(&change, "old"), &old));
                Value::dict([("new", new.into()), ("old", old.into())])
            }
            None => Value::dict([("new", new.into())]),
        };
        set(&mut changes, &holding.name, change);
    }
    if !not_modified.is_empty() {
        comments.push(match not_modified.len() {
            0..=20 => format!("The following packages were already installed: {}", summary(&not_modified)),
            many => format!("{many} targeted packages were already installed"),
        });
    }
    let of = |result: bool| {
        held.iter().filter(move |holding| !holding.changes.truthy() && is_true(&holding.result.into()) == result)
    };
    comments.extend(of(true).map(|holding| holding.comment.clone()));
    let mut result = true;
    if !failed.is_empty() {
        comments.insert(0, format!("The following packages failed to install/update: {}", summary(&failed)));
        result = false;
    }
    for holding in of(false) {
        comments.push(holding.comment.clone());
        result = false;
    }
    let (again, not_again): (Vec<String>, Vec<String>) =
        names(&found.reinstall).into_iter().partition(|name| reinstalled.get(name).is_some());
    comments.extend(again.iter().map(|name| format!("Package {} was reinstalled.", named(name))));
    comments.extend(not_again.iter().map(|name| format!("Reinstall was not successful for package {}.", named(name))));
    result &= not_again.is_empty();
    Ok(StateResult::new(Some(result), comments.join("\n"), changes))
}
