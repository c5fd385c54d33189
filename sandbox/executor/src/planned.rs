//! Plan mode for directories: the executor got them read-only, and so did its process. A change of one that is writable
//! otherwise ends the call, so that a module that never heard of `test=True` does not go on as if it had failed.

use std::fs::File;
use std::sync::Arc;

use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::directories::Directories;

/// Upper bound on the parents of a directory that are examined.
const MAX_DEPTH: usize = 4_096;

/// Device and inode.
type Id = (u64, u64);

/// The granted directories, each with whether it is writable outside of plan mode.
#[derive(Debug)]
pub struct WouldWrite {
    known: Vec<(Id, String, bool)>,
    /// The paths that are writable otherwise.
    would: Vec<String>,
}

impl WouldWrite {
    /// From the open directories and the paths of those that are writable otherwise. None if there are none.
    #[must_use]
    pub fn new(directories: &Directories, would: &[String]) -> Option<Arc<Self>> {
        if would.is_empty() {
            return None;
        }
        let known = directories.iter().filter_map(|(path, dir)| {
            Some((id(&dir.dir).ok()?, path.to_owned(), would.iter().any(|would| would == path)))
        });
        Some(Arc::new(Self { known: known.collect(), would: would.to_vec() }))
    }

    /// Whether a granted file is writable otherwise.
    #[must_use]
    pub fn file(&self, path: &str) -> bool {
        self.would.iter().any(|would| would == path)
    }

    /// Returns the path of an entry of this directory, if the innermost granted directory around it is writable
    /// otherwise.
    #[must_use]
    pub fn path(&self, dir: &File, entry: &str) -> Option<String> {
        let climb = || {
            let mut at = open(dir, ".")?;
            let mut here = id(&at)?;
            for depth in 0..MAX_DEPTH {
                if let Some((_, path, would)) = self.known.iter().find(|(known, ..)| *known == here) {
                    let between = if depth > 0 { "/…" } else { "" };
                    let path = path.trim_end_matches('/');
                    return Ok(would.then(|| format!("{path}{between}/{}", entry.trim_start_matches("./"))));
                }
                at = open(&at, "..")?;
                let above = id(&at)?;
                if above == here {
                    break;
                }
                here = above;
            }
            Ok::<_, Errno>(None)
        };
        climb().unwrap_or(None)
    }
}

fn open(dir: impl AsFd, name: &str) -> Result<rustix::fd::OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

fn id(fd: impl AsFd) -> Result<Id, Errno> {
    rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino))
}
