//! Python's regular expressions over the bytes of a file (`re` with `bytes`) and over text.
//!
//! The engine matches text. A byte that is not ASCII becomes a character for private use, which is no letter, digit or
//! space and has no case: so it is to Python, where the flags and classes of expressions over bytes are ASCII's.

use std::borrow::Cow;

use brine_render::regex::{Flags, Regex, RegexError, Replacement};

use crate::look::pattern;

/// The first of the characters that stand for the bytes from 0 on.
const PRIVATE: u32 = 0xe000;
/// Upper bound on the bytes of a content after a replacement.
const MAX_RESULT: usize = 12 << 20;

/// An expression over bytes.
pub(crate) struct Pattern {
    regex: Regex,
}

/// The steps that one search may go back: some for each character, so that a long file does not count as an explosion.
pub(crate) fn backtracks(length: usize) -> usize {
    1_000_000 + length.saturating_mul(16)
}

pub(crate) fn flags(flags: pattern::Flags) -> Flags {
    Flags {
        ignore_case: flags.ignore_case,
        multiline: flags.multi_line,
        dot_all: flags.dot_all,
        verbose: flags.verbose,
    }
}

impl Pattern {
    /// Compiles an expression for contents of at most `length` bytes.
    pub(crate) fn new(pattern: &str, flags: pattern::Flags, length: usize) -> Result<Self, String> {
        let regex = Regex::new(&expression(pattern), self::flags(flags), backtracks(length));
        Ok(Self { regex: regex.map_err(|error| about(error, pattern))? })
    }

    /// Whether it matches somewhere.
    pub(crate) fn is_in(&self, content: &[u8]) -> Result<bool, String> {
        Ok(self.regex.find(&shown(content)).map_err(RegexError::into_text)?.is_some())
    }

    /// Replaces its first `count` matches, all if it is 0. `with` has references to groups unless it is `literal`. Returns
    /// the new content and how many matches there were.
    pub(crate) fn replace(
        &self,
        content: &[u8],
        with: &str,
        literal: bool,
        count: usize,
    ) -> Result<(Vec<u8>, usize), String> {
        let with = shown(with.as_bytes());
        let with = if literal { Ok(Replacement::literal(&with)) } else { Replacement::read(&with, &self.regex) };
        let with = with.map_err(RegexError::into_text)?;
        let mut left = MAX_RESULT;
        let result = self.regex.replace(&shown(content), &with, count, |bytes| {
            left = left
                .checked_sub(bytes)
                .ok_or_else(|| RegexError::Limit(format!("the new content has more than {MAX_RESULT} bytes")))?;
            Ok::<_, RegexError>(())
        });
        let (text, number) = result.map_err(RegexError::into_text)?;
        Ok((bytes(&text), number))
    }
}

/// The error about an expression.
pub(crate) fn about(error: RegexError, pattern: &str) -> String {
    format!("{}: '{pattern}'", error.into_text())
}

/// Bytes as the engine sees them.
fn shown(content: &[u8]) -> Cow<'_, str> {
    if content.is_ascii()
        && let Ok(text) = core::str::from_utf8(content)
    {
        return text.into();
    }
    content.iter().map(|byte| stand_in(*byte)).collect::<String>().into()
}

fn stand_in(byte: u8) -> char {
    let number = if byte.is_ascii() { byte.into() } else { PRIVATE + u32::from(byte) };
    char::from_u32(number).unwrap_or_default()
}

/// The bytes that the engine's text stands for.
fn bytes(text: &str) -> Vec<u8> {
    if text.is_ascii() {
        return text.into();
    }
    // What is neither ASCII nor a stand-in is an escape for a byte.
    text.chars().map(|c| u32::from(c).to_le_bytes()[0]).collect()
}

/// An expression over bytes as the engine sees it; `\x80` and above are bytes too.
fn expression(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let escaped = rest.get(..2).is_some_and(|two| c == '\\' && two.is_ascii());
        let byte = rest.strip_prefix("\\x").and_then(|hex| u8::from_str_radix(hex.get(..2)?, 16).ok());
        match byte.filter(|byte| !byte.is_ascii()) {
            Some(byte) => {
                out.push(stand_in(byte));
                rest = &rest[4..];
            }
            None if escaped => {
                out.push_str(&rest[..2]);
                rest = &rest[2..];
            }
            None => {
                out.extend(c.encode_utf8(&mut [0; 4]).bytes().map(stand_in));
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Python's `re.subn` with `bytes`.
    #[test]
    fn bytes_are_no_letters() {
        let flags = |ignore_case| pattern::Flags { ignore_case, ..pattern::Flags::default() };
        for (pattern, with, content, ignore_case, expected, number) in [
            ("é", "e", "né".as_bytes(), false, &b"ne"[..], 1),
            ("É", "e", "é".as_bytes(), true, "é".as_bytes(), 0),
            (r"\w+", "x", "é1".as_bytes(), false, b"\xc3\xa9x", 1),
            (".", "x", "é".as_bytes(), false, b"xx", 2),
            (r"[\x80-\xff]+", "?", b"a\xff\x80b", false, b"a?b", 1),
            (r"[^\x00-\x7f]", "", "aéb".as_bytes(), false, b"ab", 2),
            (r"\\x80", "y", br"\x80", false, b"y", 1),
            ("a", "ö", b"a", false, "ö".as_bytes(), 1),
            ("K", "x", "\u{212a}".as_bytes(), true, "\u{212a}".as_bytes(), 0),
        ] {
            let compiled = Pattern::new(pattern, flags(ignore_case), content.len()).unwrap();
            let (new, found) = compiled.replace(content, with, false, 0).unwrap();
            assert_eq!((new.as_slice(), found), (expected, number), "{pattern}");
        }
    }

    #[test]
    fn what_explodes_is_bounded() {
        let compiled = Pattern::new("(a|aa)+(?!a)b", pattern::Flags::default(), 60).unwrap();
        assert!(compiled.is_in(&[b'a'; 60]).is_err());
        let compiled = Pattern::new("a", pattern::Flags::default(), 1 << 16).unwrap();
        assert!(compiled.replace(&vec![b'a'; 1 << 16], &"x".repeat(1 << 10), false, 0).is_err());
        // A long file with a look-around is no explosion.
        let compiled = Pattern::new(r"^(?!\s*#)\s*foo", pattern::Flags::default(), 2 << 20).unwrap();
        assert_eq!(compiled.is_in(&b"# foo\n".repeat(300_000)), Ok(false));
    }
}
