//! `file.comment_line` on a text, and the expressions of the states `comment` and `uncomment`.

use brine_render::regex::{Flags, Regex, RegexError};

use super::pattern::{about, backtracks};

/// The new text, and the lines that changed: what they were and what they are. None if no line matches.
pub(crate) struct Commented {
    pub text: String,
    pub old: Vec<String>,
    pub new: Vec<String>,
}

/// Puts `mark` before the lines that an expression matches, or takes it away (`comment` is false).
pub(crate) fn apply(text: &str, regex: &str, mark: &str, comment: bool) -> Result<Option<Commented>, String> {
    let inside = regex.trim_start_matches('^').trim_end_matches('$');
    let end = if regex.ends_with('$') { "$" } else { "" };
    let pattern = if comment {
        format!("{}({inside}){end}", if regex.starts_with('^') { "^" } else { "" })
    } else {
        format!("^{mark}\\s*({inside}){end}")
    };
    let length = text.split_inclusive('\n').map(str::len).max().unwrap_or_default();
    let compiled =
        Regex::at_start(&pattern, Flags::default(), backtracks(length)).map_err(|error| about(error, &pattern))?;
    let mut done = Commented { text: String::with_capacity(text.len()), old: Vec::new(), new: Vec::new() };
    for line in text.split_inclusive('\n') {
        if compiled.find(line).map_err(|error: RegexError| about(error, &pattern))?.is_none() {
            done.text.push_str(line);
            continue;
        }
        let new = if comment { format!("{mark}{line}") } else { strip(line, mark).to_owned() };
        done.text.push_str(&new);
        done.old.push(line.to_owned());
        done.new.push(new);
    }
    Ok((!done.old.is_empty()).then_some(done))
}

/// A line without the characters of the mark at its start.
fn strip<'a>(line: &'a str, mark: &str) -> &'a str {
    line.trim_start_matches(|c| mark.contains(c))
}

/// The expressions by which the state `comment` knows lines: without flags and anchors, of what is no comment, and of
/// what is one.
pub(crate) struct Known {
    pub plain: String,
    pub open: String,
    pub commented: String,
}

pub(crate) fn known(regex: &str, mark: &str) -> Known {
    let flag = regex.strip_prefix("(?").and_then(|rest| {
        let mut chars = rest.chars();
        (chars.next().is_some_and(|c| "iLmsux".contains(c)) && chars.next() == Some(')')).then_some(chars.as_str())
    });
    let plain = flag.unwrap_or(regex);
    let plain = plain.strip_prefix('^').unwrap_or(plain);
    let plain = plain.strip_suffix('$').unwrap_or(plain).to_owned();
    Known { open: format!("^(?!\\s*{mark})\\s*{plain}"), commented: format!("{mark}{plain}"), plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(text: &str, regex: &str, comment: bool) -> Option<String> {
        apply(text, regex, "#", comment).unwrap().map(|done| done.text)
    }

    /// Recorded from `file.comment_line` of Salt 3008.3.
    #[test]
    fn lines_are_commented_as_salt_does() {
        let text = "a b\n  a c\nd a\n";
        assert_eq!(applied(text, "^a", true).unwrap(), "#a b\n  a c\nd a\n");
        assert_eq!(applied(text, "a", true).unwrap(), "#a b\n  a c\nd a\n");
        assert_eq!(applied(text, "^a b$", true).unwrap(), "#a b\n  a c\nd a\n");
        assert_eq!(applied(text, r"\s*a c", true).unwrap(), "a b\n#  a c\nd a\n");
        assert_eq!(applied(text, "x", true), None);
        assert_eq!(applied("##  a\n#b\n a\n", "^a", false), None);
        assert_eq!(applied("#  a\n#b\n a\n", "^a", false).unwrap(), "  a\n#b\n a\n");
        assert_eq!(applied("##a", "^#a", false).unwrap(), "a");
        assert!(apply("a", "(", "#", true).is_err());
    }

    #[test]
    fn expressions_of_the_state() {
        let known = known("(?i)^bind.*$", "#");
        assert_eq!(known.plain, "bind.*");
        assert_eq!(known.open, r"^(?!\s*#)\s*bind.*");
        assert_eq!(known.commented, "#bind.*");
    }
}
