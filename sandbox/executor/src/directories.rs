//! The granted directories of a call and the resolution of paths below them. The kernel resolves a path in one step
//! with `openat2`, so that neither `..` nor a symbolic link nor a concurrent rename leads out of the directory. All
//! functions here may block, so they run on threads for blocking work.
//!
//! System calls beside the usual: `openat2`, `statx`, `fstatfs`, `readlinkat`, `getdents64`, `utimensat`, and `clone`
//! for the threads.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use brine_sandbox_wire::Directory;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use wasmtime_wasi::filesystem::Dir;
use wasmtime_wasi::{FsPerms, OpenMode};

use crate::narrower::Narrower;
use crate::open::look_below;

/// Upper bound on the characters of a path in a message.
const MAX_PATH: usize = 300;

/// A granted directory or file, opened if possible.
#[derive(Clone)]
pub struct Opened {
    /// The path of the grant: absolute, without `.` and `..`.
    pub path: String,
    /// The open directory. None if it is a file or could not be opened.
    pub dir: Option<Dir>,
    /// The granted file.
    pub file: Option<OneFile>,
    /// Why the directory is not open, and whether it is because the directory does not exist.
    left_out: Option<(String, bool)>,
}

/// A granted file: its name in its directory, so that each opening has its own position and flags.
#[derive(Debug, Clone)]
pub struct OneFile {
    /// The directory, for looking up this name alone.
    pub parent: Arc<File>,
    /// The name.
    pub name: String,
    /// Whether the file may be changed.
    pub writable: bool,
}

impl OneFile {
    /// Finds a file whose path has no links. None if there is something else.
    fn find(path: &str, writable: bool) -> Option<Self> {
        let (parent, name) = path.rsplit_once('/')?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let parent = if parent.is_empty() { "/" } else { parent };
        let parent = File::from(rustix::fs::openat2(CWD, parent, flags, Mode::empty(), resolve).ok()?);
        let stat = rustix::fs::fstat(look_below(&parent, false, name, false).ok()?).ok()?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        regular.then(|| Self { parent: Arc::new(parent), name: name.to_owned(), writable })
    }
}

/// Stands for the root of the file system where that is not granted: a guest of plain WASI finds it beside its granted directories, so that a path
/// outside of these comes here and is refused here, and not in the guest's own library, where nobody sees it. It is no directory, so the
/// kernel opens nothing below it.
#[must_use]
pub fn nowhere() -> &'static Dir {
    static NOWHERE: LazyLock<Dir> = LazyLock::new(|| {
        let (socket, _) = UnixStream::pair().expect("some of the process's descriptors are reserved");
        Dir::new(File::from(OwnedFd::from(socket)), FsPerms::ReadOnly, OpenMode::READ, false)
    });
    &NOWHERE
}

/// What is at a path of the host, which no guest is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum There {
    /// A regular file, or what lies in another mount than `/`.
    File,
    /// A part of the path is a symbolic link.
    Link,
    /// Something else, nothing, or what this process cannot see.
    Other,
}

impl There {
    pub(crate) fn look(path: &str) -> Self {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Not into other mounts: below an automounter's folder, the name that a guest chose would be asked for in the network.
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        let stat = rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve).and_then(rustix::fs::fstat);
        match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            // A line for a file that is not there opens nothing.
            Ok(FileType::RegularFile) | Err(Errno::XDEV) => Self::File,
            Ok(FileType::Symlink) | Err(Errno::LOOP) => Self::Link,
            _ => Self::Other,
        }
    }
}

