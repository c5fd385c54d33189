use brine_protocol::ids::MinionId;

use super::super::record::Record;
use super::super::returner::Returner;
use super::*;

fn jid(text: &str) -> Jid {
    Jid::try_from(text).unwrap()
}

fn id(text: &str) -> MinionId {
    MinionId::try_from(text).unwrap()
}

fn job(jid_text: &str, started_ms: i64, minions: &[&str]) -> StoredJob {
    StoredJob {
        jid: jid(jid_text),
        fun: "test.ping".to_owned(),
        user: "root".to_owned(),
        tgt: "*".to_owned(),
        tgt_type: "glob".to_owned(),
        started_ms,
        minions: minions.iter().map(|m| id(m)).collect(),
        load: vec![0x80],
    }
}

fn ret(jid_text: &str, minion: &str, at_ms: i64) -> NewReturn {
    NewReturn {
        receipt: None,
        jid: jid(jid_text),
        minion: id(minion),
        fun: "test.ping".to_owned(),
        at_ms,
        retcode: 0,
        success: true,
        load: vec![0xc3],
    }
}

const A: &str = "20261120134740245008";
const B: &str = "20261120134740245009";

#[tokio::test]
async fn a_return_is_kept_once_and_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = JobStore::open(&path).unwrap();
    store.add_job(job(A, 1_000, &["a", "b"])).await.unwrap();
    assert_eq!(store.add_return(ret(A, "a", 1_500)).await.unwrap(), Added::New);
    let second = NewReturn { load: vec![0xc2], ..ret(A, "a", 1_600) };
    assert_eq!(store.add_return(second).await.unwrap(), Added::Duplicate);
    store.close().await;
    let store = JobStore::open(&path).unwrap();
    let returns = store.returns(&jid(A)).await.unwrap();
    assert_eq!(returns.len(), 1);
    assert_eq!(returns[0].load, vec![0xc3]);
    assert_eq!(store.job(&jid(A)).await.unwrap().unwrap().minions, vec![id("a"), id("b")]);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn one_jid_published_again_gains_minions() {
    let dir = tempfile::tempdir().unwrap();
    let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
    store.add_job(job(A, 1_000, &["b"])).await.unwrap();
    store.add_job(job(A, 2_000, &["a", "b"])).await.unwrap();
    let found = store.job(&jid(A)).await.unwrap().unwrap();
    assert_eq!((found.minions, found.started_ms), (vec![id("a"), id("b")], 1_000));
}

#[tokio::test]
async fn clean_up_goes_by_age() {
    let dir = tempfile::tempdir().unwrap();
    let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
    store.add_job(job(A, 1_000, &["a"])).await.unwrap();
    store.add_job(job(B, 9_000, &["a"])).await.unwrap();
    store.add_return(ret(A, "a", 1_100)).await.unwrap();
    store.add_return(ret(B, "a", 4_000)).await.unwrap();
    assert_eq!(store.clean(5_000).await.unwrap(), 1);
    assert!(store.job(&jid(A)).await.unwrap().is_none());
    assert!(store.returns(&jid(A)).await.unwrap().is_empty());
    assert_eq!(store.returns(&jid(B)).await.unwrap().len(), 1, "it belongs to a job that stays");
}

#[tokio::test]
async fn many_writers_share_commits() {
    let dir = tempfile::tempdir().unwrap();
    let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..500 {
        let store = store.clone();
        tasks.spawn(async move { store.add_return(ret(A, &format!("m{n}"), n)).await.unwrap() });
    }
    assert!(tasks.join_all().await.into_iter().all(|added| added == Added::New));
    assert_eq!(store.returns(&jid(A)).await.unwrap().len(), 500);
}

/// Opens a store with room for 40 pages.
fn small(path: &std::path::Path) -> JobStore {
    let writer = schema::open_writer(path).unwrap();
    let pages: i64 = writer.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    writer.query_row(&format!("pragma max_page_count = {}", pages + 40), [], |_| Ok(())).unwrap();
    JobStore::with(path.into(), writer, Counts::default()).unwrap()
}

