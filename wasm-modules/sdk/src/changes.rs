//! Files of this host by `brine:host/changes`: the minion looks and changes for the module, with owner and mode, in the
//! directories that its owner granted as `changes`.
//!
//! Paths are absolute. Doubled slashes and `.` are left out here, and a `..` is resolved as the kernel does it: behind a
//! link it is of the link's target.
//!
//! ```ignore
//! let old = changes::read_text("/etc/hosts")?.unwrap_or_default();
//! let new = format!("{old}127.0.1.1 web1\n");
//! changes::Put::new("/etc/hosts").instead_of(Some(old.as_bytes())).text(&new)?;
//! ```

use crate::Result;
use crate::host::changes as host;
pub use crate::host::changes::{Backup, Change, Content, Entry, Kind, MasterFile, Owner};
use crate::path;

/// Upper bound on the bytes of a file that is read as a whole.
pub const MAX_WHOLE: usize = 16 << 20;
/// Bytes of one read: below the host's bound.
const PIECE: u32 = 1 << 20;
/// Upper bound on the links on a way, as in the kernel.
const MAX_LINKS: usize = 40;

/// What is at a path; none if nothing is there. With `follow`, a link's target is meant.
///
/// # Errors
/// One line, when the path is not granted or cannot be looked at.
pub fn look(path: &str, follow: bool) -> Result<Option<Entry>> {
    host::look(&plain(path)?, follow, false)
}

/// As [`look`], with the `sha256` of a file.
///
/// # Errors
/// As [`look`].
pub fn look_with_hash(path: &str, follow: bool) -> Result<Option<Entry>> {
    host::look(&plain(path)?, follow, true)
}

/// Whether something of this kind is at a path. Links are followed.
///
/// # Errors
/// As [`look`].
pub fn is(path: &str, kind: Kind) -> Result<bool> {
    Ok(look(path, true)?.is_some_and(|entry| entry.kind == kind))
}

/// Reads a file of at most [`MAX_WHOLE`] bytes; none if there is no such file.
///
/// # Errors
/// One line, when the file is larger, or cannot be read.
pub fn read(path: &str) -> Result<Option<Vec<u8>>> {
    let place = plain(path)?;
    let mut content = Vec::new();
    loop {
        let Some(part) = host::read(&place, content.len() as u64, PIECE)? else {
            return if content.is_empty() { Ok(None) } else { Err(format!("'{path}' went while it was read")) };
        };
        content.extend_from_slice(&part);
        if content.len() > MAX_WHOLE {
            return Err(format!("'{path}' has more than {MAX_WHOLE} bytes"));
        }
        if part.len() < PIECE as usize {
            return Ok(Some(content));
        }
    }
}

/// Reads a part of a file: fewer bytes at its end; none if there is no such file.
///
/// # Errors
/// One line, when it cannot be read.
pub fn read_at(path: &str, offset: u64, length: u32) -> Result<Option<Vec<u8>>> {
    host::read(&plain(path)?, offset, length.min(PIECE))
}

/// As [`read`], of a file that is text.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: &str) -> Result<Option<String>> {
    let text = |content: Vec<u8>| {
        String::from_utf8(content).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!("'{path}' is no text: byte 0x{:02x} at {at} is not UTF-8", error.as_bytes()[at])
        })
    };
    read(path)?.map(text).transpose()
}

/// The names in a directory with their kinds, sorted by their bytes.
///
/// # Errors
/// One line, when it is no directory or cannot be read.
pub fn list(path: &str) -> Result<Vec<(String, Kind)>> {
    let place = plain(path)?;
    let mut names: Vec<(String, Kind)> = Vec::new();
    loop {
        let after = names.last().map(|(name, _)| name.clone());
        let more = host::list(&place, after.as_deref())?;
        if more.is_empty() {
            return Ok(names);
        }
        names.extend(more.into_iter().map(|name| (name.name, name.kind)));
    }
}

/// How a file is put: a builder that ends with what is put.
#[derive(Debug, Clone)]
pub struct Put<'a> {
    path: &'a str,
    options: host::PutOptions,
}

impl<'a> Put<'a> {
    /// Puts a file: its owner and mode stay (a new file is the minion's with 0644), a link's target is meant, nothing is
    /// kept of what was there.
    pub fn new(path: &'a str) -> Self {
        let owner = Owner { user: None, group: None };
        Self { path, options: host::PutOptions { owner, mode: None, backup: false, follow: true, expect: None } }
    }

