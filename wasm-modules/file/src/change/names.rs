//! Names of files: moving, copying, and the times of files.

use brine_guest::changes::{self, Content, Kind, Put};
use brine_guest::{Value, path};

use super::directories;
use super::owner::Wanted;

/// Upper bound on nested directories of a copy.
const MAX_DEPTH: usize = 128;

/// Sets times, as Salt's `file.touch`: None is now.
pub(crate) fn touch(name: &str, atime: &Value, mtime: &Value) -> Result<(), String> {
    let time = |value: &Value| match value {
        Value::None => Ok(None),
        Value::Int(seconds) => Ok(Some(*seconds)),
        #[allow(clippy::cast_possible_truncation)]
        Value::Float(seconds) => Ok(Some(*seconds as i64)),
        other => {
            let seconds = other.to_text().parse::<i64>().ok().filter(|seconds| *seconds >= 0);
            seconds.map(Some).ok_or_else(|| "atime and mtime must be integers".to_owned())
        }
    };
    changes::touch(name, time(atime)?, time(mtime)?).map(drop)
}

/// Moves a file or a directory, to another file system too.
pub(crate) fn move_to(from: &str, to: &str) -> Result<(), String> {
    match changes::rename(from, to) {
        // Another file system.
        Err(why) if why.starts_with("[Errno 18]") => {
            copy_tree(from, to, &Wanted::default())?;
            changes::remove(from, true).map(drop)
        }
        done => done.map(drop),
    }
}

/// Copies a file, a link, or a directory with all that is in it, with modes; owners are those named, or of the source.
pub(crate) fn copy_tree(from: &str, to: &str, owner: &Wanted) -> Result<(), String> {
    copy(from, to, owner, 0)
}

fn copy(from: &str, to: &str, owner: &Wanted, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("'{from}' is too deep"));
    }
    let entry = changes::look(from, false)?.ok_or_else(|| format!("[Errno 2] No such file or directory: '{from}'"))?;
    let owner_of = match owner.user.truthy() {
        true => owner.clone(),
        false => Wanted { user: Value::Int(entry.uid.into()), group: Value::Int(entry.gid.into()) },
    };
    match entry.kind {
        Kind::Directory => {
            directories::make(to, &owner_of, Some(&super::mode::of(&entry)))?;
            for (name, _) in changes::list(from)? {
                copy(&path::join(from, &name), &path::join(to, &name), owner, depth + 1)?;
            }
            Ok(())
        }
        Kind::Symlink => {
            let target = entry.target.unwrap_or_default();
            changes::symlink(to, &target, &owner_of.owner(), true).map(drop)
        }
        Kind::Regular => {
            let put = Put::new(to).owner_of(owner_of.owner()).mode(Some(entry.mode)).follow(false);
            put.content(&Content::File(from.to_owned())).map(drop)
        }
        _ => Err(format!("it is a device, a pipe or a socket: '{from}'")),
    }
}
