//! Python's regular expressions over text, with a bound on backtracking: searching, and replacing as `re.subn` does.

use std::ops::Range;

use brine_patterns::{Dialect, rewrite};
use fancy_regex::{Captures, RegexBuilder};

/// Upper bound on the bytes of an expression.
const MAX_PATTERN: usize = 64 << 10;
/// Upper bound on the bytes of a compiled part of an expression, because repetitions multiply.
const MAX_COMPILED: usize = 1 << 20;

/// The flags of `re` that an expression is read with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// `re.I`
    pub ignore_case: bool,
    /// `re.M`
    pub multiline: bool,
    /// `re.S`
    pub dot_all: bool,
    /// `re.X`
    pub verbose: bool,
}

/// Why an expression was not matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegexError {
    /// The expression, or the text that replaces its matches, is none.
    Invalid(String),
    /// It takes too many steps, or has too much for an answer.
    Limit(String),
}

impl RegexError {
    /// What is wrong: one line.
    pub fn into_text(self) -> String {
        match self {
            Self::Invalid(text) | Self::Limit(text) => text,
        }
    }
}

/// A compiled expression.
#[derive(Debug)]
pub struct Regex {
    inner: fancy_regex::Regex,
}

impl Regex {
    /// Compiles an expression of Python's `re`. `backtracks` bounds the steps of one search, where it has to go back.
    ///
    /// # Errors
    /// When it is no expression, or one without an equivalent.
    pub fn new(pattern: &str, flags: Flags, backtracks: usize) -> Result<Self, RegexError> {
        Self::compile(pattern, flags, backtracks, false)
    }

    /// As [`Regex::new`]; it matches only where a text begins, as `re.match` does.
    ///
    /// # Errors
    /// As [`Regex::new`].
    pub fn at_start(pattern: &str, flags: Flags, backtracks: usize) -> Result<Self, RegexError> {
        Self::compile(pattern, flags, backtracks, true)
    }

    fn compile(pattern: &str, flags: Flags, backtracks: usize, at_start: bool) -> Result<Self, RegexError> {
        if pattern.len() > MAX_PATTERN {
            return Err(RegexError::Invalid(format!("the expression has more than {MAX_PATTERN} bytes")));
        }
        let read = brine_patterns::Flags { multiline: flags.multiline, verbose: flags.verbose };
        let mut text = rewrite(pattern, read, Dialect::Unicode).map_err(RegexError::Invalid)?.pattern;
        let on = [(flags.ignore_case, 'i'), (flags.dot_all, 's')].into_iter().filter(|(is, _)| *is);
        let on: String = on.map(|(_, flag)| flag).collect();
        if !on.is_empty() {
            text = format!("(?{on}:{text})");
        }
        if at_start {
            text = format!(r"\A(?:{text})");
        }
        let built = RegexBuilder::new(&text).backtrack_limit(backtracks).delegate_size_limit(MAX_COMPILED).build();
        built.map(|inner| Self { inner }).map_err(|error| RegexError::Invalid(error.to_string()))
    }

    /// Where the first match is.
    ///
    /// # Errors
    /// When the search takes too many steps.
    pub fn find(&self, text: &str) -> Result<Option<Range<usize>>, RegexError> {
        Ok(self.inner.find(text).map_err(|error| limit(&error))?.map(|found| found.range()))
    }

