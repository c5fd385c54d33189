//! Receipts beside the returns: written in the return's transaction, with what is odd about their chain.

use std::sync::{Arc, OnceLock};

use brine_protocol::ids::{Jid, MinionId};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::error::StoreError;
use super::store::JobStore;

/// Time that missing receipts have to arrive, ms. Returns overtake each other: a minion that was away sends them with pauses of up to a
/// minute.
const GAP_MS: i64 = 600_000;
/// Bound on the chains of one minion: each new key of receipts and each reinstallation begins one, and a hostile minion may begin them
/// at will.
const CHAINS_MAX: i64 = 64;
/// Bound on the rows beside a receipt that are looked at. An honest minion has three, and some more if it sent one twice.
const BESIDE_MAX: u32 = 16;
/// Bound on the rows of one query.
pub(crate) const PAGE: u32 = 1_000;

/// A receipt whose signature holds, to be stored with its return.
#[derive(Debug, Clone)]
pub struct NewReceipt {
    /// The public half of the key that signed it.
    pub key: [u8; 32],
    /// Which chain of that key, see [`brine_receipts::ChainId::to_bytes`].
    pub chain: Vec<u8>,
    /// Whether all receipts of the chain come to this master, so that a gap is odd.
    pub whole: bool,
    /// Its number.
    pub number: i64,
    /// Its hash.
    pub hash: [u8; 32],
    /// The hash of the one before.
    pub previous: Option<[u8; 32]>,
    /// The compact encoding.
    pub compact: Vec<u8>,
    /// The RSA key's word for the key.
    pub vouch: Vec<u8>,
    /// The RSA key, PEM.
    pub pem: String,
    /// What is odd about it and its return.
    pub odd: Option<String>,
    /// Set by the store: what is odd about the chain.
    pub found: Arc<OnceLock<Found>>,
}

/// What a new receipt shows about its chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// Whether the minion signed two continuations.
    pub fork: bool,
    /// The first and the last number of receipts that have been missing for [`GAP_MS`].
    pub gap: Option<(i64, i64)>,
    /// The minion has [`CHAINS_MAX`] chains with receipts: this one would begin one more and is not stored.
    pub full: bool,
}

/// A stored receipt.
#[derive(Debug, Clone)]
pub struct StoredReceipt {
    /// Its row, for the next page.
    pub row: i64,
    /// The job.
    pub jid: String,
    /// The minion.
    pub minion: String,
    /// The compact encoding.
    pub compact: Vec<u8>,
    /// The RSA key's word for the key.
    pub vouch: Vec<u8>,
    /// The RSA key, PEM.
    pub pem: String,
    /// What was odd when it came.
    pub odd: Option<String>,
}

/// The chain of a minion as the table has it.
struct ChainRow {
    id: i64,
    number: i64,
    hash: [u8; 32],
    missing: Option<i64>,
    since: i64,
}

