//! Enforces a read-only grant within a writable one. The read-only grant holds whatever way a path takes: the path is
//! resolved first, and then the innermost granted directory around the result decides. The names on the way to a
//! read-only directory cannot be made, moved or removed.
//!
//! Directories are compared by device and inode and not by name, so that no link, bind mount or open handle bypasses
//! the grant. The state is read again for each request, because programs of the host may replace a directory while a
//! job runs. The guest cannot change the result by acting at the same time: it can move neither the read-only directory
//! nor one of its parents.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::Arc;

use brine_sandbox_wire::Directory;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::open::{TRIES, open_below, open_file};

/// Upper bound on the symbolic links at the end of a path, as in the kernel.
const MAX_LINKS: usize = 40;
/// Upper bound on the parents of a directory that are examined. A directory that lies deeper cannot be changed.
const MAX_DEPTH: usize = 4_096;

/// Device and inode.
type Id = (u64, u64);

/// A granted directory below a writable one.
struct Nested {
    inner: Directory,
    /// The outermost writable directory around it.
    outer: Arc<File>,
    outer_path: String,
    /// The path from the outer directory to the inner one.
    parts: Vec<String>,
}

/// The grants that lie within other grants.
#[derive(Default)]
pub struct Narrower {
    nested: Vec<Nested>,
    /// The open granted directories, and whether they are writable.
    granted: Vec<(Id, bool)>,
}

/// The state at the time of one request.
struct Now {
    /// Granted directories, and granted files, each with whether it is writable.
    granted: HashMap<Id, bool>,
    /// Directories on the way to a read-only directory, which cannot be moved or removed.
    fixed: HashSet<Id>,
    /// The names on that way, so that missing ones cannot be made either.
    names: HashSet<(Id, String)>,
    /// One line for each read-only directory whose way cannot be followed. Nothing may be changed while there is one.
    closed: Vec<String>,
}

impl Narrower {
    /// From the granted directories, each with its open directory if it exists. Empty if no read-only grant lies within
    /// a writable one.
    #[must_use]
    pub fn new(granted: &[(&Directory, Option<&Arc<File>>)]) -> Self {
        let nested = granted.iter().filter_map(|(inner, _)| {
            let around = granted.iter().filter_map(|(outer, dir)| Some((*outer, (*dir)?, outer.rest(&inner.path)?)));
            let (outer, dir, rest) =
                around.filter(|(outer, ..)| outer.writable).min_by_key(|(outer, ..)| outer.path.len())?;
            Some(Nested {
                inner: (*inner).clone(),
                outer: Arc::clone(dir),
                outer_path: outer.path.clone(),
                parts: rest.split('/').map(str::to_owned).collect(),
            })
        });
        let nested: Vec<Nested> = nested.collect();
        if nested.iter().all(|nested| nested.inner.writable) {
            return Self::default();
        }
        let ids = granted.iter().filter_map(|(granted, dir)| Some((id((*dir)?).ok()?, granted.writable)));
        Self { granted: ids.collect(), nested }
    }

