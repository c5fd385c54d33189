//! Salt's `file.check_file_meta`: what `file.managed` would change.

use brine_guest::Value;
use brine_guest::changes::{Entry, Kind};
use brine_guest::diff;

use super::body::{self, Body};
use super::get::Got;
use crate::change::permissions::Permissions;

/// What a file is to be.
#[derive(Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) name: &'a str,
    /// What a source has.
    pub(crate) got: Option<&'a Got>,
    pub(crate) contents: Option<&'a [u8]>,
    pub(crate) permissions: &'a Permissions,
    /// Whether a new file's content is shown.
    pub(crate) new_file_diff: bool,
    /// Whether differences are shown; else, that there are some.
    pub(crate) shown: bool,
}

/// What of a file is not as it should be, as a dict's entries. `entry` is what is there, with a file's hash.
pub(crate) fn changes(wish: &Wish<'_>, entry: Option<&Entry>) -> Result<Vec<(Value, Value)>, String> {
    let mut changes = Vec::new();
    let mut change = |key: &str, value: Value| changes.push((Value::from(key), value));
    if entry.is_none() && !wish.new_file_diff {
        change("newfile", wish.name.into());
        return Ok(changes);
    }
    if let Some(found) = difference(wish, entry)? {
        let (key, text) = found;
        let hidden = !wish.shown && key == "diff";
        change(key, if hidden { "<show_changes=False>".into() } else { text.into() });
    }
    let Some(entry) = entry else { return Ok(changes) };
    let lacks = wish.permissions.lacks(entry);
    if lacks.user {
        change("user", wish.permissions.owner.user.clone());
    }
    if lacks.group {
        change("group", wish.permissions.owner.group.clone());
    }
    if let Some(mode) = wish.permissions.mode.as_ref().filter(|_| lacks.mode) {
        change("mode", mode.as_str().into());
    }
    Ok(changes)
}

fn difference(wish: &Wish<'_>, entry: Option<&Entry>) -> Result<Option<(&'static str, String)>, String> {
    let file = entry.filter(|entry| entry.kind == Kind::Regular);
    let found = |text: String| (!text.is_empty()).then_some(("diff", text));
    let body = match (wish.got, wish.contents) {
        (Some(got), None) => {
            if let (Some(sum), Some(file)) = (&got.sum, file)
                && body::hash_of(wish.name, file, &sum.kind)? == sum.hex
            {
                return Ok(None);
            }
            if let (Body::Web(_), Some(_)) = (&got.body, &got.sum) {
                // Nothing is fetched to know that it differs.
                return Ok(Some(("sum", "Checksum differs".into())));
            }
            got.body.clone()
        }
        (_, Some(contents)) => {
            if let Some(file) = file
                && body::hash_of(wish.name, file, "sha256")? == brine_guest::hash::sha256(contents)
            {
                return Ok(None);
            }
            Body::Bytes(contents.to_vec())
        }
        (None, None) => return Ok(None),
    };
    Ok(match entry {
        Some(_) if !wish.shown => found("<show_changes=False>".into()),
        Some(entry) => found(body.diff(wish.name, entry.size)?),
        None => found(diff::of_contents(b"", &body.load()?)),
    })
}
