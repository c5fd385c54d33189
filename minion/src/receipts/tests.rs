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
    writing.seal(&draft(), &mut load, Series::Spooled);
    writing.commit();
    load
}

fn read(load: &Value) -> SignedReceipt {
    Vouched::from_text(load.get_text(FIELD).unwrap(), minion_key()).unwrap().receipt
}

fn minion_key() -> Fingerprint {
    PKI.1.key().public().fingerprint().parse().unwrap()
}

/// All receipts in the folder.
fn kept(dir: &Path) -> Vec<SignedReceipt> {
    let files = brine_receipts::files(dir).unwrap();
    let mut kept = Vec::new();
    for content in files.iter().map(|(_, path)| std::fs::read(path).unwrap()) {
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
    writing.seal(&draft(), &mut spooled, Series::Spooled);
    drop(writing);
    drop(receipts);
    let receipts = open(&dir, ROOM);
    receipts.take_up([spooled.clone(), first].into_iter());
    assert_eq!(numbers(&dir), [1, 2]);
    assert_eq!(read(&make(&receipts)).receipt().previous, Some(read(&spooled).hash()));
    drop(receipts);
    // It is killed within the write.
    let (_, file) = brine_receipts::files(&dir).unwrap().remove(0);
    let content = std::fs::read(&file).unwrap();
    std::fs::write(&file, &content[..content.len() - 7]).unwrap();
    let receipts = open(&dir, ROOM);
    make(&receipts);
    assert_eq!(numbers(&dir), [1, 2, 3]);
    assert_one_chain(&dir);
}

/// Jobs of two masters end at once: what is missing may be older than what is known.
#[test]
fn a_missing_receipt_behind_a_known_one_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, ROOM);
    let of_master = Draft { master: Some(Fingerprint([5; 32])), ..draft() };
    let mut missing = load();
    let mut writing = receipts.begin();
    writing.seal(&of_master, &mut missing, Series::Spooled);
    drop(writing);
    let known = make(&receipts);
    drop(receipts);
    open(&dir, ROOM).take_up([known, missing].into_iter());
    assert_eq!(kept(&dir).iter().map(|one| one.receipt().master).collect::<Vec<_>>(), [None, of_master.master]);
}

/// The owner replaced the keys: the chain of the new one begins, whatever the files have of the old one.
#[test]
fn another_key_begins_its_own_chain() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    make(&open(&dir, ROOM));
    let other = Pki::open(&folder.path().join("pki"), 2048).unwrap();
    let receipts = Receipts::open(&dir, ROOM, &MinionId::new("m1").unwrap(), &other).unwrap();
    let mut load = load();
    receipts.seal_direct(&Draft { master: None, ..draft() }, &mut load);
    let mut writing = receipts.begin();
    writing.seal(&draft(), &mut load, Series::Spooled);
    writing.commit();
    let last = kept(&dir).pop().unwrap();
    assert_eq!((last.receipt().number, last.receipt().previous), (1, None));
    // And that of the old one goes on.
    make(&open(&dir, ROOM));
    assert_eq!(kept(&dir).pop().unwrap().receipt().number, 2);
}

#[test]
fn chains_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = open(&folder.path().join("receipts"), ROOM);
    let mut made = 0;
    for nth in 0..u16::try_from(MAX_CHAINS).unwrap() + 3 {
        let mut print = [0; 32];
        print[..2].copy_from_slice(&nth.to_be_bytes());
        let mut load = load();
        receipts.seal_direct(&Draft { master: Some(Fingerprint(print)), ..draft() }, &mut load);
        made += usize::from(load.get_text(FIELD).is_some());
    }
    assert_eq!(made, MAX_CHAINS);
    // A chain that is there goes on.
    let mut load = load();
    receipts.seal_direct(&Draft { master: Some(Fingerprint([0; 32])), ..draft() }, &mut load);
    assert_eq!(read(&load).receipt().number, 2);
}

/// Two programs write the same folder: one goes on where the other began a file, and where the file is gone.
#[test]
fn a_file_that_another_program_began_or_removed_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let (one, two) = (open(&dir, ROOM), open(&dir, ROOM));
    make(&one);
    make(&two);
    let files = || brine_receipts::files(&dir).unwrap().len();
    while files() == 1 {
        make(&two);
    }
    make(&one);
    let all = numbers(&dir);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    assert_one_chain(&dir);
    for (_, file) in brine_receipts::files(&dir).unwrap() {
        std::fs::remove_file(file).unwrap();
    }
    make(&one);
    assert_eq!(numbers(&dir), [all.len() as u64 + 1], "it is in a file that is there, and no number comes twice");
}

