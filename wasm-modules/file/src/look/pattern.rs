//! Converts regular expressions of Python and of grep to the syntax of the crate that matches them: in linear time,
//! without back-references and look-around.

use std::fmt::Write;

use brine_patterns::Dialect;
use regex_lite::{Regex, RegexBuilder};

/// Upper bound on the bytes of a pattern.
const MAX_PATTERN: usize = 16 * 1024;
/// Upper bound on the bytes of a compiled pattern, because repetitions multiply.
const MAX_COMPILED: usize = 1024 * 1024;

/// The flags of a pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub ignore_case: bool,
    pub multi_line: bool,
    pub dot_all: bool,
    pub verbose: bool,
}

/// Compiles the output of [`python`], [`basic`] or [`extended`]. [`python`] has already handled the flags for lines and
/// spaces.
pub(crate) fn compile(pattern: &str, flags: Flags) -> Result<Regex, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("the pattern is longer than {MAX_PATTERN} bytes"));
    }
    RegexBuilder::new(pattern)
        .case_insensitive(flags.ignore_case)
        .dot_matches_new_line(flags.dot_all)
        .size_limit(MAX_COMPILED)
        .build()
        .map_err(|error| error.to_string())
}

/// Rewrites a pattern of Python's `re`.
pub(crate) fn python(pattern: &str, flags: Flags) -> Result<String, String> {
    let read = brine_patterns::Flags { multiline: flags.multi_line, verbose: flags.verbose };
    let rewritten = brine_patterns::rewrite(pattern, read, Dialect::Ascii)?;
    if rewritten.backtracks {
        return Err("looking around, back references and possessive repetitions are not there".into());
    }
    Ok(rewritten.pattern)
}

/// Whether `{` begins a repetition: `{2}`, `{2,}`, `{,2}`, `{2,3}`.
fn interval(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else { return false };
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    match inside.split_once(',') {
        None => !inside.is_empty() && digits(inside),
        Some((least, most)) => digits(least) && digits(most) && !inside.starts_with(','),
    }
}

/// Rewrites a basic regular expression of GNU grep.
pub(crate) fn basic(pattern: &str) -> Result<String, String> {
    posix(pattern, false)
}

/// Rewrites an extended regular expression of GNU grep.
pub(crate) fn extended(pattern: &str) -> Result<String, String> {
    posix(pattern, true)
}

/// Escapes a text so that it matches itself.
pub(crate) fn fixed(text: &str) -> String {
    regex_lite::escape(text)
}

/// Rewrites a POSIX expression. In basic expressions, `( ) { } | + ?` are ordinary and become special after a
/// backslash; in extended ones, the reverse is true.
fn posix(pattern: &str, extended: bool) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = pattern;
    // True where a repetition has nothing to repeat, and where `^` means the start.
    let mut fresh = true;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let (c, escaped) = match c {
            '\\' => {
                let c = rest.chars().next().ok_or("Trailing backslash")?;
                rest = &rest[c.len_utf8()..];
                (c, true)
            }
            c => (c, false),
        };
        let special = escaped != extended;
        let began = fresh;
        fresh = false;
        match c {
            '(' if special => {
                out.push('(');
                fresh = true;
            }
            ')' if special => out.push(')'),
            '|' if special => {
                out.push('|');
                fresh = true;
            }
            '+' | '?' if special && !began => out.push(c),
            '{' if special && !began => {
                let close = if extended { "}" } else { "\\}" };
                let inside = rest.split_once(close).map(|(inside, _)| inside);
                match inside.filter(|inside| interval(&format!("{inside}}}")) || inside.starts_with(',')) {
                    Some(inside) => {
                        let least = if inside.starts_with(',') { "0" } else { "" };
                        let _ = write!(out, "{{{least}{inside}}}");
                        rest = &rest[inside.len() + close.len()..];
                    }
                    None if extended => out.push_str("\\{"),
                    None => return Err("Invalid content of \\{\\}".into()),
                }
            }
            '*' if !escaped && !began => out.push('*'),
            '^' if !escaped && (extended || began) => {
                out.push('^');
                fresh = true;
            }
            '$' if !escaped && (extended || rest.is_empty() || rest.starts_with("\\)") || rest.starts_with("\\|")) => {
                out.push('$');
            }
            '.' if !escaped => out.push('.'),
            '[' if !escaped => rest = posix_class(rest, &mut out)?,
            '<' if escaped => out.push_str("\\b{start}"),
            '>' if escaped => out.push_str("\\b{end}"),
            'b' | 'B' | 'w' | 'W' | 's' | 'S' if escaped => out.extend(['\\', c]),
            '`' if escaped => out.push_str("\\A"),
            '\'' if escaped => out.push_str("\\z"),
            '1'..='9' if escaped => return Err(format!("back references (\\{c}) are not there")),
            c => out.push_str(&regex_lite::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    Ok(out)
}

/// Rewrites a class up to its `]`. A backslash is ordinary there, and `[:alpha:]` is a class.
fn posix_class<'a>(mut rest: &'a str, out: &mut String) -> Result<&'a str, String> {
    out.push('[');
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    while let Some(c) = rest.chars().next() {
        if let Some(class) = rest.strip_prefix("[:").and_then(|class| class.split_once(":]")).map(|(class, _)| class) {
            let _ = write!(out, "[:{class}:]");
            rest = &rest[class.len() + 4..];
            first = false;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            ']' if !first => {
                out.push(']');
                return Ok(rest);
            }
            '\\' | '[' | ']' | '&' | '~' | '^' => out.extend(['\\', c]),
            c => out.push(c),
        }
        first = false;
    }
    Err("Unmatched [, [^, [:, [., or [=".into())
}

