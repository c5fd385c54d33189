//! Reads and hashes the content of files.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_lc_rs::digest::{Context, SHA256};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::failure::Failure;
use super::place::{Place, kind};

/// Upper bound on the bytes of a file that is written or hashed: twice the size of the largest file that comes from a
/// master.
pub(super) const MAX_CONTENT: u64 = 1 << 30;
/// Bytes of one read.
const PIECE: usize = 256 << 10;

/// Opens a regular file to read, without following a link and without waiting.
pub(super) fn open(place: &Place) -> Result<File, Failure> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let expect = place.stat()?.ok_or(Errno::NOENT)?;
    match kind(&expect) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(Errno::ISDIR.into()),
        _ => return Err(Failure::Other("it is neither a file nor a directory".to_owned())),
    }
    let file = rustix::fs::openat(&place.dir, place.name.as_str(), flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    // It was judged by device and inode, so it has to be that one.
    if (stat.st_dev, stat.st_ino) != (expect.st_dev, expect.st_ino) || kind(&stat) != FileType::RegularFile {
        return Err(Failure::Other("it was exchanged while it was opened".to_owned()));
    }
    Ok(File::from(file))
}

/// Passes the content to `each`, from the beginning. Stops when the job is over.
pub(super) fn each(
    file: &File,
    over: &AtomicBool,
    mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut buffer = vec![0; PIECE];
    let mut offset = 0;
    loop {
        if over.load(Ordering::Relaxed) {
            return Err(Failure::Other("the job has ended".to_owned()));
        }
        let read = match file.read_at(&mut buffer, offset) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        if read == 0 {
            return Ok(offset);
        }
        offset += read as u64;
        if offset > MAX_CONTENT {
            return Err(Failure::Other(format!("it has more than {MAX_CONTENT} bytes")));
        }
        each(&buffer[..read])?;
    }
}

/// The SHA-256 of a file, in hex.
pub(super) fn hash(file: &File, over: &AtomicBool) -> Result<String, Failure> {
    let mut hash = Context::new(&SHA256);
    each(file, over, |bytes| {
        hash.update(bytes);
        Ok(())
    })?;
    Ok(hex::encode(hash.finish()))
}

pub(super) fn part(file: &File, offset: u64, length: u32) -> Result<Vec<u8>, Failure> {
    let length = usize::try_from(length).unwrap_or(0);
    let mut data = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut data[filled..], offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    data.truncate(filled);
    Ok(data)
}