    /// Whether there is no such grant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nested.is_empty()
    }

    /// Why writable directories cannot be changed at present; one line each.
    #[must_use]
    pub fn closed(&self) -> Vec<String> {
        self.now().closed
    }

    fn now(&self) -> Now {
        let mut now = Now { granted: HashMap::new(), fixed: HashSet::new(), names: HashSet::new(), closed: Vec::new() };
        self.granted.iter().for_each(|(id, writable)| now.grant(*id, *writable));
        for nested in &self.nested {
            if let Err(why) = now.follow(nested)
                && !nested.inner.writable
            {
                now.closed.push(format!(
                    "{} cannot be changed: {} in it was granted for reading alone, and {why}",
                    nested.outer_path, nested.inner.path
                ));
            }
        }
        now
    }

    /// Opens a file or directory as [`open_file`] does. Also returns whether it, or the content of a directory, may be
    /// changed.
    ///
    /// # Errors
    /// The kernel's error; `EPERM` for a change that is not allowed.
    pub fn open(
        &self,
        start: &File,
        root: bool,
        path: &str,
        flags: OFlags,
        changes: bool,
    ) -> Result<(OwnedFd, bool), Errno> {
        let follow = !flags.contains(OFlags::NOFOLLOW);
        for _ in 0..TRIES {
            let place = Place::find(start, root, path, follow)?;
            let now = self.now();
            let may = now.may_change(&place)?;
            if changes && !may {
                return Err(Errno::PERM);
            }
            let mut flags = flags | OFlags::NOFOLLOW;
            if place.is_directory {
                if flags.contains(OFlags::CREATE) {
                    return Err(Errno::ISDIR);
                }
                flags |= OFlags::DIRECTORY;
            }
            let dir = File::from(place.dir);
            match open_file(&dir, false, place.name.as_deref().unwrap_or("."), flags, Mode::from_raw_mode(0o666)) {
                // The file has become a link in the meantime, so it is resolved again.
                Err(Errno::LOOP) if follow => {}
                opened => return Ok((opened?, may)),
            }
        }
        Err(Errno::BUSY)
    }

    /// Resolves an entry that is to be made (`new`), replaced or removed, to its directory and its name there.
    ///
    /// # Errors
    /// The kernel's error; `EPERM` for a change that is not allowed.
    pub fn entry(&self, start: &File, root: bool, path: &str, new: bool) -> Result<(OwnedFd, String), Errno> {
        let bare = path.trim_end_matches('/');
        let place = Place::find(start, root, if bare.is_empty() { path } else { bare }, false)?;
        let Some(name) = place.name.clone() else { return Err(if new { Errno::EXIST } else { Errno::BUSY }) };
        let there = place.look()?;
        if new && there.is_some() {
            return Err(Errno::EXIST);
        }
        let now = self.now();
        // A name is its directory's, also that of a file or a directory which was granted by itself.
        let may = now.may_change(&place)? && now.may_change_in(&place.dir);
        if !may || there.as_ref().is_some_and(|there| now.fixed.contains(&id_of(there))) {
            return Err(Errno::PERM);
        }
        if path.len() > bare.len() && there.is_some_and(|there| kind(&there) != FileType::Directory) {
            return Err(Errno::NOTDIR);
        }
        Ok((place.dir, name))
    }
}

impl Now {
    /// If a directory has two names, the read-only grant holds.
    fn grant(&mut self, id: Id, writable: bool) {
        self.granted.entry(id).and_modify(|may| *may &= writable).or_insert(writable);
    }

    /// Follows the way from the outer directory to the inner one. The error is one line that says why that failed.
    fn follow(&mut self, nested: &Nested) -> Result<(), String> {
        let mut at = open_path(&nested.outer, ".").map_err(|error| error.to_string())?;
        for (index, part) in nested.parts.iter().enumerate() {
            if !nested.inner.writable {
                let here = id(&at).map_err(|error| error.to_string())?;
                self.names.insert((here, folded(part)));
            }
            let next = match open_path(&at, part) {
                Ok(next) => next,
                Err(Errno::NOENT) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            };
            let stat = rustix::fs::fstat(&next).map_err(|error| error.to_string())?;
            let last = index + 1 == nested.parts.len();
            match kind(&stat) {
                FileType::Symlink => return Err("a part of its path is a symbolic link".to_owned()),
                FileType::Directory => {}
                _ if last => {}
                _ => return Ok(()),
            }
            if !nested.inner.writable {
                self.fixed.insert(id_of(&stat));
            }
            if last {
                self.grant(id_of(&stat), nested.inner.writable);
            }
            at = next;
        }
        Ok(())
    }

