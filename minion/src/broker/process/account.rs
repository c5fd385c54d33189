//! The user that a program runs as. Users and groups are looked up by the system (nsswitch) for each program, so that
//! the present content of the site's directory counts.

use std::ffi::CString;
use std::path::PathBuf;

use brine_sandbox::Names;
use brine_spawn::Identity;
use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid, getgrouplist};

/// A user, and the ids that a program must change to run as that user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) home: PathBuf,
    pub(super) shell: PathBuf,
    /// None if the minion already runs as this user.
    pub(super) identity: Option<Identity>,
}

/// Whether the minion runs as this user. The function looks up only the minion's own uid.
pub(super) fn is_own(user: &str) -> bool {
    user == "root" && geteuid().is_root() || crate::accounts::user_name(geteuid().as_raw()).as_deref() == Some(user)
}

/// Looks up the user and the group. `groups` are the granted groups beside the user's own. The error is one line.
pub(super) fn find(user: Option<&str>, group: Option<&str>, groups: &Names) -> Result<Account, String> {
    let own = geteuid();
    let failed = |what: &str, e: nix::Error| format!("{what} cannot be looked up: {}", e.desc());
    let found = match user {
        None => User::from_uid(own).map_err(|e| failed("the minion's user", e))?,
        Some(name) => {
            let what = format!("the user {name:?}");
            let by_name = User::from_name(name).map_err(|e| failed(&what, e))?;
            let by_number = || name.parse().ok().map(|uid| User::from_uid(Uid::from_raw(uid)));
            match by_name {
                Some(user) => Some(user),
                None => by_number().transpose().map_err(|e| failed(&what, e))?.flatten(),
            }
            .ok_or_else(|| format!("there is no user {name:?} on this host"))
            .map(Some)?
        }
    };
    let (uid, gid) = found.as_ref().map_or((own, getegid()), |user| (user.uid, user.gid));
    let mut account = Account {
        name: found.as_ref().map_or_else(|| uid.to_string(), |user| user.name.clone()),
        uid: uid.as_raw(),
        home: found.as_ref().map_or_else(PathBuf::new, |user| user.dir.clone()),
        shell: found.as_ref().map_or_else(PathBuf::new, |user| user.shell.clone()),
        identity: None,
    };
    if !account.home.is_absolute() {
        account.home = PathBuf::from("/");
    }
    if !account.shell.is_absolute() {
        account.shell = PathBuf::from("/bin/sh");
    }
    let asked = match group {
        None => None,
        Some(name) => {
            let what = format!("the group {name:?}");
            let by_name = Group::from_name(name).map_err(|e| failed(&what, e))?;
            let by_number = || name.parse().ok().map(|gid| Group::from_gid(Gid::from_raw(gid)));
            let group = match by_name {
                Some(group) => Some(group),
                None => by_number().transpose().map_err(|e| failed(&what, e))?.flatten(),
            };
            Some(group.ok_or_else(|| format!("there is no group {name:?} on this host"))?)
        }
    };
    if uid == own && asked.as_ref().is_none_or(|group| group.gid == getegid()) {
        return Ok(account);
    }
    if !own.is_root() {
        let name = &account.name;
        return Err(format!(
            "this minion does not run as root, so its programs run as its own user and group, not as {}",
            asked.map_or_else(|| format!("{name:?}"), |group| format!("{name:?} in the group {:?}", group.name))
        ));
    }
    let name = CString::new(account.name.as_bytes()).map_err(|_| "a user's name has a NUL byte in it".to_owned())?;
    let members = getgrouplist(&name, gid).map_err(|e| failed("the groups of the user", e))?;
    if let Some(group) = &asked
        && group.gid != gid
        && !members.contains(&group.gid)
        && !groups.has(&group.name)
    {
        return Err(format!("the user {:?} is not in the group {:?}", account.name, group.name));
    }
    account.identity = Some(Identity {
        uid: account.uid,
        gid: asked.map_or(gid, |group| group.gid).as_raw(),
        groups: members.iter().map(|gid| gid.as_raw()).collect(),
    });
    Ok(account)
}
