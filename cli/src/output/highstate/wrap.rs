//! Python's `textwrap.fill` with one indent for every line.

/// Fills `text` into lines of `width` columns that start with `indent` spaces.
pub(in crate::output) fn fill(text: &str, width: usize, indent: usize) -> String {
    let room = width.saturating_sub(indent).max(1);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut columns = 0;
    for chunk in chunks(text) {
        let mut rest = chunk.as_str();
        loop {
            let len = rest.chars().count();
            if columns + len <= room {
                // No line except the first starts with spaces.
                if columns > 0 || lines.is_empty() || !rest.starts_with(' ') {
                    line.push_str(rest);
                    columns += len;
                }
                break;
            }
            // A space that does not fit ends the line. A word that does not fit goes to the next line, in pieces if it
            // is longer than a line.
            let is_space = rest.starts_with(' ');
            if len > room && !is_space {
                let at = rest.char_indices().nth(room - columns).map_or(rest.len(), |(at, _)| at);
                line.push_str(&rest[..at]);
                rest = &rest[at..];
            }
            push(&mut lines, &mut line);
            columns = 0;
            if is_space || rest.is_empty() {
                break;
            }
        }
    }
    push(&mut lines, &mut line);
    let indent = " ".repeat(indent);
    lines.iter().map(|line| format!("{indent}{line}")).collect::<Vec<_>>().join("\n")
}

fn push(lines: &mut Vec<String>, line: &mut String) {
    line.truncate(line.trim_end_matches(' ').len());
    if !line.is_empty() {
        lines.push(std::mem::take(line));
    }
}

/// Words and runs of spaces. A word may be broken after a hyphen between letters.
fn chunks(text: &str) -> Vec<String> {
    let mut expanded = String::with_capacity(text.len());
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let spaces = 8 - column % 8;
                expanded.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\n' | '\r' => {
                expanded.push(' ');
                column = 0;
            }
            '\x0b' | '\x0c' => {
                expanded.push(' ');
                column += 1;
            }
            _ => {
                expanded.push(c);
                column += 1;
            }
        }
    }
    let mut out: Vec<String> = Vec::new();
    let chars: Vec<char> = expanded.chars().collect();
    let mut word = String::new();
    let is_letter = |at: usize| chars.get(at).is_some_and(|c: &char| c.is_alphabetic());
    for (at, &c) in chars.iter().enumerate() {
        if word.chars().next().is_some_and(|first| (first == ' ') != (c == ' ')) {
            out.push(std::mem::take(&mut word));
        }
        word.push(c);
        let breaks =
            c == '-' && at >= 2 && is_letter(at - 1) && is_letter(at - 2) && is_letter(at + 1) && is_letter(at + 2);
        if breaks {
            out.push(std::mem::take(&mut word));
        }
    }
    if !word.is_empty() {
        out.push(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn lines_are_filled() {
        for (text, expect) in [
            ("", ""),
            ("a b", "  a b"),
            ("aaaa bbbb cccc", "  aaaa\n  bbbb\n  cccc"),
            ("aa bb cc dd", "  aa bb cc\n  dd"),
            ("abcdefghijklmno p", "  abcdefgh\n  ijklmno\n  p"),
            // Tabs are expanded before lines are broken.
            ("a\nb\tc", "  a b\n  c"),
            ("well-known words", "  well-\n  known\n  words"),
        ] {
            assert_eq!(fill(text, 10, 2), expect, "{text:?}");
        }
    }
}
