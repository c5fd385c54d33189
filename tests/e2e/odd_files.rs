//! FIFOs, folders and links in place of daemons' files: opening them must block neither a start nor a request nor a
//! stop.

use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use brine_kit::programs::example;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master, Minion};
use rustix::fs::{CWD, FileType, Mode};
use serde_json::json;

const JID: &str = "20261120134740245008";

fn folder(path: &Path) {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).expect("our own folder");
}

fn fifo(path: &Path) {
    folder(path.parent().expect("a file in a folder"));
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("our own folder");
}

#[test]
fn fifos_in_a_minions_folders_hang_neither_its_start_nor_its_jobs_nor_its_end() {
    let master = Master::start("");
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, "");
    for file in [
        "modules/decisions.json",
        "modules/last_sync.json",
        "modules/odd.wasm",
        "modules/hello.json",
        "modules/hello.wasm.minisig",
        "modules/held/kept.wasm",
        "modules/previous/old.wasm",
        "serial",
        &format!("spool/{:020}-{JID}", 1),
        &format!("proc/{JID}"),
    ] {
        fifo(&minion.path("cache").join(file));
    }
    folder(&minion.path("cache/modules/folder.wasm"));
    std::fs::copy(example("hello"), minion.path("cache/modules/hello.wasm")).expect("our own folder");
    symlink("/dev/zero", minion.path("cache/modules/endless.wasm")).expect("our own folder");
    fifo(&minion.path("conf/minion_id"));
    master.accept(&mut minion);
    for _ in 0..3 {
        assert_eq!(master.json("web1", &["test.ping"]), json!(true));
    }
    for (module, why) in [
        ("odd", "it is not a regular file but a FIFO"),
        ("hello", "it is not a regular file but a FIFO"),
        ("folder", "it is not a regular file but a folder"),
        ("endless", "it is a symbolic link"),
    ] {
        let said = master.json("web1", &[&format!("{module}.world")]);
        let said = said.as_str().expect("a refusal");
        assert!(said.contains(why), "{module}: {said}");
    }
    // Without readable decisions, modules from the master are refused at once, with the reason.
    master.serve("_modules/other.wasm", &std::fs::read(example("hello")).expect("an example"));
    let said = master.json("web1", &["saltutil.sync_modules"]).to_string();
    assert!(said.contains("decisions.json") && said.contains("a FIFO"), "{said}");
    assert_eq!(master.json("web1", &["saltutil.running"]), json!([]));
    let began = Instant::now();
    minion.stop();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_fifo_for_a_lock_hangs_no_start_and_no_end() {
    let master = Master::start("");
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, "");
    fifo(&minion.path("cache/modules/.lock"));
    master.accept(&mut minion);
    assert_eq!(master.json("web1", &["test.ping"]), json!(true));
    let log = minion.running().log_text();
    assert!(log.contains("/.lock cannot be used: it is not a regular file but a FIFO"), "{log}");
    minion.stop();
}

#[test]
fn fifos_in_a_masters_folders_hang_no_request() {
    let mut master = Master::prepare(Kind::Brine, "");
    let dir = master.folder.path().display().to_string();
    let config = master.path("conf/master");
    let text = std::fs::read_to_string(&config).expect("our own folder");
    let more = format!(
        "autosign_file: {dir}/autosign\nautoreject_file: {dir}/autoreject\nautosign_grains_dir: {dir}/grains\n"
    );
    std::fs::write(&config, text + &more).expect("our own folder");
    for file in [
        "pki/minions/odd",
        "pki/minions_pre/odd2",
        "pki/minions_rejected/odd3",
        "pki/minions_denied/odd4",
        "cache/tokens/0123456789abcdef",
        "cache/brine_sessions/web1",
        "cache/grains/web1.p",
        "cache/grains/odd.p",
        "cache/mine/web1.p",
        "srv/salt/pipe",
        "srv/salt/_modules/pipe.wasm",
        "autosign",
        "autoreject",
        "grains/os",
    ] {
        fifo(&master.path(file));
    }
    folder(&master.path("pki/minions/folder"));
    folder(&master.path("srv/salt/_modules/folder.wasm"));
    master.up();
    let began = Instant::now();
    let minion = master.minion_kind(Kind::Brine, "web1", "autosign_grains: [os]");
    assert_eq!(master.json("web1", &["test.ping"]), json!(true));
    wait_for("its grains in the cache", || {
        let called = master.salt(&["--out=json", "--static", "-G", "os:*", "test.ping"]);
        called.stdout.contains("true").then_some(())
    });
    assert_eq!(master.json("web1", &["saltutil.sync_modules"]), json!([]));
    let listed = master.command("salt-key", &["-L"]).exits(0);
    assert!(listed.stdout.contains("web1") && !listed.stdout.contains("odd"), "{listed:?}");
    master.command("salt-key", &["-F", "odd"]);
    master.command("salt-run", &["manage.status"]).exits(0);
    drop(minion);
    master.stop();
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