    /// Whether the file at a place may be changed, or made if there is none.
    fn may_change(&self, place: &Place) -> Result<bool, Errno> {
        if !self.closed.is_empty() {
            return Ok(false);
        }
        let Some(name) = &place.name else { return Ok(self.may_change_in(&place.dir)) };
        Ok(match open_path(&place.dir, name) {
            Ok(there) => {
                let stat = rustix::fs::fstat(&there)?;
                match self.granted.get(&id_of(&stat)) {
                    Some(may) => *may,
                    None if kind(&stat) == FileType::Directory => self.may_change_in(&there),
                    None => self.may_change_in(&place.dir),
                }
            }
            Err(Errno::NOENT) => {
                !self.names.contains(&(id(&place.dir)?, folded(name))) && self.may_change_in(&place.dir)
            }
            Err(error) => return Err(error),
        })
    }

    /// Whether the innermost granted directory around this one is writable.
    fn may_change_in(&self, dir: impl AsFd) -> bool {
        let climb = || {
            let mut at = open_path(&dir, ".")?;
            let mut here = id(&at)?;
            for _ in 0..MAX_DEPTH {
                if let Some(may) = self.granted.get(&here) {
                    return Ok(*may);
                }
                at = open_path(&at, "..")?;
                let above = id(&at)?;
                if above == here {
                    break;
                }
                here = above;
            }
            Ok::<_, Errno>(false)
        };
        climb().unwrap_or(false)
    }
}

/// The result of resolving a path: a name in a directory. The name is no link if links are to be followed.
struct Place {
    dir: OwnedFd,
    /// The name; none for the directory itself.
    name: Option<String>,
    /// Whether the path ends with a slash and therefore names a directory.
    is_directory: bool,
}

impl Place {
    fn find(start: &File, root: bool, path: &str, follow: bool) -> Result<Self, Errno> {
        let directory = OFlags::PATH | OFlags::DIRECTORY;
        let mut path = path.to_owned();
        for _ in 0..=MAX_LINKS {
            let bare = path.trim_end_matches('/');
            let is_directory = bare.len() < path.len();
            let (parent, name) = bare.rsplit_once('/').unwrap_or(("", bare));
            if matches!(name, "" | "." | "..") {
                let dir = open_below(start, root, &path, directory, Mode::empty())?;
                return Ok(Self { dir, name: None, is_directory: true });
            }
            let parent = match parent {
                "" if bare.starts_with('/') => "/",
                "" => ".",
                parent => parent,
            };
            let dir = open_below(start, root, parent, directory, Mode::empty())?;
            let link = match follow || is_directory {
                true => rustix::fs::readlinkat(&dir, name, Vec::new()),
                false => Err(Errno::INVAL),
            };
            path = match link {
                Ok(target) => {
                    let target = target.into_string().map_err(|_| Errno::ILSEQ)?;
                    let slash = if is_directory { "/" } else { "" };
                    match target.starts_with('/') {
                        true => format!("{target}{slash}"),
                        false => format!("{parent}/{target}{slash}"),
                    }
                }
                // The name is not a link, or does not exist.
                Err(Errno::INVAL | Errno::NOENT) => return Ok(Self { dir, name: Some(name.to_owned()), is_directory }),
                Err(error) => return Err(error),
            };
        }
        Err(Errno::LOOP)
    }

    /// The metadata of the file that is there now; none if there is no file.
    fn look(&self) -> Result<Option<Stat>, Errno> {
        match open_path(&self.dir, self.name.as_deref().unwrap_or(".")) {
            Ok(there) => rustix::fs::fstat(&there).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Opens one name without following a link.
fn open_path(dir: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat2(dir, name, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
}

fn id(fd: impl AsFd) -> Result<Id, Errno> {
    Ok(id_of(&rustix::fs::fstat(fd)?))
}

fn id_of(stat: &Stat) -> Id {
    (stat.st_dev, stat.st_ino)
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Folds the case of a name, for file systems that ignore case. On other file systems, this refuses more than
/// necessary.
fn folded(name: &str) -> String {
    name.to_lowercase()
}