/// A record that does not fit is an error that names the file, leaves nothing behind, and the store works again when
/// there is space.
#[tokio::test]
async fn a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(&dir.path().join("jobs.db"));
    store.add_job(job(A, 1_000, &["old"])).await.unwrap();
    store.add_return(NewReturn { load: vec![0xc3; 100_000], ..ret(A, "old", 1_000) }).await.unwrap();

    // Large returns that do not fit, and small ones that may fit, in arbitrary batches.
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..64_i64 {
        let store = store.clone();
        let load = if n % 2 == 0 { vec![0xc3; 200_000] } else { vec![0xc3] };
        let new = NewReturn { load, ..ret(B, &format!("m{n:02}"), 9_000 + n) };
        tasks.spawn(async move { (new.minion.clone(), store.add_return(new).await) });
    }
    let mut told = Vec::new();
    for (minion, added) in tasks.join_all().await {
        match added {
            Ok(added) => {
                assert_eq!(added, Added::New);
                told.push(minion);
            }
            Err(error) => {
                let error = error.to_string();
                assert!(
                    error.contains("jobs.db failed: database or disk is full: ")
                        && error.contains(" free. Make room there"),
                    "{error}"
                );
            }
        }
    }
    assert!(told.len() <= 32, "no large one fits");
    told.sort();
    let stored: Vec<_> = store.returns(&jid(B)).await.unwrap().into_iter().map(|ret| ret.minion).collect();
    assert_eq!(stored, told, "in the store is exactly what was acknowledged");

    store.clean(5_000).await.unwrap();
    let large = NewReturn { load: vec![0xc3; 60_000], ..ret(B, "late", 9_900) };
    assert_eq!(store.add_return(large).await.unwrap(), Added::New);
    assert!(store.add_return(ret(B, "m01", 9_901)).await.is_ok());
}

/// A client can look a return up when it gets the event, which is before the sync. A failed return has no event.
#[tokio::test]
async fn a_return_is_told_of_when_it_can_be_looked_up() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(&dir.path().join("jobs.db"));
    for (at, expected) in [(1_000, Added::New), (2_000, Added::Duplicate)] {
        let mut adding = store.begin_return(ret(A, "a", at), Destination::default()).await.unwrap();
        assert_eq!(adding.stored().await, Some(expected));
        assert_eq!(store.returns(&jid(A)).await.unwrap().len(), 1);
        assert_eq!(adding.synced().await.unwrap(), expected);
    }
    let large = NewReturn { load: vec![0xc3; 400_000], ..ret(B, "a", 3_000) };
    let mut adding = store.begin_return(large, Destination::default()).await.unwrap();
    assert_eq!(adding.stored().await, None);
    assert!(adding.synced().await.is_err());
    assert!(store.returns(&jid(B)).await.unwrap().is_empty());
}

/// A job goes to its minions when it can be looked up, which is before the sync. One that could not be written goes to none.
#[tokio::test]
async fn a_job_is_told_of_when_it_can_be_looked_up() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(&dir.path().join("jobs.db"));
    let mut adding = store.begin_job(job(A, 1_000, &["a"]), Destination::default()).await.unwrap();
    assert_eq!(adding.stored().await, Some(()));
    assert!(store.job(&jid(A)).await.unwrap().is_some());
    adding.synced().await.unwrap();
    let large = StoredJob { load: vec![0xc3; 400_000], ..job(B, 2_000, &["a"]) };
    let mut adding = store.begin_job(large, Destination::default()).await.unwrap();
    assert_eq!(adding.stored().await, None);
    assert!(adding.synced().await.is_err());
    assert!(store.job(&jid(B)).await.unwrap().is_none());
}

#[test]
fn another_programs_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    Connection::open(&path).unwrap().execute_batch("create table t (x); pragma user_version = 7;").unwrap();
    let error = JobStore::open(&path).err().unwrap().to_string();
    assert!(error.contains("another program"), "{error}");
}

/// A store of an older version gets the missing tables and keeps its records.
#[tokio::test]
async fn version_1_is_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = JobStore::open(&path).unwrap();
    store.add_return(ret(A, "a", 1_000)).await.unwrap();
    store.close().await;
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("drop table outbox; drop index jobs_by_fun; drop table receipts; drop table receipt_chains; pragma user_version = 1;").unwrap();
    drop(connection);
    let store = JobStore::open(&path).unwrap();
    assert_eq!(store.returns(&jid(A)).await.unwrap().len(), 1);
    let to = Destination { not_kept: false, also: vec![postgres()] };
    store.put_return(ret(A, "b", 1_000), to).await.unwrap();
    assert_eq!(store.waiting(&postgres()).await.unwrap().len(), 1);
}

fn postgres() -> ReturnerName {
    ReturnerName::parse("postgres").unwrap()
}

