//! Looks up users by the system (nsswitch), and changes the user of the process.

use std::ffi::CString;

use brine_protocol::exit;
use nix::unistd::{self, Uid, User};

use crate::ProcessError;

/// The name of a user; none if the user has no name.
pub fn name_of(uid: u32) -> Option<String> {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name)
}

/// The name of the user of this process; its uid if it has no name.
pub fn current() -> String {
    let uid = rustix::process::geteuid().as_raw();
    name_of(uid).unwrap_or_else(|| uid.to_string())
}

/// Another user, whose identity the process is to take.
#[derive(Debug)]
pub struct Other(User);

impl Other {
    /// The uid.
    pub fn uid(&self) -> u32 {
        self.0.uid.as_raw()
    }

    /// The gid of the user's primary group.
    pub fn gid(&self) -> u32 {
        self.0.gid.as_raw()
    }
}

/// The user that this process has to become to run as `wanted`; none if the process already runs as that user. A
/// process that is not root keeps its user if the command line (`named`) does not name one, because `root` is only
/// Salt's default.
///
/// # Errors
/// When there is no such user, or only root could become it.
pub fn find_other(program: &str, wanted: &str, named: bool) -> Result<Option<Other>, ProcessError> {
    let unknown = || ProcessError::new(exit::NO_USER, format!("there is no user {wanted} to run as (user)"));
    let failed = |e: nix::Error| {
        ProcessError::new(exit::NO_USER, format!("the user {wanted} to run as (user) cannot be looked up: {e}"))
    };
    let me = rustix::process::geteuid();
    if wanted.is_empty() || (wanted == "root" && (me.is_root() || !named)) {
        return Ok(None);
    }
    let user = User::from_name(wanted).map_err(failed)?.ok_or_else(unknown)?;
    if user.uid.as_raw() == me.as_raw() {
        return Ok(None);
    }
    if !me.is_root() {
        let why = format!(
            "{program} cannot run as {wanted} (user): only root can change to another user, this is {}; start it as root, or set user to \
             who starts it",
            current()
        );
        return Err(ProcessError::new(exit::NO_PERMISSION, why));
    }
    Ok(Some(Other(user)))
}

impl Other {
    /// Becomes this user with all its groups, irrevocably. Must be called before there is a second thread that has
    /// root's files open.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn become_it(&self) -> Result<(), ProcessError> {
        let Self(user) = self;
        // The user is set last: after a failure to set a group, the process would otherwise keep root's groups.
        let taken = || -> Result<(), Box<dyn std::error::Error>> {
            unistd::initgroups(&CString::new(user.name.as_str())?, user.gid)?;
            unistd::setresgid(user.gid, user.gid, user.gid)?;
            unistd::setresuid(user.uid, user.uid, user.uid)?;
            Ok(())
        };
        taken().map_err(|error| {
            ProcessError::new(exit::NO_PERMISSION, format!("cannot run as {} (user): {error}", user.name))
        })?;
        // After a change of user, the kernel assumes that the process holds secrets of the former user and denies it
        // access to its own /proc.
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_to_become() {
        let code = |wanted, named| find_other("salt-master", wanted, named).err().map(|e| e.exit_code());
        assert_eq!(code("no-such-user-here", false), Some(67));
        assert!(find_other("salt-master", "", false).unwrap().is_none());
        assert!(find_other("salt-master", "root", false).unwrap().is_none());
        assert!(find_other("salt-master", &current(), true).unwrap().is_none());
        match rustix::process::geteuid().is_root() {
            true => assert_eq!(find_other("salt-master", "nobody", false).unwrap().unwrap().0.name, "nobody"),
            false => {
                assert_eq!(code("root", true), Some(77));
                assert_eq!(code("nobody", false), Some(77).filter(|_| current() != "nobody"));
            }
        }
    }
}
