//! The file that is edited: read whole, within a bound, and put back if nobody changed it meanwhile.

use brine_guest::changes::{self, Content, Kind, Put};
use brine_guest::{diff, path};

/// Upper bound on the bytes of a file that is edited: its lines and their differences are in memory.
const MAX_TEXT: u64 = 8 << 20;

/// Whether a state may edit this path.
///
/// # Errors
/// Salt's sentence: it is not absolute, or nothing is there.
pub(crate) fn check(name: &str) -> Result<(), String> {
    if !name.starts_with('/') {
        return Err(format!("Specified file {name} is not an absolute path"));
    }
    match changes::look(name, true)? {
        Some(_) => Ok(()),
        None => Err(format!("{name}: file not found")),
    }
}

/// The content of a file; none if nothing is there.
pub(crate) fn read(path: &str) -> Result<Option<Vec<u8>>, String> {
    let Some(entry) = changes::look(path, true)? else { return Ok(None) };
    match entry.kind {
        Kind::Regular if entry.size > MAX_TEXT => {
            Err(format!("'{path}' has {} bytes, and a file that is edited has at most {MAX_TEXT}", entry.size))
        }
        Kind::Regular => changes::read(path),
        Kind::Directory => Err(format!("[Errno 21] Is a directory: '{path}'")),
        _ => Err(format!("'{path}' is no regular file")),
    }
}

/// The content of a file that has to be there and to be text.
pub(crate) fn read_text(path: &str) -> Result<Vec<u8>, String> {
    let content = read(path)?.ok_or_else(|| format!("File not found: {path}"))?;
    if !diff::is_text(&content) {
        return Err(format!("Cannot perform string replacements on a binary file: {path}"));
    }
    Ok(content)
}

/// Puts a new content in the place of the one that was read. Owner and mode stay.
pub(crate) fn write(path: &str, old: Option<&[u8]>, new: Vec<u8>) -> Result<(), String> {
    Put::new(path).instead_of(old).bytes(new).map(drop)
}

/// Upper bound on links that lead to one another.
const MAX_LINKS: usize = 40;

/// Where the file of a name is, whose last part may be a link. The directories on the way are not looked at: they need
/// not be granted.
pub(crate) fn file_of(path: &str) -> Result<String, String> {
    let mut place = path.to_owned();
    for _ in 0..MAX_LINKS {
        match changes::look(&place, false)?.and_then(|entry| entry.target) {
            None => return Ok(place),
            Some(target) => place = path::join(path::dirname(&place), &target),
        }
    }
    Err(format!("[Errno 40] Too many levels of symbolic links: '{path}'"))
}

/// Whether a backup has the owner of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owned {
    ByFile,
    ByMinion,
}

/// Copies a file beside it, under its name with this end. If the name is a link, a link beside it leads to the copy, as in
/// Salt.
pub(crate) fn backup(path: &str, end: &str, owned: Owned) -> Result<(), String> {
    let real = file_of(path)?;
    let Some(entry) = changes::look(&real, false)? else { return Ok(()) };
    let target = format!("{real}{end}");
    let owner = |id: u32| (owned == Owned::ByFile).then(|| id.to_string());
    let put = Put::new(&target).follow(false).mode(Some(entry.mode & 0o777));
    put.owner(owner(entry.uid), owner(entry.gid)).content(&Content::File(real.clone()))?;
    if let Some(link) = changes::look(path, false)?.and_then(|entry| entry.target)
        && owned == Owned::ByMinion
    {
        let owner = changes::Owner { user: None, group: None };
        changes::symlink(&format!("{path}{end}"), &format!("{link}{end}"), &owner, true)?;
    }
    Ok(())
}
