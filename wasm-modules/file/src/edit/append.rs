//! `file.append` and `file.prepend` on a content, and the search for what is there already.

use brine_render::regex::escape;

/// A content with lines at its end.
pub(crate) fn append(content: &[u8], lines: &[String]) -> Vec<u8> {
    let mut new = content.to_vec();
    if !new.is_empty() && !new.ends_with(b"\n") {
        new.push(b'\n');
    }
    for line in lines {
        new.extend_from_slice(line.as_bytes());
        new.push(b'\n');
    }
    new
}

/// A text with lines at its start; as in Salt, all line ends become `\n`.
pub(crate) fn prepend(text: &str, lines: &[String]) -> String {
    let mut new = String::new();
    for line in lines {
        new.push_str(line);
        new.push('\n');
    }
    new + &super::lines::universal(text)
}

/// The expression that finds a text whatever white space is between its words
/// (`salt.utils.stringutils.build_whitespace_split_regex`).
pub(crate) fn whatever_space(text: &str) -> Result<String, String> {
    let quotes = if text.contains("'\\\"") {
        ""
    } else if text.contains('\'') {
        "\""
    } else if text.contains('"') {
        "'"
    } else {
        "'\""
    };
    let mut pattern = String::from("(?m)^");
    for line in super::lines::plain(text) {
        let words: Vec<String> = words(line, quotes)?.iter().map(|word| escape(word)).collect();
        pattern.push_str(r"(?:[\s]+)?");
        pattern.push_str(&words.join(r"(?:[\s]+)?"));
        pattern.push_str(r"(?:[\s]+)?");
    }
    pattern.push('$');
    Ok(pattern)
}

/// The words of a line, as Python's `shlex` splits them when it is not POSIX's: one that begins with a quote ends with it.
fn words(line: &str, quotes: &str) -> Result<Vec<String>, String> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let mut words = Vec::new();
    let mut rest = line.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let end = if quotes.contains(first) {
            let after = &rest[first.len_utf8()..];
            after.find(first).map(|at| at + 2 * first.len_utf8()).ok_or("No closing quotation")?
        } else {
            rest.find(is_space).unwrap_or(rest.len())
        };
        let (word, after) = rest.split_at(end);
        words.push(word.to_owned());
        rest = after.trim_start_matches(is_space);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Salt 3008.3.
    #[test]
    fn expressions_are_salts() {
        for (text, expected) in [
            ("a b", r"(?m)^(?:[\s]+)?a(?:[\s]+)?b(?:[\s]+)?$"),
            ("a\n\nb", r"(?m)^(?:[\s]+)?a(?:[\s]+)?(?:[\s]+)?(?:[\s]+)?(?:[\s]+)?b(?:[\s]+)?$"),
            ("it's \"x y\"z", r#"(?m)^(?:[\s]+)?it's(?:[\s]+)?"x\ y"(?:[\s]+)?z(?:[\s]+)?$"#),
            ("\"x y\"", r#"(?m)^(?:[\s]+)?"x(?:[\s]+)?y"(?:[\s]+)?$"#),
            ("", "(?m)^$"),
        ] {
            assert_eq!(whatever_space(text).unwrap(), expected, "{text}");
        }
        assert_eq!(whatever_space("'a \"b"), Err("No closing quotation".into()));
    }

    #[test]
    fn lines_are_added() {
        let lines = ["x".to_owned(), "y".to_owned()];
        assert_eq!(append(b"a", &lines), b"a\nx\ny\n");
        assert_eq!(append(b"", &lines), b"x\ny\n");
        assert_eq!(append(b"a\n", &[]), b"a\n");
        assert_eq!(prepend("a\r\nb", &lines), "x\ny\na\nb");
    }
}