/// Stores a receipt and sets what it shows.
pub(super) fn write(
    transaction: &Transaction<'_>,
    (jid, minion, at_ms): (&Jid, &MinionId, i64),
    new: &NewReceipt,
) -> rusqlite::Result<()> {
    let select =
        "select id, number, hash, missing, since from receipt_chains where minion = ?1 and key = ?2 and master = ?3";
    let read = |row: &Row<'_>| {
        Ok(ChainRow {
            id: row.get(0)?,
            number: row.get(1)?,
            hash: row.get(2)?,
            missing: row.get(3)?,
            since: row.get(4)?,
        })
    };
    let of = params![minion.as_str(), new.key, new.chain];
    let chain = transaction.prepare_cached(select)?.query_row(of, read).optional()?;
    let mut found = Found::default();
    let chain = match chain {
        Some(chain) => chain,
        None if !may_begin(transaction, minion)? => {
            let _ = new.found.set(Found { full: true, ..Found::default() });
            return Ok(());
        }
        None => {
            transaction
                .prepare_cached(
                    "insert into receipt_chains (minion, key, master, vouch, pem, number, hash, missing, since)
                     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, null, 0)",
                )?
                .execute(params![minion.as_str(), new.key, new.chain, new.vouch, new.pem, new.number, new.hash])?;
            // What came before is not known here, as for a new master's store.
            let id = transaction.last_insert_rowid();
            ChainRow { id, number: new.number, hash: new.hash, missing: None, since: 0 }
        }
    };
    found.fork = forks(transaction, &chain, new)?;
    let odd = new.odd.clone().or_else(|| found.fork.then(|| "fork".to_owned()));
    transaction
        .prepare_cached(
            "insert into receipts (chain, number, jid, minion, hash, previous, odd, compact) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            chain.id,
            new.number,
            jid.as_str(),
            minion.as_str(),
            new.hash,
            new.previous,
            odd,
            new.compact
        ])?;
    let (mut missing, mut since) = (chain.missing, chain.since);
    if new.whole && new.number > chain.number + 1 && missing.is_none() {
        (missing, since) = (Some(chain.number + 1), at_ms);
    }
    if let Some(first) = missing.filter(|_| at_ms - since > GAP_MS) {
        found.gap = gap(transaction, chain.id, first)?;
        (missing, since) = (found.gap.map(|(_, last)| last + 1), at_ms);
    }
    let (number, hash) = if new.number > chain.number { (new.number, new.hash) } else { (chain.number, chain.hash) };
    transaction
        .prepare_cached("update receipt_chains set number = ?2, hash = ?3, missing = ?4, since = ?5 where id = ?1")?
        .execute(params![chain.id, number, hash, missing, since])?;
    let _ = new.found.set(found);
    Ok(())
}

/// Whether this minion may have one more chain. Chains without receipts make room; one with receipts is evidence, which a minion that was
/// taken over must not push out.
fn may_begin(transaction: &Transaction<'_>, minion: &MinionId) -> rusqlite::Result<bool> {
    let mut count = transaction.prepare_cached("select count(*) from receipt_chains where minion = ?1")?;
    let mut full = || count.query_row([minion.as_str()], |row| row.get(0)).map(|chains: i64| chains >= CHAINS_MAX);
    if !full()? {
        return Ok(true);
    }
    transaction
        .prepare_cached(
            "delete from receipt_chains where minion = ?1
             and not exists (select 1 from receipts where receipts.chain = receipt_chains.id)",
        )?
        .execute([minion.as_str()])?;
    Ok(!full()?)
}

