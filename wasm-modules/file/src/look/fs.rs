//! Files as the owner of the host granted them to this module: `filesystem` is looked at directly, `changes` by the
//! minion. Without a directory in `filesystem`, what `changes` opens is tried first.

use brine_guest::changes::{self, Entry};
use brine_guest::fs::{self, Result};
pub(crate) use brine_guest::fs::{Error, FileStat, Kind};
use brine_guest::wasi::filesystem::preopens::get_directories;

/// The metadata of a path; with `follow`, of a link's target.
pub(crate) fn stat(path: &str, follow: bool) -> Result<FileStat> {
    either(
        || fs::stat(path, follow),
        || match changes::look(path, follow) {
            Ok(Some(entry)) => Ok(of_entry(&entry)),
            Ok(None) => Err(Error::NotFound),
            Err(why) => Err(of_host(&why)),
        },
    )
}

/// As Python's `os.path.realpath`.
pub(crate) fn realpath(path: &str) -> Result<String> {
    either(|| fs::realpath(path), || changes::realpath(path).map_err(|why| of_host(&why)))
}

/// The names in a directory, with their kinds.
pub(crate) fn read_dir(path: &str) -> Result<Vec<(String, Kind)>> {
    let list = |path: &str| {
        let names = changes::list(path).map_err(|why| of_host(&why))?;
        Ok(names.into_iter().map(|(name, kind)| (name, of_kind(kind))).collect())
    };
    either(|| fs::read_dir(path), || list(path))
}

/// An open file.
pub(crate) enum File {
    /// By a granted directory.
    Opened(fs::File),
    /// By the minion, at this path.
    Asked(String),
}

/// Opens a file for reading. Pipes and sockets are refused.
pub(crate) fn open(path: &str) -> Result<File> {
    either(
        || fs::open(path).map(File::Opened),
        || match stat(path, true)?.kind {
            Kind::Regular => Ok(File::Asked(path.to_owned())),
            Kind::Directory => Err(Error::Other("[Errno 21] Is a directory")),
            _ => Err(Error::Other("not a file that can be read")),
        },
    )
}

impl File {
    /// Reads up to `len` bytes at `offset`; returns no bytes at the end.
    pub(crate) fn read_at(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        match self {
            Self::Opened(file) => file.read_at(offset, len),
            Self::Asked(path) => match changes::read_at(path, offset, u32::try_from(len).unwrap_or(u32::MAX)) {
                Ok(part) => part.ok_or(Error::NotFound),
                Err(why) => Err(of_host(&why)),
            },
        }
    }

    /// Passes the content in parts to `each` until that returns false.
    pub(crate) fn each(&self, mut each: impl FnMut(&[u8]) -> bool) -> Result<()> {
        if let Self::Opened(file) = self {
            return file.each(each);
        }
        let mut offset = 0;
        loop {
            let part = self.read_at(offset, u64::MAX)?;
            if part.is_empty() || !each(&part) {
                return Ok(());
            }
            offset += part.len() as u64;
        }
    }
}

/// Reads a file of at most `max` bytes.
pub(crate) fn read(path: &str, max: usize) -> std::result::Result<Vec<u8>, String> {
    let file = open(path).map_err(|error| error.at(path))?;
    let mut content = Vec::new();
    file.each(|part| {
        content.extend_from_slice(part);
        content.len() <= max
    })
    .map_err(|error| error.at(path))?;
    if content.len() > max { Err(format!("'{path}' has more than {max} bytes")) } else { Ok(content) }
}

/// What one of the grants opens. If neither does, the error is that of `filesystem`, with its line of configuration.
fn either<T>(direct: impl Fn() -> Result<T>, asked: impl Fn() -> Result<T>) -> Result<T> {
    let is_open = |done: &Result<T>| !matches!(done, Err(Error::NotGranted(_)));
    if get_directories().is_empty() {
        let done = asked();
        return if is_open(&done) { done } else { direct() };
    }
    match direct() {
        Err(Error::NotGranted(line)) => {
            let done = asked();
            if is_open(&done) { done } else { Err(Error::NotGranted(line)) }
        }
        done => done,
    }
}

/// An error of `changes`, which says the path too.
fn of_host(why: &str) -> Error {
    let Some(rest) = why.strip_prefix("[Errno ") else { return Error::NotGranted(why.to_owned()) };
    match rest.split(']').next() {
        Some("2" | "20") => Error::NotFound,
        Some("1" | "13") => Error::Denied,
        _ => Error::Host(why.rsplit_once(": '").map_or(why, |(what, _)| what).to_owned()),
    }
}

fn of_kind(kind: changes::Kind) -> Kind {
    match kind {
        changes::Kind::Regular => Kind::Regular,
        changes::Kind::Directory => Kind::Directory,
        changes::Kind::Symlink => Kind::Symlink,
        changes::Kind::Block => Kind::Block,
        changes::Kind::Character => Kind::Character,
        changes::Kind::Fifo => Kind::Fifo,
        changes::Kind::Socket => Kind::Socket,
        changes::Kind::Unknown => Kind::Unknown,
    }
}

fn of_entry(entry: &Entry) -> FileStat {
    FileStat {
        kind: of_kind(entry.kind),
        mode: entry.mode,
        uid: entry.uid,
        gid: entry.gid,
        inode: entry.inode,
        device: 0,
        nlink: entry.nlink,
        size: entry.size,
        atime: entry.atime,
        mtime: entry.mtime,
        ctime: entry.ctime,
        target: entry.target.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_minion_keep_their_meaning() {
        assert_eq!(of_host("[Errno 2] No such file or directory: '/x'"), Error::NotFound);
        assert_eq!(of_host("[Errno 13] Permission denied: '/x'"), Error::Denied);
        assert_eq!(of_host("[Errno 27] File too large: '/x'"), Error::Host("[Errno 27] File too large".into()));
        assert_eq!(
            of_host("module file may not look at /x"),
            Error::NotGranted("module file may not look at /x".into())
        );
    }
}