/// Records for other returners are on the same disk by the same commit, in order, once, bounded, and removed when
/// delivered.
#[tokio::test]
async fn the_outbox() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let other = ReturnerName::parse("other.pgjsonb").unwrap();
    let writer = schema::open_writer(&path).unwrap();
    let store = JobStore::with(path.as_path().into(), writer, Counts::bounded(3)).unwrap();
    let to =
        |also: &[&ReturnerName]| Destination { not_kept: false, also: also.iter().map(|n| (*n).clone()).collect() };
    store.put_job(job(A, 1_000, &["a"]), to(&[&postgres()])).await.unwrap();
    store.put_return(ret(A, "a", 1_500), to(&[&postgres(), &other])).await.unwrap();
    assert_eq!(store.put_return(ret(A, "a", 1_600), to(&[&postgres()])).await.unwrap(), Added::Duplicate);
    store.add_return(ret(A, "b", 1_700)).await.unwrap();
    let unkept = Destination { not_kept: true, also: vec![postgres()] };
    store.put_return(ret(A, "c", 1_800), unkept).await.unwrap();
    assert_eq!(store.returns(&jid(A)).await.unwrap().len(), 2, "c is for the other one only");
    // The fourth is one too many for postgres, but not for this store.
    store.put_return(ret(A, "d", 1_900), to(&[&postgres(), &other])).await.unwrap();
    store.close().await;

    let store = JobStore::open(&path).unwrap();
    assert_eq!(store.counts().of("postgres").rows, 3, "it is still there after a restart");
    let waiting = store.waiting(&postgres()).await.unwrap();
    let told: Vec<String> = waiting
        .iter()
        .map(|waiting| match waiting.record.as_ref().unwrap() {
            Record::Job(job) => format!("job {}", job.minions.iter().map(MinionId::as_str).collect::<String>()),
            Record::Return(new) => new.minion.to_string(),
        })
        .collect();
    assert_eq!(told, ["job a", "a", "c"]);
    store.settled(&postgres(), waiting.iter().map(|w| w.id).take(2).collect()).await.unwrap();
    assert_eq!(store.waiting(&postgres()).await.unwrap().len(), 1);
    assert_eq!(store.waiting(&other).await.unwrap().len(), 2);

    // A record that waits longer than jobs are kept is lost, and counted.
    store.clean(1_850).await.unwrap();
    let of = |name: &str| store.counts().of(name);
    assert_eq!((of("postgres").rows, of("postgres").lost, of("postgres").bytes), (0, 1, 0));
    assert_eq!((of("other.pgjsonb").rows, of("other.pgjsonb").lost), (1, 1));
}

#[tokio::test]
async fn a_full_outbox_counts_what_it_loses() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let writer = schema::open_writer(&path).unwrap();
    let store = JobStore::with(path.as_path().into(), writer, Counts::bounded(5)).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..20 {
        let (store, to) = (store.clone(), Destination { not_kept: false, also: vec![postgres()] });
        tasks.spawn(async move { store.put_return(ret(A, &format!("m{n}"), n), to).await.unwrap() });
    }
    assert!(tasks.join_all().await.into_iter().all(|added| added == Added::New));
    let count = store.counts().of("postgres");
    assert_eq!((count.rows, count.lost), (5, 15));
    assert_eq!(store.waiting(&postgres()).await.unwrap().len(), 5);
}

/// A clean-up of many steps: old records are deleted, others write and read meanwhile, and the file shrinks.
#[tokio::test]
async fn a_large_clean_up_holds_up_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = JobStore::open(&path).unwrap();
    // One old job with more returns than a step deletes, many small ones, returns without a job, and two returns that
    // stay.
    let mut old = vec![job(A, 1_000, &[])];
    let mut returns: Vec<NewReturn> = (0..1_700).map(|n| ret(A, &format!("m{n}"), 1_000 + n)).collect();
    for n in 0..900 {
        let jid = format!("202611201347402{n:05}");
        old.push(job(&jid, 2_000 + n, &["a"]));
        returns.push(NewReturn { load: vec![0xc3; 9_000], ..ret(&jid, "a", 60_000) });
    }
    returns.extend((0..1_200).map(|n| ret("20261120134740900000", &format!("m{n}"), 3_000 + n)));
    old.push(job(B, 50_000, &["a"]));
    returns.push(ret(B, "a", 2_500));
    let records = old.into_iter().map(Record::Job).chain(returns.into_iter().map(Record::Return)).collect();
    Returner::save(&store, records).await.unwrap();
    let size = || std::fs::metadata(&path).unwrap().len();

    let cleaning = {
        let store = store.clone();
        tokio::spawn(async move { store.clean(10_000).await })
    };
    // Written between the steps of the clean-up.
    let mut between = 0;
    while !cleaning.is_finished() {
        store.add_return(ret(B, &format!("x{between}"), 60_000 + between)).await.unwrap();
        between += 1;
    }
    assert_eq!(cleaning.await.unwrap().unwrap(), 901);
    assert!(between > 3, "{between}");
    let left = store.find(JobFilter::default()).await.unwrap();
    assert_eq!(left.into_iter().map(|job| job.jid).collect::<Vec<_>>(), [jid(B)]);
    let rows: i64 = store.read(|c| c.query_row("select count(*) from returns", [], |row| row.get(0))).await.unwrap();
    assert_eq!(rows, between + 1);
    store.close().await;
    assert!(size() < 6 << 20, "{} bytes are left", size());
}

