//! Which type plain text has in YAML 1.1: PyYAML's resolver.

use std::fmt;

const PREFIX: &str = "tag:yaml.org,2002:";

/// The type of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    /// `null`
    Null,
    /// `yes`
    Bool,
    /// `1:30` too
    Int,
    /// `1.5`
    Float,
    /// Text.
    Str,
    /// Python 2's text.
    Unicode,
    /// Bytes, in base64.
    Binary,
    /// A date, or a date and a time.
    Timestamp,
    /// `<<`
    Merge,
    /// `=`
    Value,
    /// `!`, `&` and `*` alone.
    Yaml,
    /// `[]`
    Seq,
    /// `{}`
    Map,
    /// A map without values.
    Set,
    /// A map with an order.
    Omap,
    /// A map whose keys may come twice.
    Pairs,
    /// Any other, in full.
    Other(String),
}

impl Tag {
    /// From the whole name, as in `tag:yaml.org,2002:int`.
    #[must_use]
    pub fn parse(full: String) -> Self {
        match full.strip_prefix(PREFIX) {
            Some("null") => Self::Null,
            Some("bool") => Self::Bool,
            Some("int") => Self::Int,
            Some("float") => Self::Float,
            Some("str") => Self::Str,
            Some("python/unicode") => Self::Unicode,
            Some("binary") => Self::Binary,
            Some("timestamp") => Self::Timestamp,
            Some("merge") => Self::Merge,
            Some("value") => Self::Value,
            Some("yaml") => Self::Yaml,
            Some("seq") => Self::Seq,
            Some("map") => Self::Map,
            Some("set") => Self::Set,
            Some("omap") => Self::Omap,
            Some("pairs") => Self::Pairs,
            _ => Self::Other(full),
        }
    }

    /// Without the prefix of YAML's own types.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Str => "str",
            Self::Unicode => "python/unicode",
            Self::Binary => "binary",
            Self::Timestamp => "timestamp",
            Self::Merge => "merge",
            Self::Value => "value",
            Self::Yaml => "yaml",
            Self::Seq => "seq",
            Self::Map => "map",
            Self::Set => "set",
            Self::Omap => "omap",
            Self::Pairs => "pairs",
            Self::Other(full) => full,
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(full) => f.write_str(full),
            known => write!(f, "{PREFIX}{}", known.name()),
        }
    }
}

/// The type of plain text.
#[must_use]
pub fn resolve(text: &str) -> Tag {
    let Some(first) = text.bytes().next() else { return Tag::Null };
    // the end of a Python expression is also before a last line break
    let whole = text.strip_suffix('\n').unwrap_or(text);
    match first {
        b'<' if whole == "<<" => Tag::Merge,
        b'=' if whole == "=" => Tag::Value,
        b'!' | b'&' | b'*' if whole.len() == 1 => Tag::Yaml,
        b'~' if whole == "~" => Tag::Null,
        b'n' | b'N' if matches!(whole, "null" | "Null" | "NULL") => Tag::Null,
        b'a'..=b'z' | b'A'..=b'Z' if is_bool(whole) => Tag::Bool,
        b'-' | b'+' | b'.' | b'0'..=b'9' => {
            let bytes = whole.as_bytes();
            if is_float(bytes) {
                Tag::Float
            } else if is_int(bytes) {
                Tag::Int
            } else if is_timestamp(bytes) {
                Tag::Timestamp
            } else {
                Tag::Str
            }
        }
        _ => Tag::Str,
    }
}

fn is_bool(text: &str) -> bool {
    matches!(
        text,
        "yes"
            | "Yes"
            | "YES"
            | "no"
            | "No"
            | "NO"
            | "true"
            | "True"
            | "TRUE"
            | "false"
            | "False"
            | "FALSE"
            | "on"
            | "On"
            | "ON"
            | "off"
            | "Off"
            | "OFF"
    )
}

fn unsigned(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"+").or_else(|| text.strip_prefix(b"-")).unwrap_or(text)
}

fn digits_and(text: &[u8]) -> bool {
    text.iter().all(|c| c.is_ascii_digit() || *c == b'_')
}

