//! A host whose disk is full: its jobs are answered all the same, and its receipts go on without a gap and without a fork.

use brine_kit::programs::program;
use brine_kit::wait::wait_for;
use brine_tests::events::Events;
use brine_tests::salt::{Kind, Master, Minion};
use brine_tests::small_disk::SmallDisk;
use serde_json::{Value, json};

use super::{file, predicates, receipt, show, verify};

/// The smallest files of receipts: their room is reserved for about sixty jobs.
const CONFIG: &str = "receipts_max_bytes: 1048576";
/// More jobs than one file has room for.
const MANY: usize = 150;
const NO_ROOM: &str = "no receipt can be kept, so jobs go on without one";
const AGAIN: &str = "receipts are made again";

/// A minion that sees the disk.
fn up(disk: &SmallDisk, minion: &mut Minion, events: &Events) {
    let starts = events.count("salt/minion/m1/start");
    let words = ["-c", &minion.conf(), "-l", "debug"];
    minion.daemon = Some(disk.daemon(&program("salt-minion"), &words, &minion.path("minion.out")));
    wait_for("the start of the minion", || (events.count("salt/minion/m1/start") > starts).then_some(()));
}

/// Runs jobs, several at once; each is answered with its own value. Returns the jids.
fn run_jobs(master: &Master, events: &Events, name: &str, count: usize) -> Vec<String> {
    let mut jids = Vec::new();
    while jids.len() < count {
        let started: Vec<(String, String)> = (0..10)
            .map(|n| format!("{name} {}", jids.len() + n))
            .map(|text| (master.start_job(&["m1", "test.echo", &text]), text))
            .collect();
        for (jid, text) in started {
            assert_eq!(events.wait_return(&jid, "m1")["return"], json!(text));
            jids.push(jid);
        }
    }
    jids
}

/// The receipts of the host, checked as one chain, by somebody who has only them.
fn on_host(disk: &SmallDisk, minion: &Minion, folder: &std::path::Path) -> Vec<Value> {
    let (cache, pki) = (minion.path("cache").display().to_string(), minion.path("pki").display().to_string());
    let lines =
        disk.run(&program("salt-receipt"), &["export", "--cachedir", &cache, "--pki-dir", &pki]).exits(0).stdout;
    let all = file(folder, "all", &lines);
    let said = receipt(&["verify", all.to_str().expect("UTF-8")]).exits(0).stdout;
    assert!(!said.contains("not here"), "{said}");
    predicates(&lines)
}

/// The numbers of the receipts of jobs whose returns are kept for the master.
fn numbers(of_host: &[Value]) -> Vec<u64> {
    let spooled = of_host.iter().filter(|one| one["series"] == "spooled" && !one["master"].is_null());
    spooled.map(|one| one["number"].as_u64().expect("a number")).collect()
}

fn has_receipt(master: &Master, jid: &str) -> bool {
    !show(master, jid).is_null()
}

fn said(minion: &Minion, text: &str) -> usize {
    minion.running().log_text().matches(text).count()
}

#[test]
fn jobs_on_a_full_disk_are_answered_and_the_chains_stay_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let master = Master::start("auto_accept: True");
    let mut minion = Minion::prepare(Kind::Brine, "m1", master.ret_port, CONFIG);
    // Room for the compiled standard modules.
    let Some(disk) = SmallDisk::new(&minion.path("cache"), 160 << 10) else { return };
    let events = master.events();
    up(&disk, &mut minion, &events);
    run_jobs(&master, &events, "before", 10);
    disk.fill();
    // The room of the file was reserved, and that of the next one cannot be.
    let full = run_jobs(&master, &events, "full", MANY);
    let with = full.iter().filter(|jid| has_receipt(&master, jid)).count();
    assert!(has_receipt(&master, &full[0]) && !has_receipt(&master, &full[MANY - 1]), "{with} of {MANY} have one");
    assert_eq!(said(&minion, NO_ROOM), 1, "it is said once");
    // A crash in the meantime gives no number twice.
    minion.kill();
    up(&disk, &mut minion, &events);
    let full = run_jobs(&master, &events, "full after a crash", 10);
    assert!(!has_receipt(&master, &full[9]));
    assert_eq!(said(&minion, NO_ROOM), 2, "once by each run of the minion");
    assert_eq!(verify(&master)["odd"], json!([]));
    disk.free();
    let after = run_jobs(&master, &events, "after", 10);
    assert!(after.iter().all(|jid| has_receipt(&master, jid)));
    assert_eq!(said(&minion, AGAIN), 1);
    assert_eq!(verify(&master)["odd"], json!([]));
    let numbers = numbers(&on_host(&disk, &minion, folder.path()));
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
    let odd = events.all().into_iter().find(|(tag, _)| tag.starts_with("brine/receipt/"));
    assert_eq!(odd, None);
}

#[test]
fn without_room_for_the_first_file_the_chain_begins_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let master = Master::start("auto_accept: True");
    let mut minion = Minion::prepare(Kind::Brine, "m1", master.ret_port, CONFIG);
    let Some(disk) = SmallDisk::new(&minion.path("cache/receipts"), 1 << 10) else { return };
    disk.fill();
    let events = master.events();
    up(&disk, &mut minion, &events);
    let full = run_jobs(&master, &events, "full", 10);
    assert!(!full.iter().any(|jid| has_receipt(&master, jid)));
    assert_eq!(said(&minion, NO_ROOM), 1);
    disk.free();
    let after = run_jobs(&master, &events, "after", 10);
    assert!(after.iter().all(|jid| has_receipt(&master, jid)));
    assert_eq!(said(&minion, AGAIN), 1);
    assert_eq!(verify(&master)["odd"], json!([]));
    assert_eq!(numbers(&on_host(&disk, &minion, folder.path())), (1..=10).collect::<Vec<_>>());
}

/// The minion is killed within a write, on a disk that is full: cutting off what it left must not give up the room of the next receipts.
#[test]
fn what_a_crash_left_torn_on_a_full_disk_is_mended() {
    let folder = tempfile::tempdir().expect("a folder");
    let master = Master::start("auto_accept: True");
    let mut minion = Minion::prepare(Kind::Brine, "m1", master.ret_port, CONFIG);
    let Some(disk) = SmallDisk::new(&minion.path("cache/receipts"), 1 << 10) else { return };
    let events = master.events();
    up(&disk, &mut minion, &events);
    run_jobs(&master, &events, "before", 10);
    minion.kill();
    let path = disk.inside(&minion.path("cache/receipts/00000000000000000000.receipts"));
    let whole = std::fs::read(&path).expect("the first file");
    std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &whole[8..300]))
        .expect("our own file");
    disk.fill();
    up(&disk, &mut minion, &events);
    let full = run_jobs(&master, &events, "full", MANY);
    assert!(!has_receipt(&master, &full[MANY - 1]), "there is no room for the next file");
    minion.kill();
    disk.free();
    up(&disk, &mut minion, &events);
    run_jobs(&master, &events, "after", 10);
    assert_eq!(verify(&master)["odd"], json!([]));
    let numbers = numbers(&on_host(&disk, &minion, folder.path()));
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
}
