//! Checked types for names from outside. A value of one of these types is safe in a path, a tag and a log line.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::value::Value;

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid {what}: {why}")]
pub struct IdError {
    /// The kind of name.
    pub what: &'static str,
    /// The text, shortened to 80 characters.
    pub text: String,
    /// The reason.
    pub why: &'static str,
}

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Checks the text.
            ///
            /// # Errors
            /// When it is not valid, with the reason.
            pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                match $check(&text) {
                    Ok(()) => Ok(Self(text)),
                    Err(why) => Err(IdError { what: $what, text: text.chars().take(80).collect(), why }),
                }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text, owned.
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = IdError;
            fn try_from(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl TryFrom<&Value> for $name {
            type Error = IdError;
            fn try_from(value: &Value) -> Result<Self, IdError> {
                let text = value.as_str().ok_or(IdError { what: $what, text: String::new(), why: "it is not text" })?;
                Self::new(text)
            }
        }

        impl From<$name> for Value {
            fn from(id: $name) -> Value {
                Value::from(id.0)
            }
        }

        impl From<&$name> for Value {
            fn from(id: &$name) -> Value {
                Value::from(id.0.as_str())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(de::Error::custom)
            }
        }
    };
}

checked_text! {
    /// A minion's id (§3.8): one file name of at most 255 bytes. Salt also accepts control characters. They are refused
    /// here, because ids are part of event tags, which end at a blank line, and of log lines.
    MinionId, "minion id", check_file_name
}
checked_text! {
    /// A job id (§9.1): 20 digits, optionally followed by `_` and a suffix of ASCII letters, digits, `-` and `_`.
    Jid, "job id", check_jid
}
checked_text! {
    /// A path below a root: relative, with parts separated by `/`; no part is `.`, `..` or empty, and there is no NUL.
    SafePath, "path", check_path
}
checked_text! {
    /// A file server environment: one file name.
    Saltenv, "environment", check_file_name
}
checked_text! {
    /// An event's tag: not empty, one line, at most 2 KiB.
    EventTag, "event tag", check_tag
}

/// Fails with the reason of the first condition that holds.
fn refuse_if(conditions: &[(bool, &'static str)]) -> Result<(), &'static str> {
    conditions.iter().find(|(holds, _)| *holds).map_or(Ok(()), |(_, why)| Err(*why))
}

fn check_file_name(text: &str) -> Result<(), &'static str> {
    refuse_if(&[
        (text.is_empty(), "it is empty"),
        (text.len() > 255, "it is longer than 255 bytes"),
        (text == "." || text == "..", "it names a directory"),
        (text.contains(['/', '\\']), "it has a slash"),
        (text.contains('\0'), "it has a null byte"),
        (text.chars().any(char::is_control), "it has a control character"),
    ])
}

fn check_jid(text: &str) -> Result<(), &'static str> {
    let (stamp, suffix) = text.as_bytes().split_at_checked(20).ok_or("it is shorter than 20 digits")?;
    if !stamp.iter().all(u8::is_ascii_digit) {
        return Err("it does not begin with 20 digits");
    }
    match suffix {
        [] => Ok(()),
        _ if suffix.len() > 64 => Err("it is longer than 84 bytes"),
        [b'_', rest @ ..]
            if !rest.is_empty() && rest.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')) =>
        {
            Ok(())
        }
        _ => Err("what follows the 20 digits is not _ and letters or digits"),
    }
}

fn check_path(text: &str) -> Result<(), &'static str> {
    refuse_if(&[
        (text.is_empty(), "it is empty"),
        (text.len() > 4096, "it is longer than 4096 bytes"),
        (text.starts_with('/'), "it is absolute"),
        (text.contains('\0'), "it has a null byte"),
        (text.contains('\\'), "it has a backslash"),
    ])?;
    for part in text.split('/') {
        match part {
            "" => return Err("it has an empty part"),
            "." | ".." => return Err("it has a part that leads elsewhere"),
            part if part.len() > 255 => return Err("a part is longer than 255 bytes"),
            _ => {}
        }
    }
    Ok(())
}

fn check_tag(text: &str) -> Result<(), &'static str> {
    refuse_if(&[
        (text.is_empty(), "it is empty"),
        (text.len() > 2048, "it is longer than 2048 bytes"),
        (text.contains('\0'), "it has a null byte"),
        (text.chars().any(char::is_control), "it has a control character"),
    ])
}