#[test]
fn a_number_is_not_given_away_before_its_return_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, ROOM);
    let mut load = load();
    let mut writing = receipts.begin();
    writing.seal(&draft(), &mut load, Series::Spooled);
    load.insert("return", "shortened");
    writing.seal(&draft(), &mut load, Series::Spooled);
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

#[test]
fn two_programs_write_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    // As the daemon and three calls of `salt-call`: each has opened the files by itself.
    std::thread::scope(|scope| {
        for n in 0..4 {
            let dir = &dir;
            scope.spawn(move || {
                // Room for all of them: one program may be done before the others begin.
                let receipts = open(dir, 16 << 20);
                for _ in 0..300 {
                    match n {
                        0 => drop(make(&receipts)),
                        _ => receipts.keep(&draft(), &load()),
                    }
                }
            });
        }
    });
    let of = |series: Series| kept(&dir).into_iter().filter(move |signed| signed.receipt().series == series);
    for (series, last) in [(Series::Spooled, 300), (Series::Direct, 900)] {
        let mut chain = Chain::default();
        of(series).for_each(|signed| chain.add(signed.receipt(), signed.hash()));
        assert_eq!((chain.odd(), of(series).map(|signed| signed.receipt().number).max()), (Vec::new(), Some(last)));
    }
    assert!(kept(&dir).len() > 600, "the two chains are in the same files");
}

/// Receipts that follow at once share one lock of the folder.
#[test]
fn another_program_writes_when_the_daemon_rests() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let (daemon, call) = (open(&dir, ROOM), open(&dir, ROOM));
    let one = || {
        let mut writing = daemon.begin();
        writing.seal(&draft(), &mut load(), Series::Spooled);
        writing.commit_for_now();
    };
    one();
    let lock = std::fs::File::open(dir.join(".lock")).unwrap();
    let is_free = || {
        let free = lock.try_lock().is_ok();
        lock.unlock().unwrap();
        free
    };
    assert!(!is_free());
    one();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| make(&call));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!other.is_finished());
        daemon.rest();
        other.join().unwrap();
    });
    assert!(is_free());
    one();
    daemon.rest();
    assert!(is_free());
    assert_eq!(numbers(&dir), [1, 2, 3, 4]);
    assert_one_chain(&dir);
}

#[test]
fn what_another_program_left_torn_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, ROOM);
    make(&receipts);
    let (_, file) = brine_receipts::files(&dir).unwrap().remove(0);
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&whole[..], &whole[10..100]].concat()).unwrap();
    make(&receipts);
    assert_eq!(numbers(&dir), [1, 2]);
    assert_one_chain(&dir);
}

#[test]
fn a_file_that_is_cut_off_has_its_room_again() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, ROOM);
    make(&receipts);
    let (_, file) = brine_receipts::files(&dir).unwrap().remove(0);
    let reserved = || std::fs::metadata(&file).unwrap().blocks() * 512;
    assert!(reserved() >= 4 << 20, "the file system of the test cannot reserve");
    let whole = std::fs::read(&file).unwrap();
    let tear = || std::fs::write(&file, [&whole[..], &whole[10..100]].concat()).unwrap();
    // Another program was killed within its write, while this one runs.
    tear();
    make(&receipts);
    assert!(reserved() >= 4 << 20);
    drop(receipts);
    // The host was restored from a copy, which has no such room.
    std::fs::write(&file, &whole).unwrap();
    let receipts = open(&dir, ROOM);
    make(&receipts);
    assert!(reserved() >= 4 << 20);
    assert_eq!(numbers(&dir), [1, 2]);
}

#[test]
fn damage_in_the_middle_is_left_and_a_new_file_begun() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, ROOM);
    for _ in 0..1500 {
        make(&receipts);
    }
    drop(receipts);
    let (_, file) = brine_receipts::files(&dir).unwrap().remove(0);
    let mut content = std::fs::read(&file).unwrap();
    content[20_000] ^= 1;
    std::fs::write(&file, &content).unwrap();
    make(&open(&dir, ROOM));
    assert_eq!(std::fs::read(&file).unwrap().len(), content.len(), "it may be mended by hand");
    assert_eq!(brine_receipts::files(&dir).unwrap().len(), 2);
}