/// With a log that is cut or ends in garbage, all returns acknowledged before that point are there, and the file is
/// intact.
#[tokio::test]
async fn a_torn_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = JobStore::open(&path).unwrap();
    let log = dir.path().join("jobs.db-wal");
    // The length of the log at each acknowledgement.
    let mut acknowledged = Vec::new();
    for n in 0..40 {
        store.add_return(NewReturn { load: vec![0xc3; 700 * n], ..ret(A, &format!("m{n:02}"), 1_000) }).await.unwrap();
        acknowledged.push(std::fs::metadata(&log).unwrap().len());
    }
    let (main, log) = (std::fs::read(&path).unwrap(), std::fs::read(&log).unwrap());
    assert_eq!(log.len() as u64, acknowledged[39]);
    let check = async |name: String, log: &[u8], at_least: usize| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.db");
        std::fs::write(&path, &main).unwrap();
        std::fs::write(dir.path().join("jobs.db-wal"), log).unwrap();
        let store = JobStore::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let sound = store.read(|c| c.pragma_query_value(None, "integrity_check", |row| row.get::<_, String>(0))).await;
        assert_eq!(sound.unwrap(), "ok", "{name}");
        let found: Vec<_> = store.returns(&jid(A)).await.unwrap().into_iter().map(|ret| ret.minion).collect();
        let expect: Vec<_> = (0..found.len()).map(|n| id(&format!("m{n:02}"))).collect();
        assert_eq!(found, expect, "{name}: those that were acknowledged first");
        assert!(found.len() >= at_least, "{name}: {} of {at_least}", found.len());
        assert_eq!(store.add_return(ret(B, "a", 1_000)).await.unwrap(), Added::New, "{name}");
    };
    let before = |bytes: usize| acknowledged.iter().filter(|length| **length <= bytes as u64).count();
    for part in 0..24 {
        let bytes = log.len() * part / 24 + part * 37 % 4_096;
        let bytes = bytes.min(log.len());
        check(format!("cut at {bytes}"), &log[..bytes], before(bytes)).await;
        // As after a crash of the machine: the length is right, the content is zeros.
        let mut torn = log.clone();
        torn[bytes..].fill(0);
        check(format!("zeros from {bytes}"), &torn, before(bytes)).await;
    }
    check("whole".to_owned(), &log, 40).await;
    let garbage: Vec<u8> = (0..20_000_u32).map(|n| ((n * n) >> 3) as u8).collect();
    check("garbage behind it".to_owned(), &[log.as_slice(), &garbage].concat(), 40).await;
}

/// The settings on which acknowledgements depend, together with [`super::super::log`].
#[test]
fn a_commit_is_whole_or_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let writer = schema::open_writer(&dir.path().join("jobs.db")).unwrap();
    let of =
        |pragma: &str| writer.pragma_query_value(None, pragma, |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
    // NORMAL; the log does the syncs.
    assert_eq!(of("synchronous"), rusqlite::types::Value::Integer(1));
    assert_eq!(of("journal_mode"), rusqlite::types::Value::Text("wal".to_owned()));
}

/// Every query uses an index.
#[tokio::test]
async fn nothing_is_searched_from_end_to_end() {
    let dir = tempfile::tempdir().unwrap();
    let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
    let minion = Some(id("a"));
    let fun = Some("test.ping".to_owned());
    let since_ms = Some(5);
    for filter in [
        JobFilter::default(),
        JobFilter { since_ms, ..JobFilter::default() },
        JobFilter { fun: fun.clone(), ..JobFilter::default() },
        JobFilter { fun: fun.clone(), since_ms, ..JobFilter::default() },
        JobFilter { minion: minion.clone(), ..JobFilter::default() },
        JobFilter { minion, fun, since_ms, limit: Some(1), ..JobFilter::default() },
    ] {
        let shown = format!("{filter:?}");
        let plan = store.read(move |c| query::find_plan(c, &filter)).await.unwrap();
        let index =
            plan.iter().any(|step| step.contains("USING INDEX jobs_by_") || step.contains("USING COVERING INDEX"));
        assert!(index && !plan.iter().any(|step| step.contains("TEMP B-TREE")), "{shown}: {plan:?}");
    }
}
