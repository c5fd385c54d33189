//! Changes a line of a configuration file, as Salt's `file.replace` does where it appends what it does not find.

use brine_guest::changes;
use regex_lite::{NoExpand, Regex, RegexBuilder, escape};

fn lines(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).multi_line(true).build().map_err(|error| error.to_string())
}

/// Whether a file has this line.
pub(crate) fn has_line(path: &str, line: &str) -> Result<bool, String> {
    let text = changes::read_text(path)?.ok_or_else(|| format!("Unable to open file '{path}'"))?;
    Ok(text.lines().any(|known| known == line))
}

/// The text with `new` in place of each match; at its end if there is none and the text does not have it. None if nothing
/// changes.
fn replaced(text: &str, pattern: &str, new: &str) -> Result<Option<String>, String> {
    let pattern = lines(pattern)?;
    let mut result = pattern.replace_all(text, NoExpand(new)).into_owned();
    if !pattern.is_match(text) && !lines(&format!("^{}$", escape(new)))?.is_match(text) {
        if !result.is_empty() && !result.ends_with('\n') {
            result.push('\n');
        }
        result.push_str(new);
        result.push('\n');
    }
    Ok((result != text).then_some(result))
}

/// Replaces each match in a file, or appends `new`. What was there stays as `PATH.bak`.
pub(crate) fn replace(path: &str, pattern: &str, new: &str) -> Result<(), String> {
    let Some(old) = changes::read_text(path)? else {
        return Err(format!("Unable to open file '{path}'. Exception: [Errno 2] No such file or directory: '{path}'"));
    };
    let Some(text) = replaced(&old, pattern, new)? else { return Ok(()) };
    changes::edit(path, &old, &text)
}

/// Makes an empty file where there is none.
pub(crate) fn make(path: &str) -> Result<(), String> {
    if changes::look(path, true)?.is_none() {
        changes::touch(path, None, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `file.replace` of Salt 3008 does.
    #[test]
    fn lines_are_replaced_or_appended() {
        let generate = r"^\s*#\s*de_DE\.UTF-8 UTF-8\s*$";
        for (text, pattern, new, expect) in [
            ("# a\n# de_DE.UTF-8 UTF-8  \n# b\n", generate, "de_DE.UTF-8 UTF-8\n", "# a\nde_DE.UTF-8 UTF-8\n\n# b\n"),
            ("# a", generate, "de_DE.UTF-8 UTF-8\n", "# a\nde_DE.UTF-8 UTF-8\n\n"),
            ("#x\nLANG=C\n", "^LANG=.*", "LANG=\"$1\"", "#x\nLANG=\"$1\"\n"),
            ("", "^LANG=.*", "LANG=C", "LANG=C\n"),
        ] {
            assert_eq!(replaced(text, pattern, new).unwrap().as_deref(), Some(expect));
        }
        assert_eq!(replaced("LANG=C\n", "^LANG=.*", "LANG=C"), Ok(None));
    }
}
