//! Splits a line into words: like Python's `shlex.split`, and like a shell for lines of plain words and quotes.

/// Why a line cannot be split into words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unsplit {
    /// The line ends within quotes or after a backslash.
    Open(&'static str),
    /// The line has syntax that only a shell can interpret.
    Syntax(String),
}

const UNCLOSED: Unsplit = Unsplit::Open("No closing quotation");
const UNESCAPED: Unsplit = Unsplit::Open("No escaped character");

/// Python's `shlex.split`.
pub(crate) fn split(line: &str) -> Result<Vec<String>, Unsplit> {
    brine_guest::words::split(line).map_err(Unsplit::Open)
}

/// The words that a shell would make of a line of plain words and quotes. Any other line is refused.
pub(crate) fn plain(line: &str) -> Result<Vec<String>, Unsplit> {
    let syntax = |what: &dyn std::fmt::Display| Err(Unsplit::Syntax(what.to_string()));
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    // Whether the word so far is unquoted, which matters for a name before `=` and for `!`.
    let mut bare = true;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => {
                words.extend(word.take());
                bare = true;
            }
            '\n' | '\r' => return syntax(&"a line's end"),
            '|' | '&' | ';' | '<' | '>' | '$' | '`' | '(' | ')' | '{' | '}' | '*' | '?' | '[' | ']' => {
                return syntax(&c);
            }
            '~' | '#' if word.is_none() => return syntax(&c),
            '!' if word.is_none() && words.is_empty() && chars.peek().is_none_or(|next| next.is_whitespace()) => {
                return syntax(&c);
            }
            '=' if words.is_empty() && bare && word.as_deref().is_some_and(variable) => {
                return syntax(&format_args!("{}=", word.unwrap_or_default()));
            }
            '\\' => {
                bare = false;
                match chars.next().ok_or(UNESCAPED)? {
                    '\n' => {}
                    c => word.get_or_insert_default().push(c),
                }
            }
            '\'' => {
                bare = false;
                single(&mut chars, word.get_or_insert_default())?;
            }
            '"' => {
                bare = false;
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(UNCLOSED)? {
                        '"' => break,
                        c @ ('$' | '`') => return syntax(&c),
                        '\\' => match chars.next().ok_or(UNCLOSED)? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            '\n' => {}
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

/// Reads up to the closing quote without interpreting any character.
fn single(chars: &mut impl Iterator<Item = char>, word: &mut String) -> Result<(), Unsplit> {
    loop {
        match chars.next().ok_or(UNCLOSED)? {
            '\'' => return Ok(()),
            c => word.push(c),
        }
    }
}

/// Whether a shell takes `NAME=` at the start for an assignment.
fn variable(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // `NAME+=` appends.
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Result<Vec<String>, Unsplit> {
        Ok(words.iter().map(|word| word.to_string()).collect())
    }

    #[test]
    fn plain_words_are_a_shells() {
        // (line, the result of sh -c 'for w; do …')
        let table: &[(&str, &[&str])] = &[
            ("ls -l /tmp", &["ls", "-l", "/tmp"]),
            (r#"printf '%s|$x' "a b" c\ d"#, &["printf", "%s|$x", "a b", "c d"]),
            (r#"a "\$x \" \\ \a""#, &["a", r#"$x " \ \a"#]),
            (r"a \$x \* \;", &["a", "$x", "*", ";"]),
            ("sed -e s/=/:/g x=y", &["sed", "-e", "s/=/:/g", "x=y"]),
            ("a b~ c#d e! ! '' \"\"", &["a", "b~", "c#d", "e!", "!", "", ""]),
            ("'A'=b 1=2 a-b=c", &["A=b", "1=2", "a-b=c"]),
            ("1=2", &["1=2"]),
            ("a \\\nb", &["a", "b"]),
            ("ünïcödé  x", &["ünïcödé", "x"]),
        ];
        for (line, words) in table {
            assert_eq!(plain(line), list(words), "{line}");
        }
    }

    #[test]
    fn what_a_shell_would_interpret_is_refused_and_named() {
        for (line, named) in [
            ("a | b", "|"),
            ("a|b", "|"),
            ("a && b", "&"),
            ("a; b", ";"),
            ("a < b", "<"),
            ("a 2>b", ">"),
            ("a $HOME", "$"),
            ("a \"$HOME\"", "$"),
            ("a `b`", "`"),
            ("a \"`b`\"", "`"),
            ("(a)", "("),
            ("a )", ")"),
            ("{ a", "{"),
            ("find -exec {}", "{"),
            ("a *", "*"),
            ("a b?", "?"),
            ("a [b", "["),
            ("a ]", "]"),
            ("~/a", "~"),
            ("a ~b", "~"),
            ("a #b", "#"),
            ("! a", "!"),
            ("!", "!"),
            ("A=b c", "A="),
            ("A+=b c", "A+="),
            ("_a1= b", "_a1="),
            ("a\nb", "a line's end"),
            ("a\rb", "a line's end"),
            ("a 'b' c'd'|e", "|"),
        ] {
            assert_eq!(plain(line), Err(Unsplit::Syntax(named.into())), "{line}");
        }
        assert_eq!(plain("a 'b"), Err(UNCLOSED));
        assert_eq!(plain("a \"b\\"), Err(UNCLOSED));
        assert_eq!(plain("a \\"), Err(UNESCAPED));
    }

    /// For every line: the output of `plain` contains only characters of the line, and special characters of a shell
    /// only where they were quoted.
    #[test]
    fn only_quotes_make_a_character_harmless() {
        for c in "|&;<>$`(){}*?[]".chars() {
            for line in [format!("a {c}"), format!("a{c}b"), format!("{c}a"), format!("a 'b'{c}"), format!("a \\\\{c}")]
            {
                assert_eq!(plain(&line), Err(Unsplit::Syntax(c.to_string())), "{line}");
            }
            assert_eq!(plain(&format!("a '{c}'")), list(&["a", &c.to_string()]));
            assert_eq!(plain(&format!("a \\{c}")), list(&["a", &c.to_string()]));
        }
    }
}