impl Saltenv {
    /// The environment `base`.
    pub fn base() -> Self {
        Self("base".to_owned())
    }
}

/// The time of the last jid of this process, in microseconds since the epoch.
static LAST_JID_MICROS: AtomicI64 = AtomicI64::new(0);

impl Jid {
    /// Makes a jid for the present time (UTC), greater than every earlier jid of this process.
    pub fn now() -> Self {
        let now = jiff::Timestamp::now().as_microsecond();
        let mut micros = now;
        let _ = LAST_JID_MICROS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| {
            micros = now.max(last + 1);
            Some(micros)
        });
        let stamp = jiff::Timestamp::from_microsecond(micros).unwrap_or_else(|_| jiff::Timestamp::now());
        Self(stamp.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y%m%d%H%M%S%6f").to_string())
    }

    /// Makes the jid of a job that began at this time (unix ms); none if the time has no date.
    pub fn at(unix_ms: i64) -> Option<Self> {
        let at = jiff::Timestamp::from_millisecond(unix_ms).ok()?;
        Some(Self(at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y%m%d%H%M%S%6f").to_string()))
    }

    /// The start time of the job in Salt's format: `2026, Nov 20 13:05:09.123456`; empty if the digits are not a date.
    pub fn start_time(&self) -> String {
        self.timestamp().map_or_else(String::new, |t| {
            t.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y, %b %d %H:%M:%S%.6f").to_string()
        })
    }

    /// The start time of the job.
    pub fn timestamp(&self) -> Option<jiff::Timestamp> {
        let digits = self.0.get(..20)?;
        let number = |from: usize, to: usize| digits.get(from..to)?.parse::<i32>().ok();
        let small = |from: usize| i8::try_from(number(from, from + 2)?).ok();
        let year = i16::try_from(number(0, 4)?).ok()?;
        let micros = number(14, 20)?;
        jiff::civil::DateTime::new(year, small(4)?, small(6)?, small(8)?, small(10)?, small(12)?, micros * 1000)
            .ok()?
            .to_zoned(jiff::tz::TimeZone::UTC)
            .ok()
            .map(|z| z.timestamp())
    }
}

impl SafePath {
    /// The path below a root.
    pub fn under(&self, root: &std::path::Path) -> std::path::PathBuf {
        root.join(&self.0)
    }
}

impl EventTag {
    /// Joins parts that are tags or ids.
    ///
    /// # Errors
    /// When the result is not a valid tag.
    pub fn join(parts: &[&str]) -> Result<Self, IdError> {
        Self::new(parts.join("/"))
    }
}

impl MinionId {
    /// The topic of publications for this minion (§5.4): the hex SHA-1 of its id.
    pub fn topic(&self) -> String {
        use sha1::Digest as _;
        hex::encode(sha1::Sha1::digest(self.0.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for good in ["m1", "web.example.com", "a b", "é", "-x"] {
            assert!(MinionId::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", ".", "..", "a/b", "a\\b", "a\0b", "a\nb", &"x".repeat(256)] {
            assert!(MinionId::new(bad).is_err(), "{bad:?}");
        }
        for good in ["a", "a/b.c", "..a/b..", "_modules/x.wasm"] {
            assert!(SafePath::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", "/a", "a/../b", "..", "a//b", "a/", "./a", "a\0", "a\\..\\b"] {
            assert!(SafePath::new(bad).is_err(), "{bad:?}");
        }
        for good in ["20261120130509123456", "20261120130509123456_4218"] {
            assert!(Jid::new(good).is_ok(), "{good:?}");
        }
        for bad in [
            "req",
            "",
            "2026112013050912345",
            "202611201305091234567",
            "20261120130509123456_",
            "20261120130509123456_/..",
        ] {
            assert!(Jid::new(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "a\n\nb", "a\0"] {
            assert!(EventTag::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn jids_increase_strictly() {
        let made: Vec<Jid> = (0..1000).map(|_| Jid::now()).collect();
        assert!(made.windows(2).all(|w| w[0] < w[1]));
        assert!(made.iter().all(|j| Jid::new(j.as_str()).is_ok()));
    }

    #[test]
    fn a_refusal_says_what_and_why() {
        assert_eq!(MinionId::new("a/b").unwrap_err().to_string(), r#""a/b" is not a valid minion id: it has a slash"#);
    }
}
