//! Finds what a path means, within what is granted.
//!
//! The path is walked one name at a time, and the kernel never follows a link: a directory that is exchanged for a link
//! meanwhile is not entered. A link is read and its target walked from its grant's beginning, so it is judged like a path
//! that the module asked for. One that leads from one grant into another has to be root's or the minion's, because
//! whoever may write in the first must not choose what changes in the second. One of another user leads only to what that
//! user owns: `~/.ssh` as a link to another user's must not put keys there.

use std::os::fd::OwnedFd;
use std::path::Path;

use brine_sandbox::{Access, Tree, innermost};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::Task;
use super::entry::unsigned;
use super::failure::Failure;
use super::guard::not_the_kernels;

/// Upper bound on the links on the way, as in the kernel.
const MAX_LINKS: usize = 40;
/// Upper bound on new beginnings because something was exchanged on the way.
const TRIES: usize = 32;
const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// A name in a directory.
#[derive(Debug)]
pub(super) struct Place {
    /// The directory, opened for its metadata.
    pub(super) dir: OwnedFd,
    /// The name in it; `.` for `/`.
    pub(super) name: String,
    /// The path without links.
    pub(super) real: String,
    pub(super) access: Access,
    /// The users, other than root and the minion's, whose links led here, each with its link.
    linked: Vec<(u32, String)>,
}

