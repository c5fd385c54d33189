//! Files of the host in the directories that its owner granted: `wasi:filesystem` with absolute paths, and
//! `brine:host/metadata` for metadata that `wasi:filesystem` lacks.
//!
//! A path is resolved in the granted directory that contains it; the host ensures that it stays there. The host does
//! not follow absolute links, even if their target is granted. When it refuses, this module follows the links step by
//! step and tries again.

use std::thread::LocalKey;

use crate::host::metadata;
pub use crate::host::metadata::{FileStat, Kind};
use crate::path;
use crate::wasi::filesystem::preopens::get_directories;
use crate::wasi::filesystem::types::{Descriptor, DescriptorFlags, DescriptorType, ErrorCode, OpenFlags, PathFlags};

/// Why an operation on a path failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The file does not exist, or one of its parents is not a directory.
    NotFound,
    /// The path is not granted; the text names the configuration that would grant it.
    NotGranted(String),
    /// The path is below this directory, which is granted read-only.
    ReadOnly(String),
    /// The sandbox's user has no permission.
    Denied,
    /// Another error, in the operating system's words.
    Other(&'static str),
    /// Another error, in the host's words.
    Host(String),
}

/// The result of functions for files.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// One line about this path, in Python's words if Python has the same error.
    pub fn at(&self, path: &str) -> String {
        match self {
            Self::NotFound => format!("[Errno 2] No such file or directory: '{path}'"),
            Self::NotGranted(text) => text.clone(),
            Self::ReadOnly(root) => {
                format!("'{path}' cannot be written: this module was granted {root} read-only (ro, not rw)")
            }
            Self::Denied => format!("[Errno 13] Permission denied: '{path}'"),
            Self::Other(what) => format!("{what}: '{path}'"),
            Self::Host(what) => format!("{what}: '{path}'"),
        }
    }
}

impl From<metadata::Error> for Error {
    fn from(error: metadata::Error) -> Self {
        match error {
            metadata::Error::NotFound => Self::NotFound,
            metadata::Error::NotGranted(text) => Self::NotGranted(text),
            metadata::Error::Denied => Self::Denied,
            metadata::Error::Other(text) => Self::Host(text),
        }
    }
}

impl From<ErrorCode> for Error {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::NoEntry => Self::NotFound,
            ErrorCode::Access | ErrorCode::NotPermitted => Self::Denied,
            ErrorCode::IsDirectory => Self::Other("[Errno 21] Is a directory"),
            ErrorCode::NotDirectory => Self::Other("[Errno 20] Not a directory"),
            ErrorCode::Exist => Self::Other("[Errno 17] File exists"),
            ErrorCode::NotEmpty => Self::Other("[Errno 39] Directory not empty"),
            ErrorCode::Loop => Self::Other("[Errno 40] Too many levels of symbolic links"),
            ErrorCode::NameTooLong => Self::Other("[Errno 36] File name too long"),
            ErrorCode::InsufficientSpace => Self::Other("[Errno 28] No space left on device"),
            ErrorCode::Quota => Self::Other("[Errno 122] Disk quota exceeded"),
            ErrorCode::FileTooLarge => Self::Other("[Errno 27] File too large"),
            ErrorCode::ReadOnly => Self::Other("[Errno 30] Read-only file system"),
            ErrorCode::TextFileBusy => Self::Other("[Errno 26] Text file busy"),
            ErrorCode::Busy => Self::Other("[Errno 16] Device or resource busy"),
            ErrorCode::CrossDevice => Self::Other("[Errno 18] Invalid cross-device link"),
            ErrorCode::Invalid | ErrorCode::IllegalByteSequence => Self::Other("[Errno 22] Invalid argument"),
            _ => Self::Other("[Errno 5] Input/output error"),
        }
    }
}

/// A granted directory.
struct Root {
    dir: Descriptor,
    path: String,
    writable: bool,
}

