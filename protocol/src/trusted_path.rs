//! Opens and makes configured files and folders (a log file, a pid file, the folder of sockets) so that only root and
//! this user decide where the path leads. A program that runs as root must not write through another user's symlink.
//!
//! The path is walked folder by folder. Each folder is opened without following links and checked while it is open, so
//! that it cannot be replaced between check and use. Symlinks of root and of this user are followed by the same rules.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Upper bound on the links on the way, as in the kernel.
const MAX_LINKS: usize = 40;
/// Mode of the folders that are made on the way.
const PARENTS: Mode = Mode::from_raw_mode(0o755);
const STICKY: u32 = 0o1000;
const ANYBODY_WRITES: u32 = 0o002;

/// How to treat a symlink at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastLink {
    /// Followed, if root or this process's user owns it.
    Followed,
    /// Refused, whoever owns it.
    Refused,
}

/// Opens a file for writing: a regular file of root or of `user`, or a device of root. Missing folders on the way are
/// made and belong to root or `user`. `flags` are those of open(2) (`WRONLY | APPEND | CREATE`); `mode` applies to a
/// new file.
///
/// # Errors
/// Those of the file system, and PermissionDenied if another user controls where the path leads.
pub fn open_file(path: &Path, flags: OFlags, mode: u32, user: u32, link: LastLink) -> io::Result<File> {
    let end = if link == LastLink::Followed { At::File } else { At::FileItself };
    let End { dir, name, sticky, kernels } = walk(path, user, end)?;
    // Opening a FIFO does not wait for its other end.
    let mut flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    flags.set(OFlags::NOFOLLOW, !kernels);
    let file = File::from(rustix::fs::openat(&dir, &name, flags, Mode::from_raw_mode(mode))?);
    if kernels {
        return Ok(file);
    }
    let meta = file.metadata()?;
    let is_device = FileType::from_raw_mode(meta.mode()) == FileType::CharacterDevice;
    if !(meta.is_file() || is_device && meta.uid() == 0) {
        return Err(denied(format!("{} is not a regular file", path.display())));
    }
    if !owned(meta.uid(), user) {
        return Err(denied(format!("{} belongs to {}; {}", path.display(), named(meta.uid()), mend(path, user))));
    }
    if sticky && meta.is_file() && meta.nlink() > 1 {
        let why = "has a second name, which anybody could have given it in this folder";
        return Err(denied(format!("{} {why}: remove it, or name a path elsewhere", path.display())));
    }
    Ok(file)
}

/// Opens a folder, or makes it with exactly this mode if it is missing. Any user may own the folder itself, but the way
/// to it must be trusted.
///
/// # Errors
/// As [`open_file`].
pub fn folder(path: &Path, mode: u32, user: u32) -> io::Result<File> {
    let End { dir, name, .. } = walk(path, user, At::Folder)?;
    let open = || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&dir, &name, flags, Mode::empty()).map(File::from)
    };
    match open() {
        Err(Errno::NOENT) => {}
        opened => return Ok(opened?),
    }
    // The folder has its mode from the start, because it may hold secrets.
    match rustix::fs::mkdirat(&dir, &name, Mode::from_raw_mode(mode)) {
        Err(Errno::EXIST) => return Ok(open()?),
        made => made?,
    }
    let made = open()?;
    made.set_permissions(Permissions::from_mode(mode))?;
    Ok(made)
}

/// The kind of file at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Folder,
    File,
    /// A file that is not a symlink.
    FileItself,
}

/// The end of a walk.
struct End {
    dir: OwnedFd,
    /// The name in that folder. It was not a symlink during the walk.
    name: OsString,
    /// Whether all users may make files in the folder.
    sticky: bool,
    /// Whether the folder belongs to the kernel, whose links are followed.
    kernels: bool,
}

