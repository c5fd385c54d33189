//! Receipts of this host's jobs: signed, chained, kept, and sent with the returns (`docs/receipts.md`).
//!
//! - `draft.rs` what a job's receipt says, before it has its number
//! - `files.rs` the folder `cachedir/receipts`
//!
//! A return with a receipt is written in this order, under one lock: room for the receipt is reserved on the disk; the receipt gets its
//! number; the return goes into the spool with it; the receipt is appended to the file. So a minion that is killed leaves either both, or
//! a return in the spool whose receipt the next start takes up ([`Receipts::take_up`]), or neither, and then no number was given away.

mod draft;
mod files;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, ValueExt};
use brine_receipts::{Digest, Fingerprint, Head, Record, SigningKey, Vouched};
use tracing::{error, info, warn};

pub use draft::SignedPublication;
pub(crate) use draft::{Draft, hash};
use files::Files;

use crate::pki::{Pki, PkiError};

/// The field of a return.
const FIELD: &str = "receipt";
/// Bound on the chains of a host: one for each master that it ever had.
const MAX_CHAINS: usize = 1024;
/// Time between two syncs. A crash of the machine loses at most the receipts of this time, and only on this host.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Known receipts after which no return before has a new one: more than are written at once.
const KNOWN_IN_A_ROW: usize = 64;

/// Why receipts cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptsError {
    /// The folder cannot be used.
    #[error("the receipts at {path} cannot be {what}: {source}; with `receipts: False` the minion makes none")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] PkiError),
}

/// Makes and keeps the receipts of a minion.
pub struct Receipts {
    minion: String,
    minion_key: Fingerprint,
    key: SigningKey,
    vouch: Vec<u8>,
    state: Mutex<State>,
}

struct State {
    files: Files,
    /// By master; none: the host's own jobs.
    heads: HashMap<Option<Fingerprint>, Head>,
    synced: Instant,
    /// The disk takes no receipts; this was said.
    failing: bool,
}

impl Receipts {
    /// Opens the folder and the key; makes them if they are missing.
    ///
    /// # Errors
    /// When one of them cannot be made, read or trusted.
    pub fn open(dir: &Path, max_bytes: u64, id: &MinionId, pki: &Pki) -> Result<Self, ReceiptsError> {
        let key = pki.receipts_key()?;
        let rsa = pki.key();
        let vouch = Vouched::vouch(id.as_str(), &key.public(), &**rsa).map_err(PkiError::from)?;
        let minion_key = rsa.public().fingerprint().parse().unwrap_or(Fingerprint([0; 32]));
        let fail = |what| move |source| ReceiptsError::Folder { path: dir.to_owned(), what, source };
        let (files, heads) = Files::open(dir, max_bytes, Digest(key.public())).map_err(fail("opened"))?;
        let heads = heads.into_iter().map(|head| (head.master, head)).collect();
        let state = Mutex::new(State { files, heads, synced: Instant::now(), failing: false });
        Ok(Self { minion: id.to_string(), minion_key, key, vouch, state })
    }

    /// Takes up the receipts of spooled returns that the files lack. `newest_first` are the loads of the returns.
    pub fn take_up(&self, newest_first: impl Iterator<Item = Value>) {
        let mut state = self.state();
        let (mut missing, mut known) = (Vec::new(), 0);
        for load in newest_first {
            let Some(receipt) = load.get_text(FIELD).and_then(|text| Vouched::from_text(text).ok()) else { continue };
            let receipt = receipt.receipt;
            let last = state.heads.get(&receipt.receipt().master).map_or(0, |head| head.number);
            if *receipt.key() != self.key.public() {
                continue;
            }
            if receipt.receipt().number > last {
                missing.push(receipt);
                continue;
            }
            known += 1;
            if known == KNOWN_IN_A_ROW {
                break;
            }
        }
        for signed in missing.into_iter().rev() {
            let receipt = signed.receipt();
            let last = state.heads.get(&receipt.master);
            if (receipt.number, receipt.previous) != (last.map_or(1, |h| h.number + 1), last.map(|h| h.hash)) {
                warn!(jid = receipt.jid, "the receipt of a return in the spool does not follow the last one here");
            }
            let head = Head { master: receipt.master, number: receipt.number, hash: signed.hash() };
            let record = Record::Receipt { compact: signed.to_compact(), asked: None };
            info!(jid = receipt.jid, "the receipt of a return in the spool is taken up");
            if !state.has_room() || !state.append(head, &record) {
                error!("a receipt of a return in the spool cannot be kept");
            }
        }
    }

    /// Begins to write one receipt; nobody else writes one meanwhile.
    pub(crate) fn begin(&self) -> Writing<'_> {
        let mut state = self.state();
        let room = state.has_room();
        Writing { of: self, state, room, made: None }
    }

    /// Syncs what was written, unless that was done just before. Blocks on the disk.
    pub(crate) fn sync_now_and_then(&self) {
        let file = {
            let mut state = self.state();
            if state.synced.elapsed() < SYNC_EVERY {
                return;
            }
            state.synced = Instant::now();
            state.files.handle()
        };
        if let Err(e) = file.and_then(|file| file.sync_data()) {
            warn!("the receipts are not synced: {e}");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Reserves room for one more receipt. Says when the disk begins and ends to refuse.
    fn has_room(&mut self) -> bool {
        let heads: Vec<Head> = self.heads.values().copied().collect();
        match (self.files.reserve(&heads), self.failing) {
            (Ok(()), failing) => {
                if failing {
                    warn!("receipts are made again");
                }
                self.failing = false;
                true
            }
            (Err(e), failing) => {
                if !failing {
                    error!("no receipt can be kept, so returns are sent without one: {e}");
                }
                self.failing = true;
                false
            }
        }
    }

    fn append(&mut self, head: Head, record: &Record) -> bool {
        let appended = self.files.append(&record.to_bytes());
        if let Err(e) = &appended {
            error!("a receipt cannot be kept: {e}");
        }
        self.heads.insert(head.master, head);
        appended.is_ok()
    }
}

/// One receipt that is being written.
pub(crate) struct Writing<'a> {
    of: &'a Receipts,
    state: MutexGuard<'a, State>,
    room: bool,
    made: Option<(Head, Record)>,
}

impl Writing<'_> {
    /// Puts the receipt of a job into its return. The return does not change afterwards, unless it is sealed again.
    pub(crate) fn seal(&mut self, draft: &Draft, load: &mut Value) {
        let _ = load.remove(FIELD);
        let of = self.of;
        let last = self.state.heads.get(&draft.master).copied();
        if !self.room || (last.is_none() && self.state.heads.len() >= MAX_CHAINS) {
            return;
        }
        let signed = of.key.sign(draft.receipt(&of.minion, of.minion_key, last, load));
        let head = Head { master: draft.master, number: signed.receipt().number, hash: signed.hash() };
        let record = Record::Receipt { compact: signed.to_compact(), asked: draft.asked() };
        let vouched = Vouched { receipt: signed, vouch: of.vouch.clone() };
        load.insert(FIELD, vouched.to_text());
        self.made = Some((head, record));
    }

    /// Keeps the receipt: its return is in the spool or about to be sent.
    pub(crate) fn commit(mut self) {
        if let Some((head, record)) = self.made.take() {
            self.state.append(head, &record);
        }
    }
}

#[cfg(test)]
mod tests;
