//! Users.

use brine_guest::Result;

use crate::{files, programs};

const FILE: &str = "/etc/passwd";

/// A line of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// `x`, as a rule.
    pub passwd: String,
    /// Its number.
    pub uid: i64,
    /// The number of its own group.
    pub gid: i64,
    /// Full name, room, telephone numbers and what else there is, with commas between them.
    pub gecos: String,
    /// Its directory.
    pub home: String,
    /// Its shell.
    pub shell: String,
}

impl User {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(':').map(str::to_owned);
        let (name, passwd) = (parts.next()?, parts.next()?);
        let (uid, gid) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let (gecos, home, shell) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { name, passwd, uid, gid, gecos, home, shell })
    }

    /// Full name, room number, telephone numbers at work and at home, and the rest.
    pub fn gecos(&self) -> [String; 5] {
        let mut parts = self.gecos.splitn(5, ',').map(str::to_owned);
        [(); 5].map(|()| parts.next().unwrap_or_default())
    }
}

/// A user by its name, as `pwd.getpwnam` finds it; with `root`, in the file below it.
///
/// # Errors
/// When users cannot be read.
pub fn find(name: &str, root: Option<&str>) -> Result<Option<User>> {
    let by_name = |lines: Vec<String>| lines.iter().filter_map(|line| User::parse(line)).find(|user| user.name == name);
    match by_name(files::lines(root, FILE)?) {
        None if root.is_none() => Ok(by_name(programs::getent("passwd", Some(name))?)),
        found => Ok(found),
    }
}

/// All users: of the name service, or with `root` those of the file below it.
///
/// # Errors
/// When they cannot be read.
pub fn all(root: Option<&str>) -> Result<Vec<User>> {
    let lines = if root.is_some() { files::lines(root, FILE)? } else { programs::getent("passwd", None)? };
    Ok(lines.iter().filter_map(|line| User::parse(line)).collect())
}

/// The name of a user's own group, as `id` prints it.
///
/// # Errors
/// When `id` cannot be run.
pub fn primary_group(name: &str) -> Result<String> {
    programs::primary_group(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "ada:x:1000:1001:Ada L.,7,+44,,x,y:/home/ada:/bin/sh";

    #[test]
    fn a_line_is_a_user() {
        let user = User::parse(LINE).unwrap();
        assert_eq!((user.name.as_str(), user.uid, user.gid), ("ada", 1000, 1001));
        assert_eq!((user.home.as_str(), user.shell.as_str()), ("/home/ada", "/bin/sh"));
        assert_eq!(user.gecos(), ["Ada L.", "7", "+44", "", "x,y"]);
        assert_eq!(User { gecos: "Ada".into(), ..user }.gecos(), ["Ada", "", "", "", ""]);
        for line in ["", "ada", "ada:x:a:b:::", "+::::::", "ada:x:1000:1000:"] {
            assert_eq!(User::parse(line), None, "{line}");
        }
    }
}
