//! How foreign text is displayed to people: on terminals, in logs, in messages, in lists of names.
//!
//! Text from a minion, a module or a command line can control a terminal (escape sequences), change the reading
//! direction (direction overrides) or hide content (zero-width characters). Such characters are displayed by number in
//! Python's form: `\x1b`, `\u202e`, `\U000e0041`. All programs and both sides of the sandbox use these functions, so
//! that one place decides.
//!
//! - [`visible`] for text of several lines, [`line()`] for one line, [`short`] for a part of a message, [`name`] for an
//!   id in a list
//! - [`json`], and [`marked`] for other formats with escapes of their own
//! - [`LogLimit`] for lines of a log that others cause
//! - [`quoted`] and [`docstring`] for texts in Python's forms
//!
//! Emoji are ordinary text: a variation selector directly after its emoji and a joiner between two emoji stay.
//! Elsewhere, and always in a [`name`], both are displayed by number.

mod log_limit;
mod table;

use std::borrow::Cow;
use std::fmt::Write as _;

pub use log_limit::{LogLimit, Turn};

/// Whether a terminal could obey a character, hide it, or let it change how other characters are read: Unicode's
/// controls, format characters, line and paragraph separators, and all characters that are displayed as nothing
/// (`Default_Ignorable_Code_Point`).
#[must_use]
pub fn is_active(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_control() } else { table::contains(table::ACTIVE, c) }
}

/// The characters of a text, each with whether it is displayed by its number. Newline and tab are.
pub fn marked(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut before = None;
    let mut rest = text.chars();
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let mark = is_active(c) && !is_emoji_part(before, c, rest.clone().next());
        // a character displayed by number joins nothing
        before = Some(c).filter(|_| !mark);
        Some((c, mark))
    })
}

/// `text` of several lines: newline and tab stay, every other active character is shown by its number.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, |c, mark| mark && !matches!(c, '\n' | '\t'))
}

/// `text` on one line: newline and tab are shown as `\n` and `\t`.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    shown(text, |_, mark| mark)
}

/// The first `max` characters of `text` as [`line()`] shows them, without blanks around; `…` stands for the rest.
#[must_use]
pub fn short(text: &str, max: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(max) {
        None => line(text).into_owned(),
        Some((end, _)) => line(&text[..end]).into_owned() + "…",
    }
}

/// [`short`] for a text whose own line breaks have no meaning, such as another crate's error.
#[must_use]
pub fn joined(text: &str, max: usize) -> String {
    short(&text.split_whitespace().collect::<Vec<_>>().join(" "), max)
}

/// A name in a list, displayed so that different names look different. Displays by number what [`line()`] does, also
/// within emoji, and blanks other than a single space between two other characters. Letters that look alike in two
/// scripts stay unchanged.
#[must_use]
pub fn name(text: &str) -> Cow<'_, str> {
    let blank = |c: char| c.is_whitespace() || c == '\u{2800}';
    let plain = |c: char| !is_active(c) && (!blank(c) || c == ' ');
    let edges = text.starts_with(' ') || text.ends_with(' ') || text.contains("  ");
    if !edges && text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let lone = c == ' ' && before != ' ' && chars.peek().is_some_and(|next| *next != ' ');
        if lone || (c != ' ' && plain(c)) {
            out.push(c);
        } else {
            push_escaped(c, &mut out);
        }
        before = c;
    }
    Cow::Owned(out)
}

/// Rewrites a program's JSON with JSON escapes for the characters that [`marked`] marks; the values stay the same.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    // Raw line ends and tabs occur only between values, all other active characters only in strings.
    escaped(text, |c, mark| mark && !matches!(c, '\n' | '\r' | '\t'), push_json)
}

/// Appends a character by its number in JSON's form: `\u202e`, as two surrogates beyond the basic plane.
pub fn push_json(c: char, out: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        write!(out, "\\u{unit:04x}").expect("a String can be written to");
    }
}