    /// The groups of the first match, the whole match first.
    ///
    /// # Errors
    /// As [`Regex::find`].
    pub fn groups<'t>(&self, text: &'t str) -> Result<Option<Vec<Option<&'t str>>>, RegexError> {
        let found = self.inner.captures(text).map_err(|error| limit(&error))?;
        Ok(found.map(|found| (0..found.len()).map(|at| found.get(at).map(|group| group.as_str())).collect()))
    }

    /// Replaces the first `count` matches, all if it is 0; returns the new text and how many there were. `charge` is told
    /// the bytes of each part of the new text, and may refuse.
    ///
    /// # Errors
    /// When a search takes too many steps, or `charge` refuses.
    pub fn replace<E: From<RegexError>>(
        &self,
        text: &str,
        with: &Replacement,
        count: usize,
        mut charge: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(String, usize), E> {
        let mut out = String::new();
        let (mut copied, mut at, mut done) = (0, 0, 0);
        while count == 0 || done < count {
            let Some(found) = self.inner.captures_from_pos(text, at).map_err(|error| limit(&error))? else { break };
            let Some(whole) = found.get(0) else { break };
            charge(whole.start() - copied)?;
            out.push_str(&text[copied..whole.start()]);
            copied = whole.end();
            let before = out.len();
            with.expand(&found, &mut out);
            charge(out.len() - before)?;
            done += 1;
            // As in Python: an empty match is followed by the next character; one may follow what is not empty.
            at = if whole.range().is_empty() {
                match text[whole.end()..].chars().next() {
                    Some(c) => whole.end() + c.len_utf8(),
                    None => break,
                }
            } else {
                whole.end()
            };
        }
        charge(text.len() - copied)?;
        out.push_str(&text[copied..]);
        Ok((out, done))
    }
}

fn limit(error: &fancy_regex::Error) -> RegexError {
    RegexError::Limit(error.to_string())
}

/// What replaces matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Group(usize),
}

impl Replacement {
    /// A text that stands for itself.
    pub fn literal(text: &str) -> Self {
        Self(vec![Part::Text(text.to_owned())])
    }

    /// Reads a text with Python's references to the groups of an expression: `\1`, `\g<1>`, `\g<name>`, and escapes.
    ///
    /// # Errors
    /// When it has a bad escape, or refers to a group that is not there.
    pub fn read(text: &str, of: &Regex) -> Result<Self, RegexError> {
        let bad = RegexError::Invalid;
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars().peekable();
        let mut group = |plain: &mut String, number: usize| {
            if number >= of.inner.captures_len() {
                return Err(bad(format!("invalid group reference {number}")));
            }
            parts.push(Part::Text(std::mem::take(plain)));
            parts.push(Part::Group(number));
            Ok(())
        };
        while let Some(c) = rest.next() {
            if c != '\\' {
                plain.push(c);
                continue;
            }
            let Some(c) = rest.next() else { return Err(bad("bad escape (end of pattern)".into())) };
            match c {
                'g' => {
                    if rest.next_if_eq(&'<').is_none() {
                        return Err(bad("missing <".into()));
                    }
                    let name: String = rest.by_ref().take_while(|c| *c != '>').collect();
                    let number = match name.parse() {
                        Ok(number) => number,
                        Err(_) => match of.inner.capture_names().position(|known| known == Some(&name)) {
                            Some(number) => number,
                            None => return Err(bad(format!("unknown group name {name:?}"))),
                        },
                    };
                    group(&mut plain, number)?;
                }
                '0'..='9' => {
                    let mut digits = c.to_string();
                    let octal = |c: &char| matches!(c, '0'..='7');
                    if c == '0' {
                        while digits.len() < 3
                            && let Some(digit) = rest.next_if(octal)
                        {
                            digits.push(digit);
                        }
                    } else if let Some(second) = rest.next_if(char::is_ascii_digit) {
                        digits.push(second);
                        if digits.chars().all(|c| octal(&c))
                            && let Some(third) = rest.next_if(octal)
                        {
                            digits.push(third);
                        }
                    }
                    if c == '0' || digits.len() == 3 {
                        match u8::from_str_radix(&digits, 8) {
                            Ok(number) => plain.push(char::from(number)),
                            Err(_) => {
                                return Err(bad(format!("octal escape value \\{digits} outside of range 0-0o377")));
                            }
                        }
                    } else {
                        group(&mut plain, digits.parse().unwrap_or(usize::MAX))?;
                    }
                }
                'a' => plain.push('\x07'),
                'b' => plain.push('\x08'),
                'f' => plain.push('\x0c'),
                'n' => plain.push('\n'),
                'r' => plain.push('\r'),
                't' => plain.push('\t'),
                'v' => plain.push('\x0b'),
                '\\' => plain.push('\\'),
                c if c.is_ascii_alphabetic() => return Err(bad(format!("bad escape \\{c}"))),
                c => plain.extend(['\\', c]),
            }
        }
        parts.push(Part::Text(plain));
        Ok(Self(parts))
    }