    /// Names or numbers; none to leave them.
    #[must_use]
    pub fn owner(mut self, user: Option<String>, group: Option<String>) -> Self {
        self.options.owner = Owner { user, group };
        self
    }

    /// The same as the host has it.
    #[must_use]
    pub fn owner_of(mut self, owner: Owner) -> Self {
        self.options.owner = owner;
        self
    }

    /// None to leave it.
    #[must_use]
    pub fn mode(mut self, mode: Option<u32>) -> Self {
        self.options.mode = mode;
        self
    }

    /// Whether to keep what was there, where Salt's `file.list_backups` finds it.
    #[must_use]
    pub fn backup(mut self, backup: bool) -> Self {
        self.options.backup = backup;
        self
    }

    /// Whether a link's target is meant; else the link is replaced.
    #[must_use]
    pub fn follow(mut self, follow: bool) -> Self {
        self.options.follow = follow;
        self
    }

    /// The SHA-256 that the file has to have now, empty if it must not be there; none to take whatever is there.
    #[must_use]
    pub fn expect(mut self, sha256: Option<String>) -> Self {
        self.options.expect = sha256;
        self
    }

    /// What the file has to have in it now; none if it must not be there. So a change of what was read loses no change
    /// that somebody else made meanwhile.
    #[cfg(feature = "hash")]
    #[must_use]
    pub fn instead_of(self, content: Option<&[u8]>) -> Self {
        let hash = content.map(crate::hash::sha256).unwrap_or_default();
        self.expect(Some(hash))
    }

    /// Puts a text.
    ///
    /// # Errors
    /// One line, when it is not granted, or cannot be written.
    pub fn text(self, text: &str) -> Result<Change> {
        self.content(&Content::Bytes(text.as_bytes().to_vec()))
    }

    /// Puts bytes.
    ///
    /// # Errors
    /// As [`Put::text`].
    pub fn bytes(self, bytes: Vec<u8>) -> Result<Change> {
        self.content(&Content::Bytes(bytes))
    }

    /// Puts content: bytes, another file, a backup, or a file of the master.
    ///
    /// # Errors
    /// As [`Put::text`].
    pub fn content(self, content: &Content) -> Result<Change> {
        host::put(&plain(self.path)?, content, &self.options)
    }
}

/// Gives a text file, whose content is `old`, another one. What was there stays as `PATH.bak`: as after Salt's `file.replace`.
///
/// # Errors
/// One line, when it is not granted, or the file is another one by now.
#[cfg(feature = "hash")]
pub fn edit(path: &str, old: &str, new: &str) -> Result<()> {
    let mode = look(path, true)?.map(|entry| entry.mode);
    Put::new(&format!("{path}.bak")).follow(false).mode(mode).content(&Content::File(path.into()))?;
    Put::new(path).instead_of(Some(old.as_bytes())).text(new)?;
    Ok(())
}

/// Makes a directory, with `parents` the missing ones around it too. One that is there stays as it is.
///
/// # Errors
/// One line, when it is not granted, or something else is there.
pub fn make_directory(path: &str, parents: bool, owner: &Owner, mode: Option<u32>) -> Result<Change> {
    host::make_directory(&plain(path)?, parents, owner, mode)
}

/// Removes a file, a link or an empty directory, with `recursive` a directory with its content. Nothing is no error.
///
/// # Errors
/// One line, when it is not granted, or a directory is not empty.
pub fn remove(path: &str, recursive: bool) -> Result<Change> {
    host::remove(&plain(path)?, recursive)
}

/// Makes a symbolic link; with `replace`, in the place of a file or a link.
///
/// # Errors
/// One line, when it is not granted, or something is there.
pub fn symlink(path: &str, target: &str, owner: &Owner, replace: bool) -> Result<Change> {
    host::symlink(&plain(path)?, target, owner, replace)
}

/// Gives a file another name.
///
/// # Errors
/// One line, when it is not granted, or there is no file.
pub fn hard_link(path: &str, target: &str) -> Result<Change> {
    host::hard_link(&plain(path)?, &plain(target)?)
}

/// Moves a file or a directory within its file system. A file that is there is replaced.
///
/// # Errors
/// One line, when it is not granted, or cannot be moved.
pub fn rename(path: &str, to: &str) -> Result<Change> {
    host::rename(&plain(path)?, &plain(to)?)
}

