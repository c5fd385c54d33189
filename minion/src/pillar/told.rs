//! What the master was told of the modules last. A minion that starts again tells that again while its modules are not all
//! verified yet, so that neither the start waits for them nor the master is asked for the same pillar twice.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use brine_protocol::files::write_atomic;
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{Value, ValueExt as _, map};
use sha2::{Digest as _, Sha256};
use tracing::warn;

/// Largest summary of the modules in bytes that is sent; the master refuses larger ones too.
const SUMMARY_BYTES_MAX: usize = 128 << 10;
/// Held updates in a summary of which only the least is sent.
const HELD_MAX: usize = 32;
/// What is left out of a summary that is too large, little by little: keys of modules, and keys of held updates. A module's author chooses
/// how many functions it has, and must not hide by it that an update is held.
const LEFT_OUT: [(&[&str], &[&str]); 2] =
    [(&[], &["functions"]), (&["has", "missing", "asks", "signed_by"], &["functions", "permissions", "lines"])];
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

/// Packs as much of a summary as can be sent.
fn fitting(summary: &Value) -> Option<(Cow<'_, Value>, Vec<u8>)> {
    if let Some(packed) = pack(summary) {
        return Some((Cow::Borrowed(summary), packed));
    }
    let less = LEFT_OUT.iter().map(|(of_modules, of_held)| {
        map([("modules", without(summary, "modules", of_modules)), ("held", without(summary, "held", of_held))])
    });
    let least = || {
        let mut held = without(summary, "held", LEFT_OUT[1].1);
        if let Value::Array(held) = &mut held {
            held.truncate(HELD_MAX);
        }
        map([("modules", Value::Array(Vec::new())), ("held", held)])
    };
    less.chain(std::iter::once_with(least)).find_map(|less| pack(&less).map(|packed| (Cow::Owned(less), packed)))
}

/// A list of a summary, whose dicts are without these keys.
fn without(summary: &Value, list: &str, keys: &[&str]) -> Value {
    let mut all = summary.get_list(list).unwrap_or_default().to_vec();
    for one in &mut all {
        keys.iter().for_each(|key| drop(one.remove(key)));
    }
    Value::Array(all)
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
            Some(now) => fitting(&now).map(|(said, _)| said.into_owned()),
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
        last.told && fitting(now).is_some_and(|(_, packed)| last.hash != Some(hash(&packed)))
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
    use brine_protocol::value::list;

    use super::*;

    #[test]
    fn what_a_module_says_of_itself_hides_no_held_update() {
        let held = |functions: usize, permissions: usize| {
            map([
                ("name", Value::from("deploy")),
                ("functions", map([("added", list((0..functions).map(|_| "f".repeat(1_000))))])),
                ("permissions", map([("added", list((0..permissions).map(|_| "p".repeat(1_000))))])),
            ])
        };
        let summary = |module: usize, held: Vec<Value>| {
            let module = map([("name", Value::from("deploy")), ("has", Value::from("h".repeat(module)))]);
            map([("modules", list([module])), ("held", Value::Array(held))])
        };
        let keys = |summary: &Value| {
            let (said, packed) = fitting(summary).unwrap();
            assert!(packed.len() <= SUMMARY_BYTES_MAX);
            let of = |list: &str| -> Vec<String> {
                let one = said.get_list(list).unwrap().first();
                let entries = one.and_then(|one| one.entries()).unwrap_or_default();
                entries.iter().filter_map(|(key, _)| Some(key.as_str()?.to_owned())).collect()
            };
            (of("modules").join(" "), of("held").join(" "), said.get_list("held").unwrap().len())
        };
        let says = |modules: &str, held: &str, count: usize| (modules.to_owned(), held.to_owned(), count);
        assert_eq!(keys(&summary(10, vec![held(1, 1)])), says("name has", "name functions permissions", 1));
        assert_eq!(keys(&summary(10, vec![held(1_000, 1)])), says("name has", "name permissions", 1));
        assert_eq!(keys(&summary(200_000, vec![held(1_000, 200)])), says("name", "name", 1));
        let many = vec![map([("name", "deploy")]); 20_000];
        assert_eq!(keys(&summary(10, many)), says("", "name", HELD_MAX));
    }

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
        // Of one that is too large as much is sent as can be.
        let large = map([("modules", "x".repeat(SUMMARY_BYTES_MAX))]);
        let least = map([("modules", list::<Value>([])), ("held", list::<Value>([]))]);
        assert!(again.next(Some(large.clone())) == Some(least.clone()) && again.is_news(&large));
        again.tell(Some(least)).await;
        assert!(!again.is_news(&large));
        again.tell(Some(one.clone())).await;
        std::fs::write(dir.path().join(FILE), "junk").unwrap();
        assert_eq!(told().next(None), None);
        // `salt-call` keeps nothing.
        let call = Arc::new(Told::default());
        call.tell(Some(one)).await;
        assert_eq!(call.next(None), None);
    }
}
