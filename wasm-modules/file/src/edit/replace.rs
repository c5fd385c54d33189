//! `file.replace` on a content.

use brine_render::regex::escape;

use super::pattern::Pattern;
use crate::look::pattern::Flags;

/// What replaces what.
pub(crate) struct Replace<'a> {
    pub pattern: &'a str,
    pub repl: &'a str,
    /// The matches to replace; 0 for all.
    pub count: usize,
    pub flags: Flags,
    /// Whether the text is added at the end, or at the start, if nothing matches.
    pub append: bool,
    pub prepend: bool,
    /// The text to add, instead of `repl`.
    pub not_found: Option<&'a str>,
    /// Whether backslashes of `repl` stand for themselves.
    pub literal: bool,
}

impl Replace<'_> {
    /// The new content.
    pub(crate) fn apply(&self, content: &[u8]) -> Result<Vec<u8>, String> {
        if self.append && self.prepend {
            return Err("Only one of append and prepend_if_not_found is permitted".into());
        }
        let pattern = Pattern::new(self.pattern, self.flags, content.len())?;
        let (new, found) = pattern.replace(content, self.repl, self.literal, self.count)?;
        if found > 0 || !(self.append || self.prepend) || self.is_there(content)? {
            return Ok(new);
        }
        let added = self.not_found.unwrap_or(self.repl);
        Ok(if self.prepend {
            [added.as_bytes(), b"\n", content].concat()
        } else {
            let end: &[u8] = if content.is_empty() || content.ends_with(b"\n") { b"" } else { b"\n" };
            [content, end, added.as_bytes(), b"\n"].concat()
        })
    }

    /// Whether the text to add is there, from an earlier run.
    fn is_there(&self, content: &[u8]) -> Result<bool, String> {
        let text = self.not_found.filter(|text| !text.is_empty()).unwrap_or(self.repl);
        let line = format!("^{}($|(?=\\r\\n))", escape(text));
        Pattern::new(&line, self.flags, content.len())?.is_in(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Replace<'static> {
        Replace {
            pattern: "^b=.*$",
            repl: "b=2",
            count: 0,
            flags: Flags { multi_line: true, ..Flags::default() },
            append: false,
            prepend: false,
            not_found: None,
            literal: false,
        }
    }

    fn applied(replace: &Replace<'_>, content: &str) -> String {
        String::from_utf8(replace.apply(content.as_bytes()).unwrap()).unwrap()
    }

    /// Recorded from `file.replace` of Salt 3008.3.
    #[test]
    fn what_is_not_found_is_added_once() {
        assert_eq!(applied(&plain(), "a=1\nb=1\nb=3\n"), "a=1\nb=2\nb=2\n");
        assert_eq!(applied(&Replace { count: 1, ..plain() }, "b=1\nb=3"), "b=2\nb=3");
        assert_eq!(applied(&plain(), "a=1\n"), "a=1\n");
        let append = || Replace { append: true, ..plain() };
        assert_eq!(applied(&append(), "a=1"), "a=1\nb=2\n");
        assert_eq!(applied(&append(), ""), "b=2\n");
        assert_eq!(applied(&append(), "a=1\nb=2\n"), "a=1\nb=2\n");
        let other = || Replace { not_found: Some("c(1)"), ..append() };
        assert_eq!(applied(&other(), "a=1\n"), "a=1\nc(1)\n");
        assert_eq!(applied(&other(), "a=1\r\nc(1)\r\n"), "a=1\r\nc(1)\r\n");
        assert_eq!(applied(&Replace { append: false, prepend: true, ..other() }, "a"), "c(1)\na");
        assert!(Replace { prepend: true, ..append() }.apply(b"").is_err());
    }

    #[test]
    fn backslashes_are_references_or_themselves() {
        let replace = || Replace { pattern: "(b)=1", repl: r"\1\\", ..plain() };
        assert_eq!(applied(&replace(), "b=1"), r"b\");
        assert_eq!(applied(&Replace { literal: true, ..replace() }, "b=1"), r"\1\\");
        assert!(Replace { repl: r"\2", ..replace() }.apply(b"").is_err());
        assert!(Replace { pattern: "(", ..plain() }.apply(b"").is_err());
    }
}