impl Place {
    /// Returns what is there, without following a link.
    pub(super) fn stat(&self) -> Result<Option<Stat>, Failure> {
        match rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Place {
    /// Checks that each user whose link led here owns the file, or the directory that it is in: with the minion's rights, a
    /// link must not open more than with the rights of who made it.
    pub(super) fn admit_links(&self) -> Result<(), Failure> {
        if self.linked.is_empty() {
            return Ok(());
        }
        let directory = rustix::fs::fstat(&self.dir)?.st_uid;
        let file = self.stat()?.map(|stat| stat.st_uid);
        match self.linked.iter().find(|(user, _)| *user != directory && Some(*user) != file) {
            None => Ok(()),
            Some((user, link)) => Err(Failure::Other(format!(
                "the link {link} belongs to the user {user}, and {}, where it leads, does not",
                self.real
            ))),
        }
    }
}

pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

impl Task {
    /// Finds a place to look at. None if a directory on the way is missing.
    pub(super) fn find(&self, path: &str, follow: bool) -> Result<Option<Place>, Failure> {
        let Some(place) = self.walk(path, follow)? else { return Ok(None) };
        not_the_kernels(&place.dir)?;
        Ok(Some(place))
    }

    /// Finds a place whose content is read.
    pub(super) fn find_content(&self, path: &str, follow: bool) -> Result<Option<Place>, Failure> {
        let Some(place) = self.walk(path, follow)? else { return Ok(None) };
        place.admit_links()?;
        self.host.guard.admit(&place.dir, Path::new(&place.real))?;
        if let Some(stat) = place.stat()? {
            self.host.guard.admit_entry((stat.st_dev, stat.st_ino), unsigned(stat.st_nlink), Path::new(&place.real))?;
        }
        Ok(Some(place))
    }

    /// Finds a place that is to change. `moves` is whether the name itself is made, replaced or removed.
    pub(super) fn find_to_change(&self, path: &str, follow: bool, moves: bool) -> Result<Place, Failure> {
        let place = self.walk(path, follow)?.ok_or(Errno::NOENT)?;
        self.admit_change(&place, moves)?;
        Ok(place)
    }

    pub(super) fn admit_change(&self, place: &Place, moves: bool) -> Result<(), Failure> {
        let real = Path::new(&place.real);
        if place.access < Access::Change {
            return Err(Failure::NotGranted(place.real.clone()));
        }
        place.admit_links()?;
        let guard = &self.host.guard;
        let around = guard.admit(&place.dir, real)?;
        if let Some(stat) = place.stat()? {
            guard.admit_entry((stat.st_dev, stat.st_ino), unsigned(stat.st_nlink), real)?;
        }
        if moves && guard.is_around(real) {
            return Err(Failure::Denied(format!("{} has folders of this minion in it", place.real)));
        }
        // A directory has other names: those of bind mounts. The innermost grant decides, whatever its name.
        let granted = |id| {
            let of = |tree: &&Tree| rustix::fs::stat(&tree.path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == id);
            self.trees.iter().filter(of).map(|tree| tree.access).min()
        };
        let innermost = match self.trees.iter().any(|tree| tree.access == Access::Look) {
            true => around.into_iter().find_map(granted),
            false => None,
        };
        if innermost.is_some_and(|access| access < Access::Change) && !self.names(&place.real) {
            return Err(Failure::NotGranted(place.real.clone()));
        }
        // A read-only directory stays where it is, and so do those around it.
        let fixed = |tree: &&Tree| tree.access == Access::Look && Path::new(&tree.path).starts_with(real);
        match self.trees.iter().find(fixed) {
            Some(tree) if moves => Err(Failure::Denied(format!(
                "{} may only be looked at, so {} is neither made, moved nor removed",
                tree.path, place.real
            ))),
            _ => Ok(()),
        }
    }

    /// Whether a grant names exactly this path for a change, as a file within a read-only directory.
    fn names(&self, real: &str) -> bool {
        self.trees.iter().any(|tree| tree.path == real && tree.access >= Access::Change)
    }

    fn walk(&self, path: &str, follow: bool) -> Result<Option<Place>, Failure> {
        let mut path = path.to_owned();
        let (mut links, mut tries) = (0, 0);
        let mut linked = Vec::new();
        loop {
            let tree = innermost(&self.trees, &path).ok_or_else(|| Failure::NotGranted(path.clone()))?;
            match step(tree, &path, follow) {
                Ok(Step::At(place)) => return Ok(Some(Place { linked, ..place })),
                Ok(Step::Missing) => return Ok(None),
                Ok(Step::Link { path: to, owner, at }) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    let trusted = trusted(owner);
                    let leaves = innermost(&self.trees, &to) != Some(tree);
                    if leaves && !trusted {
                        return Err(Failure::Other(format!(
                            "the link {at} leads from one grant to {to}, and belongs neither to root nor to the minion's user"
                        )));
                    }
                    if !trusted {
                        linked.push((owner, at));
                    }
                    path = to;
                }
                // Something was exchanged on the way.
                Err(Failure::System(Errno::LOOP | Errno::NOTDIR)) if tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

enum Step {
    At(Place),
    /// A directory on the way is missing.
    Missing,
    /// A link on the way, or at the end.
    Link {
        path: String,
        owner: u32,
        at: String,
    },
}

/// Whether a link's owner is root or the minion's user.
fn trusted(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}

/// Walks a path from the beginning of its grant to its end or to the first link.
fn step(tree: &Tree, path: &str, follow: bool) -> Result<Step, Failure> {
    let (anchor, _) = tree.path.rsplit_once('/').unwrap_or_default();
    let anchor = if anchor.is_empty() { "/" } else { anchor };
    let rest = path.strip_prefix(anchor).unwrap_or_default().trim_start_matches('/');
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut dir = match rustix::fs::openat2(CWD, anchor, directory, Mode::empty(), resolve) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok(Step::Missing),
        Err(Errno::LOOP) => return Err(is_a_link(anchor)),
        Err(error) => return Err(error.into()),
    };
    let mut real = anchor.trim_end_matches('/').to_owned();
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let access = tree.access;
    if parts.is_empty() {
        return Ok(Step::At(Place { dir, name: ".".to_owned(), real: "/".to_owned(), access, linked: Vec::new() }));
    }
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        let stat = match rustix::fs::statat(&dir, *part, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) if last => None,
            Err(Errno::NOENT) => return Ok(Step::Missing),
            Err(error) => return Err(error.into()),
        };
        let is_link = stat.as_ref().is_some_and(|stat| kind(stat) == FileType::Symlink);
        if let Some(link) = stat.filter(|_| is_link && (!last || follow)) {
            if real.len() + 1 + part.len() == tree.path.len() {
                return Err(is_a_link(&tree.path));
            }
            not_the_kernels(&dir)?;
            let target = rustix::fs::readlinkat(&dir, *part, Vec::new())?;
            let target = target.into_string().map_err(|_| Errno::ILSEQ)?;
            let around = rustix::fs::fstat(&dir)?;
            let mut path = match target.starts_with('/') {
                true => target,
                false => format!("{real}/{target}"),
            };
            for more in &parts[at + 1..] {
                path.push('/');
                path.push_str(more);
            }
            // As the kernel's protected_symlinks.
            let open = around.st_mode & STICKY != 0 && around.st_mode & WRITABLE_BY_OTHERS != 0;
            let at = format!("{real}/{part}");
            if open && !trusted(link.st_uid) && link.st_uid != around.st_uid {
                return Err(Failure::Other(format!(
                    "the link {at} is another user's in a directory that all may write"
                )));
            }
            return Ok(Step::Link { path: plain(&path)?, owner: link.st_uid, at });
        }
        if last {
            let real = format!("{real}/{part}");
            return Ok(Step::At(Place { dir, name: (*part).to_owned(), real, access, linked: Vec::new() }));
        }
        dir = rustix::fs::openat(&dir, *part, directory | OFlags::NOFOLLOW, Mode::empty())?;
        real = format!("{real}/{part}");
    }
    Err(Errno::INVAL.into())
}

fn is_a_link(path: &str) -> Failure {
    Failure::Other(format!("{path} leads through a symbolic link; a grant has to say a real name"))
}

/// Writes a path without `.`, `..` and doubled slashes. The result is walked from the beginning, so it is judged by where
/// it leads, whatever a `..` behind a link would mean to the kernel.
fn plain(path: &str) -> Result<String, Failure> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let plain = format!("/{}", parts.join("/"));
    if plain.len() > 4_095 { Err(Errno::NAMETOOLONG.into()) } else { Ok(plain) }
}
