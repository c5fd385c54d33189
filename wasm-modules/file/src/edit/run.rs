//! Edits of one file: `replace`, `line`, `blockreplace`, `comment_line`, `append`, `prepend`. In a dry run the host records what
//! would be put.

use brine_guest::{Value, diff};

use super::block::{Block, Missing};
use super::line::{Line, Mode};
use super::place::{self, Owned};
use super::{append, comment, lines, pattern, stamp};
use crate::look::pattern::Flags;

/// What an edit came to.
pub(crate) struct Edit {
    pub changed: bool,
    /// What differs; empty if nothing does.
    pub diff: String,
}

impl Edit {
    /// What Salt's functions return: the differences if they are wanted, else whether there are any.
    pub(crate) fn shown(&self, show_changes: bool) -> Value {
        if show_changes && !self.diff.is_empty() { self.diff.as_str().into() } else { self.changed.into() }
    }
}

/// The arguments of `replace`.
pub(crate) struct Replace {
    pub path: String,
    pub pattern: String,
    pub repl: String,
    pub count: usize,
    pub flags: Flags,
    pub append: bool,
    pub prepend: bool,
    pub not_found: Option<String>,
    pub backup: Option<String>,
    pub dry_run: bool,
    pub literal: bool,
    pub encoding: Option<String>,
}

impl Replace {
    pub(crate) fn run(&self) -> Result<Edit, String> {
        let content = match self.encoding.as_deref().map(str::to_lowercase).as_deref() {
            None => place::read_text(&self.path)?,
            Some("utf-8" | "utf8" | "ascii") => {
                let content = place::read(&self.path)?.ok_or_else(|| format!("File not found: {}", self.path))?;
                lines::text(&content)?;
                content
            }
            Some(other) => return Err(format!("unknown encoding: {other}")),
        };
        let replace = super::replace::Replace {
            pattern: &self.pattern,
            repl: &self.repl,
            count: self.count,
            flags: self.flags,
            append: self.append,
            prepend: self.prepend,
            not_found: self.not_found.as_deref(),
            literal: self.literal,
        };
        let new = replace.apply(&content)?;
        let diff = lines::differences(&content, &new);
        let changed = content != new;
        if changed && !self.dry_run {
            if let Some(end) = &self.backup {
                place::backup(&self.path, end, Owned::ByMinion)?;
            }
            place::write(&self.path, Some(&content), new)?;
        }
        Ok(Edit { changed, diff })
    }
}

/// Whether an expression matches in a file, as `search` does with `multiline`.
pub(crate) fn is_in(path: &str, content: &[u8], expression: &str) -> Result<bool, String> {
    if !diff::is_text(content) {
        return Err(format!("Cannot perform string replacements on a binary file: {path}"));
    }
    let flags = Flags { multi_line: true, ..Flags::default() };
    pattern::Pattern::new(expression, flags, content.len())?.is_in(content)
}

/// The arguments of `line`.
pub(crate) struct OneLine {
    pub path: String,
    pub content: Option<String>,
    pub matching: Option<String>,
    pub mode: Option<String>,
    pub location: Option<String>,
    pub before: Option<String>,
    pub after: Option<String>,
    pub backup: bool,
    pub quiet: bool,
    pub indent: bool,
}

impl OneLine {
    pub(crate) fn run(&self) -> Result<Edit, String> {
        let content = match place::read(&self.path)? {
            Some(content) => content,
            None if self.quiet => return Ok(Edit { changed: false, diff: String::new() }),
            None => return Err(format!("File \"{}\" does not exists or is not a file.", self.path)),
        };
        let name = self.mode.as_deref().ok_or("Mode was not defined. How to process the file?")?.to_lowercase();
        let mode = Mode::named(&name).ok_or_else(|| format!("Unknown mode: \"{name}\""))?;
        if mode != Mode::Delete && self.content.is_none() {
            return Err("Content can only be empty if mode is \"delete\"".into());
        }
        let line = Line {
            mode,
            content: self.content.as_deref().unwrap_or_default(),
            matching: self.matching.as_deref(),
            before: self.before.as_deref(),
            after: self.after.as_deref(),
            location: self.location.as_deref(),
            indent: self.indent,
        };
        let text = lines::text(&content)?;
        let new = line.apply(text)?;
        let old = lines::universal(text);
        let joined = new.concat();
        if old == joined {
            return Ok(Edit { changed: false, diff: String::new() });
        }
        let old = lines::of_text(&old);
        let diff = diff::unified(&old.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>(), &new, "", "");
        if self.backup {
            place::backup(&self.path, &format!(".{}", stamp::now()), Owned::ByMinion)?;
        }
        place::write(&self.path, Some(&content), joined.into_bytes())?;
        Ok(Edit { changed: true, diff })
    }
}

