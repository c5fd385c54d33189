//! Content that is said in the state: `contents`, and what `contents_pillar` and `contents_grains` name.

use brine_guest::Value;

/// Salt's form of contents: the lines of a text, or of the texts of a list, each with an end; without the last end if
/// `newline` is false. Bytes that are no text stay as they are.
pub(crate) fn of(value: &Value, newline: bool) -> Result<Vec<u8>, String> {
    let parts = match value {
        Value::Bytes(bytes) => return Ok(bytes.clone()),
        Value::List(items) => items.iter().map(Value::to_text).collect(),
        other => vec![other.to_text()],
    };
    if parts.is_empty() {
        return Err(
            "Contents specified by contents/contents_pillar/contents_grains is not a string or list of strings, \
                    and is not binary data. SLS is likely malformed."
                .into(),
        );
    }
    let mut contents = String::new();
    for part in &parts {
        for line in lines(part) {
            contents.push_str(line.trim_end_matches('\n').trim_end_matches('\r'));
            contents.push('\n');
        }
    }
    if !newline {
        contents.truncate(contents.trim_end_matches('\n').trim_end_matches('\r').len());
    }
    Ok(contents.into_bytes())
}

/// Python's `str.splitlines`.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    let is_end =
        |c: char| matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_end) {
        lines.push(&rest[..at]);
        let end = &rest[at..];
        let length = if end.starts_with("\r\n") { 2 } else { end.chars().next().map_or(1, char::len_utf8) };
        rest = &end[length..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

/// A text in an encoding of Python's.
pub(crate) fn encoded(text: &[u8], encoding: &str, errors: &str) -> Result<Vec<u8>, String> {
    let Ok(text) = std::str::from_utf8(text) else { return Ok(text.to_vec()) };
    let name = encoding.to_ascii_lowercase().replace(['_', ' '], "-");
    let within = |most: u32, kind: &str| {
        let mut out = Vec::new();
        for (at, c) in text.chars().enumerate() {
            match (u8::try_from(u32::from(c)), errors) {
                (Ok(byte), _) if u32::from(c) <= most => out.push(byte),
                (_, "ignore") => {}
                (_, "replace") => out.push(b'?'),
                _ => {
                    let c = c.escape_default();
                    return Err(format!(
                        "'{kind}' codec can't encode character '{c}' in position {at}: ordinal not in range({})",
                        most + 1
                    ));
                }
            }
        }
        Ok(out)
    };
    let wide = |little: bool| {
        text.encode_utf16().flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
    };
    match name.as_str() {
        "utf-8" | "utf8" | "u8" => Ok(text.as_bytes().to_vec()),
        "ascii" | "us-ascii" => within(127, "ascii"),
        "latin-1" | "latin1" | "iso-8859-1" | "l1" => within(255, "latin-1"),
        "utf-16-le" => Ok(wide(true)),
        "utf-16-be" => Ok(wide(false)),
        "utf-16" | "utf16" => Ok([vec![0xff, 0xfe], wide(true)].concat()),
        _ => Err(format!("unknown encoding: {encoding}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_lines_with_ends() {
        let text = |value: Value, newline| String::from_utf8(of(&value, newline).unwrap()).unwrap();
        assert_eq!(text("a".into(), true), "a\n");
        assert_eq!(text("a\r\nb\n\n".into(), true), "a\nb\n\n");
        assert_eq!(text("a\n".into(), false), "a");
        assert_eq!(text("".into(), true), "");
        assert_eq!(text(vec!["a", "b\n"].into(), true), "a\nb\n");
        assert_eq!(text(Value::List(vec![Value::Int(1), Value::Bool(true)]), true), "1\nTrue\n");
        assert!(of(&Value::List(Vec::new()), true).is_err());
        assert_eq!(of(&Value::Bytes(vec![0xff]), true), Ok(vec![0xff]));
    }

    #[test]
    fn lines_end_as_pythons() {
        assert_eq!(lines("a\x0bb\u{2028}c\r\n\rd"), ["a", "b", "c", "", "d"]);
        assert_eq!(lines("\n"), [""]);
        assert_eq!(lines(""), [""; 0]);
    }

    #[test]
    fn encodings_are_pythons() {
        assert_eq!(encoded("ä".as_bytes(), "latin-1", "strict"), Ok(vec![0xe4]));
        assert_eq!(encoded("ä".as_bytes(), "utf_8", "strict"), Ok("ä".as_bytes().to_vec()));
        assert_eq!(encoded("ä".as_bytes(), "ascii", "ignore"), Ok(Vec::new()));
        assert_eq!(encoded(b"a", "utf-16", "strict"), Ok(vec![0xff, 0xfe, b'a', 0]));
        assert!(encoded("ä".as_bytes(), "ascii", "strict").unwrap_err().contains("can't encode"));
        assert_eq!(encoded(b"a", "klingon", "strict"), Err("unknown encoding: klingon".into()));
    }
}