/// Appends a character by its number in Python's form.
pub fn push_escaped(c: char, out: &mut String) {
    let done = match (c, u32::from(c)) {
        ('\n', _) => out.write_str("\\n"),
        ('\r', _) => out.write_str("\\r"),
        ('\t', _) => out.write_str("\\t"),
        (_, code @ ..=0xff) => write!(out, "\\x{code:02x}"),
        (_, code @ ..=0xffff) => write!(out, "\\u{code:04x}"),
        (_, code) => write!(out, "\\U{code:08x}"),
    };
    done.expect("a String can be written to");
}

/// Text with the quotes and escapes of Python's `repr`; characters that `is_plain` rejects are displayed by number.
#[must_use]
pub fn quoted(text: &str, is_plain: impl Fn(char) -> bool) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            _ if c == '\\' || c == quote => out.extend(['\\', c]),
            _ if is_plain(c) => out.push(c),
            _ => push_escaped(c, &mut out),
        }
    }
    out.push(quote);
    out
}

/// A function's documentation in the layout of a Python docstring.
#[must_use]
pub fn docstring(text: &str) -> String {
    let mut out = String::from("\n");
    for line in text.lines() {
        if !line.is_empty() {
            out.push_str("    ");
            out.push_str(line);
        }
        out.push('\n');
    }
    out.push_str("    ");
    out
}

fn shown(text: &str, escape: impl Fn(char, bool) -> bool) -> Cow<'_, str> {
    escaped(text, escape, push_escaped)
}

