//! The lines of a text, by the rules of Python's `splitlines` and of its files.

use std::borrow::Cow;

use brine_guest::diff;

/// Where Python's `str.splitlines` ends a line, beside `\r\n`.
const ENDS: [char; 10] = ['\n', '\r', '\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];

/// The lines of a text with their ends (`str.splitlines(True)`).
pub(crate) fn of_text(text: &str) -> Vec<&str> {
    split(text, &ENDS)
}

/// The lines of a text without their ends (`str.splitlines()`).
pub(crate) fn plain(text: &str) -> Vec<&str> {
    of_text(text).into_iter().map(without_end).collect()
}

/// The lines of a file whose ends stay as they are (`open(path, newline="")`).
pub(crate) fn of_file(text: &str) -> Vec<&str> {
    split(text, &['\n', '\r'])
}

/// What Python reads from a file in text mode: each line ends with `\n`.
pub(crate) fn universal(text: &str) -> Cow<'_, str> {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n").into() } else { text.into() }
}

fn split<'a>(text: &'a str, ends: &[char]) -> Vec<&'a str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(ends) {
        let end = if rest[at..].starts_with("\r\n") { 2 } else { rest[at..].chars().next().map_or(1, char::len_utf8) };
        let (line, after) = rest.split_at(at + end);
        lines.push(line);
        rest = after;
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

fn without_end(line: &str) -> &str {
    match line.strip_suffix("\r\n") {
        Some(line) => line,
        None => line.strip_suffix(ENDS).unwrap_or(line),
    }
}

/// The text of a content.
///
/// # Errors
/// Python's sentence, when it is not UTF-8.
pub(crate) fn text(content: &[u8]) -> Result<&str, String> {
    core::str::from_utf8(content).map_err(|error| {
        let at = error.valid_up_to();
        let byte = content[at];
        let why = match (error.error_len(), byte) {
            (None, _) => "unexpected end of data",
            (Some(_), 0x80..=0xc1 | 0xf5..) => "invalid start byte",
            (Some(_), _) => "invalid continuation byte",
        };
        format!("'utf-8' codec can't decode byte 0x{byte:02x} in position {at}: {why}")
    })
}

/// What differs between two contents: empty if nothing does. The lines end with `\n`, `\r` or both; one that is not
/// UTF-8 is read as Latin-1, as Salt does.
pub(crate) fn differences(old: &[u8], new: &[u8]) -> String {
    if old == new {
        return String::new();
    }
    diff::unified(&decoded(old), &decoded(new), "", "")
}

fn decoded(content: &[u8]) -> Vec<Cow<'_, str>> {
    let mut lines = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        let end = rest
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r'))
            .map_or(rest.len(), |at| if rest[at..].starts_with(b"\r\n") { at + 2 } else { at + 1 });
        let (line, after) = rest.split_at(end);
        rest = after;
        lines.push(match core::str::from_utf8(line) {
            Ok(text) => text.into(),
            Err(_) => line.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
        });
    }
    lines
}

/// What `"\n".join` makes of the differences of lines without ends: the headers have an empty line after them.
pub(crate) fn joined_differences(old: &[&str], new: &[&str]) -> String {
    let ended = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>();
    let found = diff::unified(&ended(old), &ended(new), "", "");
    let mut out: Vec<&str> = Vec::new();
    for (number, line) in found.strip_suffix('\n').unwrap_or(&found).split('\n').enumerate() {
        out.push(line);
        if number < 2 || line.starts_with('@') {
            out.push("");
        }
    }
    if found.is_empty() { found } else { out.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_pythons() {
        assert_eq!(of_text("a\r\nb\rc\n\nd\x0be\u{2028}f"), ["a\r\n", "b\r", "c\n", "\n", "d\x0b", "e\u{2028}", "f"]);
        assert_eq!(plain("a\r\nb\n"), ["a", "b"]);
        assert_eq!(of_file("a\r\nb\x0bc\rd"), ["a\r\n", "b\x0bc\r", "d"]);
        assert_eq!(universal("a\r\nb\rc\n"), "a\nb\nc\n");
        assert!(of_text("").is_empty());
    }

    #[test]
    fn what_is_no_text_has_pythons_sentence() {
        let why = |bytes: &[u8]| text(bytes).unwrap_err();
        assert_eq!(why(b"ab\xe9c"), "'utf-8' codec can't decode byte 0xe9 in position 2: invalid continuation byte");
        assert_eq!(why(b"\xff"), "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte");
        assert_eq!(why(b"a\xc3"), "'utf-8' codec can't decode byte 0xc3 in position 1: unexpected end of data");
    }

    #[test]
    fn differences_of_lines_with_and_without_ends() {
        assert_eq!(differences(b"a\xe9\r\n", b"b\n"), "--- \n+++ \n@@ -1 +1 @@\n-a\u{e9}\r\n+b\n");
        assert_eq!(joined_differences(&["a"], &["a", "b"]), "--- \n\n+++ \n\n@@ -1 +1,2 @@\n\n a\n+b");
        assert_eq!(joined_differences(&["a"], &["a"]), "");
    }
}
