//! What the master was told of the modules last. A minion that starts again tells that again while its modules are not all
//! verified yet, so that neither the start waits for them nor the master is asked for the same pillar twice.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use brine_protocol::files::write_atomic;
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::Value;
use sha2::{Digest as _, Sha256};
use tracing::warn;

/// Largest summary of the modules in bytes that is sent; the master refuses larger ones too.
const SUMMARY_BYTES_MAX: usize = 128 << 10;
const LIMITS: Limits = Limits { max_bytes: SUMMARY_BYTES_MAX, max_depth: 16, max_items: 100_000 };
/// The file in the minion's `cachedir`.
const FILE: &str = "modules_told.p";

/// The last summary that the master was told.
#[derive(Default)]
pub(super) struct Told {
    /// Where it is kept; not set for `salt-call`, which tells nothing while modules are not ready.
    path: OnceLock<PathBuf>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    /// Whether this process has told the master anything.
    told: bool,
    hash: Option<[u8; 32]>,
}

fn hash(packed: &[u8]) -> [u8; 32] {
    Sha256::digest(packed).into()
}

/// Packs a summary, if it is not too large to be sent.
fn pack(summary: &Value) -> Option<Vec<u8>> {
    Some(msgpack::encode_disk(summary)).filter(|packed| packed.len() <= SUMMARY_BYTES_MAX)
}

impl Told {
    /// Keeps the last summary in this folder. Called once.
    pub(super) fn keep_in(&self, cachedir: &Path) {
        let _ = self.path.set(cachedir.join(FILE));
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what to tell: the summary now, or the last one while there is none now.
    pub(super) fn next(&self, now: Option<Value>) -> Option<Value> {
        match now {
            Some(now) => pack(&now).map(|_| now),
            None => {
                let content = brine_files::read_own(self.path.get()?, SUMMARY_BYTES_MAX as u64).ok()?;
                msgpack::decode_disk(&content, &LIMITS).ok().filter(|last| matches!(last, Value::Map(_)))
            }
        }
    }

    /// Checks whether the master was told anything since the start.
    pub(super) fn has_told(&self) -> bool {
        self.last().told
    }

    /// Checks whether this summary is another than the master was told. Not before it was told the first time.
    pub(super) fn is_news(&self, now: &Value) -> bool {
        let last = self.last();
        last.told && pack(now).is_some_and(|packed| last.hash != Some(hash(&packed)))
    }

    /// Records what the master was told, and keeps it for the next start.
    pub(super) async fn tell(self: &Arc<Self>, summary: Option<Value>) {
        let packed = summary.as_ref().and_then(pack);
        let (now, before) = {
            let mut last = self.last();
            let now = packed.as_deref().map(hash);
            last.told = true;
            (now, std::mem::replace(&mut last.hash, now))
        };
        if let (true, Some(packed), Some(path)) = (now != before, packed, self.path.get().cloned()) {
            let write = tokio::task::spawn_blocking(move || {
                if brine_files::read_own(&path, SUMMARY_BYTES_MAX as u64).is_ok_and(|kept| kept == packed) {
                    return;
                }
                if let Err(e) = write_atomic(&path, &packed, 0o600) {
                    warn!("what the master was told of the modules cannot be kept in {}: {e}", path.display());
                }
            });
            let _ = write.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::map;

    use super::*;

    #[tokio::test]
    async fn the_last_summary_is_told_again_until_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let told = || {
            let told = Arc::new(Told::default());
            told.keep_in(dir.path());
            told
        };
        let (one, two) = (map([("modules", "one")]), map([("modules", "two")]));
        let first = told();
        assert_eq!(first.next(None), None);
        assert!(!first.is_news(&one), "the connection tells it by itself");
        first.tell(None).await;
        assert!(first.is_news(&one));
        first.tell(first.next(Some(one.clone()))).await;
        assert!(!first.is_news(&one) && first.is_news(&two));

        let again = told();
        assert_eq!(again.next(None), Some(one.clone()));
        again.tell(again.next(None)).await;
        assert!(!again.is_news(&one) && again.is_news(&two));
        // One that is too large is neither sent nor news.
        let large = map([("modules", "x".repeat(SUMMARY_BYTES_MAX))]);
        assert!(again.next(Some(large.clone())).is_none() && !again.is_news(&large));
        std::fs::write(dir.path().join(FILE), "junk").unwrap();
        assert_eq!(told().next(None), None);
        // `salt-call` keeps nothing.
        let call = Arc::new(Told::default());
        call.tell(Some(one)).await;
        assert_eq!(call.next(None), None);
    }
}
