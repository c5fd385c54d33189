//! The pieces of one file, of which several are under way at once.

use std::collections::VecDeque;
use std::sync::OnceLock;

use brine_fileserver::{LENGTH, SIZE};
use brine_protocol::ids::{SafePath, Saltenv};
use brine_protocol::value::{Value, ValueExt};
use tokio_util::task::AbortOnDropHandle;

use super::flow::Measured;
use super::hash::{FileHash, Hasher};
use super::transfer_rate::TransferRate;
use super::{FileClient, FileError, Sink, file_load};
use crate::joined::joined;

/// Pieces under way at once. Each takes one of the channel's connections. While one is on its way, the master reads and seals the next,
/// and the minion hashes and writes the one before.
pub(super) const AHEAD: usize = 3;

/// A piece that was asked for. It comes and is decrypted in a task of its own, while the one before is hashed and written.
struct Asked {
    length: u64,
    answer: AbortOnDropHandle<Result<Value, FileError>>,
}

/// A file that is fetched.
pub(super) struct Pieces<'a> {
    pub(super) client: &'a FileClient,
    pub(super) path: &'a SafePath,
    pub(super) saltenv: &'a Saltenv,
    /// The hash that the master said; none if it has not yet.
    pub(super) said: Option<&'a FileHash>,
    /// The size that the master said, once it has. It decides what is asked for and when, and what is too large, never what is taken.
    pub(super) size: &'a OnceLock<u64>,
}

impl Pieces<'_> {
    /// Fetches from the kept part to the end and returns the hash of the whole.
    pub(super) async fn fetch(
        &self,
        (mut hasher, mut at): (Hasher, u64),
        pace: &mut TransferRate,
        sink: &mut dyn Sink,
    ) -> Result<String, FileError> {
        let mut measured = Measured::begin(self.client.flow());
        // A master of Salt's decides how long a piece is, and all but the last are equally long. Until one has come, no other place is
        // known. A Brine master sends what is asked for.
        let mut fixed = None;
        let mut is_known = false;
        let mut under_way: VecDeque<Asked> = VecDeque::new();
        let mut next = at;
        loop {
            if under_way.is_empty() {
                if self.size() == Some(at) {
                    let whole = hasher.clone().hex();
                    // Without the hash, whoever gets it compares.
                    if self.said.is_none_or(|said| whole == said.hex) {
                        return Ok(whole);
                    }
                }
                next = at;
                measured.asked_first();
            }
            while under_way.is_empty()
                || (is_known && under_way.len() < AHEAD && self.size().is_some_and(|size| next < size))
            {
                let piece = fixed.unwrap_or_else(|| measured.flow.piece());
                let left = self.size().and_then(|size| size.checked_sub(next)).filter(|left| *left > 0);
                let length = piece.min(left.unwrap_or(piece));
                under_way.push_back(self.ask(next, length));
                next += length;
            }
            let Some(Asked { length, answer }) = under_way.pop_front() else { continue };
            let answer = joined(answer).await.ok_or(FileError::Malformed("_serve_file"))??;
            let data = answer.get_bytes("data").ok_or(FileError::Malformed("_serve_file"))?;
            if data.is_empty() {
                let dest = answer.get_bytes("dest").unwrap_or_default();
                if at == 0 && dest.is_empty() {
                    return Err(FileError::Missing(self.path.clone()));
                }
                return Ok(hasher.hex());
            }
            let came = data.len() as u64;
            at += came;
            if let Some(size) = answer.get_u64(SIZE) {
                let _ = self.size.set(size); // what was said with the hash counts
            }
            if at.max(self.size().unwrap_or(0)) > self.client.max_file {
                return Err(FileError::TooLarge { path: self.path.clone(), max: self.client.max_file });
            }
            measured.came(came);
            if answer.get_u64(LENGTH).is_none() {
                fixed = fixed.or(Some(came));
            }
            is_known = true;
            if came != length {
                // The last piece, a master with its own length, or a file that changes: what was asked for lies elsewhere.
                under_way.clear();
                next = at;
            }
            hasher.update(data);
            sink.write(data).map_err(FileError::Keep)?;
            pace.add_piece(data.len()).map_err(|why| FileError::TooSlow { path: self.path.clone(), why })?;
            self.client.set_flow(measured.flow);
        }
    }

    fn size(&self) -> Option<u64> {
        self.size.get().copied()
    }

    fn ask(&self, at: u64, length: u64) -> Asked {
        let mut load = file_load("_serve_file", self.path, self.saltenv);
        load.insert("loc", at);
        load.insert(LENGTH, length);
        let client = self.client.clone();
        let answer = tokio::spawn(async move { client.request_piece(load).await });
        Asked { length, answer: AbortOnDropHandle::new(answer) }
    }
}
