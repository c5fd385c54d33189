//! Checked names of modules. They become file names, keys of the policy and the first part of function names.

use std::fmt;
use std::str::FromStr;

/// A module's name: `[a-z][a-z0-9_]*`, at most 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleName(String);

/// Longer than any name in Salt, short enough for every file system and log line.
const MAX_LENGTH: usize = 64;

/// An error: the text cannot name a module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be a module's name: lower-case letters, digits and _ only, a letter first, at most {MAX_LENGTH}")]
pub struct BadName(String);

impl ModuleName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ModuleName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let bytes = text.as_bytes();
        let fits = bytes.len() <= MAX_LENGTH
            && bytes.first().is_some_and(u8::is_ascii_lowercase)
            && bytes.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        if fits { Ok(Self(text.to_owned())) } else { Err(BadName(text.chars().take(MAX_LENGTH).collect())) }
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for ModuleName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Quotes a name from a job for a message: bounded in length, with hidden characters made visible.
pub(crate) fn quoted(name: &str) -> String {
    format!("'{}'", shown(name))
}

/// Like [`quoted`], without the quotes.
pub(crate) fn shown(name: &str) -> String {
    const MAX: usize = 100;
    brine_text::short(name, MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["test", "saltutil", "a", "x509_v2", &"a".repeat(64)] {
            assert_eq!(good.parse::<ModuleName>().unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", "a/b", "../test", "a.b", "A", "1a", "_a", "a-b", "a\0", "a\n", "ä", &"a".repeat(65)]
        {
            assert!(bad.parse::<ModuleName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_in_messages_are_bounded() {
        assert_eq!(quoted("a\nb\u{202e}"), "'a\\nb\\u202e'");
        assert_eq!(quoted(&"x".repeat(200)).chars().count(), 103);
    }
}
