//! The pieces of one file, of which several are under way at once.

use brine_protocol::ids::{SafePath, Saltenv};
use brine_protocol::value::{Value, ValueExt};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;

use super::hash::{FileHash, Hasher};
use super::transfer_rate::TransferRate;
use super::{FileClient, FileError, Sink, file_load};

/// Pieces under way at once. Each takes one of the channel's connections. While one is on its way, the master reads and seals the next,
/// and the minion hashes and writes the one before.
const AHEAD: usize = 3;

/// A file that is fetched.
pub(super) struct Pieces<'a> {
    pub(super) client: &'a FileClient,
    pub(super) path: &'a SafePath,
    pub(super) saltenv: &'a Saltenv,
    pub(super) said: &'a FileHash,
    /// The size that the master said. It decides what is asked for and when, never what is taken.
    pub(super) size: Option<u64>,
}

impl Pieces<'_> {
    /// Fetches from the kept part to the end and returns the hash of the whole.
    pub(super) async fn fetch(
        &self,
        (mut hasher, mut at): (Hasher, u64),
        pace: &mut TransferRate,
        sink: &mut dyn Sink,
    ) -> Result<String, FileError> {
        // The master decides how long a piece is, and all but the last are equally long. Until one has come, no other place is known.
        let mut piece = None;
        let mut under_way = FuturesOrdered::new();
        let mut next = at;
        loop {
            if under_way.is_empty() && self.size == Some(at) {
                let whole = hasher.clone().hex();
                if whole == self.said.hex {
                    return Ok(whole);
                }
            }
            if under_way.is_empty() {
                (next, piece) = (at, piece.filter(|_| next == at));
                under_way.push_back(self.ask(next));
                next += piece.unwrap_or(0);
            }
            while let (Some(piece), Some(size)) = (piece, self.size)
                && under_way.len() < AHEAD
                && next < size
            {
                under_way.push_back(self.ask(next));
                next += piece;
            }
            let Some((asked, answer)) = under_way.next().await else { continue };
            let answer = answer?;
            let data = answer.get_bytes("data").ok_or(FileError::Malformed("_serve_file"))?;
            if data.is_empty() {
                let dest = answer.get_bytes("dest").unwrap_or_default();
                if asked == 0 && dest.is_empty() {
                    return Err(FileError::Missing(self.path.clone()));
                }
                return Ok(hasher.hex());
            }
            let length = data.len() as u64;
            at += length;
            if at > self.client.max_file {
                return Err(FileError::TooLarge { path: self.path.clone(), max: self.client.max_file });
            }
            hasher.update(data);
            sink.write(data).map_err(FileError::Keep)?;
            pace.add_piece(data.len()).map_err(|why| FileError::TooSlow { path: self.path.clone(), why })?;
            if piece.is_none() {
                (piece, next) = (Some(length), at);
            } else if piece != Some(length) {
                // The last piece, or a file that changes: what was asked for lies elsewhere.
                under_way.clear();
            }
        }
    }

    async fn ask(&self, at: u64) -> (u64, Result<Value, FileError>) {
        let mut load = file_load("_serve_file", self.path, self.saltenv);
        load.insert("loc", at);
        (at, self.client.request_piece(load).await)
    }
}
