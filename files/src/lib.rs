//! Opens files that ought to be regular ones, and may be anything.
//!
//! Opening a FIFO waits until somebody opens its other end, reading a device may never end, and a symbolic link leads wherever its
//! maker wants. A program that works as root in folders that outlive it must neither wait nor follow. So each file of such a folder is
//! opened here: without blocking, and refused unless it is a regular file by what the open descriptor says.
//!
//! - [`open_own`], [`read_own`], [`create_own`]: files that this program and its like keep for themselves (caches, spools, keys of
//!   minions). No link is followed, and the owner has to be this user, root, or the owner of the folder.
//! - [`open_regular`]: those of them that belong to others by design. No link is followed.
//! - [`open_named`], [`read_named`], [`read_named_text`]: files that an operator names (configuration, lists of users). Links are
//!   theirs to make; the caller decides which users may write them.
//! - [`Stamp`]: whether a file is still the one that it was.

mod stamp;

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
pub use stamp::Stamp;

/// Opens a file of our own to read.
///
/// # Errors
/// When it is not there, is no regular file, is a symbolic link, or is another user's.
pub fn open_own(path: &Path) -> io::Result<File> {
    own(path, OpenOptions::new().read(true))
}

/// Reads a file of our own of at most `max` bytes.
///
/// # Errors
/// As [`open_own`], and when it is larger.
pub fn read_own(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read(&open_own(path)?, max)
}

/// Opens a file of our own to read and write; a new one has this mode. Nothing is cut off from one that is there.
///
/// # Errors
/// As [`open_own`].
pub fn create_own(path: &Path, mode: u32) -> io::Result<File> {
    own(path, OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(mode))
}

/// As [`create_own`], to write at the end only.
///
/// # Errors
/// As [`open_own`].
pub fn append_own(path: &Path, mode: u32) -> io::Result<File> {
    own(path, OpenOptions::new().read(true).append(true).create(true).mode(mode))
}

/// Opens a regular file to read, whoever owns it. No link is followed.
///
/// # Errors
/// When it is not there, is no regular file, or is a symbolic link.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true), OFlags::NOFOLLOW).map(|(file, _)| file)
}

/// Opens a file that an operator names. Links are followed.
///
/// # Errors
/// When it is not there or is no regular file.
pub fn open_named(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true), OFlags::empty()).map(|(file, _)| file)
}

/// Reads a file that an operator names, of at most `max` bytes.
///
/// # Errors
/// As [`open_named`], and when it is larger.
pub fn read_named(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read(&open_named(path)?, max)
}

/// As [`read_named`], for a text.
///
/// # Errors
/// As [`read_named`], and when it is no text.
pub fn read_named_text(path: &Path, max: u64) -> io::Result<String> {
    String::from_utf8(read_named(path, max)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8"))
}

/// Reads a file that is open, of at most `max` bytes, also if it grows meanwhile.
///
/// # Errors
/// When it is larger or cannot be read.
pub fn read(file: &File, max: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    if size > max {
        return Err(io::Error::other(format!("it has {size} bytes, more than the {max} that can be")));
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(max.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > max {
        return Err(io::Error::other(format!("it has more than the {max} bytes that can be")));
    }
    Ok(content)
}

fn own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let (file, meta) = open(path, options, OFlags::NOFOLLOW)?;
    let owner = meta.uid();
    let ours = owner == 0 || owner == rustix::process::geteuid().as_raw();
    if !ours && !folder(path).metadata().is_ok_and(|folder| folder.uid() == owner) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "it belongs to the user {owner}, who is neither root nor the owner of its folder nor who runs this"
            ),
        ));
    }
    Ok(file)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn open(path: &Path, options: &mut OpenOptions, more: OFlags) -> io::Result<(File, Metadata)> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | more;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path).map_err(explain)?;
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta)) } else { Err(other_kind(kind(&meta))) }
}

/// Some of what is no regular file does not even open.
fn explain(error: io::Error) -> io::Error {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::LOOP) => io::Error::other("it is a symbolic link, and no symlink is followed here"),
        Some(Errno::ISDIR) => other_kind("a folder"),
        Some(Errno::NXIO | Errno::NODEV) => other_kind("a FIFO, a socket or a device"),
        _ => error,
    }
}

