//! `clean` of `file.directory` and `file.recurse`: removing what no state manages.

use std::collections::BTreeSet;

use brine_guest::changes;
use brine_guest::{Value, fnmatch, path};

use super::Arguments;
use crate::change::directories::Level;
use crate::look::pattern::{self, Flags};

/// The paths that other states manage, named by `require`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept(BTreeSet<String>);

impl Kept {
    /// Of the items of `require`, the host's compiler makes `file: PATH` for states of files.
    pub(crate) fn of(args: &Arguments) -> Self {
        let mut kept = Self::default();
        for required in args.list("require") {
            if let Some(named) = required.get("file").and_then(Value::text) {
                kept.add(named);
            }
        }
        kept
    }

    /// Keeps a path and the directories around it.
    pub(crate) fn add(&mut self, named: &str) {
        let mut at = path::normpath(named);
        while at.starts_with('/') && at != "/" && self.0.insert(at.clone()) {
            at = path::dirname(&at).to_owned();
        }
    }

    /// Whether a path is kept: it, what is around it, or what a kept directory has in it.
    fn has(&self, place: &str) -> bool {
        self.0.contains(place)
    }
}

/// Removes what is below a directory and not kept. Returns the paths, in the order of a walk; with `dry`, only those.
pub(crate) fn remove(
    top: &str,
    levels: &[Level],
    kept: &Kept,
    exclude: Option<&Value>,
    dry: bool,
) -> Result<Vec<String>, String> {
    let mut removed = Vec::new();
    let mut gone: Vec<String> = Vec::new();
    for level in levels {
        for name in level.dirs.iter().chain(&level.files) {
            let place = path::join(&level.path, name);
            let below = path::below(&place, top).unwrap_or_default();
            if kept.has(&place) || (exclude.is_some() && !is_chosen(&below, None, exclude)?) {
                continue;
            }
            if !dry && !gone.iter().any(|dir| path::below(&place, dir).is_some()) {
                changes::remove(&place, true)?;
                gone.push(place.clone());
            }
            removed.push(place);
        }
    }
    Ok(removed)
}

/// Salt's `check_include_exclude`: whether a path matches what is included and nothing that is excluded. A pattern is a
/// glob, or a regular expression after `E@`.
pub(crate) fn is_chosen(place: &str, include: Option<&Value>, exclude: Option<&Value>) -> Result<bool, String> {
    let any = |patterns: &Value| -> Result<bool, String> {
        let patterns = match patterns {
            Value::List(patterns) => patterns.iter().map(Value::to_text).collect(),
            one => vec![one.to_text()],
        };
        for one in patterns {
            if matches(place, &one)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let given = |patterns: Option<&Value>| patterns.filter(|patterns| patterns.truthy()).cloned();
    let included = given(include).map_or(Ok(true), |include| any(&include))?;
    let excluded = given(exclude).map_or(Ok(false), |exclude| any(&exclude))?;
    Ok(included && !excluded)
}

fn matches(place: &str, one: &str) -> Result<bool, String> {
    let Some(regex) = one.strip_prefix("E@") else { return Ok(fnmatch(one, place)) };
    let regex = pattern::compile(&pattern::python(regex, Flags::default())?, Flags::default())?;
    Ok(regex.is_match(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_chosen_by_patterns() {
        let chosen = |place, include: Option<Value>, exclude: Option<Value>| {
            is_chosen(place, include.as_ref(), exclude.as_ref()).unwrap()
        };
        assert!(chosen("a/b.conf", None, None));
        assert!(chosen("a/b.conf", Some("*.conf".into()), None) && !chosen("a/b", Some("*.conf".into()), None));
        assert!(!chosen("a/b.conf", None, Some("E@\\.conf$".into())));
        assert!(!chosen("a/b.conf", Some("a/*".into()), Some(vec!["x", "a/b*"].into())));
        assert!(is_chosen("x", None, Some(&"E@(".into())).is_err());
    }

    #[test]
    fn what_is_kept_is_kept_with_the_directories_around_it() {
        let mut kept = Kept::default();
        kept.add("/a/b/c/");
        assert!(kept.has("/a/b/c") && kept.has("/a/b") && kept.has("/a") && !kept.has("/a/b/c/d") && !kept.has("/x"));
    }
}
