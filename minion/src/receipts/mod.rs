//! Receipts of this host's jobs: signed, chained, kept, and sent with the returns (`docs/receipts.md`).
//!
//! - `draft.rs` what a job's receipt says, before it has its number
//! - `files.rs` the folder `cachedir/receipts`
//! - `read.rs`  what the owner reads of it
//!
//! A return with a receipt is written in this order, under one lock of the folder: room for the receipt is reserved on the disk; the receipt gets its
//! number; the return goes into the spool with it; the receipt is appended to the file. So a minion that is killed leaves either both, or
//! a return in the spool whose receipt the next start takes up ([`Receipts::take_up`]), or neither, and then no number was given away.
//! The daemon keeps the lock for some milliseconds, for the returns that follow ([`Writing::commit_for_now`]).

mod draft;
mod files;
mod read;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::ids::MinionId;
use brine_protocol::keys::PrivateKey;
use brine_protocol::value::{Value, ValueExt};
use brine_receipts::{ChainId, Digest, Fingerprint, Head, Record, Series, SignedReceipt, SigningKey, Vouched};
use tracing::{error, info, warn};

pub(crate) use draft::hash;
pub use draft::{Draft, SignedPublication};
use files::{Files, Heads};
pub(crate) use read::{Page, page, verify};

use crate::config::MinionOpts;
use crate::pki::{Pki, PkiError};

/// The field of a return.
const FIELD: &str = "receipt";
/// Bound on the chains of a host: two for each master that it ever had.
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
    rsa: Arc<PrivateKey>,
    /// The RSA key's word for the key, made when a return needs it first.
    vouch: OnceLock<Vec<u8>>,
    state: Mutex<State>,
}

struct State {
    files: Files,
    heads: Heads,
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
        let fail = |what| move |source| ReceiptsError::Folder { path: dir.to_owned(), what, source };
        let mut files = Files::open(dir, max_bytes).map_err(fail("opened"))?;
        // Within the lock, so that two programs do not make two keys.
        let key = pki.receipts_key()?;
        let heads = files.read(Digest(key.public())).map_err(fail("read"))?;
        files.unlock();
        let rsa = Arc::clone(pki.key());
        let minion_key = rsa.public().fingerprint().parse().unwrap_or(Fingerprint([0; 32]));
        let state = Mutex::new(State { files, heads, synced: Instant::now(), failing: false });
        Ok(Self { minion: id.to_string(), minion_key, key, rsa, vouch: OnceLock::new(), state })
    }

    /// For a call on this host. None where no receipts are made: by the setting, or because the host has no key of a minion that could
    /// vouch for them.
    ///
    /// # Errors
    /// As [`Receipts::open`].
    pub(crate) fn for_call(opts: &MinionOpts) -> Result<Option<Self>, ReceiptsError> {
        let Some(max_bytes) = opts.returns.receipts.filter(|_| opts.pki_dir.join("minion.pem").exists()) else {
            return Ok(None);
        };
        let pki = Pki::open(&opts.pki_dir, opts.auth.keysize)?;
        Self::open(&opts.cachedir.join("receipts"), max_bytes, &opts.id, &pki).map(Some)
    }

    /// Takes up the receipts of spooled returns that the files lack. `newest_first` are the loads of the returns.
    pub fn take_up(&self, newest_first: impl Iterator<Item = Value>) {
        let mut writing = self.begin();
        let (room, state) = (writing.room, &mut *writing.state);
        let (mut missing, mut known) = (Vec::new(), 0);
        for load in newest_first {
            let read = |text: &str| Vouched::from_text(text, self.minion_key).ok();
            let Some(receipt) = load.get_text(FIELD).and_then(read) else { continue };
            let receipt = receipt.receipt;
            let last = state.heads.get(&receipt.receipt().chain()).map_or(0, |head| head.number);
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
            let last = state.heads.get(&receipt.chain());
            if (receipt.number, receipt.previous) != (last.map_or(1, |h| h.number + 1), last.map(|h| h.hash)) {
                warn!(jid = receipt.jid, "the receipt of a return in the spool does not follow the last one here");
            }
            let head = Head::of(receipt, signed.hash());
            let entry = Record::receipt_to_bytes(&signed.to_compact(), None);
            info!(jid = receipt.jid, "the receipt of a return in the spool is taken up");
            if !(room && state.has_room() && state.append(head, &entry)) {
                error!("a receipt of a return in the spool cannot be kept");
            }
        }
    }

    /// Begins to write one receipt; nobody else writes one meanwhile, in this process or another.
    pub(crate) fn begin(&self) -> Writing<'_> {
        let mut state = self.state();
        let room = state.enter();
        Writing { of: self, state, room, made: None, stays_locked: false }
    }

    /// Makes and keeps the receipt of a job whose return nobody gets.
    pub(crate) fn keep(&self, draft: &Draft, load: &Value) {
        let mut writing = self.begin();
        let _ = writing.make(draft, load, Series::Direct);
        writing.commit();
    }

    /// Puts a receipt into a return that is sent without being kept, and keeps the receipt.
    pub fn seal_direct(&self, draft: &Draft, load: &mut Value) {
        let mut writing = self.begin();
        writing.seal(draft, load, Series::Direct);
        writing.commit();
    }

    /// The RSA key's word for the key.
    fn vouch(&self) -> Option<&Vec<u8>> {
        if self.vouch.get().is_none() {
            match Vouched::vouch(&self.minion, &self.key.public(), &*self.rsa) {
                Ok(vouch) => drop(self.vouch.set(vouch)),
                Err(e) => error!("the minion's key does not vouch for the key of receipts: {e}"),
            }
        }
        self.vouch.get()
    }

    /// Lets other processes write, if the folder is locked still, and syncs what was written, unless that was done just before. Blocks on
    /// the disk.
    pub(crate) fn rest(&self) {
        let file = {
            let mut state = self.state();
            state.files.unlock();
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
    /// Locks the folder and reserves room for one receipt. Says when the disk begins and ends to refuse.
    fn enter(&mut self) -> bool {
        let entered = self.files.enter(&mut self.heads);
        self.told(entered)
    }

    /// Reserves room for one more receipt.
    fn has_room(&mut self) -> bool {
        let reserved = self.files.reserve(&self.heads);
        self.told(reserved)
    }

    fn told(&mut self, done: io::Result<()>) -> bool {
        match (done, self.failing) {
            (Ok(()), failing) => {
                if failing {
                    warn!("receipts are made again");
                }
                self.failing = false;
                true
            }
            (Err(e), failing) => {
                if !failing {
                    error!("no receipt can be kept, so jobs go on without one: {e}");
                }
                self.failing = true;
                false
            }
        }
    }

    fn append(&mut self, head: Head, entry: &[u8]) -> bool {
        let appended = self.files.append(entry);
        if let Err(e) = &appended {
            error!("a receipt cannot be kept: {e}");
        }
        self.heads.insert(head.chain(), head);
        appended.is_ok()
    }
}

/// One receipt that is being written.
pub(crate) struct Writing<'a> {
    of: &'a Receipts,
    state: MutexGuard<'a, State>,
    room: bool,
    /// The end of the chain after the receipt, and its entry in the file.
    made: Option<(Head, Vec<u8>)>,
    stays_locked: bool,
}

