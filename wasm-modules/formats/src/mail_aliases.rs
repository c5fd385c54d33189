//! `/etc/aliases`, where mail for a name goes, as Salt's module `aliases` reads and edits it.

use brine_guest::changes::{self, Put};
use brine_guest::program::{self, Program};
use brine_guest::{Result, Value};

/// Where the file is.
pub const PATH: &str = "/etc/aliases";
/// What makes the file known to the host's mail system.
const NEWALIASES: &str = "newaliases";

/// One line of the file.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    /// As it was; none of a new one.
    raw: Option<String>,
    /// The name; none of a comment. In an empty line, which Salt counts as a name too, the end of the line.
    alias: Option<String>,
    target: String,
    /// With the white space before it.
    comment: String,
}

impl Line {
    /// Reads a line with its end.
    fn read(line: &str) -> Self {
        let text = line.trim_end_matches('\n');
        let raw = Some(text.to_owned());
        let other = |raw| Self { raw, alias: None, target: String::new(), comment: String::new() };
        let (body, comment) = match line.find('#') {
            None => (line, ""),
            // A comment begins after white space; the last of it, or all that follows the target.
            Some(at) => match line[..at].chars().next_back().filter(|c| c.is_whitespace()) {
                None => return other(raw),
                Some(_) => (&line[..at], text.get(at..).unwrap_or_default()),
            },
        };
        let is_commented = !comment.is_empty();
        let Some((alias, rest)) = body.split_once(':') else {
            let alias = match is_commented.then(|| body.char_indices().next_back()).flatten() {
                Some((last, _)) => &body[..last],
                None => body,
            };
            let alias = Some(alias.to_owned()).filter(|alias| !alias.is_empty());
            return Self { raw, alias, target: String::new(), comment: comment.to_owned() };
        };
        let rest = rest.trim_start();
        let (target, comment) = match is_commented {
            true => {
                let target = rest.trim_end();
                // From the end of the target on, with its white space.
                (target, format!("{}{comment}", &rest[target.len()..]))
            }
            false => (rest.strip_suffix('\n').unwrap_or(rest), String::new()),
        };
        let alias = Some(alias.to_owned()).filter(|alias| !alias.is_empty());
        Self { raw, alias, target: target.to_owned(), comment }
    }

    fn text(&self) -> String {
        match (&self.alias, &self.raw) {
            (Some(alias), _) if !self.target.is_empty() => format!("{alias}: {}{}", self.target, self.comment),
            // A line without a target may continue the one before: it stays.
            (Some(_), raw) => raw.clone().unwrap_or_default(),
            (None, raw) => raw.as_deref().unwrap_or_default().trim().to_owned(),
        }
    }
}

/// The file.
#[derive(Debug, Clone)]
pub struct MailAliases {
    old: Option<String>,
    lines: Vec<Line>,
}

impl MailAliases {
    /// Reads the file. One that is missing is empty.
    ///
    /// # Errors
    /// One line, when it cannot be read, or is no text.
    pub fn open() -> Result<Self> {
        Ok(Self::read(changes::read_text(PATH)?))
    }

    fn read(old: Option<String>) -> Self {
        let lines = old.iter().flat_map(|old| old.split_inclusive('\n').map(Line::read)).collect();
        Self { old, lines }
    }