/// `text` with the characters that `escape` selects as `push` writes them.
fn escaped(text: &str, escape: impl Fn(char, bool) -> bool, push: fn(char, &mut String)) -> Cow<'_, str> {
    if !marked(text).any(|(c, mark)| escape(c, mark)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (c, mark) in marked(text) {
        if escape(c, mark) {
            push(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether an active character belongs to the emoji around it (UTS 51): `❤️`, `1️⃣`, `👩‍💻`, `👍🏽‍♂️`.
fn is_emoji_part(before: Option<char>, c: char, after: Option<char>) -> bool {
    const KEYCAP: char = '\u{20e3}';
    let Some(before) = before else { return false };
    let is_emoji = |c| table::contains(table::PICTOGRAPHIC, c);
    match c {
        '\u{fe0e}' | '\u{fe0f}' => {
            is_emoji(before) || (matches!(before, '0'..='9' | '#' | '*') && after == Some(KEYCAP))
        }
        '\u{200d}' => {
            // a skin tone, or the selector, may stand between an emoji and its joiner
            let joins = is_emoji(before) || matches!(before, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}');
            joins && after.is_some_and(is_emoji)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_or_hides_is_shown_by_its_number() {
        for (text, expect) in [
            ("plain žluť 日本 🎉\ttab\n", "plain žluť 日本 🎉\ttab\n"),
            ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
            ("a\r\x08b\x00\x7f", "a\\r\\x08b\\x00\\x7f"),
            ("c1 \u{9b}31m", "c1 \\x9b31m"),
            ("rtl \u{202e}gpj.exe\u{2066}", "rtl \\u202egpj.exe\\u2066"),
            ("a\u{200b}b\u{feff}c\u{ad}d", "a\\u200bb\\ufeffc\\xadd"),
            ("tag\u{e0041}\u{e007f}", "tag\\U000e0041\\U000e007f"),
            ("op\u{2062}\u{2064}", "op\\u2062\\u2064"),
            ("lines\u{2028}\u{2029}\u{85}", "lines\\u2028\\u2029\\x85"),
            ("fillers \u{3164}\u{115f}\u{ffa0}\u{17b4}", "fillers \\u3164\\u115f\\uffa0\\u17b4"),
            ("selectors a\u{fe0f}b\u{e0100}\u{34f}", "selectors a\\ufe0fb\\U000e0100\\u034f"),
            ("joiners a\u{200d}b\u{200c}c", "joiners a\\u200db\\u200cc"),
        ] {
            assert_eq!(visible(text), expect);
        }
        assert_eq!(line("a\nb\tc\x1b"), "a\\nb\\tc\\x1b");
        assert_eq!(short("  a\nb\u{202e}cd ", 4), "a\\nb\\u202e…");
        assert_eq!(short("abc", 3), "abc");
    }

    #[test]
    fn pythons_forms() {
        let plain = |c: char| !c.is_ascii_control();
        for (text, expect) in [
            ("it", "'it'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("a\\b\n\r\t\x1b", "'a\\\\b\\n\\r\\t\\x1b'"),
            ("é\u{202e}", "'é\u{202e}'"),
        ] {
            assert_eq!(quoted(text, plain), expect);
        }
        assert_eq!(quoted("\u{202e}", |c| c.is_ascii()), "'\\u202e'");
        assert_eq!(docstring("Does it.\n\n  Example\n"), "\n    Does it.\n\n      Example\n    ");
    }

    #[test]
    fn json_keeps_its_values() {
        assert_eq!(
            json("{\n\t\"a\u{e0041}\": \"\u{202e}\u{7f}❤️\"\n}"),
            "{\n\t\"a\\udb40\\udc41\": \"\\u202e\\u007f❤️\"\n}"
        );
    }

    #[test]
    fn emoji_are_ordinary_text() {
        let whole = "❤️ 1️⃣ ⚠️ 👩‍💻 👍🏽 🧔🏽‍♂️ ❤️‍🔥 👨‍👩‍👧 ©︎";
        assert_eq!(visible(whole), whole);
        for (text, expect) in [
            // a superfluous selector, a joiner at an end, a digit that is no keycap, a flag made of tags
            ("❤\u{fe0f}\u{fe0f}", "❤\u{fe0f}\\ufe0f"),
            ("👩\u{200d}", "👩\\u200d"),
            ("👩\u{200d}x", "👩\\u200dx"),
            ("👩\u{200d}\u{200d}💻", "👩\\u200d\\u200d💻"),
            ("x\u{fe0f}\u{200d}💻", "x\\ufe0f\\u200d💻"),
            ("1\u{fe0f}", "1\\ufe0f"),
            ("🏴\u{e0067}\u{e007f}", "🏴\\U000e0067\\U000e007f"),
        ] {
            assert_eq!(visible(text), expect);
        }
    }

    #[test]
    fn names_that_differ_look_different() {
        let names = [
            "web1",
            "web1 ",
            " web1",
            "web1\u{a0}",
            "web\u{200b}1",
            "web\u{ad}1",
            "web1\u{202e}",
            "web1\u{2800}",
            "we b1",
            "we  b1",
            "we\u{3000}b1",
            "web1\u{fe0f}",
            "❤",
            "❤\u{fe0f}",
            "web1\u{e0041}",
            "web\t1",
        ];
        let shown: std::collections::BTreeSet<_> = names.iter().map(|text| name(text)).collect();
        assert_eq!(shown.len(), names.len());
        for text in &shown {
            assert!(
                !text.contains(|c: char| is_active(c) || (c.is_whitespace() && c != ' ') || c == '\u{2800}'),
                "{text:?}"
            );
            assert_eq!(text.trim(), text);
        }
        for text in ["web1", "we b1", "é.example.com", "日本", "🎉"] {
            assert!(matches!(name(text), Cow::Borrowed(_)), "{text}");
        }
    }

    /// Compares the tables with those of another crate, which are generated from Unicode's own files.
    #[test]
    fn the_tables_are_unicodes() {
        let active = regex::Regex::new(r"^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]$").unwrap();
        let emoji = regex::Regex::new(r"^\p{Extended_Pictographic}$").unwrap();
        let mut buffer = [0; 4];
        for c in '\0'..=char::MAX {
            let text = &*c.encode_utf8(&mut buffer);
            assert_eq!(is_active(c), active.is_match(text), "U+{:04X}", u32::from(c));
            assert_eq!(table::contains(table::PICTOGRAPHIC, c), emoji.is_match(text), "U+{:04X}", u32::from(c));
        }
    }
}