    fn expand(&self, found: &Captures<'_, str>, out: &mut String) {
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(number) => out.push_str(found.get(*number).map_or("", |group| group.as_str())),
            }
        }
    }
}

/// Escapes a text so that it matches itself, as `re.escape` does.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "()[]{}?*+-|^$\\.&~# \t\n\r\x0b\x0c".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub(pattern: &str, with: &str, text: &str, count: usize) -> Result<(String, usize), RegexError> {
        let regex = Regex::new(pattern, Flags::default(), 100_000)?;
        let with = Replacement::read(with, &regex)?;
        regex.replace(text, &with, count, |_| Ok::<_, RegexError>(()))
    }

    /// Recorded from Python's `re.subn`.
    #[test]
    fn replacing_is_pythons() {
        for (pattern, with, text, count, expected) in [
            ("x*", "-", "abxd", 0, ("-a-b--d-", 5)),
            ("", "-", "ab", 0, ("-a-b-", 3)),
            ("(a)(b)?", r"[\1\2]", "aba", 0, ("[ab][a]", 2)),
            (r"(?P<n>\d+)", r"<\g<n>\g<1>\g<0>>", "a12", 0, ("a<121212>", 1)),
            ("a", r"\n\t\\\.", "ba", 0, ("b\n\t\\\\.", 1)),
            ("a", r"\0\101", "a", 0, ("\0A", 1)),
            ("a", "b", "aaa", 2, ("bba", 2)),
            ("a(?=b)", "x", "abac", 0, ("xbac", 1)),
            (r"(.)\1", r"\1", "aabbc", 0, ("abc", 2)),
        ] {
            let (text, number) = sub(pattern, with, text, count).unwrap();
            assert_eq!((text.as_str(), number), expected, "{pattern} {with}");
        }
    }

    #[test]
    fn bad_replacements_are_refused_without_a_match() {
        for bad in [r"\2", r"\g<2>", r"\g<x>", r"\g1", r"\q", "\\", r"\777"] {
            assert!(matches!(sub("(a)", bad, "", 0), Err(RegexError::Invalid(_))), "{bad}");
        }
    }

    #[test]
    fn an_expression_that_explodes_ends() {
        let text = "a".repeat(60);
        assert!(matches!(sub("(a|aa)+(?!a)b", "x", &text, 0), Err(RegexError::Limit(_))));
        assert!(matches!(sub("(((a{999}){999}){999}){999}", "x", "a", 0), Err(RegexError::Invalid(_))));
    }

    #[test]
    fn what_charges_may_refuse() {
        let regex = Regex::new("a", Flags::default(), 1000).unwrap();
        let with = Replacement::literal(&"x".repeat(1000));
        let mut left = 10_000_usize;
        let result = regex.replace(&"a".repeat(1000), &with, 0, |bytes| {
            left = left.checked_sub(bytes).ok_or(RegexError::Limit("too much".into()))?;
            Ok::<_, RegexError>(())
        });
        assert_eq!(result, Err(RegexError::Limit("too much".into())));
    }

    #[test]
    fn flags_and_beginnings() {
        let flags = Flags { ignore_case: true, multiline: true, dot_all: true, verbose: true };
        let regex = Regex::new("^ b . c # x", flags, 1000).unwrap();
        assert_eq!(regex.find("a\nB\nC").unwrap(), Some(2..5));
        let start = Regex::at_start("b|a", Flags::default(), 1000).unwrap();
        assert_eq!((start.find("ab").unwrap(), start.find("cab").unwrap()), (Some(0..1), None));
        assert_eq!(escape("a.b-c d"), r"a\.b\-c\ d");
    }
}