fn walk(path: &Path, user: u32, end: At) -> io::Result<End> {
    // Root that acts for another user does not follow that user's links.
    let me = rustix::process::geteuid().as_raw();
    let absolute = std::path::absolute(path)?;
    let mut left: VecDeque<OsString> = parts(&absolute).collect();
    let mut here = PathBuf::from("/");
    let mut dir = open_path(CWD, &OsString::from("/"), OFlags::DIRECTORY)?;
    let mut links = 0;
    loop {
        if is_proc(&dir) {
            let name: PathBuf = left.into_iter().collect();
            return Ok(End { dir, name: name.into_os_string(), sticky: false, kernels: true });
        }
        let sticky = check_folder(&here, &rustix::fs::fstat(&dir)?, user)?;
        let Some(part) = left.pop_front() else {
            return Ok(End { dir, name: OsString::from("."), sticky, kernels: false });
        };
        if part == ".." {
            here.pop();
            dir = open_path(&dir, &part, OFlags::DIRECTORY)?;
            continue;
        }
        let next = here.join(&part);
        let is_last = left.is_empty();
        let found = match open_path(&dir, &part, OFlags::NOFOLLOW) {
            Err(Errno::NOENT) if is_last => return Ok(End { dir, name: part, sticky, kernels: false }),
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&dir, &part, PARENTS) {
                    Ok(()) | Err(Errno::EXIST) => left.push_front(part),
                    Err(error) => return Err(error.into()),
                }
                continue;
            }
            found => found?,
        };
        let stat = rustix::fs::fstat(&found)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                if is_last && end == At::FileItself {
                    return Err(denied(format!("{} is a symlink, which is not followed here", next.display())));
                }
                if !owned(stat.st_uid, me) {
                    return Err(denied(format!(
                        "{} is a symlink of {}, which is not followed: remove it, or name a path elsewhere",
                        next.display(),
                        named(stat.st_uid)
                    )));
                }
                let target =
                    PathBuf::from(OsString::from_vec(rustix::fs::readlinkat(&found, "", Vec::new())?.into_bytes()));
                if target.is_absolute() {
                    here = PathBuf::from("/");
                    dir = open_path(CWD, &OsString::from("/"), OFlags::DIRECTORY)?;
                }
                for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                    left.push_front(part);
                }
            }
            FileType::Directory if !(is_last && end == At::Folder) => (here, dir) = (next, found),
            _ if is_last => return Ok(End { dir, name: part, sticky, kernels: false }),
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
}

/// Returns whether all users may make files in the folder. Its sticky bit then protects existing files from
/// replacement.
fn check_folder(path: &Path, stat: &Stat, user: u32) -> io::Result<bool> {
    let anybody = stat.st_mode & ANYBODY_WRITES != 0;
    if !owned(stat.st_uid, user) {
        return Err(denied(format!(
            "the folder {} belongs to {}, who decides what lies there; {}",
            path.display(),
            named(stat.st_uid),
            mend(path, user)
        )));
    }
    if anybody && stat.st_mode & STICKY == 0 {
        let why = "anybody may replace what lies there";
        return Err(denied(format!(
            "the folder {} has mode {:04o}, so {why}; mend that with chmod o-w",
            path.display(),
            stat.st_mode & 0o7777
        )));
    }
    Ok(anybody)
}

fn open_path(at: impl std::os::fd::AsFd, name: &OsString, more: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(at, name, OFlags::PATH | OFlags::CLOEXEC | more, Mode::empty())
}