/// A full disk: a place where files cannot be made, as the next one could not be there.
fn no_room(dir: &Path) -> PathBuf {
    let next = brine_receipts::files(dir).unwrap().last().map_or(0, |(number, _)| number + 1);
    let path = dir.join(format!("{next:020}.receipts"));
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    path
}

#[test]
fn without_room_jobs_go_on_without_receipts_and_the_chain_waits() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, ROOM);
    make(&receipts);
    receipts.state().files.full = true;
    let blocked = no_room(&dir);
    assert_eq!(make(&receipts).get(FIELD), None);
    let _ = std::fs::remove_file(&blocked);
    assert_eq!(read(&make(&receipts)).receipt().number, 2);
    drop(receipts);
    assert_eq!(numbers(&dir), [1, 2]);
    assert_one_chain(&dir);
}

#[test]
fn a_receipt_that_was_given_away_and_not_kept_is_not_made_twice() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, ROOM);
    make(&receipts);
    // The disk fails within the write.
    receipts.state().files.fail_next();
    let lost = read(&make(&receipts));
    assert_eq!(lost.receipt().number, 2);
    assert_eq!(read(&make(&receipts)).receipt().previous, Some(lost.hash()));
    drop(receipts);
    assert_eq!(read(&make(&open(&dir, ROOM))).receipt().number, 4);
    assert_eq!(numbers(&dir), [1, 3, 4]);
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get_text(name).unwrap()
}

#[test]
fn the_owner_reads_pages_from_the_newest_on() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    assert_eq!(page(&dir, "", "", None).unwrap().receipts, []);
    let receipts = open(&dir, 1 << 20);
    for n in 0..1500 {
        receipts.keep(&Draft { jid: format!("{n}"), ..draft() }, &load());
    }
    let (mut place, mut jids) = (String::new(), Vec::new());
    loop {
        let page = page(&dir, &place, "", None).unwrap();
        jids.extend(page.receipts.iter().map(|one| text(one, "jid").parse::<u64>().unwrap()));
        match page.next {
            Some(next) => place = next,
            None => break,
        }
    }
    let files = brine_receipts::files(&dir).unwrap().len();
    assert!(files > 1 && jids.len() > 500, "{files} {}", jids.len());
    assert!(jids.iter().copied().eq((0..1500).rev().take(jids.len())), "each once, in order");
    let one = page(&dir, "", "1499", None).unwrap();
    assert_eq!((one.receipts.len(), text(&one.receipts[0], "series")), (1, "direct"));
    let line = page(&dir, "", "1499", Some(PKI.1.key())).unwrap();
    assert!(brine_receipts::Evidence::verify(line.receipts[0].text().unwrap()).is_ok());
    for bad in ["x", "1", "1:x", "-1:0", "1:-1"] {
        assert!(page(&dir, bad, "", None).is_err(), "{bad}");
    }
    assert!(!page(&dir, "99999:0", "", None).unwrap().receipts.is_empty(), "the newest file");
    let said = verify(&dir).unwrap();
    assert_eq!(
        (said.get("receipts"), said.get("odd")),
        (Some(&Value::from(jids.len() as u64)), Some(&Value::Array(vec![])))
    );
}

#[test]
fn the_owner_is_told_what_is_odd() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("receipts");
    let receipts = open(&dir, ROOM);
    (0..3).for_each(|_| drop(make(&receipts)));
    let (_, file) = brine_receipts::files(&dir).unwrap().remove(0);
    let content = std::fs::read(&file).unwrap();
    let mut at = vec![0];
    while let Some((_, size)) = Record::read(&content[at[at.len() - 1]..]).unwrap() {
        at.push(at[at.len() - 1] + size);
    }
    // The second receipt is taken out, and half of the third is put behind.
    std::fs::write(&file, [&content[..at[2]], &content[at[3]..], &content[at[3]..at[3] + 50]].concat()).unwrap();
    let odd = verify(&dir).unwrap().get("odd").unwrap().to_string();
    assert!(
        odd.contains("receipts 2 to 2 of jobs of the host itself are missing") && odd.contains("50 bytes"),
        "{odd}"
    );
}
