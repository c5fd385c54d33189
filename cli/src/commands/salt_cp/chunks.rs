//! Splits a file into pieces in the form that `cp.recv_chunked` accepts: compressed unless configured otherwise, in
//! base64.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use brine_protocol::exit;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::Failure;

pub(super) struct Chunks {
    file: File,
    path: PathBuf,
    size: u64,
    compress: bool,
    /// Whether no piece was read yet: an empty file has one piece too.
    first: bool,
}

impl Chunks {
    /// Opens a file for reading in pieces of `size` bytes, before packing.
    pub(super) fn open(path: &Path, size: u64, compress: bool) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        Ok(Self { file, path: path.to_owned(), size, compress, first: true })
    }

    /// Reads the next piece; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<String>, Failure> {
        let mut piece = Vec::new();
        let read = (&self.file).take(self.size).read_to_end(&mut piece);
        read.map_err(|error| unreadable(&self.path, &error))?;
        if piece.is_empty() && !self.first {
            return Ok(None);
        }
        self.first = false;
        if self.compress {
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            let written = packed.write_all(&piece).and_then(|()| packed.finish());
            piece = written.map_err(|error| unreadable(&self.path, &error))?;
        }
        Ok(Some(base64::engine::general_purpose::STANDARD.encode(piece)))
    }
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(exit::GENERIC, format!("salt-cp: cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(content: &[u8], size: u64, compress: bool) -> Vec<Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, content).unwrap();
        let mut chunks = Chunks::open(&path, size, compress).unwrap();
        let mut out = Vec::new();
        while let Some(text) = chunks.next().unwrap() {
            let packed = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
            let mut plain = Vec::new();
            match compress {
                true => flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut plain).map(drop).unwrap(),
                false => plain = packed,
            }
            out.push(plain);
        }
        out
    }

    #[test]
    fn each_piece_stands_for_itself() {
        for compress in [true, false] {
            assert_eq!(pieces(b"abcdefg", 3, compress), [&b"abc"[..], b"def", b"g"]);
            assert_eq!(pieces(b"abcdef", 3, compress), [&b"abc"[..], b"def"]);
            assert_eq!(pieces(b"", 3, compress), [b""]);
            assert_eq!(pieces(b"\xff\x00", 9, compress), [b"\xff\x00"]);
        }
    }
}
