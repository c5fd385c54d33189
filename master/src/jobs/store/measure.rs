//! Measures a large store:
//! `cargo test --release -p brine-master --lib -- --ignored --nocapture a_million_returns`.

use std::time::{Duration, Instant};

use brine_protocol::ids::MinionId;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map};
use rand::seq::IndexedRandom;

use super::super::record::Record;
use super::super::returner::Returner;
use super::*;

const DAY_MS: i64 = 86_400_000;
/// Minions of a large job.
const FLEET: i64 = 1_000;
/// Days over which the jobs are spread.
const DAYS: i64 = 10;

struct Filled {
    store: JobStore,
    jids: Vec<Jid>,
    now_ms: i64,
    returns: i64,
    large: i64,
    small: i64,
}

/// Fills the store: four fifths of the returns are for jobs of the whole fleet, one fifth for jobs of one minion.
async fn fill(path: &Path, returns: i64) -> Filled {
    let store = JobStore::open(path).unwrap();
    let now_ms = crate::jobs::now_ms();
    let (large, small) = (returns * 4 / 5 / FLEET, returns / 5);
    let minions: Vec<MinionId> =
        (0..FLEET).map(|n| MinionId::try_from(format!("web{n:04}.example").as_str()).unwrap()).collect();
    let (mut jids, mut batch) = (Vec::new(), Vec::new());
    for n in 0..large + small {
        // Large jobs are spread evenly among the small ones.
        let is_large = large > 0 && n % ((large + small) / large) == 0 && n / ((large + small) / large) < large;
        let at_ms = now_ms - DAYS * DAY_MS + n * DAYS * DAY_MS / (large + small);
        let jid = Jid::at(at_ms).unwrap();
        let jid = Jid::try_from(format!("{}{:03}", &jid.as_str()[..17], n % 1_000).as_str()).unwrap();
        let to =
            if is_large { minions.as_slice() } else { std::slice::from_ref(minions.choose(&mut rand::rng()).unwrap()) };
        let fun = ["test.ping", "grains.items", "state.apply", "cmd.run"][usize::try_from(n % 4).unwrap()];
        let load = map([
            ("jid", Value::from(&jid)),
            ("fun", Value::from(fun)),
            ("arg", Value::Array(vec![Value::from("uptime")])),
            ("tgt", Value::from(if is_large { "*" } else { to[0].as_str() })),
            ("tgt_type", Value::from("glob")),
            ("user", Value::from("root")),
        ]);
        let mut job = StoredJob::from_load(jid.clone(), at_ms, load);
        job.minions = to.to_vec();
        let each = to.iter().map(|minion| {
            let load = map([
                ("jid", Value::from(&jid)),
                ("id", Value::from(minion)),
                ("fun", Value::from(fun)),
                ("fun_args", Value::Array(vec![Value::from("uptime")])),
                (
                    "return",
                    Value::from(format!(
                        "{minion}: {}",
                        " 13:47:40 up 12 days, load average: 0.08, 0.03, 0.01".repeat(3)
                    )),
                ),
                ("retcode", Value::from(0)),
                ("success", Value::from(true)),
            ]);
            Record::Return(NewReturn::from_load(jid.clone(), minion.clone(), at_ms + 900, &load))
        });
        batch.push(Record::Job(job));
        batch.extend(each);
        jids.push(jid);
        if batch.len() > 2_000 {
            Returner::save(&store, std::mem::take(&mut batch)).await.unwrap();
        }
    }
    Returner::save(&store, batch).await.unwrap();
    Filled { store, jids, now_ms, returns: large * FLEET + small, large, small }
}

struct Measured {
    lookup_p50: Duration,
    lookup_p99: Duration,
    list_day: Duration,
    listed: usize,
    clean: Duration,
    slowest_write: Duration,
}