impl Opened {
    fn open(Directory { path, writable }: &Directory) -> Self {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let (perms, mode) = match writable {
            true => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
            false => (FsPerms::ReadOnly, OpenMode::READ),
        };
        match rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
            Ok(fd) => {
                let dir = Dir::new(File::from(fd), perms, mode, false);
                Self { path: path.clone(), dir: Some(dir), file: None, left_out: None }
            }
            Err(error) => {
                let file = (error == Errno::NOTDIR).then(|| OneFile::find(path, *writable)).flatten();
                if file.is_some() {
                    return Self { path: path.clone(), dir: None, file, left_out: None };
                }
                let why = match error {
                    Errno::LOOP => "a part of its path is a symbolic link".to_owned(),
                    error => error.to_string(),
                };
                Self { path: path.clone(), dir: None, file: None, left_out: Some((why, error == Errno::NOENT)) }
            }
        }
    }

    /// Checks whether the directory exists but could not be opened.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.left_out.as_ref().is_some_and(|(_, missing)| !missing)
    }

    /// Returns why a granted directory is left out: the rest of a sentence that begins with its path.
    #[must_use]
    pub fn why_left_out(&self) -> Option<String> {
        let (why, _) = self.left_out.as_ref()?;
        Some(format!("was granted and is left out for now: {why}"))
    }
}

/// The granted directories of a call.
#[derive(Default, Clone)]
pub struct Directories {
    opened: Vec<Opened>,
    narrower: Arc<Narrower>,
}

impl Directories {
    /// Opens the directories by paths without symbolic links: a user who can replace a part of a path must not be able
    /// to change the grant. Directories that do not exist are left out. Returns a line for the log for each directory
    /// that is left out.
    #[must_use]
    pub fn open(granted: &[Directory]) -> (Self, Vec<String>) {
        let opened: Vec<Opened> = granted.iter().map(Opened::open).collect();
        let left_out = opened.iter().filter_map(|opened| Some((&opened.path, opened.left_out.as_ref()?)));
        let mut lines: Vec<String> = left_out
            .map(|(path, (why, _))| {
                format!("the directory {} cannot be seen: {why}", brine_text::short(path, MAX_PATH))
            })
            .collect();
        let each: Vec<_> = granted
            .iter()
            .zip(&opened)
            .map(|(granted, opened)| (granted, opened.dir.as_ref().map(|dir| &dir.dir)))
            .collect();
        let narrower = Narrower::new(&each);
        if !narrower.is_empty() {
            lines.extend(narrower.closed().iter().map(|line| brine_text::short(line, 3 * MAX_PATH)));
        }
        (Self { opened, narrower: Arc::new(narrower) }, lines)
    }

    /// Returns the read-only grants within writable ones, if there are any.
    #[must_use]
    pub fn narrower(&self) -> Option<Arc<Narrower>> {
        (!self.narrower.is_empty()).then(|| Arc::clone(&self.narrower))
    }

    /// Returns the paths of the directories that are left out, each with the rest of a sentence that says why.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, String)> {
        self.opened.iter().filter_map(|opened| Some((opened.path.as_str(), opened.why_left_out()?)))
    }

    /// Returns the open directories with their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Dir)> {
        self.opened.iter().filter_map(|opened| Some((opened.path.as_str(), opened.dir.as_ref()?)))
    }

    /// Returns the granted file of this path.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<OneFile> {
        self.opened.iter().find(|opened| opened.path == path)?.file.clone()
    }

    /// Returns the paths of the granted files.
    pub fn files(&self) -> impl Iterator<Item = (&str, &OneFile)> {
        self.opened.iter().filter_map(|opened| Some((opened.path.as_str(), opened.file.as_ref()?)))
    }

    /// Checks whether this path was granted, or is in a directory that was.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        self.opened.iter().any(|opened| below(path, &opened.path).is_some())
    }

    /// Checks whether a granted path lies below this one.
    #[must_use]
    pub fn leads_to_granted(&self, path: &str) -> bool {
        self.opened.iter().any(|opened| opened.path != path && below(&opened.path, path).is_some())
    }

    /// Returns the innermost open directory around a path, and the rest of the path.
    #[must_use]
    pub fn innermost(&self, path: &str) -> Option<((String, Arc<File>), String)> {
        let (opened, rest) = self.around(path).into_iter().next()?;
        Some(((opened.path.clone(), Arc::clone(&opened.dir.as_ref()?.dir)), rest))
    }

    /// Returns the path of an open granted directory, or of [`nowhere`].
    #[must_use]
    pub fn path_of(&self, dir: &Arc<File>) -> Option<&str> {
        let granted = self.iter().find(|(_, opened)| Arc::ptr_eq(&opened.dir, dir)).map(|(path, _)| path);
        granted.or_else(|| Arc::ptr_eq(&nowhere().dir, dir).then_some("/"))
    }

    /// Checks whether `file` is the granted root of the file system. Below the root, absolute links keep their meaning.
    #[must_use]
    pub fn is_root(&self, file: &Arc<File>) -> bool {
        self.iter().any(|(path, dir)| path == "/" && Arc::ptr_eq(&dir.dir, file))
    }

    /// Returns why a path is not accessible, if a directory that is left out contains the path or lies below it.
    #[must_use]
    pub fn why_not(&self, path: &str) -> Option<String> {
        let concerned = |of: &str| below(path, of).is_some() || below(of, path).is_some();
        let (of, why) = self.left_out().find(|(of, _)| concerned(of))?;
        Some(format!("{} cannot be seen: {} {why}", brine_text::short(path, MAX_PATH), brine_text::short(of, MAX_PATH)))
    }

    /// Returns the granted directories that may contain a path of the host, the innermost first, each with the rest of
    /// the path.
    #[must_use]
    pub fn around(&self, path: &str) -> Vec<(&Opened, String)> {
        let mut found: Vec<_> =
            self.opened.iter().filter_map(|opened| Some((opened, below(path, &opened.path)?))).collect();
        found.sort_by_key(|(opened, _)| std::cmp::Reverse(opened.path.len()));
        found
    }
}

