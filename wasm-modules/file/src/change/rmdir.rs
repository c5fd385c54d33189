//! Salt's `file.rmdir`: an empty directory, or with `recurse` all empty ones from the bottom up.

use brine_guest::changes::{self, Kind};
use brine_guest::{Value, path};

use super::directories;
use crate::wasi::clocks::wall_clock;

const DAY: f64 = 86_400.0;

/// What was removed, and what could not be, with the reason.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Removed {
    pub(crate) deleted: Vec<String>,
    errors: Vec<(String, String)>,
    pub(crate) result: bool,
}

impl Removed {
    pub(crate) fn value(&self) -> Value {
        let errors = self.errors.iter().map(|(place, why)| vec![place.as_str(), why.as_str()]);
        Value::dict([("deleted", self.deleted.clone().into()), ("errors", errors.collect::<Vec<_>>().into())])
    }

    fn remove(&mut self, place: &str) -> bool {
        match remove(place) {
            Ok(()) => {
                self.deleted.push(place.to_owned());
                true
            }
            Err(why) => {
                self.errors.push((place.to_owned(), why));
                false
            }
        }
    }
}

/// As the kernel's rmdir: a link to a directory is none.
fn remove(place: &str) -> Result<(), String> {
    match changes::look(place, false)?.map(|entry| entry.kind) {
        Some(Kind::Directory) => changes::remove(place, false).map(drop),
        Some(_) => Err(format!("[Errno 20] Not a directory: '{place}'")),
        None => Err(format!("[Errno 2] No such file or directory: '{place}'")),
    }
}

/// The time that directories have to be older than; none for any. What is no number is 0 days, which is any, as in Salt.
fn bound(older_than: &Value) -> Option<f64> {
    let days = match older_than {
        Value::Bool(is) => f64::from(u8::from(*is)),
        Value::Int(days) => *days as f64,
        Value::Float(days) => days.trunc(),
        Value::Text(text) if !text.is_empty() => text.trim().parse::<i64>().ok()? as f64,
        _ => return None,
    };
    let now = wall_clock::now();
    older_than.truthy().then(|| now.seconds as f64 + f64::from(now.nanoseconds) / 1e9 - days * DAY)
}

pub(crate) fn rmdir(name: &str, recurse: bool, older_than: &Value) -> Result<Removed, String> {
    if !name.starts_with('/') {
        return Err("File path must be absolute.".into());
    }
    if !changes::is(name, Kind::Directory)? {
        return Err(format!("A valid directory was not specified: {name}"));
    }
    let bound = bound(older_than);
    let is_old = |place: &str| -> Result<bool, String> {
        Ok(match bound {
            None => true,
            Some(bound) => changes::look(place, true)?.is_some_and(|entry| entry.mtime < bound),
        })
    };
    let mut removed = Removed::default();
    if recurse {
        for level in directories::walk(name, None)?.iter().rev() {
            for dir in &level.dirs {
                let place = path::join(&level.path, dir);
                if is_old(&place)? {
                    removed.remove(&place);
                }
            }
        }
        removed.result = removed.errors.is_empty();
    }
    if is_old(name)? {
        let is_removed = removed.remove(name);
        removed.result = is_removed && (removed.result || !recurse);
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_salts() {
        let removed = Removed {
            deleted: vec!["/a/b".into()],
            errors: vec![("/a".into(), "[Errno 39] Directory not empty: '/a'".into())],
            result: false,
        };
        let Value::Dict(entries) = removed.value() else { panic!() };
        assert_eq!(entries[0].1, vec!["/a/b"].into());
        assert_eq!(entries[1].1, Value::List(vec![vec!["/a", "[Errno 39] Directory not empty: '/a'"].into()]));
    }
}