/// Whether a receipt contradicts one that is known: it has the same number, or one of the two does not follow from the other.
fn forks(transaction: &Transaction<'_>, chain: &ChainRow, new: &NewReceipt) -> rusqlite::Result<bool> {
    if (new.number == chain.number && new.hash != chain.hash)
        || (new.number == chain.number + 1 && new.previous != Some(chain.hash))
        || (new.number <= 1) != new.previous.is_none()
    {
        return Ok(true);
    }
    let mut beside = transaction.prepare_cached(
        "select number, hash, previous from receipts where chain = ?1 and number between ?2 and ?3 limit ?4",
    )?;
    let range = params![chain.id, new.number.saturating_sub(1), new.number.saturating_add(1), BESIDE_MAX];
    let rows = beside.query_map(range, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    for (nth, row) in rows.enumerate() {
        if nth + 1 == BESIDE_MAX as usize {
            return Ok(true);
        }
        let (number, hash, previous): (i64, [u8; 32], Option<[u8; 32]>) = row?;
        let holds = match number.cmp(&new.number) {
            std::cmp::Ordering::Less => new.previous == Some(hash),
            std::cmp::Ordering::Equal => new.hash == hash,
            std::cmp::Ordering::Greater => previous == Some(new.hash),
        };
        if !holds {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first run of numbers from `first` on that is missing.
fn gap(transaction: &Transaction<'_>, chain: i64, first: i64) -> rusqlite::Result<Option<(i64, i64)>> {
    let mut before = transaction.prepare_cached(
        "select number + 1, (select min(number) from receipts after where after.chain = ?1 and after.number > one.number) - 1
         from receipts one where chain = ?1 and number >= ?2 - 1
         and not exists (select 1 from receipts next where next.chain = ?1 and next.number = one.number + 1)
         order by number limit 1",
    )?;
    let found =
        before.query_row(params![chain, first], |row| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?))).optional()?;
    Ok(found.and_then(|(from, to)| Some((from, to?))))
}

/// Deletes up to `most` receipts of a job. Returns the number of deleted rows.
pub(super) fn forget_job(transaction: &Transaction<'_>, jid: &str, most: u32) -> rusqlite::Result<u32> {
    let deleted = transaction
        .prepare_cached("delete from receipts where rowid in (select rowid from receipts where jid = ?1 limit ?2)")?
        .execute((jid, most))?;
    Ok(u32::try_from(deleted).unwrap_or(most))
}

/// Deletes the receipt of the return in this row.
pub(super) fn forget_return(transaction: &Transaction<'_>, row: i64) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "delete from receipts where (jid, minion) = (select jid, minion from returns where rowid = ?1)",
        )?
        .execute([row])
}

const COLUMNS: &str = "receipts.rowid, jid, receipts.minion, compact, vouch, pem, odd
                       from receipts join receipt_chains on receipt_chains.id = receipts.chain";

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredReceipt> {
    Ok(StoredReceipt {
        row: row.get(0)?,
        jid: row.get(1)?,
        minion: row.get(2)?,
        compact: row.get(3)?,
        vouch: row.get(4)?,
        pem: row.get(5)?,
        odd: row.get(6)?,
    })
}

fn select(connection: &Connection, rest: &str, given: impl rusqlite::Params) -> rusqlite::Result<Vec<StoredReceipt>> {
    connection.prepare_cached(&format!("select {COLUMNS} {rest}"))?.query_map(given, stored)?.collect()
}

impl JobStore {
    /// Returns the receipts of a job, by minion.
    ///
    /// # Errors
    /// If the lookup failed, or the store is closed.
    pub(crate) async fn receipts_of(&self, jid: &Jid) -> Result<Vec<StoredReceipt>, StoreError> {
        let jid = jid.to_string();
        self.read(move |connection| {
            select(connection, "where jid = ?1 order by receipts.minion limit ?2", params![jid, 100_000])
        })
        .await
    }

    /// Returns a page of the receipts of one minion, or of all, after this row.
    ///
    /// # Errors
    /// If the lookup failed, or the store is closed.
    pub(crate) async fn receipts_after(
        &self,
        minion: Option<&MinionId>,
        row: i64,
    ) -> Result<Vec<StoredReceipt>, StoreError> {
        let minion = minion.map(ToString::to_string);
        self.read(move |connection| {
            let rest =
                "where receipts.rowid > ?1 and (?2 is null or receipts.minion = ?2) order by receipts.rowid limit ?3";
            select(connection, rest, params![row, minion, PAGE])
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::{Added, JobStore, NewReturn, StoredJob};

    fn receipt(number: i64, hash: u8, previous: Option<u8>) -> NewReceipt {
        NewReceipt {
            key: [1; 32],
            chain: vec![2; 32],
            whole: true,
            number,
            hash: [hash; 32],
            previous: previous.map(|byte| [byte; 32]),
            compact: vec![0; 600],
            vouch: vec![3; 256],
            pem: "pem".to_owned(),
            odd: None,
            found: Arc::new(OnceLock::new()),
        }
    }

    /// Stores a return with this receipt that came at this second, and returns what it shows.
    async fn add(store: &JobStore, second: i64, receipt: NewReceipt) -> Found {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let found = Arc::clone(&receipt.found);
        let new = NewReturn {
            jid: Jid::new(format!("202611201347402{next:05}")).unwrap(),
            minion: MinionId::new("m1").unwrap(),
            fun: "test.ping".to_owned(),
            at_ms: second * 1000,
            retcode: 0,
            success: true,
            load: vec![0xc0],
            receipt: Some(Box::new(receipt)),
        };
        assert_eq!(store.add_return(new).await.unwrap(), Added::New);
        *found.get().unwrap()
    }

    #[tokio::test]
    async fn a_minion_cannot_begin_chains_without_end() {
        let (_dir, store) = open();
        let of_key = |byte| NewReceipt { key: [byte; 32], ..receipt(1, byte, None) };
        for byte in 1..=64 {
            assert_eq!(add(&store, 1, of_key(byte)).await, Found::default(), "{byte}");
        }
        assert!(add(&store, 1, of_key(65)).await.full);
        let stored = store.receipts_after(None, i64::MIN).await.unwrap();
        assert_eq!(stored.len(), 64, "none of the others made room");
        let known = NewReceipt { key: [64; 32], ..receipt(2, 70, Some(64)) };
        assert_eq!(add(&store, 2, known).await, Found::default(), "a chain that is known goes on");
    }

    #[tokio::test]
    async fn one_receipt_for_many_jobs_costs_no_more_than_for_some() {
        let (_dir, store) = open();
        let mut found = Vec::new();
        for _ in 0..20 {
            found.push(add(&store, 1, receipt(1, 1, None)).await.fork);
        }
        assert_eq!(found.iter().position(|fork| *fork), Some(BESIDE_MAX as usize), "{found:?}");
    }

    fn open() -> (tempfile::TempDir, JobStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        (dir, store)
    }

    #[tokio::test]
    async fn returns_that_overtake_each_other_are_in_order() {
        let (_dir, store) = open();
        for (number, hash, previous) in
            [(3, 3, Some(2)), (5, 5, Some(4)), (1, 1, None), (4, 4, Some(3)), (2, 2, Some(1))]
        {
            assert_eq!(add(&store, 1, receipt(number, hash, previous)).await, Found::default(), "{number}");
        }
        assert_eq!(add(&store, 2_000, receipt(6, 6, Some(5))).await, Found::default(), "all came in time");
        assert_eq!(store.receipts_after(None, i64::MIN).await.unwrap().len(), 6);
    }

    #[tokio::test]
    async fn a_gap_is_told_once_when_its_time_is_over() {
        let (_dir, store) = open();
        add(&store, 0, receipt(1, 1, None)).await;
        assert_eq!(add(&store, 1, receipt(4, 4, Some(3))).await.gap, None);
        assert_eq!(add(&store, 599, receipt(5, 5, Some(4))).await.gap, None);
        assert_eq!(add(&store, 602, receipt(6, 6, Some(5))).await.gap, Some((2, 3)));
        assert_eq!(add(&store, 9_000, receipt(7, 7, Some(6))).await.gap, None);
    }

    #[tokio::test]
    async fn a_chain_of_returns_that_may_be_lost_has_no_gaps() {
        let (_dir, store) = open();
        let direct = |number, hash, previous| NewReceipt { whole: false, ..receipt(number, hash, previous) };
        add(&store, 0, direct(1, 1, None)).await;
        add(&store, 1, direct(4, 4, Some(3))).await;
        assert_eq!(add(&store, 9_000, direct(5, 5, Some(4))).await, Found::default());
        assert!(add(&store, 9_001, direct(5, 6, Some(4))).await.fork, "forks it has");
    }

    #[tokio::test]
    async fn a_second_continuation_is_a_fork() {
        let (_dir, store) = open();
        for (number, hash, previous, fork) in [
            (1, 1, None, false),
            (2, 2, Some(1), false),
            (3, 3, Some(2), false),
            (2, 9, Some(1), true),
            (4, 4, Some(8), true),
            (6, 6, Some(5), false),
            (5, 7, Some(4), true),
            (0, 8, Some(4), true),
        ] {
            assert_eq!(add(&store, 1, receipt(number, hash, previous)).await.fork, fork, "{number} {hash}");
        }
        let odd = store.receipts_after(None, i64::MIN).await.unwrap().iter().filter(|one| one.odd.is_some()).count();
        assert_eq!(odd, 4);
    }

    /// Each of these is seen by one of the checks alone.
    #[tokio::test]
    async fn each_place_beside_a_receipt_is_looked_at() {
        for (known, (number, hash, previous)) in [
            // It does not follow from the one before, which is not the last.
            (vec![(1, 1, None), (3, 3, Some(2))], (2, 2, Some(9))),
            // Its place is taken, and the one behind it has not come.
            (vec![(1, 1, None), (2, 2, Some(1)), (4, 4, Some(3))], (2, 9, Some(1))),
            // The one behind it does not follow.
            (vec![(1, 1, None), (3, 3, Some(9))], (2, 2, Some(1))),
            // The first has none before it, and only the first.
            (vec![], (1, 1, Some(7))),
            (vec![], (3, 3, None)),
        ] {
            let (_dir, store) = open();
            for (number, hash, previous) in known {
                assert_eq!(add(&store, 1, receipt(number, hash, previous)).await, Found::default());
            }
            assert!(add(&store, 1, receipt(number, hash, previous)).await.fork, "{number} {hash} {previous:?}");
        }
    }

    /// The chain remembers its end when all its receipts are deleted.
    #[tokio::test]
    async fn the_end_of_a_chain_outlives_its_receipts() {
        for (number, hash, previous, fork) in
            [(3, 9, Some(2), true), (4, 4, Some(9), true), (4, 4, Some(3), false), (5, 5, Some(9), false)]
        {
            let (_dir, store) = open();
            // The last one that came is not the last of the chain.
            for (number, hash, previous) in [(1, 1, None), (3, 3, Some(2)), (2, 2, Some(1))] {
                add(&store, 1, receipt(number, hash, previous)).await;
            }
            store.clean(50_000).await.unwrap();
            assert_eq!(store.receipts_after(None, i64::MIN).await.unwrap().len(), 0);
            assert_eq!(add(&store, 100, receipt(number, hash, previous)).await.fork, fork, "{number} {hash}");
        }
    }

    #[tokio::test]
    async fn a_later_gap_does_not_begin_the_time_of_the_first_again() {
        let (_dir, store) = open();
        add(&store, 0, receipt(1, 1, None)).await;
        add(&store, 1, receipt(3, 3, Some(2))).await;
        assert_eq!(add(&store, 500, receipt(6, 6, Some(5))).await.gap, None);
        assert_eq!(add(&store, 602, receipt(7, 7, Some(6))).await.gap, Some((2, 2)));
    }

    #[tokio::test]
    async fn chains_without_receipts_make_room_for_new_ones() {
        let (_dir, store) = open();
        let of_key = |byte| NewReceipt { key: [byte; 32], ..receipt(1, byte, None) };
        for byte in 1..=64 {
            add(&store, 1, of_key(byte)).await;
        }
        store.clean(50_000).await.unwrap();
        assert_eq!(add(&store, 100, of_key(65)).await, Found::default());
    }

    #[tokio::test]
    async fn receipts_go_with_their_job() {
        let (_dir, store) = open();
        let jid = Jid::new("20261120134740299999").unwrap();
        let of_job = |receipt: NewReceipt, minion: &str| NewReturn {
            jid: jid.clone(),
            minion: MinionId::new(minion).unwrap(),
            fun: "test.ping".to_owned(),
            at_ms: 90_000,
            retcode: 0,
            success: true,
            load: vec![0xc0],
            receipt: Some(Box::new(receipt)),
        };
        let job = StoredJob {
            jid: jid.clone(),
            fun: "test.ping".to_owned(),
            user: "root".to_owned(),
            tgt: "*".to_owned(),
            tgt_type: "glob".to_owned(),
            started_ms: 1_000,
            minions: ["m1", "m2"].map(|id| MinionId::new(id).unwrap()).to_vec(),
            load: vec![0x80],
        };
        store.add_job(job).await.unwrap();
        for minion in ["m1", "m2"] {
            assert_eq!(store.add_return(of_job(receipt(1, 1, None), minion)).await.unwrap(), Added::New);
        }
        assert_eq!(store.receipts_of(&jid).await.unwrap().len(), 2);
        // The job is older than its returns.
        store.clean(50_000).await.unwrap();
        assert_eq!(store.receipts_after(None, i64::MIN).await.unwrap().len(), 0);
    }

    #[tokio::test]
    async fn receipts_go_with_their_returns() {
        let (_dir, store) = open();
        add(&store, 1, receipt(1, 1, None)).await;
        add(&store, 100, receipt(2, 2, Some(1))).await;
        store.clean(50_000).await.unwrap();
        assert_eq!(store.receipts_after(None, i64::MIN).await.unwrap().len(), 1);
        assert!(add(&store, 101, receipt(3, 3, Some(9))).await.fork, "the end of the chain is known");
    }
}