/// Returns the path below a directory: `/srv/app/x` below `/srv/app` is `x`. Compares text only; the kernel resolves
/// `..`.
fn below(path: &str, directory: &str) -> Option<String> {
    let rest = match path.strip_prefix(directory.trim_end_matches('/'))? {
        "" if directory != "/" || path.is_empty() => (!path.is_empty()).then_some("")?,
        rest => rest.strip_prefix('/')?,
    };
    let rest = rest.trim_start_matches('/');
    Some(if rest.is_empty() { ".".to_owned() } else { rest.to_owned() })
}

/// Returns the directory whose grant would allow reading this path.
#[must_use]
pub fn directory_of(path: &str) -> &str {
    match Path::new(path).parent().and_then(Path::to_str) {
        Some(parent) if path.starts_with('/') && !matches!(parent, "" | "/") => parent,
        // A grant of `/` is seldom intended.
        _ if path.starts_with('/') && path != "/" => path.trim_end_matches('/'),
        _ => "/",
    }
}

/// Returns the message about a path outside every granted directory.
#[must_use]
pub fn not_granted(module: &str, path: &str) -> String {
    format!("{} is in no directory that was granted to module {module}", brine_text::short(path, MAX_PATH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_a_directory() {
        for (path, directory, rest) in [
            ("/srv/app/x", "/srv/app", Some("x")),
            ("/srv/app", "/srv/app", Some(".")),
            ("/srv/app/", "/srv/app", Some(".")),
            ("/srv/app//x/", "/srv/app", Some("x/")),
            ("/srv/app/../x", "/srv/app", Some("../x")),
            ("/srv/application", "/srv/app", None),
            ("/srv", "/srv/app", None),
            ("srv/app", "/srv/app", None),
            ("", "/srv/app", None),
            ("/etc/passwd", "/", Some("etc/passwd")),
            ("/", "/", Some(".")),
            ("//etc", "/", Some("etc")),
            ("", "/", None),
            ("etc", "/", None),
        ] {
            assert_eq!(below(path, directory).as_deref(), rest, "{path} below {directory}");
        }
    }

    #[test]
    fn the_directory_to_grant() {
        for (path, directory) in [
            ("/etc/app/x.conf", "/etc/app"),
            ("/etc", "/etc"),
            ("/etc/", "/etc"),
            ("/", "/"),
            ("x", "/"),
            ("/a b/c", "/a b"),
        ] {
            assert_eq!(directory_of(path), directory, "{path}");
        }
        assert_eq!(not_granted("file", "/a\n/c"), "/a\\n/c is in no directory that was granted to module file");
    }
}
