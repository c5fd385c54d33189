//! A file of this host as a reader: the minion reads it for the module, a piece at a time.

use std::io::{Error, Read, Result, Seek, SeekFrom};

use brine_guest::changes;

/// Bytes of one request.
const PIECE: u32 = 1 << 20;

/// A file that is read at a place of its own.
pub(crate) struct HostFile {
    path: String,
    size: u64,
    place: u64,
    /// The last piece, and where it begins.
    piece: Vec<u8>,
    start: u64,
}

impl HostFile {
    /// # Errors
    /// When there is no such file, or it cannot be read.
    pub(crate) fn open(path: &str) -> brine_guest::Result<Self> {
        match changes::look(path, true)? {
            Some(entry) if entry.kind == changes::Kind::Regular => {
                Ok(Self { path: path.to_owned(), size: entry.size, place: 0, piece: Vec::new(), start: 0 })
            }
            Some(_) => Err(format!("[Errno 21] Is a directory: '{path}'")),
            None => Err(format!("[Errno 2] No such file or directory: '{path}'")),
        }
    }
}

impl Read for HostFile {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let within = |file: &Self| file.place >= file.start && file.place - file.start < file.piece.len() as u64;
        if !within(self) {
            self.piece = changes::read_at(&self.path, self.place, PIECE).map_err(Error::other)?.unwrap_or_default();
            self.start = self.place;
            if self.piece.is_empty() {
                return Ok(0);
            }
        }
        let rest = &self.piece[(self.place - self.start) as usize..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.place += count as u64;
        Ok(count)
    }
}

impl Seek for HostFile {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(offset) => self.size.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.place.checked_add_signed(offset),
        };
        self.place = place.ok_or_else(|| Error::other("a place before the file's start"))?;
        Ok(self.place)
    }
}
