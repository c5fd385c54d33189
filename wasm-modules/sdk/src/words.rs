//! Splits a line into words as Python's `shlex.split` does.

/// The words of a line: outside of quotes, only white space, quotes and the backslash are special.
///
/// # Errors
/// Python's sentence for a line that ends within quotes or after a backslash.
pub fn split(line: &str) -> Result<Vec<String>, &'static str> {
    const UNCLOSED: &str = "No closing quotation";
    const UNESCAPED: &str = "No escaped character";
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().push(chars.next().ok_or(UNESCAPED)?),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(UNCLOSED)? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(UNCLOSED)? {
                        '"' => break,
                        '\\' => match chars.next().ok_or(UNESCAPED)? {
                            c @ ('"' | '\\') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn lines_are_split_as_by_python() {
        // (line, shlex.split(line))
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            ("  a  b\tc\nd ", &["a", "b", "c", "d"]),
            ("a 'b c' \"d e\"", &["a", "b c", "d e"]),
            ("a''b '' \"\"", &["ab", "", ""]),
            (r#"a\ b "c\"d\\e\$f" 'g\h'"#, &["a b", r#"c"d\e\$f"#, r"g\h"]),
            ("echo $HOME | x > y * # z", &["echo", "$HOME", "|", "x", ">", "y", "*", "#", "z"]),
            ("a=b ~ {}", &["a=b", "~", "{}"]),
        ];
        for (line, words) in table {
            assert_eq!(split(line).unwrap(), *words, "{line}");
        }
        assert_eq!(split("a 'b"), Err("No closing quotation"));
        assert_eq!(split("a \"b"), Err("No closing quotation"));
        assert_eq!(split("a\\"), Err("No escaped character"));
    }
}
