//! `git.config_set` and `git.config_unset`.

use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Data, Value};

use super::report::{Report, stripped};
use crate::arguments::{flag, full, text, texts};
use crate::config::{self, Scope, Settings};
use crate::run::{Git, expanded};

/// Whose settings, and as whom; Salt's sentence if it is not said.
pub(super) type Place = Result<(Scope, Git), String>;

pub(super) fn place(global: Option<Data>, repo: Option<Data>, user: Option<Data>) -> Result<Place, String> {
    let is_global = flag(global.as_ref(), false)?;
    let (repo, user) = (full(repo.as_ref())?, text(user.as_ref())?);
    if !is_global && repo.is_none() {
        return Ok(Err("Non-global config options require the 'repo' argument to be set".into()));
    }
    let cwd = repo.map(|repo| expanded(&repo, user.as_deref())).transpose()?;
    Ok(Ok((Scope { is_global, cwd }, Git::new(user))))
}

pub(super) fn set(
    name: &str,
    value: Option<&Data>,
    multivar: Option<&Data>,
    place: Place,
) -> Result<StateResult, String> {
    let (value, several) = (text(value)?, texts(multivar)?);
    if value.is_some() && several.is_some() {
        return Ok(StateResult::bad("Only one of 'value' and 'multivar' is permitted"));
    }
    let (scope, git) = match place {
        Ok(place) => place,
        Err(why) => return Ok(StateResult::bad(why)),
    };
    let (desired, shown) = match (value, several) {
        (Some(value), _) => (vec![value.clone()], format!("'{value}'")),
        (None, Some(several)) => (several.clone(), Value::from(several).to_text()),
        (None, None) => return Err("one of 'value' and 'multivar' is needed".into()),
    };
    let what = if scope.is_global { "Global key " } else { "" };
    let pre = git.config_get(&scope, name)?;
    if pre.as_ref() == Some(&desired) {
        return Ok(StateResult::good(format!("{what}'{name}' is already set to {shown}")));
    }
    let how = if pre.is_none() { "added as" } else { "set to" };
    let change = |new: Option<Vec<String>>| Value::dict([("old", Value::from(pre.clone())), ("new", Value::from(new))]);
    if is_dry_run() {
        let comment = format!("{what}'{name}' would be {how} {shown}");
        return Ok(StateResult::would(comment, change(Some(desired))));
    }
    let failed = format!("Failed to set {}'{name}' to {shown}", what.to_lowercase());
    let post = match git.config_set(&scope, name, &desired, false).and_then(|()| git.config_get(&scope, name)) {
        Ok(post) => post,
        Err(why) => return Ok(StateResult::bad(format!("{failed}: {}", stripped(&why)))),
    };
    let mut report = Report::default();
    if pre != post {
        report.change(name, change(post.clone()));
    }
    Ok(match post.as_ref() == Some(&desired) {
        true => report.end(Some(true), format!("{what}'{name}' was {how} {shown}")),
        false => report.fail(format!("Failed to set {what}'{name}' to {shown}")),
    })
}

pub(super) fn unset(name: &str, value: Option<&str>, all: bool, place: Place) -> Result<StateResult, String> {
    let (scope, git) = match place {
        Ok(place) => place,
        Err(why) => return Ok(StateResult::bad(why)),
    };
    let key = format!("^{}$", name.trim_start_matches('^').trim_end_matches('$'));
    let matches = git.config_get_regexp(&scope, &key, value)?;
    if matches.is_empty() {
        return Ok(StateResult::good("No matching keys are set"));
    }
    let several: Settings = matches.iter().filter(|(_, values)| values.len() > 1).cloned().collect();
    if !all && !several.is_empty() {
        let why = match value {
            Some(_) => "Multiple values are matched by value_regex for the following keys",
            None => "Multivar(s) matched by the key expression",
        };
        let shown = shown(&several);
        return Ok(StateResult::bad(format!("{why} (set 'all' to True to force removal): {shown}")));
    }
    if is_dry_run() {
        let comment = format!("{} key(s) would have value(s) unset", matches.len());
        return Ok(StateResult::would(comment, config::value(&matches)));
    }
    let pre = if value.is_none() { matches.clone() } else { git.config_get_regexp(&scope, &key, None)? };
    let mut failed = Vec::new();
    for (key, _) in &matches {
        if git.config_unset(&scope, name, value, all).is_err() {
            failed.push(key.as_str());
        }
    }
    if !failed.is_empty() {
        return Ok(StateResult::bad(format!(
            "Error(s) occurred unsetting values for the following keys (see the minion log for details): {}",
            failed.join(", ")
        )));
    }
    let post = git.config_get_regexp(&scope, &key, None)?;
    let mut report = Report::default();
    for (key, values) in &pre {
        let kept = post.iter().find(|(known, _)| known == key).map(|(_, values)| values.as_slice()).unwrap_or_default();
        let gone: Vec<String> = values.iter().filter(|value| !kept.contains(value)).cloned().collect();
        if !gone.is_empty() {
            report.change(key, gone);
        }
    }
    let left = if value.is_none() { post } else { git.config_get_regexp(&scope, &key, value)? };
    Ok(match left.is_empty() {
        true => report.end(Some(true), "Value(s) successfully unset"),
        false => report.fail(format!("Failed to unset value(s): {}", shown(&left))),
    })
}

fn shown(settings: &Settings) -> String {
    settings.iter().map(|(key, values)| format!("{key} ({})", values.join(", "))).collect::<Vec<_>>().join("; ")
}