/// `(?::[0-5]?[0-9])+`, after the first colon.
fn is_sixties(text: &[u8]) -> bool {
    text.split(|c| *c == b':').all(|part| matches!(part, [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']))
}

fn split_at(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let n = text.iter().position(|c| *c == at)?;
    Some((&text[..n], &text[n + 1..]))
}

fn is_int(text: &[u8]) -> bool {
    match unsigned(text) {
        [b'0'] => true,
        [b'0', b'b', rest @ ..] => !rest.is_empty() && rest.iter().all(|c| matches!(c, b'0' | b'1' | b'_')),
        [b'0', b'x', rest @ ..] => !rest.is_empty() && rest.iter().all(|c| c.is_ascii_hexdigit() || *c == b'_'),
        [b'0', rest @ ..] => rest.iter().all(|c| matches!(c, b'0'..=b'7' | b'_')),
        text @ [b'1'..=b'9', ..] => match split_at(text, b':') {
            Some((head, sixties)) => digits_and(head) && is_sixties(sixties),
            None => digits_and(text),
        },
        _ => false,
    }
}

fn is_float(text: &[u8]) -> bool {
    if matches!(text, b".nan" | b".NaN" | b".NAN") {
        return true;
    }
    let number = unsigned(text);
    if matches!(number, b".inf" | b".Inf" | b".INF") {
        return true;
    }
    let Some((head, tail)) = split_at(number, b'.') else { return false };
    match head {
        // no sign before a point
        [] => number.len() == text.len() && matches!(tail, [b'0'..=b'9', ..]) && is_fraction(tail),
        [b'0'..=b'9', ..] => match split_at(head, b':') {
            Some((head, sixties)) => digits_and(head) && is_sixties(sixties) && digits_and(tail),
            None => digits_and(head) && is_fraction(tail),
        },
        _ => false,
    }
}

/// `[0-9_]*(?:[eE][-+][0-9]+)?`
fn is_fraction(text: &[u8]) -> bool {
    match text.iter().position(|c| matches!(c, b'e' | b'E')) {
        None => digits_and(text),
        Some(n) => {
            digits_and(&text[..n])
                && matches!(&text[n + 1..], [b'-' | b'+', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
        }
    }
}

/// The characters `text` begins with, if there are `least` to `most` digits.
fn take_digits<'a>(text: &mut &'a [u8], least: usize, most: usize) -> bool {
    let n = text.iter().take(most).take_while(|c| c.is_ascii_digit()).count();
    let rest: &'a [u8] = text;
    *text = &rest[n..];
    n >= least
}

fn take(text: &mut &[u8], c: u8) -> bool {
    match text.strip_prefix(&[c]) {
        Some(rest) => {
            *text = rest;
            true
        }
        None => false,
    }
}

fn take_blanks(text: &mut &[u8]) -> bool {
    let n = text.iter().take_while(|c| matches!(c, b' ' | b'\t')).count();
    *text = &text[n..];
    n > 0
}

fn is_timestamp(text: &[u8]) -> bool {
    if let [y @ .., b'-', m1, m2, b'-', d1, d2] = text
        && y.len() == 4
        && y.iter().chain([m1, m2, d1, d2]).all(u8::is_ascii_digit)
    {
        return true;
    }
    let t = &mut { text };
    let date = take_digits(t, 4, 4) && take(t, b'-') && take_digits(t, 1, 2) && take(t, b'-') && take_digits(t, 1, 2);
    let time = date
        && (take(t, b'T') || take(t, b't') || take_blanks(t))
        && take_digits(t, 1, 2)
        && take(t, b':')
        && take_digits(t, 2, 2)
        && take(t, b':')
        && take_digits(t, 2, 2);
    if !time {
        return false;
    }
    if take(t, b'.') {
        take_digits(t, 0, usize::MAX);
    }
    let blanks = take_blanks(t);
    if t.is_empty() {
        return !blanks;
    }
    if take(t, b'Z') {
        return t.is_empty();
    }
    (take(t, b'-') || take(t, b'+'))
        && take_digits(t, 1, 2)
        && (t.is_empty() || take(t, b':') && take_digits(t, 2, 2) && t.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_the_type_of_yaml_1_1() {
        let check = |tag: &Tag, texts: &[&str]| {
            for text in texts {
                assert_eq!(resolve(text), *tag, "{text}");
            }
        };
        check(&Tag::Bool, &["yes", "Yes", "NO", "on", "Off", "TRUE", "false"]);
        check(&Tag::Null, &["", "~", "null", "Null", "NULL"]);
        check(
            &Tag::Int,
            &["0", "-0", "+17", "0644", "0b1_0", "0x_F", "1_000", "1:30", "190:20:30", "-1:59", "0_", "0b_"],
        );
        check(&Tag::Float, &["1.", "1.5", "-1_0.5", "1.5e+3", "1.e-3", ".5", ".5_", "1:30.5", ".inf", "-.INF", ".NaN"]);
        check(
            &Tag::Timestamp,
            &["2020-01-02", "2020-1-2 3:04:05", "2020-01-02t03:04:05.678 +1:30", "2020-01-02  03:04:05Z"],
        );
        check(
            &Tag::Str,
            &[
                "y",
                "n",
                "yEs",
                "nUll",
                "08",
                "0o17",
                "0x",
                "0b",
                "1e3",
                "1.5e3",
                "-.5",
                "._1",
                "1:60",
                "1:2:",
                "-.nan",
                "+",
                ".",
                "2020-1-2",
                "2020-01-02 ",
                "2020-01-02 3:04:05 ",
                "1.2.3.4",
                "-",
                "1:30:",
                "_1",
            ],
        );
        check(&Tag::Merge, &["<<"]);
        check(&Tag::Value, &["="]);
    }
}