/// Whether a folder is in /proc, whose links lead to files that are already open (`/dev/stdout`).
fn is_proc(dir: &OwnedFd) -> bool {
    rustix::fs::fstatfs(dir).is_ok_and(|stat| stat.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

fn owned(owner: u32, user: u32) -> bool {
    owner == 0 || owner == user
}

fn named(user: u32) -> String {
    format!("user {user}")
}

fn mend(path: &Path, user: u32) -> String {
    format!("chown -h {user} {} if it is yours, or name a path elsewhere", path.display())
}

fn denied(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, lchown, symlink};

    use super::*;

    /// Another user of this host. Only root can make files that belong to that user.
    const FRED: u32 = 4711;

    fn append(path: &Path) -> io::Result<File> {
        let user = rustix::process::geteuid().as_raw();
        open_file(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE, 0o640, user, LastLink::Followed)
    }

    fn own_folder(path: &Path) -> io::Result<File> {
        folder(path, 0o750, rustix::process::geteuid().as_raw())
    }

    /// A folder such as /tmp, with the given content.
    fn sticky() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), Permissions::from_mode(0o1777)).unwrap();
        root
    }

    fn refused(opened: io::Result<File>, why: &str) {
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        assert!(error.to_string().contains(why) && !error.to_string().contains('\n'), "{error}");
    }

    #[test]
    fn what_is_ones_own_is_opened_and_made() {
        let root = sticky();
        let at = |name: &str| root.path().join(name);
        append(&at("new/a/log")).unwrap();
        assert_eq!(append(&at("new/a/log")).unwrap().metadata().unwrap().mode() & 0o777, 0o640);
        assert_eq!(own_folder(&at("new/b/c")).unwrap().metadata().unwrap().mode() & 0o7777, 0o750);
        // the user's own links, to folders and to the file itself
        symlink(at("new/a"), at("absolute")).unwrap();
        symlink("absolute/../a", at("relative")).unwrap();
        symlink("log", at("new/a/last")).unwrap();
        append(&at("relative/last")).unwrap();
        own_folder(&at("relative")).unwrap();
        assert!(!at("new/a/a").exists());
        symlink("round", at("round")).unwrap();
        assert!(append(&at("round")).is_err());
        for device in ["/dev/null", "/dev/stderr"] {
            append(Path::new(device)).unwrap();
        }
        assert!(append(&at("new/a/log/x")).is_err());
        assert!(append(&at("new/a")).is_err());
    }

    #[test]
    fn a_link_at_the_end_is_refused_where_it_is_to_be() {
        let root = sticky();
        std::fs::write(root.path().join("other"), "kept").unwrap();
        symlink("other", root.path().join("pid")).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let open = |link| open_file(&root.path().join("pid"), OFlags::WRONLY | OFlags::CREATE, 0o600, user, link);
        refused(open(LastLink::Refused), "is a symlink, which is not followed");
        open(LastLink::Followed).unwrap();
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let root = sticky();
        let fifo = root.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        let _reader = rustix::fs::open(&fifo, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
        refused(append(&fifo), "not a regular file");
        std::fs::write(root.path().join("theirs"), "").unwrap();
        std::fs::hard_link(root.path().join("theirs"), root.path().join("log")).unwrap();
        refused(append(&root.path().join("log")), "second name");
    }

    #[test]
    fn a_folder_where_anybody_replaces_files_is_refused() {
        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), Permissions::from_mode(0o777)).unwrap();
        refused(append(&root.path().join("log")), "chmod o-w");
        refused(own_folder(&root.path().join("a/b")), "chmod o-w");
    }

    #[test]
    fn another_users_links_folders_and_files_are_not_used() {
        if !rustix::process::geteuid().is_root() {
            return; // only root makes files of others
        }
        let root = sticky();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir(at("private")).unwrap();
        std::fs::write(at("private/shadow"), "kept").unwrap();
        for (link, target) in [("log", "private/shadow"), ("folder", "private"), ("new", "private/new")] {
            symlink(at(target), at(link)).unwrap();
            lchown(at(link), Some(FRED), None).unwrap();
        }
        for path in ["log", "new", "folder/shadow", "folder/other", "folder/../log"] {
            refused(append(&at(path)), "symlink of user 4711");
        }
        for path in ["folder", "folder/below", "new"] {
            refused(own_folder(&at(path)), "symlink of user 4711");
        }
        // the user's own link to another user's folder
        symlink("folder", at("mine")).unwrap();
        refused(append(&at("mine/shadow")), "symlink of user 4711");
        std::fs::create_dir(at("theirs")).unwrap();
        std::fs::write(at("theirs.log"), "").unwrap();
        chown(at("theirs"), Some(FRED), None).unwrap();
        chown(at("theirs.log"), Some(FRED), None).unwrap();
        refused(append(&at("theirs/log")), "who decides what lies there");
        refused(own_folder(&at("theirs/sock")), "who decides what lies there");
        refused(append(&at("theirs.log")), "belongs to user 4711");
        // the user of the daemon may do this
        let for_fred = |path: &str, link| open_file(&at(path), OFlags::WRONLY | OFlags::CREATE, 0o600, FRED, link);
        for_fred("theirs/log", LastLink::Refused).unwrap();
        // but root does not follow that user's links on behalf of that user
        symlink(at("private"), at("theirs/way")).unwrap();
        lchown(at("theirs/way"), Some(FRED), None).unwrap();
        for link in [LastLink::Followed, LastLink::Refused] {
            refused(for_fred("theirs/way/shadow", link), "symlink of user 4711");
        }
        refused(folder(&at("theirs/way/sub"), 0o700, FRED), "symlink of user 4711");
        assert_eq!(std::fs::read_to_string(at("private/shadow")).unwrap(), "kept");
        assert_eq!(std::fs::read_dir(at("private")).unwrap().count(), 1);
    }
}