thread_local! {
    static ROOTS: Vec<Root> = get_directories()
        .into_iter()
        .map(|(dir, path)| {
            let write = DescriptorFlags::MUTATE_DIRECTORY;
            let writable = dir.get_flags().is_ok_and(|flags| flags & write == write);
            Root { dir, path, writable }
        })
        .collect();
}
/// The granted directories. An instance has one thread and exists for one call.
const GRANTED: &LocalKey<Vec<Root>> = &ROOTS;

/// Upper bound on the links that lead to further links, as in the kernel.
const MAX_LINKS: usize = 40;
/// Bytes of one read or write: the host's upper bound.
const CHUNK: u64 = 64 * 1024;
/// Upper bound on the names in a directory that are skipped because they are not text.
const MAX_UNREADABLE: usize = 10_000;

/// Performs an operation on a path in the granted directory that contains it.
fn at<T>(path: &str, write: bool, act: impl Fn(&Descriptor, &str) -> core::result::Result<T, ErrorCode>) -> Result<T> {
    if !path.starts_with('/') {
        return Err(Error::Other("the path must be absolute"));
    }
    let attempt = |path: &str| {
        GRANTED.with(|roots| {
            let covering = roots.iter().filter_map(|root| path::below(path, &root.path).map(|rest| (root, rest)));
            let Some((root, rest)) = covering.max_by_key(|(root, _)| root.path.len()) else {
                return Err(ErrorCode::NotPermitted);
            };
            act(&root.dir, &rest)
        })
    };
    let refused = match attempt(path) {
        Err(code @ (ErrorCode::NotPermitted | ErrorCode::CrossDevice | ErrorCode::Loop)) => code,
        done => return Ok(done?),
    };
    let real = realpath(path)?;
    if real != path {
        match attempt(&real) {
            Err(ErrorCode::NotPermitted | ErrorCode::CrossDevice) => {}
            done => return Ok(done?),
        }
    }
    // The metadata shows the reason: the path is not granted, is read-only, or the host's user has no permission.
    if let Err(metadata::Error::NotGranted(text)) = metadata::stat(&real, true) {
        return Err(Error::NotGranted(text));
    }
    let read_only = |roots: &Vec<Root>| {
        let covering = roots.iter().filter(|root| path::below(&real, &root.path).is_some());
        covering.max_by_key(|root| root.path.len()).filter(|root| !root.writable).map(|root| root.path.clone())
    };
    match GRANTED.with(read_only) {
        Some(root) if write => Err(Error::ReadOnly(root)),
        _ => Err(refused.into()),
    }
}

/// The metadata of a path; with `follow`, of a link's target.
///
/// # Errors
/// When the file does not exist or is not granted.
pub fn stat(path: &str, follow: bool) -> Result<FileStat> {
    if !path.starts_with('/') {
        return Err(Error::Other("the path must be absolute"));
    }
    let first = metadata::stat(path, follow);
    if let Err(metadata::Error::NotGranted(_)) = &first {
        let real =
            if follow { realpath(path)? } else { path::join(&realpath(path::dirname(path))?, path::basename(path)) };
        if real != path {
            return Ok(metadata::stat(&real, follow)?);
        }
    }
    Ok(first?)
}

/// Resolves links, `.` and `..` as Python's `os.path.realpath` does. Missing parts stay unchanged.
///
/// # Errors
/// When there are too many links, or a part is not granted.
pub fn realpath(path: &str) -> Result<String> {
    let mut real = String::from("/");
    let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let mut links = 0;
    while let Some(part) = rest.pop() {
        match part.as_str() {
            "" | "." => continue,
            ".." => {
                real = path::dirname(&real).to_owned();
                continue;
            }
            _ => {}
        }
        let next = path::join(&real, &part);
        if !is_granted(&next) && !leads_to_granted(&next) {
            // No granted directory has it. Who is refused wants the whole path, and the host's owner reads what was refused.
            let whole = rest.iter().rev().fold(next, |at, part| match part.as_str() {
                "" | "." => at,
                ".." => path::dirname(&at).to_owned(),
                part => path::join(&at, part),
            });
            return match metadata::stat(&whole, false) {
                Err(metadata::Error::NotGranted(text)) => Err(Error::NotGranted(text)),
                // A file that was granted by itself.
                _ => Ok(whole),
            };
        }
        let target = match metadata::stat(&next, false) {
            Ok(stat) => stat.target,
            Err(metadata::Error::NotGranted(_)) if leads_to_granted(&next) => None,
            Err(metadata::Error::NotGranted(text)) => return Err(Error::NotGranted(text)),
            Err(metadata::Error::NotFound | metadata::Error::Denied | metadata::Error::Other(_)) => None,
        };
        match target {
            None => real = next,
            Some(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(ErrorCode::Loop.into());
                }
                if target.starts_with('/') {
                    real = String::from("/");
                }
                rest.extend(target.split('/').rev().map(str::to_owned));
            }
        }
    }
    Ok(real)
}

