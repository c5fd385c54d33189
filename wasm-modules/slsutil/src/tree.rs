//! Paths of the state tree: the master's files, as its file server lists them.

use std::cell::OnceCell;
use std::collections::HashSet;

use brine_guest::host::files::{self, Kind};
use brine_render::data::paths;

/// The tree of an environment, listed once.
pub(crate) struct Tree {
    saltenv: String,
    files: OnceCell<HashSet<String>>,
    directories: OnceCell<HashSet<String>>,
}

impl Tree {
    pub(crate) fn of(saltenv: Option<String>) -> Result<Self, String> {
        let saltenv = saltenv.unwrap_or_else(|| crate::BASE.to_owned());
        Ok(Self { saltenv, files: OnceCell::new(), directories: OnceCell::new() })
    }

    fn listed<'a>(&self, known: &'a OnceCell<HashSet<String>>, kind: Kind) -> Result<&'a HashSet<String>, String> {
        if let Some(known) = known.get() {
            return Ok(known);
        }
        let found = files::list(&self.saltenv, None, kind)?.into_iter().collect();
        Ok(known.get_or_init(|| found))
    }

    pub(crate) fn has_file(&self, path: &str) -> Result<bool, String> {
        Ok(self.listed(&self.files, Kind::Files)?.contains(path))
    }

    pub(crate) fn has_directory(&self, path: &str) -> Result<bool, String> {
        Ok(self.listed(&self.directories, Kind::Dirs)?.contains(path))
    }

    pub(crate) fn has(&self, path: &str) -> Result<bool, String> {
        Ok(self.has_file(path)? || self.has_directory(path)?)
    }

    /// The first of the names that is in `start` or above it.
    pub(crate) fn find_up(&self, start: &str, names: &[String]) -> Result<String, String> {
        let mut at = if start.is_empty() { String::new() } else { paths::normalize(start) };
        if !at.is_empty() && !self.has(&at)? {
            return Err(format!("Starting path not found in the state tree: {at}"));
        }
        loop {
            for name in names {
                let full = paths::normalize(&paths::join(&at, [name.as_str()]));
                if self.has(&full)? {
                    return Ok(full);
                }
            }
            if at.is_empty() {
                return Err("File pattern(s) not found in path ancestry".into());
            }
            at = paths::folder(&at).to_owned();
        }
    }
}
