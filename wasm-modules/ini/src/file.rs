//! A file of sections that is read, edited, and put back.

use brine_guest::changes::{self, Kind, Put};
use brine_guest::{Result, Value};

use crate::ini::{Form, Section};

/// Upper bound on the bytes of a file.
const MAX_FILE: u64 = 4 << 20;

/// A file, with its sections.
pub(crate) struct File {
    path: String,
    /// What was read; none if there is no such file.
    old: Option<String>,
    pub(crate) sections: Section,
    separator: String,
    /// The text that it is to have.
    text: String,
}

impl File {
    pub(crate) fn open(path: &str, separator: Option<&str>, encoding: Option<&str>) -> Result<Self> {
        let separator = separator.unwrap_or("=");
        if separator.is_empty() {
            return Err("the separator is empty".into());
        }
        if !matches!(encoding.map(str::to_lowercase).as_deref(), None | Some("utf-8" | "utf8" | "ascii")) {
            return Err(format!("unknown encoding: {}", encoding.unwrap_or_default()));
        }
        let old = match changes::look(path, true)? {
            None => None,
            Some(entry) if entry.kind == Kind::Directory => {
                return Err(format!("Unable to open file '{path}'. Exception: [Errno 21] Is a directory: '{path}'"));
            }
            Some(entry) if entry.size > MAX_FILE => {
                return Err(format!(
                    "'{path}' has {} bytes, and a file of sections has at most {MAX_FILE}",
                    entry.size
                ));
            }
            Some(_) => changes::read_text(path)?,
        };
        let text = old.clone().unwrap_or_default();
        let form = Form { separator, no_spaces: false };
        let sections = Section::read(&text, form);
        Ok(Self { path: path.to_owned(), old, sections, separator: separator.to_owned(), text })
    }

    /// Sets options and sections; returns what changed.
    pub(crate) fn set(&mut self, entries: &[(Value, Value)], no_spaces: bool) -> Result<Vec<(Value, Value)>> {
        let changes = self.sections.update(entries, Form { separator: &self.separator, no_spaces })?;
        self.flush(no_spaces);
        Ok(changes)
    }

    /// Takes the sections as the file's, as Salt writes and reads it again after each edit.
    pub(crate) fn flush(&mut self, no_spaces: bool) {
        let form = Form { separator: &self.separator, no_spaces };
        self.text = self.sections.text(form);
        self.sections = Section::read(&self.text, form);
    }

    /// Writes what was flushed.
    pub(crate) fn save(self) -> Result<()> {
        if self.old.as_ref() != Some(&self.text) {
            let old = self.old.as_deref().map(str::as_bytes);
            Put::new(&self.path).instead_of(old).text(&self.text)?;
        }
        Ok(())
    }
}
