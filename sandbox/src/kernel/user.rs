//! Selects the user of the sandbox's processes.

use nix::unistd::{Uid, User as Account, geteuid};

/// The user that a package creates, and the number used if there is no such user. No account has this number.
const NAME: &str = "brine-sandbox";
const NUMBER: u32 = 61_166;

/// The user given to a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Whether it is the sandbox's own user, so that its processes can be counted.
    pub(crate) own: bool,
}

/// Returns the user of executors and the compiler for the setting `sandbox: user:`. None: the minion's own user.
pub(crate) fn of_the_sandbox(setting: Option<&str>) -> Result<Option<User>, String> {
    // Only root can change a process's user, and only root needs to.
    if !geteuid().is_root() {
        return Ok(None);
    }
    of_root(setting, find)
}

fn of_root(
    setting: Option<&str>,
    find: impl Fn(&str) -> Result<Option<(u32, u32)>, String>,
) -> Result<Option<User>, String> {
    let user = |(uid, gid)| User { uid, gid, own: true };
    match setting {
        Some("root" | "0") => Ok(None),
        Some(name) => match find(name)? {
            Some((0, _)) => {
                Err(format!("sandbox: user: {name} is root by another name; `user: root` says that this is meant"))
            }
            Some(found) => Ok(Some(user(found))),
            None => number(name)
                .map(|uid| Some(user((uid, uid))))
                .ok_or_else(|| format!("sandbox: user: there is no user {name:?} on this host")),
        },
        None => match find(NAME)? {
            Some((0, _)) => Err(format!("the user {NAME} is root by another name; `sandbox: user:` names another one")),
            found => Ok(Some(user(found.unwrap_or((NUMBER, NUMBER))))),
        },
    }
}

/// Returns the user that a module acts as by its `user:`. None: the minion's own user.
pub(crate) fn of_a_module(name: &str) -> Result<Option<User>, String> {
    let found = find(name)?.or_else(|| number(name).map(|uid| (uid, uid)));
    let own = geteuid();
    match found {
        None => Err(format!("there is no user {name:?} on this host")),
        Some((uid, _)) if uid == own.as_raw() && (uid != 0 || matches!(name, "root" | "0")) => Ok(None),
        Some((0, _)) if !matches!(name, "root" | "0") => {
            Err(format!("the user {name:?} is root by another name; `user: root` says that this is meant"))
        }
        Some(_) if !own.is_root() => {
            Err(format!("this minion does not run as root, so its modules act as its own user, not as {name:?}"))
        }
        Some((uid, gid)) => Ok(Some(User { uid, gid, own: false })),
    }
}

/// Looks a user up in the system: by name, then by number.
fn find(name: &str) -> Result<Option<(u32, u32)>, String> {
    let failed = |error: nix::Error| format!("the user {name:?} cannot be looked up: {}", error.desc());
    let mut found = Account::from_name(name).map_err(failed)?;
    if let (None, Some(uid)) = (&found, number(name)) {
        found = Account::from_uid(Uid::from_raw(uid)).map_err(failed)?;
    }
    Ok(found.map(|account| (account.uid.as_raw(), account.gid.as_raw())))
}

/// Parses a user's number. The system reserves the highest number for "nobody".
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|uid| *uid != u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_the_sandbox_is() {
        let accounts = |accounts: &'static [(&str, u32, u32)]| {
            move |name: &str| Ok(accounts.iter().find(|it| it.0 == name).map(|it| (it.1, it.2)))
        };
        let own = |uid, gid| Ok(Some(User { uid, gid, own: true }));
        assert_eq!(of_root(None, accounts(&[])), own(61166, 61166));
        assert_eq!(of_root(None, accounts(&[("brine-sandbox", 990, 991)])), own(990, 991));
        assert_eq!(of_root(Some("deploy"), accounts(&[("deploy", 1000, 1001)])), own(1000, 1001));
        assert_eq!(of_root(Some("4711"), accounts(&[])), own(4711, 4711));
        assert_eq!(of_root(Some("root"), accounts(&[("root", 0, 0)])), Ok(None));
        assert_eq!(of_root(Some("0"), accounts(&[])), Ok(None));
        // Root is accepted only under its own name.
        assert!(of_root(Some("toor"), accounts(&[("toor", 0, 0)])).unwrap_err().contains("root by another name"));
        assert!(of_root(None, accounts(&[("brine-sandbox", 0, 0)])).unwrap_err().contains("root by another name"));
        assert!(of_root(Some("00"), find).is_err());
        assert!(of_root(Some("nobody-here"), accounts(&[])).unwrap_err().contains("no user \"nobody-here\""));
        assert!(of_root(Some("4294967295"), accounts(&[])).is_err());
    }

    #[test]
    fn who_a_module_acts_as() {
        assert!(of_a_module("no such user").unwrap_err().contains("no user"));
        assert_eq!(of_a_module(&geteuid().to_string()), Ok(None));
        let other = of_a_module("4711");
        match geteuid().is_root() {
            true => assert_eq!(other, Ok(Some(User { uid: 4711, gid: 4711, own: false }))),
            false => assert!(other.unwrap_err().contains("does not run as root")),
        }
    }
}