/// Whether the expression matches bytes. Invalid UTF-8 is replaced by characters that `.` matches.
pub(crate) fn found(regex: &Regex, bytes: &[u8]) -> bool {
    regex.is_match(&String::from_utf8_lossy(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons() {
        // (pattern, text, bool(re.search(pattern, text)))
        for (pattern, text, expected) in [
            ("foo$", "foo\n", true),
            ("foo$", "foo\nx", false),
            ("^Foo", "a Foo", false),
            (r"foo\Z", "foo", true),
            ("a{x}", "a{x}", true),
            ("a{2}", "aa", true),
            ("{a,b}", "{a,b}", true),
            (r"[[]", "[", true),
            (r"[a&&b]", "&", true),
            (r"[]x]", "]", true),
            (r"[^]x]", "]", false),
            (r"[\]a]", "]", true),
            (r"\<x\>", "<x>", true),
            (r"(?i)ABC", "abc", true),
            (r"(?P<n>\d+)-\w", "12-a", true),
            (r"\$HOME", "$HOME", true),
            (r"a|b", "b", true),
            ("ü+", "xüü", true),
        ] {
            let regex = compile(&python(pattern, Flags::default()).unwrap(), Flags::default()).unwrap();
            assert_eq!(regex.is_match(text), expected, "{pattern} on {text:?}");
        }
        for bad in ["(", "[", "*", r"(?=a)", r"(a)\1"] {
            assert!(python(bad, Flags::default()).and_then(|bad| compile(&bad, Flags::default())).is_err(), "{bad}");
        }
        assert!(compile(&"(((a{99}){99}){99}){99}".replace('9', "999"), Flags::default()).is_err());
    }

    #[test]
    fn greps() {
        // (pattern, text, grep, grep -E)
        for (pattern, text, in_basic, in_extended) in [
            ("a+", "a+", true, true),
            ("a+", "aa", false, true),
            (r"a\+", "aa", true, false),
            (r"a\+", "a+", true, true),
            ("a|b", "b", false, true),
            ("a|b", "a|b", true, true),
            (r"a\|b", "b", true, false),
            (r"\(ab\)*c", "ababc", true, false),
            ("(ab)*c", "(ab)c", true, true),
            (r"o\{2\}$", "foo", true, false),
            ("o{2}$", "foo", false, true),
            ("o{,2}$", "f", false, true),
            ("*a", "*a", true, true),
            ("^*a", "*a", true, true),
            ("a^b", "a^b", true, false),
            ("a$b", "a$b", true, false),
            ("^a$", "a", true, true),
            (r"[\n]", "\\", true, true),
            ("[[:upper:]]a", "Ga", true, true),
            ("[]a]", "]", true, true),
            ("[^]a]", "]", false, false),
            ("[a^]", "^", true, true),
            (r"\<foo\>", "a foo b", true, true),
            (r"\<foo\>", "afoo", false, false),
            (r"a\.b", "axb", false, false),
            ("a.b", "axb", true, true),
            (r"\w\W", "a ", true, true),
            ("a?", "b", false, true),
            ("{", "{", true, true),
            ("x{", "x{", true, true),
        ] {
            let search =
                |pattern: Result<String, String>| compile(&pattern.unwrap(), Flags::default()).unwrap().is_match(text);
            assert_eq!(search(basic(pattern)), in_basic, "grep {pattern} on {text:?}: {:?}", basic(pattern));
            assert_eq!(search(extended(pattern)), in_extended, "grep -E {pattern} on {text:?}");
        }
        assert!(basic(r"\(a\)\1").is_err());
        assert_eq!(basic("a\\"), Err("Trailing backslash".into()));
        assert!(basic("[a").is_err());
        assert!(compile(&fixed("a.b*("), Flags::default()).unwrap().is_match("xa.b*("));
    }
}