async fn measure(filled: &Filled, lookups: usize) -> Measured {
    let Filled { store, jids, now_ms, .. } = filled;
    // Other returns are written meanwhile, as by a fleet.
    let writing = {
        let (store, now_ms) = (store.clone(), *now_ms);
        tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
            for n in 0_u64.. {
                let jid = Jid::now();
                let load = map([("return", Value::from("x".repeat(200)))]);
                let id = MinionId::try_from(format!("w{}", n % 50).as_str()).unwrap();
                store.add_return(NewReturn::from_load(jid, id, now_ms, &load)).await.unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }))
    };
    let mut took = Vec::new();
    for _ in 0..lookups {
        let jid = jids.choose(&mut rand::rng()).unwrap().clone();
        let start = Instant::now();
        let returns = store.returns(&jid).await.unwrap();
        let values: Vec<Value> = returns.iter().map(JobReturn::load).collect();
        took.push(start.elapsed());
        assert!(matches!(values.len(), 1) || values.len() == usize::try_from(FLEET).unwrap());
        assert!(msgpack::encode_disk(&values[0]).len() > 100);
    }
    took.sort();
    let start = Instant::now();
    let since_ms = Some(now_ms - DAY_MS);
    let listed = store.find(JobFilter { since_ms, ..JobFilter::default() }).await.unwrap();
    let loads = listed.iter().filter(|job| job.load().entries().is_some()).count();
    let list_day = start.elapsed();
    assert_eq!(loads, listed.len());

    // Deletes nine of the ten days while other returns arrive.
    let start = Instant::now();
    let cleaning = {
        let (store, before) = (store.clone(), now_ms - DAY_MS);
        tokio::spawn(async move { store.clean(before).await })
    };
    let (mut slowest_write, mut n) = (Duration::ZERO, 0);
    while !cleaning.is_finished() {
        let one = Instant::now();
        let load = map([("return", Value::from("x"))]);
        let id = MinionId::try_from(format!("c{n}").as_str()).unwrap();
        store.add_return(NewReturn::from_load(jids[jids.len() - 1].clone(), id, *now_ms, &load)).await.unwrap();
        slowest_write = slowest_write.max(one.elapsed());
        n += 1;
    }
    let gone = cleaning.await.unwrap().unwrap();
    drop(writing);
    assert!(gone >= jids.len() * 8 / 10, "{gone} of {}", jids.len());
    let at = |part: usize| took[(took.len() * part / 100).min(took.len() - 1)];
    Measured {
        lookup_p50: at(50),
        lookup_p99: at(99),
        list_day,
        listed: listed.len(),
        clean: start.elapsed(),
        slowest_write,
    }
}

fn megabytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len() >> 20)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_ten_thousand() {
    let dir = tempfile::tempdir().unwrap();
    let filled = fill(&dir.path().join("jobs.db"), 10_000).await;
    let measured = measure(&filled, 100).await;
    // A tenth of the jobs, up to rounding at the ends.
    let expect = usize::try_from((filled.large + filled.small) / DAYS).unwrap();
    assert!(measured.listed.abs_diff(expect) <= 2, "{} of {expect}", measured.listed);
    let left = filled.store.find(JobFilter::default()).await.unwrap().len();
    assert!(left.abs_diff(expect) <= 2, "{left} of {expect}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures: takes minutes, and only a release build shows what it is about"]
async fn a_million_returns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let start = Instant::now();
    let filled = fill(&path, 1_000_000).await;
    let filled_in = start.elapsed();
    let size = megabytes(&path);
    let measured = measure(&filled, 5_000).await;
    filled.store.close().await;
    let memory = std::fs::read_to_string("/proc/self/status").unwrap();
    let memory = memory.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
    println!(
        "{} returns of {} jobs in {filled_in:.0?}, {size} MiB\nlookup_jid: p50 {:?}, p99 {:?}\nlist_jobs of a day: {} jobs in {:?}\n\
         clean-up of nine tenths: {:?}, {} MiB left, slowest return meanwhile {:?}\n{memory}",
        filled.returns,
        filled.large + filled.small,
        measured.lookup_p50,
        measured.lookup_p99,
        measured.listed,
        measured.list_day,
        measured.clean,
        megabytes(&path),
        measured.slowest_write,
    );
    assert!(measured.lookup_p99 <= Duration::from_millis(10));
    assert!(measured.list_day <= Duration::from_secs(1));
    assert!(measured.slowest_write <= Duration::from_secs(1));
}
