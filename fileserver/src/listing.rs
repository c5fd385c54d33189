//! Lists of the files under an environment's roots.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brine_protocol::ids::SafePath;
use brine_protocol::target::fnmatch;
use regex::Regex;
use rustix::fs::{AtFlags, Dir, FileType, OFlags};

use crate::root::Root;

/// Bound on the entries of one environment. A longer list is cut, and the log says so.
const ENTRIES_MAX: usize = 500_000;
/// Bound on the nesting of folders.
const DEPTH_MAX: usize = 64;

/// All names of an environment, sorted.
#[derive(Debug, Default)]
pub struct Listing {
    pub(crate) files: BTreeSet<String>,
    /// With a flag whether the folder is empty.
    pub(crate) dirs: BTreeMap<String, bool>,
    pub(crate) links: BTreeMap<String, String>,
}

/// `file_ignore_glob` and `file_ignore_regex`.
#[derive(Debug, Default)]
pub struct Ignore {
    globs: Vec<String>,
    regexes: Vec<Regex>,
}

impl Listing {
    /// Iterates over the files, sorted.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.files.iter()
    }
}

impl Ignore {
    pub(crate) fn new(globs: &[String], regexes: &[String]) -> Result<Self, String> {
        let compile = |text: &String| {
            Regex::new(text)
                .map_err(|_| format!("the option file_ignore_regex has {text:?}, which is not a regular expression"))
        };
        Ok(Self { globs: globs.to_vec(), regexes: regexes.iter().map(compile).collect::<Result<_, _>>()? })
    }

    pub(crate) fn matches(&self, path: &str) -> bool {
        self.regexes.iter().any(|regex| regex.is_match(path)) || self.globs.iter().any(|glob| fnmatch(glob, path))
    }
}

/// Lists an environment, once for concurrent requests.
#[derive(Debug, Default)]
pub struct Lister {
    last: Mutex<Option<(Instant, Arc<Listing>)>>,
}

impl Lister {
    /// Forgets the last list. Returns whether there was one.
    pub(crate) fn forget(&self) -> bool {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// Returns the current list: from a walk that started after the request arrived. Requests that waited during
    /// another walk share the next one.
    pub fn list(&self, roots: &[Root], ignore: &Ignore) -> Arc<Listing> {
        let asked = Instant::now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((began, listing)) = &*last
            && *began >= asked
        {
            return Arc::clone(listing);
        }
        let began = Instant::now();
        let mut listing = Listing::default();
        for root in roots {
            if let Some(dir) = root.open() {
                let mut walk = Walk { root, top: dir.as_fd(), ignore, found: &mut listing, above: Vec::new() };
                walk.folder(dir.as_fd(), "");
            }
        }
        let listing = Arc::new(listing);
        *last = Some((began, Arc::clone(&listing)));
        listing
    }
}

struct Walk<'a> {
    root: &'a Root,
    top: BorrowedFd<'a>,
    ignore: &'a Ignore,
    found: &'a mut Listing,
    /// Device and inode of the folders above, because a link to one of them would be an endless loop.
    above: Vec<(u64, u64)>,
}

impl Walk<'_> {
    /// Lists a folder. Returns whether it has entries.
    fn folder(&mut self, dir: BorrowedFd<'_>, path: &str) -> bool {
        let Ok(stat) = rustix::fs::fstat(dir) else { return false };
        let this = (stat.st_dev, stat.st_ino);
        if self.above.len() >= DEPTH_MAX || self.above.contains(&this) {
            return true;
        }
        let Ok(entries) = Dir::read_from(dir) else { return true };
        self.above.push(this);
        let mut any = false;
        for entry in entries.flatten() {
            // Names that are not UTF-8 cannot be requested either.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            any = true;
            if self.found.files.len() + self.found.dirs.len() >= ENTRIES_MAX {
                tracing::warn!("an environment has more than {ENTRIES_MAX} entries; the rest is not listed");
                break;
            }
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            if !self.ignore.matches(&path) && SafePath::try_from(path.as_str()).is_ok() {
                self.entry(dir, name, path);
            }
        }
        self.above.pop();
        any
    }

    fn entry(&mut self, dir: BorrowedFd<'_>, name: &str, path: String) {
        let Ok(stat) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                self.found.files.insert(path);
            }
            FileType::Directory => self.descend(path),
            FileType::Symlink => {
                // A link is listed only if its target is below the root.
                let Ok(target) = self.root.open_beneath(self.top, &path, OFlags::PATH) else { return };
                let Ok(stat) = rustix::fs::fstat(&target) else { return };
                if let Ok(text) = rustix::fs::readlinkat(dir, name, Vec::new())
                    && let Ok(text) = text.into_string()
                {
                    self.found.links.insert(path.clone(), text);
                }
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::RegularFile => {
                        self.found.files.insert(path);
                    }
                    FileType::Directory => self.descend(path),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn descend(&mut self, path: String) {
        let opened = self.root.open_beneath(self.top, &path, OFlags::RDONLY | OFlags::DIRECTORY);
        let any = opened.is_ok_and(|dir| self.folder(dir.as_fd(), &path));
        let empty = self.found.dirs.entry(path).or_insert(true);
        *empty &= !any;
    }
}