fn other_kind(kind: &str) -> io::Error {
    io::Error::other(format!("it is not a regular file but {kind}"))
}

fn kind(meta: &Metadata) -> &'static str {
    let kind = meta.file_type();
    match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use rustix::fs::{CWD, FileType, Mode};

    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// One of each kind that is no regular file, by its name.
        fn odd(&self) -> [&'static str; 4] {
            let mode = Mode::RUSR | Mode::WUSR;
            rustix::fs::mknodat(CWD, self.path("fifo"), FileType::Fifo, mode, 0).unwrap();
            std::fs::create_dir(self.path("folder")).unwrap();
            drop(std::os::unix::net::UnixListener::bind(self.path("socket")).unwrap());
            symlink("/dev/zero", self.path("device")).unwrap();
            ["fifo", "folder", "socket", "device"]
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once_whoever_opens_it() {
        let (place, began) = (Place::new(), Instant::now());
        for name in place.odd() {
            let path = place.path(name);
            let ways: [(&str, io::Result<()>); 7] = [
                ("open_regular", open_regular(&path).map(drop)),
                ("open_own", open_own(&path).map(drop)),
                ("read_own", read_own(&path, 10).map(drop)),
                ("create_own", create_own(&path, 0o600).map(drop)),
                ("append_own", append_own(&path, 0o600).map(drop)),
                ("open_named", open_named(&path).map(drop)),
                ("read_named_text", read_named_text(&path, 10).map(drop)),
            ];
            for (way, opened) in ways {
                let error = opened.unwrap_err().to_string();
                let said = ["it is not a regular file but a", "it is a symbolic link"];
                assert!(said.iter().any(|said| error.starts_with(said)), "{way} of a {name}: {error}");
            }
        }
        assert!(began.elapsed() < Duration::from_secs(5), "something waited");
    }

    #[test]
    fn a_link_is_followed_only_where_an_operator_names_it() {
        let place = Place::new();
        std::fs::write(place.path("file"), "text").unwrap();
        symlink("file", place.path("link")).unwrap();
        assert_eq!(read_named_text(&place.path("link"), 10).unwrap(), "text");
        for error in [
            read_own(&place.path("link"), 10).map(drop).unwrap_err(),
            create_own(&place.path("link"), 0o600).map(drop).unwrap_err(),
        ] {
            assert!(error.to_string().contains("a symbolic link"), "{error}");
        }
        // A link that leads nowhere makes nothing elsewhere.
        symlink(place.path("elsewhere"), place.path("dangling")).unwrap();
        assert!(create_own(&place.path("dangling"), 0o600).is_err());
        assert!(!place.path("elsewhere").exists());
    }

    #[test]
    fn a_file_is_ours_by_its_owner() {
        let place = Place::new();
        let path = place.path("file");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_own(&path, 10).unwrap(), b"text");
        if !rustix::process::geteuid().is_root() {
            return; // nobody else's file can be made
        }
        chown(&path, Some(12_345), None).unwrap();
        let error = read_own(&path, 10).unwrap_err();
        assert!(error.to_string().contains("the user 12345"), "{error}");
        assert_eq!(read_named(&path, 10).unwrap(), b"text");
        // The folder is theirs: what is in it is theirs to decide.
        chown(place.0.path(), Some(12_345), None).unwrap();
        assert!(read_own(&path, 10).is_ok());
    }

    #[test]
    fn sizes_and_modes_hold() {
        let place = Place::new();
        let path = place.path("new");
        assert_eq!(open_own(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let file = create_own(&path, 0o600).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        std::fs::write(&path, "12345678901").unwrap();
        assert_eq!(create_own(&path, 0o600).unwrap().metadata().unwrap().len(), 11, "nothing is cut off");
        assert!(read_own(&path, 10).unwrap_err().to_string().contains("11 bytes, more than the 10"));
        assert_eq!(read_own(&path, 11).unwrap().len(), 11);
        std::fs::write(&path, [0xff]).unwrap();
        assert!(read_named_text(&path, 11).unwrap_err().to_string().contains("UTF-8"));
    }
}
