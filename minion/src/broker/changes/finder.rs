//! Finds files for what watches them, with the same judgement as for reading them.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use brine_sandbox::Tree;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::entry::unsigned;
use super::failure::{Failure, Said};
use super::guard::{Id, not_the_kernels};
use super::place::{Place, kind};
use super::{Host, Task, stage};

/// Finds files within what is granted.
pub(in crate::broker) struct Finder(Task);

/// A file or directory, opened for its metadata.
pub(in crate::broker) struct Found {
    pub(in crate::broker) file: OwnedFd,
    pub(in crate::broker) id: Id,
    pub(in crate::broker) is_directory: bool,
    names: u64,
    /// The path without links.
    real: String,
    /// None for what was found in a directory.
    place: Option<Place>,
}

impl Finder {
    pub(super) fn new(host: Arc<Host>, trees: Vec<Tree>) -> Self {
        Self(Task { host, trees, over: Arc::default(), fetched: None, job: stage::Job::default(), most: 0 })
    }

    /// One for tests, with a folder that is the minion's own.
    #[cfg(test)]
    pub(in crate::broker) fn of_test(trees: Vec<Tree>, own: &Path) -> Self {
        let host = Host {
            guard: super::guard::Guard::of(vec![own.to_owned()], &[]),
            journal: super::journal::Journal::new(own),
            backups: super::backup::Backups::new(own),
            stages: stage::Stages::new(own),
        };
        Self::new(Arc::new(host), trees)
    }

    /// Finds what is at a path. It is not judged yet.
    pub(in crate::broker) fn find(&self, path: &str) -> Result<Option<Found>, Said> {
        let found = self.0.find(path, true).and_then(|place| match place {
            Some(place) => Found::open(Some(place), None),
            None => Ok(None),
        });
        found.map_err(|failure| failure.at(path))
    }

    /// Finds a directory in a directory, without following a link. None if there is none.
    pub(in crate::broker) fn directory_in(&self, parent: &Found, name: &str) -> Result<Option<Found>, Said> {
        let found = Found::open(None, Some((parent, name)));
        let found = found.map(|found| found.filter(|found| found.is_directory));
        found.map_err(|failure| failure.at(&format!("{}/{name}", parent.real)))
    }

    /// Refuses what no grant opens: the minion's own files, and the kernel's.
    pub(in crate::broker) fn admit(&self, found: &Found) -> Result<(), Said> {
        let admit = || {
            let (guard, real) = (&self.0.host.guard, Path::new(&found.real));
            if let Some(place) = &found.place {
                place.admit_links()?;
                guard.admit(&place.dir, real)?;
            }
            if found.is_directory {
                return guard.admit(&found.file, real).map(drop);
            }
            not_the_kernels(&found.file)?;
            guard.admit_entry(found.id, found.names, real)
        };
        admit().map_err(|failure: Failure| failure.at(&found.real))
    }
}

impl Found {
    fn open(place: Option<Place>, within: Option<(&Self, &str)>) -> Result<Option<Self>, Failure> {
        let (dir, name, real) = match (&place, within) {
            (Some(place), _) => (&place.dir, place.name.as_str(), place.real.clone()),
            (None, Some((parent, name))) => (&parent.file, name, format!("{}/{name}", parent.real)),
            (None, None) => return Ok(None),
        };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let stat: Stat = rustix::fs::statat(&file, "", AtFlags::EMPTY_PATH)?;
        let is_directory = kind(&stat) == FileType::Directory;
        let id = (stat.st_dev, stat.st_ino);
        Ok(Some(Self { file, id, is_directory, names: unsigned(stat.st_nlink), real, place }))
    }
}
