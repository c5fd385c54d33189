//! Users of this host, by `/etc/passwd`.

use brine_guest::changes::{self, Owner};
use brine_guest::{Result, path};

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
    /// Its directory.
    pub home: String,
}

impl Account {
    /// The user of this name; none if there is none.
    ///
    /// # Errors
    /// One line, when `/etc/passwd` cannot be read.
    pub fn named(name: &str) -> Result<Option<Self>> {
        let text = changes::read("/etc/passwd")?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&text).lines().find_map(|line| Self::of_line(line, name)))
    }

    /// All names.
    ///
    /// # Errors
    /// As [`Account::named`].
    pub fn names() -> Result<Vec<String>> {
        let text = changes::read("/etc/passwd")?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut names: Vec<String> = text.lines().filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect();
        names.sort();
        Ok(names)
    }

    fn of_line(line: &str, name: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(':').collect();
        let [known, _, uid, gid, _, home, _] = fields[..] else { return None };
        (known == name)
            .then(|| Some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()?, home: home.to_owned() }))
            .flatten()
    }

    /// A path of this user: as it is if it is absolute, else below its directory.
    pub fn path(&self, given: &str) -> String {
        path::join(&self.home, given)
    }

    /// As owner of a file.
    pub fn owner(&self) -> Owner {
        Owner { user: Some(self.uid.to_string()), group: Some(self.gid.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_line() {
        let line = "web:x:1001:1002:Web,,,:/home/web:/bin/sh";
        let account = Account::of_line(line, "web").unwrap();
        assert_eq!(account, Account { uid: 1001, gid: 1002, home: "/home/web".into() });
        assert_eq!((account.path("/a").as_str(), account.path(".ssh/x").as_str()), ("/a", "/home/web/.ssh/x"));
        for bad in ["web:x:1001", "web:x:a:1:::", "we:x:1:1::/:/bin/sh", ""] {
            assert_eq!(Account::of_line(bad, "web"), None, "{bad}");
        }
    }
}