/// Whether a granted directory has this path.
fn is_granted(path: &str) -> bool {
    GRANTED.with(|roots| roots.iter().any(|root| path::below(path, &root.path).is_some()))
}

/// Whether a granted directory is below this path. The path is then a directory that exists but is not visible.
fn leads_to_granted(path: &str) -> bool {
    GRANTED.with(|roots| roots.iter().any(|root| path::below(&root.path, path).is_some()))
}

/// An open file.
pub struct File {
    descriptor: Descriptor,
    /// The metadata at the time of opening; none for a new file.
    pub stat: Option<FileStat>,
}

/// Opens a file for reading. Pipes and sockets are refused, because opening them would block.
///
/// # Errors
/// When the file does not exist, is not granted, or cannot be read.
pub fn open(path: &str) -> Result<File> {
    let stat = stat(path, true)?;
    match stat.kind {
        Kind::Directory => return Err(ErrorCode::IsDirectory.into()),
        Kind::Regular | Kind::Character | Kind::Block => {}
        _ => return Err(Error::Other("not a file that can be read")),
    }
    let open = |dir: &Descriptor, rest: &str| {
        dir.open_at(PathFlags::SYMLINK_FOLLOW, rest, OpenFlags::empty(), DescriptorFlags::READ)
    };
    Ok(File { descriptor: at(path, false, open)?, stat: Some(stat) })
}

/// Opens a file for writing; makes it or truncates it.
///
/// # Errors
/// When the file is not granted for writing, or its directory does not exist.
pub fn create(path: &str) -> Result<File> {
    let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE;
    let open =
        |dir: &Descriptor, rest: &str| dir.open_at(PathFlags::SYMLINK_FOLLOW, rest, flags, DescriptorFlags::WRITE);
    Ok(File { descriptor: at(path, true, open)?, stat: None })
}

/// Opens a file for writing at its end, and makes it if it is missing. Also returns its size. Where others write the same file at the
/// same time, the crate `brine-appending` loses nothing of theirs.
///
/// # Errors
/// As [`create`].
pub fn append(path: &str) -> Result<(File, u64)> {
    let open = |dir: &Descriptor, rest: &str| {
        dir.open_at(PathFlags::SYMLINK_FOLLOW, rest, OpenFlags::CREATE, DescriptorFlags::WRITE)
    };
    let descriptor = at(path, true, open)?;
    let stat = stat(path, true)?;
    let size = stat.size;
    Ok((File { descriptor, stat: Some(stat) }, size))
}

impl File {
    /// Reads up to `len` bytes at `offset`; returns no bytes at the end.
    ///
    /// # Errors
    /// When reading fails.
    pub fn read_at(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        Ok(self.descriptor.read(len.min(CHUNK), offset)?.0)
    }

    /// Writes all bytes at `offset`.
    ///
    /// # Errors
    /// When writing fails or a limit is reached.
    pub fn write_at(&self, mut offset: u64, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let part = &bytes[..bytes.len().min(CHUNK as usize)];
            let written = self.descriptor.write(part, offset)?;
            if written == 0 {
                return Err(ErrorCode::Io.into());
            }
            offset += written;
            bytes = bytes.get(written as usize..).unwrap_or_default();
        }
        Ok(())
    }

    /// Passes the content in parts to `each` until that returns false.
    ///
    /// # Errors
    /// When reading fails.
    pub fn each(&self, mut each: impl FnMut(&[u8]) -> bool) -> Result<()> {
        let mut offset = 0;
        loop {
            let part = self.read_at(offset, CHUNK)?;
            if part.is_empty() || !each(&part) {
                return Ok(());
            }
            offset += part.len() as u64;
        }
    }
}

