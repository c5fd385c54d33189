//! Passwords' hashes and their ages, and the programs that change them. A hash is never an argument of a program, which
//! all processes of a host see.

use brine_guest::host::log;
use brine_guest::{Result, Value};

use crate::{files, programs, users};

const FILE: &str = "/etc/shadow";
/// What stands for the hash of a user who has never had a password.
pub const UNSET: &str = "!";

/// A number of days or a date in days since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// The date of the last change.
    Changed,
    /// Days in which the password must not be changed again.
    Min,
    /// Days after which it has to be changed.
    Max,
    /// Days before that in which its user is told.
    Warn,
    /// Days after that in which it can still be used.
    Inactive,
    /// The date of the account's end.
    Expire,
}

impl Age {
    const ALL: [Self; 6] = [Self::Changed, Self::Min, Self::Max, Self::Warn, Self::Inactive, Self::Expire];

    /// Its key in `shadow.info`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Changed => "lstchg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Warn => "warn",
            Self::Inactive => "inact",
            Self::Expire => "expire",
        }
    }

    fn option(self) -> &'static str {
        match self {
            Self::Changed => "-d",
            Self::Min => "-m",
            Self::Max => "-M",
            Self::Warn => "-W",
            Self::Inactive => "-I",
            Self::Expire => "-E",
        }
    }
}

/// A line of `/etc/shadow`.
#[derive(Clone, PartialEq, Eq)]
pub struct Shadow {
    /// The user.
    pub name: String,
    /// The hash.
    pub passwd: String,
    /// In the order of [`Age`]; -1 where nothing is said.
    ages: [i64; 6],
}

impl Shadow {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(':');
        let (name, passwd) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let mut ages = [-1; 6];
        for (age, text) in ages.iter_mut().zip(parts) {
            *age = if text.is_empty() { -1 } else { text.parse().ok()? };
        }
        Some(Self { name, passwd, ages })
    }

    /// One of its numbers.
    pub fn age(&self, age: Age) -> i64 {
        self.ages[age as usize]
    }
}

/// What `shadow.info` returns: its values are empty texts if there is no such user.
pub fn value(shadow: Option<&Shadow>) -> Value {
    let text = |text: Option<&str>| Value::from(text.unwrap_or_default());
    let mut info =
        vec![("name", text(shadow.map(|it| it.name.as_str()))), ("passwd", text(shadow.map(|it| it.passwd.as_str())))];
    info.extend(Age::ALL.map(|age| (age.key(), shadow.map_or_else(|| "".into(), |it| Value::Int(it.age(age))))));
    Value::dict(info)
}

/// All of them.
///
/// # Errors
/// When the file cannot be read.
pub fn all(root: Option<&str>) -> Result<Vec<Shadow>> {
    Ok(files::lines(root, FILE)?.iter().filter_map(|line| Shadow::parse(line)).collect())
}

/// That of a user.
///
/// # Errors
/// When the file cannot be read.
pub fn find(name: &str, root: Option<&str>) -> Result<Option<Shadow>> {
    Ok(all(root)?.into_iter().find(|shadow| shadow.name == name))
}

/// Sets one of its numbers; false if there is no such user. For a date it returns whether the program succeeded, for
/// all others whether the number is there.
///
/// # Errors
/// When there is no such program, or it was not granted.
pub fn set_age(name: &str, age: Age, wanted: &Value, root: Option<&str>) -> Result<bool> {
    let Some(before) = find(name, root)? else { return Ok(false) };
    if *wanted == Value::Int(before.age(age)) {
        return Ok(true);
    }
    let done = programs::change("chage", &[age.option(), &wanted.to_text()], root, &[name])?.succeeded();
    match age {
        Age::Changed | Age::Expire => Ok(done),
        _ => Ok(find(name, root)?.is_some_and(|now| *wanted == Value::Int(now.age(age)))),
    }
}

/// Sets the hash of a user; false if there is no such user, or it has another one then.
///
/// # Errors
/// When it is no hash, and as for [`set_age`].
pub fn set_hash(name: &str, hash: &str, root: Option<&str>) -> Result<bool> {
    if hash.contains([':', '\n', '\r', '\0']) || name.contains([':', '\n', '\r', '\0']) {
        return Err("the password is no hash of one: it has a colon or a line's end".into());
    }
    if users::find(name, root)?.is_none() {
        log::write(log::Level::Warning, &format!("user {name} does not exist, cannot set password"));
        return Ok(false);
    }
    programs::change_by_input("chpasswd", &["-e"], root, &format!("{name}:{hash}\n"))?;
    Ok(find(name, root)?.is_some_and(|now| now.passwd == hash))
}

/// Takes the password away: the user needs none.
///
/// # Errors
/// As for [`set_age`].
pub fn delete_hash(name: &str, root: Option<&str>) -> Result<bool> {
    programs::change("passwd", &["-d"], root, &[name])?;
    Ok(find(name, root)?.is_some_and(|now| now.passwd.is_empty()))
}

/// Locks or unlocks the password; false if there is no such user, or it is not so then.
///
/// # Errors
/// As for [`set_age`].
pub fn lock(name: &str, locked: bool, root: Option<&str>) -> Result<bool> {
    let is_so = |shadow: &Shadow| shadow.passwd.starts_with('!') == locked;
    match find(name, root)? {
        None => return Ok(false),
        Some(before) if is_so(&before) => return Ok(true),
        Some(_) => {}
    }
    programs::change("passwd", &[if locked { "-l" } else { "-u" }], root, &[name])?;
    Ok(find(name, root)?.as_ref().is_some_and(is_so))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_hash_and_ages() {
        let shadow = Shadow::parse("ada:$6$a$b:20000:0:99999:7:::").unwrap();
        assert_eq!(Age::ALL.map(|age| shadow.age(age)), [20000, 0, 99999, 7, -1, -1]);
        assert_eq!(
            value(Some(&shadow)).to_text(),
            "{'name': 'ada', 'passwd': '$6$a$b', 'lstchg': 20000, 'min': 0, 'max': 99999, 'warn': 7, 'inact': -1, \
             'expire': -1}"
        );
        assert_eq!(value(None).get("max"), Some(&"".into()));
        assert_eq!(Shadow::parse("ada:!").unwrap().age(Age::Expire), -1);
        assert!(Shadow::parse("ada").is_none() && Shadow::parse("ada:x:many").is_none());
    }
}
