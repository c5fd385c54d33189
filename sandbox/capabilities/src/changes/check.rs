//! The check of one operation: which directory's grant counts for a path, by its text. The minion resolves the path
//! later and checks where it leads.

use super::{Change, ChangesOp, Content, Owner};
use crate::Capability;
use crate::check::{Least, Refusal};
use crate::files;
use crate::forms::{Form, MAX_BULK, MAX_PATH, is_user, malformed, size, text, why_not_absolute};
use crate::grants::{Grant, Grants};
use crate::trees::{Access, Tree, innermost};

/// Upper bound on the bytes read in one call, because the guest holds them in memory too.
pub(super) const MAX_READ: u32 = 4 << 20;
/// Upper bound on the bytes of a name in a directory, as in Linux.
const MAX_NAME: usize = 255;
const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
/// Hexadecimal digits of a SHA-256.
const SHA256: usize = 64;

pub(super) fn check(granted: &Grants, op: &ChangesOp) -> Result<(), Refusal> {
    let wanted = Wanted { granted };
    match op {
        ChangesOp::Look { path, .. } | ChangesOp::Backups { path } => wanted.look(path),
        ChangesOp::Read { path, length, .. } => {
            size("the part", *length as usize, MAX_READ as usize)?;
            wanted.look(path)
        }
        ChangesOp::List { path, after } => {
            after.as_deref().map_or(Ok(()), |after| text("the name", after, MAX_NAME, Form::Bytes))?;
            wanted.look(path)
        }
        ChangesOp::Stage { data, .. } => size("the part", data.len(), MAX_BULK),
        ChangesOp::Do(change) => wanted.change(change),
        ChangesOp::Plan(_) => Err(malformed("the change", "is one that only the minion makes")),
    }
}

/// Checks that a path may be looked at.
pub(super) fn look(granted: &Grants, path: &str) -> Result<(), Refusal> {
    Wanted { granted }.look(path)
}

struct Wanted<'a> {
    granted: &'a Grants,
}

impl Wanted<'_> {
    fn look(&self, path: &str) -> Result<(), Refusal> {
        self.may(path, Access::Look, "look at")
    }

    fn change(&self, change: &Change) -> Result<(), Refusal> {
        match change {
            Change::Put { path, content, owner, mode, expect, .. } => {
                owned(owner)?;
                let access = access(*mode, SET_UID | SET_GID)?;
                self.may(path, access, "change")?;
                if let Some(expect) = expect.as_deref().filter(|expect| !expect.is_empty()) {
                    sha256(expect)?;
                }
                self.content(content)
            }
            Change::MakeDirectory { path, owner, mode, .. } => {
                owned(owner)?;
                // Set-group-id of a directory gives its group to new files, and runs nothing.
                let access = access(*mode, SET_UID)?;
                self.may(path, access, "change")
            }
            Change::Symlink { path, target, owner, .. } => {
                owned(owner)?;
                text("the target", target, MAX_PATH, Form::Bytes)?;
                self.may(path, Access::Change, "change")
            }
            // Who can change a file by another name can change it.
            Change::HardLink { path, target: other } | Change::Rename { path, to: other } => {
                self.may(path, Access::Change, "change")?;
                self.may(other, Access::Change, "change")
            }
            Change::SetPermissions { path, owner, mode, .. } => {
                owned(owner)?;
                // Whether set-group-id is a directory's, the minion sees.
                let access = access(*mode, SET_UID)?;
                self.may(path, access, "change")
            }
            Change::Remove { path, .. } | Change::Touch { path, .. } => self.may(path, Access::Change, "change"),
            Change::RemoveBackup { path, name } => {
                backup(name)?;
                self.may(path, Access::Change, "change")
            }
        }
    }

    fn content(&self, content: &Content) -> Result<(), Refusal> {
        match content {
            Content::Bytes(bytes) => size("the content", bytes.len(), MAX_BULK),
            Content::Staged(_) => Ok(()),
            Content::Master { path, saltenv, sha256: hash } => {
                hash.as_deref().map_or(Ok(()), sha256)?;
                files::read(self.granted, path, saltenv)
            }
            Content::File(path) => self.look(path),
            Content::Backup(name) => backup(name),
        }
    }

    /// Checks the grant of a path.
    fn may(&self, path: &str, access: Access, what: &str) -> Result<(), Refusal> {
        text("the path", path, MAX_PATH, Form::Bytes)?;
        if let Some(why) = why_not_absolute(path) {
            return Err(malformed("the path", why));
        }
        let around = innermost(&self.granted.changes, path);
        if around.is_some_and(|tree| tree.access >= access) {
            return Ok(());
        }
        let what = match access {
            Access::ChangeSetId => format!("make {path} run as its owner or group"),
            _ => format!("{what} {path}"),
        };
        // The directory that a person would grant: that of the file, or the one that is granted for less.
        let directory = around.map_or_else(|| directory_of(path), |tree| tree.path.as_str());
        let mut trees = self.granted.changes.clone();
        trees.retain(|tree| tree.path != directory);
        trees.push(Tree { path: directory.to_owned(), access });
        trees.sort();
        let mut least = self.granted.changes.clone();
        least.retain(|tree| tree.path != path);
        least.push(Tree { path: path.to_owned(), access });
        least.sort();
        let refusal = Refusal::not_granted(what, Capability::Changes, Grant::Changes(trees));
        Err(refusal.with_least(Least::Of(Box::new(Grant::Changes(least)))))
    }
}