/// Reads a file of at most `max` bytes.
///
/// # Errors
/// One line, when the file cannot be read or is larger.
pub fn read(path: &str, max: usize) -> core::result::Result<Vec<u8>, String> {
    let file = open(path).map_err(|error| error.at(path))?;
    let mut content = Vec::new();
    file.each(|part| {
        content.extend_from_slice(part);
        content.len() <= max
    })
    .map_err(|error| error.at(path))?;
    if content.len() > max { Err(format!("'{path}' is larger than {max} bytes")) } else { Ok(content) }
}

/// The names and kinds of a directory's entries, in the file system's order. Names that are not text are left out.
///
/// # Errors
/// When the directory cannot be read.
pub fn read_dir(path: &str) -> Result<Vec<(String, Kind)>> {
    let flags = DescriptorFlags::READ;
    let open = |dir: &Descriptor, rest: &str| dir.open_at(PathFlags::SYMLINK_FOLLOW, rest, OpenFlags::DIRECTORY, flags);
    let stream = at(path, false, open)?.read_directory()?;
    let mut entries = Vec::new();
    let mut unreadable = 0;
    loop {
        match stream.read_directory_entry() {
            Ok(Some(entry)) => entries.push((entry.name, kind(entry.type_))),
            Ok(None) => return Ok(entries),
            Err(ErrorCode::IllegalByteSequence) if unreadable < MAX_UNREADABLE => unreadable += 1,
            Err(code) => return Err(code.into()),
        }
    }
}

fn kind(ty: DescriptorType) -> Kind {
    match ty {
        DescriptorType::Unknown => Kind::Unknown,
        DescriptorType::BlockDevice => Kind::Block,
        DescriptorType::CharacterDevice => Kind::Character,
        DescriptorType::Directory => Kind::Directory,
        DescriptorType::Fifo => Kind::Fifo,
        DescriptorType::SymbolicLink => Kind::Symlink,
        DescriptorType::RegularFile => Kind::Regular,
        DescriptorType::Socket => Kind::Socket,
    }
}

/// Makes a directory.
///
/// # Errors
/// When the directory exists or is not granted for writing.
pub fn create_dir(path: &str) -> Result<()> {
    at(path, true, |dir, rest| dir.create_directory_at(rest))
}

/// Makes a directory and its missing parents.
///
/// # Errors
/// When the path is a file or is not granted for writing.
pub fn create_dir_all(path: &str) -> Result<()> {
    match stat(path, true) {
        Ok(stat) if stat.kind == Kind::Directory => return Ok(()),
        Ok(_) => return Err(ErrorCode::Exist.into()),
        // The directory exists but is not visible.
        Err(_) if leads_to_granted(path) => return Ok(()),
        Err(Error::NotFound) => {}
        Err(error) => return Err(error),
    }
    if path != "/" {
        create_dir_all(path::dirname(path))?;
    }
    create_dir(path)
}

/// Removes a file or a link.
///
/// # Errors
/// When the file does not exist or is not granted for writing.
pub fn remove_file(path: &str) -> Result<()> {
    at(path, true, |dir, rest| dir.unlink_file_at(rest))
}

/// Removes an empty directory.
///
/// # Errors
/// When the directory does not exist, is not empty, or is not granted for writing.
pub fn remove_dir(path: &str) -> Result<()> {
    at(path, true, |dir, rest| dir.remove_directory_at(rest))
}

/// Renames a file within its directory: the last part of the path becomes `name`. An existing file with that name is
/// replaced.
///
/// # Errors
/// When the file does not exist or is not granted for writing.
pub fn rename(path: &str, name: &str) -> Result<()> {
    at(path, true, |dir, rest| dir.rename_at(rest, dir, &path::join(path::dirname(rest), name)))
}