    /// Writes the file, and has the mail system read it.
    ///
    /// # Errors
    /// One line, when it cannot be written, or somebody else changed it meanwhile.
    pub fn save(self) -> Result<()> {
        let text = self.text();
        Put::new(PATH).instead_of(self.old.as_deref().map(str::as_bytes)).text(&text)?;
        if program::exists(NEWALIASES)? {
            // As in Salt, what it says has no part in the result.
            Program::new([NEWALIASES]).run()?;
        }
        Ok(())
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| line.text() + "\n").collect()
    }

    /// The names and their targets, as a dict.
    pub fn value(&self) -> Value {
        let mut all: Vec<(Value, Value)> = Vec::new();
        for line in &self.lines {
            let Some(alias) = &line.alias else { continue };
            match all.iter_mut().find(|(known, _)| known.text() == Some(alias)) {
                Some((_, target)) => *target = line.target.as_str().into(),
                None => all.push((alias.as_str().into(), line.target.as_str().into())),
            }
        }
        Value::Dict(all)
    }

    /// The target of a name; empty if there is none. Of a name that is there twice, the last one.
    pub fn target(&self, alias: &str) -> &str {
        let line = self.lines.iter().rev().find(|line| line.alias.as_deref() == Some(alias));
        line.map(|line| line.target.as_str()).unwrap_or_default()
    }

    /// Whether a name has a target, which may be a list.
    ///
    /// # Errors
    /// When the target is empty.
    pub fn has(&self, alias: &str, target: &Value) -> Result<bool> {
        if target.text() == Some("") {
            return Err("target can not be an empty string".into());
        }
        let is_there = self.lines.iter().any(|line| line.alias.as_deref() == Some(alias));
        Ok(is_there && comparable(target).is_some_and(|target| target == self.target(alias)))
    }

    /// Gives a name a target. Returns whether the file is another one now.
    ///
    /// # Errors
    /// When the name or the target is empty.
    pub fn set(&mut self, alias: &str, target: &Value) -> Result<bool> {
        if alias.is_empty() {
            return Err("alias can not be an empty string".into());
        }
        if target.text() == Some("") {
            return Err("target can not be an empty string".into());
        }
        let text = comparable(target).unwrap_or_else(|| target.to_text());
        if alias.contains(['\n', ':', '#']) || text.contains('\n') {
            return Err(format!("{alias:?} with the target {text:?} is no line of {PATH}"));
        }
        if target.text().is_some_and(|target| target == self.target(alias)) {
            return Ok(false);
        }
        let mut is_set = false;
        self.lines.retain_mut(|line| {
            if line.alias.as_deref() != Some(alias) {
                return true;
            }
            line.target.clone_from(&text);
            // The first one keeps the name.
            !std::mem::replace(&mut is_set, true)
        });
        if !is_set {
            self.lines.push(Line { raw: None, alias: Some(alias.into()), target: text, comment: String::new() });
        }
        Ok(true)
    }

    /// Removes a name. Returns whether it was there.
    pub fn remove(&mut self, alias: &str) -> bool {
        if self.target(alias).is_empty() {
            return false;
        }
        self.lines.retain(|line| line.alias.as_deref() != Some(alias));
        true
    }
}

/// A target as the file has it; none of what is no text and no list.
fn comparable(target: &Value) -> Option<String> {
    match target {
        Value::Text(text) => Some(text.clone()),
        Value::List(items) => Some(items.iter().map(Value::to_text).collect::<Vec<_>>().join(", ")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> MailAliases {
        MailAliases::read(Some(text.into()))
    }

    #[test]
    fn lines_are_what_salts_expression_finds() {
        let parts = |text: &str| {
            let line = Line::read(text);
            (line.alias.unwrap_or_default(), line.target, line.comment)
        };
        let is = |a: &str, t: &str, c: &str| (a.to_owned(), t.to_owned(), c.to_owned());
        assert_eq!(parts("root: me, you\n"), is("root", "me, you", ""));
        assert_eq!(parts("root:\t\tme  # why\n"), is("root", "me", "  # why"));
        assert_eq!(parts("list: :include:/etc/list"), is("list", ":include:/etc/list", ""));
        assert_eq!(parts("a : b \n"), is("a ", "b ", ""));
        assert_eq!(parts("# root: me\n"), is("", "", ""));
        assert_eq!(parts("a: b#c\n"), is("", "", ""));
        assert_eq!(parts("\n"), is("\n", "", ""));
        assert_eq!(parts("a:\n"), is("a", "", ""));
    }

    #[test]
    fn names_are_set_and_removed() {
        let mut aliases = file("# mail\nroot: me\n  you\nx: y # z\nroot: other\n");
        assert_eq!(aliases.target("root"), "other");
        assert!(aliases.has("x", &"y".into()).unwrap() && !aliases.has("x", &"z".into()).unwrap());
        assert_eq!(aliases.set("x", &"y".into()), Ok(false));
        assert_eq!(aliases.set("root", &vec!["a", "b"].into()), Ok(true));
        assert_eq!(aliases.set("new", &"n".into()), Ok(true));
        assert_eq!(aliases.text(), "# mail\nroot: a, b\n  you\nx: y # z\nnew: n\n");
        assert!(aliases.has("root", &vec!["a", "b"].into()).unwrap());
        assert!(aliases.remove("x") && !aliases.remove("x"));
        assert!(aliases.set("", &"n".into()).is_err() && aliases.set("a\nb", &"n".into()).is_err());
        assert!(aliases.set("a", &"".into()).is_err() && aliases.set("a", &"b\nroot: evil".into()).is_err());
    }
}
