//! Replayed recordings of the master's publications use nothing that a rotation of the master's key needs.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use brine_protocol::ids::Jid;
use brine_protocol::value::ValueExt as _;
use bytes::Bytes;

use crate::master::{Master, Seen, Verdict, job};
use crate::running::{begin, ready};

/// Publications under several keys that are no longer in use.
fn recorded(master: &Master, number: usize) -> Vec<Bytes> {
    let record = |n| {
        if n % 50 == 0 {
            master.rotate();
        }
        master.seal(&job(&Jid::now(), "test.ping", vec![]))
    };
    let recorded = (0..number).map(record).collect();
    master.rotate();
    recorded
}

fn is_auth(seen: &Seen) -> bool {
    matches!(seen, Seen::Auth(_))
}

fn authentications(seen: &[Seen]) -> usize {
    seen.iter().filter(|seen| is_auth(seen)).count()
}

/// Replays can increase the number of questions to the master up to a bound, but not the delay of a job under a new
/// key.
#[tokio::test(flavor = "multi_thread")]
async fn recordings_of_unknown_keys_delay_no_rotation_and_make_no_storm() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let mut recorded = recorded(&master, 300).into_iter();
    let minion = ready(&mut master, dir.path(), "random_reauth_delay: 0").await;
    master.drain();
    let began = Instant::now();
    // The minion does not know these keys, so each leads to an authentication.
    for _ in 0..3 {
        master.send(vec![recorded.next().unwrap()]);
        master.expect_auth(Verdict::Accept).await;
        // The result is applied, and jobs continue.
        let jid = master.publish("test.ping", vec![]);
        master.expect_return(&jid).await;
    }
    for rest in recorded {
        master.send(vec![rest]);
    }
    let jid = master.publish("test.ping", vec![]);
    let (_, before) = master.expect_return_after(&jid).await;
    assert_eq!(authentications(&before), 0, "three in vain are enough for some seconds");

    master.rotate();
    let rotated = Instant::now();
    let jids: Vec<Jid> = (0..20).map(|_| master.publish("test.ping", vec![])).collect();
    let mut authentications = 3;
    let mut left: Vec<String> = jids.iter().map(ToString::to_string).collect();
    master
        .expect("the jobs under the new key", |seen| {
            authentications += u64::from(is_auth(seen));
            if let Seen::Request { cmd, load } = seen
                && cmd == "_return"
            {
                use brine_protocol::value::ValueExt as _;
                left.retain(|jid| Some(jid.as_str()) != load.get_text("jid"));
            }
            left.is_empty().then_some(())
        })
        .await;
    assert!(rotated.elapsed() < Duration::from_secs(10), "after {:?}", rotated.elapsed());
    // Three at once, then one in four seconds.
    let allowed = 3 + began.elapsed().as_secs() / 4 + 1;
    assert!(authentications <= allowed, "{authentications} in {:?}", began.elapsed());
    minion.end().await.unwrap();
}

/// A publication under an earlier key of this minion is recognised as old.
#[tokio::test(flavor = "multi_thread")]
async fn recordings_of_keys_that_were_known_cost_no_authentication() {
    let (_dir, mut master, minion) = begin("random_reauth_delay: 0").await;
    let mut old = Vec::new();
    for _ in 0..3 {
        old.extend((0..20).map(|_| master.seal(&job(&Jid::now(), "test.ping", vec![]))));
        master.rotate();
        let jid = master.publish("test.ping", vec![]);
        master.expect_return(&jid).await;
    }
    master.drain();
    for round in 0..5 {
        for recording in &old {
            master.send(vec![recording.clone()]);
        }
        let jid = master.publish("test.ping", vec![]);
        let (_, before) = master.expect_return_after(&jid).await;
        assert_eq!(authentications(&before), 0, "in round {round}");
    }
    // A rotation still works at once.
    master.rotate();
    let jid = master.publish("test.ping", vec![]);
    let (_, before) = master.expect_return_after(&jid).await;
    assert_eq!(authentications(&before), 1);
    minion.end().await.unwrap();
}

/// A publication is decided only once, and one question decides on all earlier publications.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_recordings_again_cost_no_authentication() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let recorded = recorded(&master, 300);
    let minion = ready(&mut master, dir.path(), "random_reauth_delay: 0").await;
    master.drain();
    master.send(vec![recorded[0].clone()]);
    master.expect_auth(Verdict::Accept).await;
    for round in 0..300 {
        master.send(vec![recorded[0].clone()]);
        let last = (round == 299).then(|| master.publish("test.ping", vec![]));
        if let Some(jid) = last {
            let (_, before) = master.expect_return_after(&jid).await;
            assert!(authentications(&before) <= 1, "{before:?}");
        }
    }
    minion.end().await.unwrap();
}

/// A master that does not accept the minion is asked again while everything else continues.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_under_the_present_key_do_not_wait_for_an_authentication() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let recorded = recorded(&master, 1);
    let minion = ready(&mut master, dir.path(), "random_reauth_delay: 0").await;
    master.script().verdicts.extend(std::iter::repeat_n(Verdict::Pending, 1_000_000));
    master.send(vec![recorded[0].clone()]);
    master.expect_auth(Verdict::Pending).await;
    for _ in 0..3 {
        let jid = master.publish("test.ping", vec![]);
        master.expect_return(&jid).await;
    }
    // Publications under the new key are held in the meantime and are not lost.
    master.rotate();
    let jids = [master.publish("test.ping", vec![]), master.publish("test.ping", vec![])];
    master.script().verdicts.clear();
    // Jobs run in parallel, so they return in any order.
    let mut left: HashSet<String> = jids.iter().map(ToString::to_string).collect();
    master
        .expect("the returns of both", |seen| {
            if let Seen::Request { cmd, load } = seen
                && cmd == "_return"
            {
                left.remove(load.get_text("jid").unwrap());
            }
            left.is_empty().then_some(())
        })
        .await;
    minion.end().await.unwrap();
}
