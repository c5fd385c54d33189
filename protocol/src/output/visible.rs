//! Makes control characters visible, so that text from a minion cannot drive the operator's terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a terminal could take `c` as something else than a character to show: C0 and C1 controls (tab and newline
/// are harmless) and the characters that change the direction of text, which make a line read as something else.
pub(super) fn is_active(c: char) -> bool {
    match c {
        '\t' | '\n' => false,
        '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => c.is_control(),
    }
}

/// `text` with every active character written as `\x1b` or `\u202e`. Tab and newline stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !is_active(c) {
            out.push(c);
        } else if u32::from(c) <= 0xff {
            write!(out, "\\x{:02x}", u32::from(c)).expect("a String can be written to");
        } else {
            write!(out, "\\u{:04x}", u32::from(c)).expect("a String can be written to");
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_characters_are_shown() {
        for (text, expect) in [
            ("plain žluť 日本 🎉\ttab\n", "plain žluť 日本 🎉\ttab\n"),
            ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
            ("a\r\x08b\x00\x7f", "a\\x0d\\x08b\\x00\\x7f"),
            ("c1 \u{9b}31m", "c1 \\x9b31m"),
            ("rtl \u{202e}gpj.exe\u{2066}", "rtl \\u202egpj.exe\\u2066"),
        ] {
            assert_eq!(visible(text), expect);
        }
    }
}