impl Writing<'_> {
    /// Puts the receipt of a job into its return. The return does not change afterwards, unless it is sealed again.
    pub(crate) fn seal(&mut self, draft: &Draft, load: &mut Value, series: Series) {
        let _ = load.remove(FIELD);
        self.made = None;
        let Some(vouch) = self.of.vouch() else { return };
        if let Some(receipt) = self.make(draft, load, series) {
            load.insert(FIELD, Vouched { receipt, vouch: vouch.clone() }.to_text());
        }
    }

    /// Takes the receipt out of a return that was not kept. Its number is not given away.
    pub(crate) fn unseal(self, load: &mut Value) {
        let _ = load.remove(FIELD);
    }

    /// Makes the receipt of a job with this return; none if there is no room for it.
    fn make(&mut self, draft: &Draft, load: &Value, series: Series) -> Option<SignedReceipt> {
        let of = self.of;
        let last = self.state.heads.get(&ChainId { master: draft.master, series }).copied();
        if !self.room || (last.is_none() && self.state.heads.len() >= MAX_CHAINS) {
            return None;
        }
        let signed = of.key.sign(draft.receipt(&of.minion, of.minion_key, (series, last), load));
        let entry = Record::receipt_to_bytes(&signed.to_compact(), draft.asked());
        self.made = Some((Head::of(signed.receipt(), signed.hash()), entry));
        Some(signed)
    }

    /// Keeps the receipt: its return is in the spool, or about to be sent, or nobody's.
    pub(crate) fn commit(mut self) {
        if let Some((head, entry)) = self.made.take() {
            self.state.append(head, &entry);
        }
    }

    /// As [`Writing::commit`]; the folder stays locked for the receipts that follow at once. [`Receipts::rest`] has to be called soon.
    pub(crate) fn commit_for_now(mut self) {
        self.stays_locked = true;
        self.commit();
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if !self.stays_locked {
            self.state.files.unlock();
        }
    }
}

#[cfg(test)]
mod tests;
