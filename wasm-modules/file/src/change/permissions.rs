//! Salt's `check_perms`: what has to be set of owner and mode, and setting it.

use brine_guest::changes::{self, Entry, Kind, Owner};

use super::owner::Wanted;
use super::{mode, owner};
use crate::ret::Ret;

/// Owner and mode that are asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Permissions {
    pub(crate) owner: Wanted,
    /// In Salt's form.
    pub(crate) mode: Option<String>,
}

/// What of them a file has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lacks {
    pub(crate) user: bool,
    pub(crate) group: bool,
    pub(crate) mode: bool,
}

impl Lacks {
    pub(crate) fn any(self) -> bool {
        self.user || self.group || self.mode
    }
}

impl Permissions {
    /// What `entry` has not. A link that is not followed has no mode of its own.
    pub(crate) fn lacks(&self, entry: &Entry) -> Lacks {
        Lacks {
            user: self.owner.changes_user(entry),
            group: self.owner.changes_group(entry),
            mode: entry.kind != Kind::Symlink && self.mode.as_ref().is_some_and(|wanted| *wanted != mode::of(entry)),
        }
    }

    /// Sets what a file lacks; with `dry`, says what would be set. `entry` is what is at the path.
    pub(crate) fn apply(&self, path: &str, entry: &Entry, follow: bool, dry: bool, ret: &mut Ret) {
        let lacks = self.lacks(entry);
        if lacks.any() && !dry {
            let wanted = self.owner.owner();
            let owner = Owner { user: wanted.user.filter(|_| lacks.user), group: wanted.group.filter(|_| lacks.group) };
            let bits = self.mode.as_deref().filter(|_| lacks.mode).map(mode::bits);
            let done = match bits {
                // What is no mode cannot be set; the owner can.
                Some(None) => changes::set_permissions(path, &owner, None, follow).and(Err(String::new())),
                bits => changes::set_permissions(path, &owner, bits.flatten(), follow),
            };
            match done {
                Ok(change) => self.report(lacks, change.after.as_ref(), ret),
                Err(why) => {
                    let now = changes::look(path, follow).ok().flatten();
                    let lines = Some(why).into_iter().filter(|why| !why.is_empty()).collect();
                    ret.join(lines);
                    self.report(lacks, Some(now.as_ref().unwrap_or(entry)), ret);
                    ret.result = Some(false);
                }
            }
            return;
        }
        self.report(lacks, None, ret);
        if dry && !ret.changes.is_empty() {
            ret.result = None;
        }
    }

    /// Tells what was set of what was lacking, and what was not. `after` is what is there now; none if all was set.
    pub(crate) fn report(&self, lacked: Lacks, after: Option<&Entry>, ret: &mut Ret) {
        let none = Lacks { user: false, group: false, mode: false };
        let lacks = after.map_or(none, |after| self.lacks(after));
        let user = self.owner.user.clone();
        let group = self.owner.group.clone();
        let mode = self.mode.clone().into();
        let each = [
            ("user", lacked.user, lacks.user, user),
            ("group", lacked.group, lacks.group, group),
            ("mode", lacked.mode, lacks.mode, mode),
        ];
        let mut lines = Vec::new();
        for (what, lacked, lacks, value) in each {
            if lacks {
                lines.push(format!("Failed to change {what} to {}", value.to_text()));
            } else if lacked {
                ret.change(what, value);
            }
        }
        if !lines.is_empty() {
            ret.result = Some(false);
            ret.join(lines);
        }
    }
}

/// Salt's `perms`, the second part of what `file.check_perms` returns.
pub(crate) fn described(wanted: &Permissions, entry: &Entry, dry: bool) -> brine_guest::Value {
    use brine_guest::Value;
    let by_number = |value: &Value| matches!(value, Value::Int(_) | Value::Bool(_));
    let lacks = wanted.lacks(entry);
    let user = if by_number(&wanted.owner.user) { Value::Int(entry.uid.into()) } else { owner::user(entry) };
    let group = if by_number(&wanted.owner.group) { Value::Int(entry.gid.into()) } else { owner::group(entry) };
    let mut perms = vec![("luser", user), ("lgroup", group), ("lmode", mode::of(entry).into())];
    if lacks.user {
        perms.push(("cuser", wanted.owner.user.clone()));
    }
    if lacks.group {
        perms.push(("cgroup", wanted.owner.group.clone()));
    }
    if lacks.mode && !dry {
        perms.push(("cmode", wanted.mode.clone().into()));
    }
    Value::dict(perms)
}
