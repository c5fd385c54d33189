use std::sync::LazyLock;

use brine_protocol::value::map;
use brine_receipts::{Chain, Outcome, Receipt, SignedReceipt, Time};

use super::*;

static PKI: LazyLock<(tempfile::TempDir, Pki)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::open(folder.path(), 2048).unwrap();
    (folder, pki)
});

const ROOM: u64 = 16 << 20;

fn open(dir: &Path, max: u64) -> Receipts {
    Receipts::open(dir, max, &MinionId::new("m1").unwrap(), &PKI.1).unwrap()
}

fn draft() -> Draft {
    Draft {
        master: None,
        publication: None,
        jid: "20261120134740245008".to_owned(),
        arguments: hash(&Value::Nil),
        calls: Vec::new(),
        policy: None,
        walls: Vec::new(),
        start: Time::now(),
        end: Time::now(),
        outcome: Outcome::Ran,
    }
}

fn load() -> Value {
    map([("jid", Value::from("20261120134740245008")), ("return", Value::from(true))])
}

/// Makes a receipt and returns its return.
fn make(receipts: &Receipts) -> Value {
    let mut load = load();
    let mut writing = receipts.begin();
    writing.seal(&draft(), &mut load);
    writing.commit();
    load
}

fn read(load: &Value) -> SignedReceipt {
    Vouched::from_text(load.get_text(FIELD).unwrap()).unwrap().receipt
}

/// All receipts in the folder.
fn kept(dir: &Path) -> Vec<SignedReceipt> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|item| item.unwrap().path()).collect();
    files.sort();
    let mut kept = Vec::new();
    for content in files.iter().map(|path| std::fs::read(path).unwrap()) {
        let mut rest = content.as_slice();
        while let Some((record, size)) = Record::read(rest).unwrap() {
            rest = &rest[size..];
            if let Record::Receipt { compact, .. } = record {
                kept.push(SignedReceipt::from_compact(&compact).unwrap());
            }
        }
    }
    kept
}

fn numbers(dir: &Path) -> Vec<u64> {
    kept(dir).iter().map(|signed| signed.receipt().number).collect()
}

fn assert_one_chain(dir: &Path) {
    let mut chain = Chain::default();
    kept(dir).iter().for_each(|signed| chain.add(signed.receipt(), signed.hash()));
    assert_eq!(chain.odd(), []);
}

#[test]
fn receipts_follow_each_other_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    for _ in 0..3 {
        let receipts = open(&dir, ROOM);
        let (one, two) = (read(&make(&receipts)), read(&make(&receipts)));
        assert_eq!(two.receipt().previous, Some(one.hash()));
    }
    assert_eq!(numbers(&dir), [1, 2, 3, 4, 5, 6]);
    assert_one_chain(&dir);
    let last: &Receipt = &kept(&dir)[5].receipt().clone();
    assert_eq!((last.minion.as_str(), last.minion_key.to_string()), ("m1", PKI.1.key().public().fingerprint()));
}

#[test]
fn what_a_kill_left_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, ROOM);
    let first = make(&receipts);
    // The return is in the spool, and the minion is killed before its receipt is in the file.
    let mut spooled = load();
    let mut writing = receipts.begin();
    writing.seal(&draft(), &mut spooled);
    drop(writing);
    drop(receipts);
    let receipts = open(&dir, ROOM);
    receipts.take_up([spooled.clone(), first].into_iter());
    assert_eq!(numbers(&dir), [1, 2]);
    assert_eq!(read(&make(&receipts)).receipt().previous, Some(read(&spooled).hash()));
    drop(receipts);
    // It is killed within the write.
    let file = std::fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    let content = std::fs::read(&file).unwrap();
    std::fs::write(&file, &content[..content.len() - 7]).unwrap();
    let receipts = open(&dir, ROOM);
    make(&receipts);
    assert_eq!(numbers(&dir), [1, 2, 3]);
    assert_one_chain(&dir);
}

#[test]
fn a_number_is_not_given_away_before_its_return_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, ROOM);
    let mut load = load();
    let mut writing = receipts.begin();
    writing.seal(&draft(), &mut load);
    load.insert("return", "shortened");
    writing.seal(&draft(), &mut load);
    writing.commit();
    let again = read(&load);
    assert_eq!(again.receipt().number, 1);
    assert_eq!(
        again.receipt().returned,
        Digest::of(&brine_protocol::msgpack::encode_network(&Value::from("shortened")))
    );
    assert_eq!(numbers(&dir), [1]);
}

#[test]
fn the_oldest_go_and_the_chain_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, 1 << 20);
    for _ in 0..2500 {
        make(&receipts);
    }
    drop(receipts);
    let bytes: u64 = std::fs::read_dir(&dir).unwrap().map(|item| item.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes <= 1 << 20, "{bytes}");
    let numbers = numbers(&dir);
    assert!(numbers[0] > 1 && numbers.last() == Some(&2500), "{:?}", numbers.first());
    assert_one_chain(&dir);
    assert_eq!(read(&make(&open(&dir, 1 << 20))).receipt().number, 2501);
}

/// A manual measure: `cargo test --release -p brine-minion --lib receipts::tests::one_costs -- --ignored --nocapture`.
#[test]
#[ignore = "a measure"]
fn one_costs() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, 64 << 20);
    make(&receipts);
    let begun = Instant::now();
    for _ in 0..10_000 {
        make(&receipts);
    }
    panic!(
        "{:?} a receipt, {} bytes in a return",
        begun.elapsed() / 10_000,
        make(&receipts).get_text(FIELD).unwrap().len()
    );
}