/// The arguments of `blockreplace`.
pub(crate) struct BlockReplace {
    pub path: String,
    pub start: String,
    pub end: String,
    pub content: String,
    pub append: bool,
    pub prepend: bool,
    pub before: Option<String>,
    pub after: Option<String>,
    pub backup: Option<String>,
    pub dry_run: bool,
    pub append_newline: Option<bool>,
}

impl BlockReplace {
    pub(crate) fn run(&self) -> Result<Edit, String> {
        let (before, after) = (self.before.as_deref(), self.after.as_deref());
        let (before, after) = (before.filter(|text| !text.is_empty()), after.filter(|text| !text.is_empty()));
        let missing = match (self.append, self.prepend, before, after) {
            (false, false, None, None) => Missing::Error,
            (true, false, None, None) => Missing::Append,
            (false, true, None, None) => Missing::Prepend,
            (false, false, Some(pattern), None) => Missing::Before(pattern),
            (false, false, None, Some(pattern)) => Missing::After(pattern),
            _ => {
                return Err("Only one of append_if_not_found, prepend_if_not_found, insert_before_match, and \
                            insert_after_match is permitted"
                    .into());
            }
        };
        let content = place::read(&self.path)?.ok_or_else(|| format!("File not found: {}", self.path))?;
        let text = lines::text(&content)?;
        let block = Block {
            start: &self.start,
            end: &self.end,
            content: &self.content,
            missing,
            append_newline: self.append_newline,
        };
        let new = block.apply(text)?;
        let old: Vec<String> = lines::of_file(text).into_iter().map(str::to_owned).collect();
        let diff = diff::unified(&old, &new, "", "");
        let changed = !diff.is_empty();
        if changed && !self.dry_run {
            if let Some(end) = &self.backup {
                place::backup(&self.path, end, Owned::ByFile)?;
            }
            place::write(&self.path, Some(&content), new.concat().into_bytes())?;
        }
        Ok(Edit { changed, diff })
    }
}

/// `comment_line`: the differences of the lines that changed; none if no line matches.
pub(crate) fn comment_line(
    path: &str,
    regex: &str,
    mark: &str,
    commenting: bool,
    backup: Option<&str>,
) -> Result<Option<String>, String> {
    let content = place::read_text(path)?;
    let Some(done) = comment::apply(lines::text(&content)?, regex, mark, commenting)? else { return Ok(None) };
    if let Some(end) = backup {
        // Salt moves the file there, so it keeps its owner; without a link beside a link.
        place::backup(&place::file_of(path)?, end, Owned::ByFile)?;
    }
    place::write(path, Some(&content), done.text.into_bytes())?;
    Ok(Some(diff::unified(&done.old, &done.new, "", "")))
}

/// `append`
pub(crate) fn append(path: &str, lines: &[String]) -> Result<String, String> {
    let content = place::read(path)?.ok_or_else(|| format!("[Errno 2] No such file or directory: '{path}'"))?;
    let new = append::append(&content, lines);
    place::write(path, Some(&content), new)?;
    Ok(format!("Wrote {} lines to \"{path}\"", lines.len()))
}

/// `prepend`
pub(crate) fn prepend(path: &str, lines: &[String]) -> Result<String, String> {
    let content = place::read(path)?;
    let text = lines::text(content.as_deref().unwrap_or_default())?;
    let new = append::prepend(text, lines);
    place::write(path, content.as_deref(), new.into_bytes())?;
    Ok(format!("Prepended {} lines to \"{path}\"", lines.len()))
}
