//! `clean` of `file.directory` and `file.recurse`: removing what no state manages.

use std::collections::BTreeSet;

use brine_guest::changes::{self, Kind};
use brine_guest::{Value, fnmatch, path};

use super::Arguments;
use crate::change::directories::Level;
use crate::look::pattern::{self, Flags};

/// The paths that other states manage, named by `require`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    paths: BTreeSet<String>,
    /// Directories of which all is kept.
    trees: Vec<String>,
}

impl Kept {
    /// The items of `require` name the paths of states of files (`file: PATH`).
    pub(crate) fn add_required(&mut self, args: &Arguments) -> Result<(), String> {
        for required in args.list("require") {
            let Some(named) = required.get("file").and_then(Value::text).filter(|named| named.starts_with('/')) else {
                continue;
            };
            self.add(named);
            if changes::is(named, Kind::Directory)? {
                self.trees.push(named.to_owned());
            }
        }
        Ok(())
    }

    /// Keeps a path and the directories around it.
    pub(crate) fn add(&mut self, named: &str) {
        let mut at = path::normpath(named);
        while at.starts_with('/') && at != "/" && self.paths.insert(at.clone()) {
            at = path::dirname(&at).to_owned();
        }
    }

    /// Whether a path is kept. `top` is the directory that is cleaned; a tree that it is in keeps nothing there.
    fn has(&self, place: &str, top: &str) -> bool {
        let within = |tree: &String| path::below(top, tree).is_none() && path::below(place, tree).is_some();
        self.paths.contains(place) || self.trees.iter().any(within)
    }
}

/// Removes what is below a directory and not kept. Returns the paths that were removed, each with all that was in it. With
/// `dry`, nothing is removed, and all paths are returned, in the order in which Salt's dry run has them.
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
        let (first, second) = if dry { (&level.files, &level.dirs) } else { (&level.dirs, &level.files) };
        for name in first.iter().chain(second) {
            let place = path::join(&level.path, name);
            if gone.iter().any(|dir| path::below(&place, dir).is_some()) {
                continue;
            }
            let below = path::below(&place, top).unwrap_or_default();
            if kept.has(&place, top) || (exclude.is_some() && !is_chosen(&below, None, exclude)?) {
                continue;
            }
            if !dry {
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
        kept.trees.push("/a/t".into());
        let has = |place: &str| kept.has(place, "/a");
        assert!(has("/a/b/c") && has("/a/b") && !has("/a/b/c/d") && !has("/x"));
        assert!(has("/a/t/x") && !has("/a/tx"));
        assert!(!kept.has("/a/t/x/y", "/a/t/x"));
    }
}