fn directory_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        // A grant of `/` is seldom intended.
        Some(("", _)) | None => path,
        Some((directory, _)) => directory,
    }
}

/// Checks a mode and returns the access that it needs.
fn access(mode: Option<u32>, special: u32) -> Result<Access, Refusal> {
    match mode {
        Some(mode) if mode > 0o7777 => Err(malformed("the mode", "is not one: 7777 is the most")),
        Some(mode) if mode & special != 0 => Ok(Access::ChangeSetId),
        _ => Ok(Access::Change),
    }
}

fn owned(owner: &Owner) -> Result<(), Refusal> {
    for (what, name) in [("the user", &owner.user), ("the group", &owner.group)] {
        if name.as_deref().is_some_and(|name| !is_user(name)) {
            return Err(malformed(what, "is neither a name nor a number"));
        }
    }
    Ok(())
}

fn sha256(hex: &str) -> Result<(), Refusal> {
    let is = hex.len() == SHA256 && hex.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
    if is { Ok(()) } else { Err(malformed("the hash", "is no SHA-256 in lower-case hexadecimal digits")) }
}

/// Checks the name of a backup: one name in a directory.
fn backup(name: &str) -> Result<(), Refusal> {
    text("the name of the backup", name, MAX_NAME, Form::Line)?;
    match name.contains('/') || matches!(name, "." | "..") {
        true => Err(malformed("the name of the backup", "is not one name")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::ByteBuf;

    fn granted(trees: &[(&str, Access)]) -> Grants {
        let mut granted = Grants::default();
        granted.changes =
            trees.iter().map(|(path, access)| Tree { path: (*path).to_owned(), access: *access }).collect();
        granted
    }

    fn put(path: &str, mode: Option<u32>) -> ChangesOp {
        ChangesOp::Do(Box::new(Change::Put {
            path: path.to_owned(),
            content: Content::Bytes(ByteBuf::new()),
            owner: Owner::default(),
            mode,
            backup: false,
            follow: false,
            expect: None,
        }))
    }

    fn look(path: &str) -> ChangesOp {
        ChangesOp::Look { path: path.to_owned(), follow: false, hash: false }
    }

    /// `None` if it is allowed, else the grant that would allow it, or `-` if none can.
    fn lacks(granted: &Grants, op: &ChangesOp) -> Option<String> {
        match check(granted, op) {
            Ok(()) => None,
            Err(Refusal::NotGranted { lift: Some(lift), .. }) => Some(lift.1.to_string()),
            Err(_) => Some("-".to_owned()),
        }
    }

    #[test]
    fn the_innermost_grant_decides() {
        let granted =
            granted(&[("/etc", Access::Look), ("/etc/nginx", Access::Change), ("/etc/nginx/keys", Access::Look)]);
        for (op, expect) in [
            (look("/etc/passwd"), None),
            (look("/etc"), None),
            (look("/etcetera"), Some("{/etc: ro, /etc/nginx: rw, /etc/nginx/keys: ro, /etcetera: ro}")),
            (look("/srv/a/b"), Some("{/etc: ro, /etc/nginx: rw, /etc/nginx/keys: ro, /srv/a: ro}")),
            (put("/etc/nginx/a", None), None),
            (put("/etc/nginx", None), None),
            (put("/etc/nginx/keys/a", None), Some("{/etc: ro, /etc/nginx: rw, /etc/nginx/keys: rw}")),
            (put("/etc/passwd", None), Some("{/etc: rw, /etc/nginx: rw, /etc/nginx/keys: ro}")),
            (put("/etc/nginx/a", Some(0o755)), None),
            (put("/etc/nginx/a", Some(0o4755)), Some("{/etc: ro, /etc/nginx: rw+setid, /etc/nginx/keys: ro}")),
            (put("/etc/nginx/a", Some(0o2755)), Some("{/etc: ro, /etc/nginx: rw+setid, /etc/nginx/keys: ro}")),
            (put("/etc/nginx/a", Some(0o10000)), Some("-")),
            (put("/etc/nginx/../passwd", None), Some("-")),
            (put("/etc/nginx//a", None), Some("-")),
            (put("/etc/nginx/a/", None), Some("-")),
            (put("etc/nginx/a", None), Some("-")),
            (put("/etc/nginx/a\0b", None), Some("-")),
            (put("", None), Some("-")),
        ] {
            assert_eq!(lacks(&granted, &op).as_deref(), expect, "{op:?}");
        }
        let all = self::granted(&[("/", Access::Change)]);
        assert_eq!(lacks(&all, &put("/a/b", None)), None);
        assert_eq!(lacks(&all, &look("/")), None);
    }

    #[test]
    fn both_paths_of_a_change_count() {
        let granted = granted(&[("/a", Access::Change), ("/b", Access::Look)]);
        let (a, b) = ("/a/x".to_owned(), "/b/x".to_owned());
        for change in [
            Change::Rename { path: a.clone(), to: b.clone() },
            Change::Rename { path: b.clone(), to: a.clone() },
            Change::HardLink { path: a.clone(), target: b.clone() },
            Change::HardLink { path: b.clone(), target: a.clone() },
        ] {
            let op = ChangesOp::Do(Box::new(change));
            assert_eq!(lacks(&granted, &op).as_deref(), Some("{/a: rw, /b: rw}"), "{op:?}");
        }
        let copy = |from: &str, to: &str| {
            let ChangesOp::Do(mut change) = put(to, None) else { unreachable!() };
            if let Change::Put { content, .. } = &mut *change {
                *content = Content::File(from.to_owned());
            }
            lacks(&granted, &ChangesOp::Do(change))
        };
        assert_eq!(copy(&b, &a), None);
        assert!(copy(&a, &b).is_some() && copy("/c/x", &a).is_some());
    }

    #[test]
    fn a_masters_file_needs_its_own_grant_and_a_plan_is_only_made_here() {
        let mut granted = granted(&[("/a", Access::Change)]);
        let from = |granted: &Grants| {
            let ChangesOp::Do(mut change) = put("/a/x", None) else { unreachable!() };
            if let Change::Put { content, .. } = &mut *change {
                *content = Content::Master { path: "nginx/x".into(), saltenv: "base".into(), sha256: None };
            }
            lacks(granted, &ChangesOp::Do(change))
        };
        assert_eq!(from(&granted).as_deref(), Some("[nginx/x]"));
        granted.set_names(Capability::Files, crate::Names::only(&["nginx/**"]));
        assert_eq!(from(&granted), None);
        let ChangesOp::Do(change) = put("/a/x", None) else { unreachable!() };
        assert_eq!(lacks(&granted, &ChangesOp::Plan(change)).as_deref(), Some("-"));
    }
}