/// Sets owner and mode; none to leave them.
///
/// # Errors
/// One line, when it is not granted, or nothing is there.
pub fn set_permissions(path: &str, owner: &Owner, mode: Option<u32>, follow: bool) -> Result<Change> {
    host::set_permissions(&plain(path)?, owner, mode, follow)
}

/// Sets the times of a file (seconds since 1970; none: now), and makes an empty one where there is none.
///
/// # Errors
/// One line, when it is not granted.
pub fn touch(path: &str, atime: Option<i64>, mtime: Option<i64>) -> Result<Change> {
    host::touch(&plain(path)?, atime, mtime)
}

/// The backups of a file, the newest first.
///
/// # Errors
/// One line, when it is not granted.
pub fn backups(path: &str) -> Result<Vec<Backup>> {
    host::backups(&plain(path)?)
}

/// Removes a backup of a file.
///
/// # Errors
/// One line, when it is not granted, or there is no such backup.
pub fn remove_backup(path: &str, name: &str) -> Result<Change> {
    host::remove_backup(&plain(path)?, name)
}

/// Resolves links as Python's `os.path.realpath` does. Missing parts stay unchanged.
///
/// # Errors
/// One line, when there are too many links, or a part is not granted.
pub fn realpath(path: &str) -> Result<String> {
    if !path.starts_with('/') {
        return Err(not_absolute(path));
    }
    resolve(path, &|place| match host::look(place, false, false) {
        Ok(entry) => Ok(entry.and_then(|entry| entry.target)),
        Err(why) if why.starts_with("[Errno ") => Err(why),
        // What is around a granted directory is not seen, and a grant names a real path.
        Err(_) => Ok(None),
    })
}

/// The form of a path that the host takes.
fn plain(path: &str) -> Result<String> {
    if !path.starts_with('/') {
        return Err(not_absolute(path));
    }
    let parts = || path.split('/').filter(|part| !matches!(*part, "" | "."));
    if !parts().any(|part| part == "..") {
        return Ok(format!("/{}", parts().collect::<Vec<_>>().join("/")));
    }
    let parts: Vec<&str> = parts().collect();
    match parts.split_last() {
        Some((last, around)) if *last != ".." => {
            let around = realpath(&format!("/{}", around.join("/")))?;
            Ok(path::join(&around, last))
        }
        _ => realpath(path),
    }
}

fn not_absolute(path: &str) -> String {
    format!("the path has to be absolute: '{path}'")
}

/// Walks a path; `target` says where a link leads.
fn resolve(path: &str, target: &dyn Fn(&str) -> Result<Option<String>>) -> Result<String> {
    let mut real = String::from("/");
    let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let mut links = 0;
    while let Some(part) = rest.pop() {
        match part.as_str() {
            "" | "." => continue,
            ".." => {
                real = path::dirname(&real).to_owned();
                continue;
            }
            _ => {}
        }
        let next = path::join(&real, &part);
        let Some(to) = target(&next)? else {
            real = next;
            continue;
        };
        links += 1;
        if links > MAX_LINKS {
            return Err(format!("[Errno 40] Too many levels of symbolic links: '{path}'"));
        }
        if to.starts_with('/') {
            real = String::from("/");
        }
        rest.extend(to.split('/').rev().map(str::to_owned));
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_their_number_is_bounded() {
        let links = [("/a/link", "/b/c"), ("/b/c", "d"), ("/loop", "/loop")];
        let target = |path: &str| Ok(links.iter().find(|(link, _)| *link == path).map(|(_, to)| (*to).to_owned()));
        for (path, real) in
            [("/a/link/x", "/b/d/x"), ("/a/link/../x", "/b/x"), ("//a/./y/", "/a/y"), ("/..", "/"), ("/", "/")]
        {
            assert_eq!(resolve(path, &target).as_deref(), Ok(real), "{path}");
        }
        assert!(resolve("/loop/x", &target).unwrap_err().contains("Too many levels"));
    }

    #[test]
    fn paths_have_the_hosts_form() {
        for (path, form) in [("/a//b/./c/", "/a/b/c"), ("/", "/"), ("//", "/")] {
            assert_eq!(plain(path).as_deref(), Ok(form));
        }
        assert!(plain("a").is_err() && plain("").is_err());
    }
}
