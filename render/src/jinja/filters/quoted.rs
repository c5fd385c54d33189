//! Text in quotes, as PyYAML's emitter writes it when it is asked for nothing else: Salt's `yaml_dquote` and `yaml_squote`.

use crate::yaml::escaped;

/// In double quotes. What is not ASCII is escaped.
pub(super) fn double(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.push_str(&escaped(c)),
            ' '..='~' => out.push(c),
            _ => out.push_str(&escaped(c)),
        }
    }
    out.push('"');
    out
}

/// In single quotes. Each line end becomes one more than there are, as a reader takes one away.
pub(super) fn single(text: &str) -> String {
    let is_break = |c: char| matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    let mut within = false;
    for c in text.chars() {
        if is_break(c) && !within && c == '\n' {
            out.push('\n');
        }
        within = is_break(c);
        out.push(c);
        if c == '\'' {
            out.push('\'');
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python's emitter writes.
    #[test]
    fn quotes_are_the_emitters() {
        for (text, expect) in [
            ("é", r#""\xE9""#),
            ("a\u{a0}b", r#""a\_b""#),
            ("a\tb\n\"\\", r#""a\tb\n\"\\""#),
            ("→😀\x7f\x01", r#""\u2192\U0001F600\x7F\x01""#),
            ("", r#""""#),
        ] {
            assert_eq!(double(text), expect, "{text:?}");
        }
        for (text, expect) in [
            ("a\tb", "'a\tb'"),
            ("a\nb", "'a\n\nb'"),
            ("a\n\nb", "'a\n\n\nb'"),
            ("a \n", "'a \n\n'"),
            ("\n", "'\n\n'"),
            ("it's", "'it''s'"),
            ("a\x07é", "'a\x07é'"),
            ("", "''"),
        ] {
            assert_eq!(single(text), expect, "{text:?}");
        }
    }
}
