//! Receipts: signed by the minion, checked by the master, verified by anyone.

mod full_disk;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use brine_kit::process::{Output, run};
use brine_kit::programs::program;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master, Minion, python};
use serde_json::{Value, json};

/// Kills of the minion: 4, or 200 with `BRINE_LONG`.
fn kills() -> usize {
    if brine_tests::long() { 200 } else { 4 }
}

fn receipt(args: &[&str]) -> Output {
    run(&program("salt-receipt"), args)
}

/// What the host has of its own.
fn on_host(minion: &Minion, command: &str) -> Output {
    let (cache, pki) = (minion.path("cache"), minion.path("pki"));
    let (cache, pki) = (cache.to_str().expect("UTF-8"), pki.to_str().expect("UTF-8"));
    receipt(&[command, "--cachedir", cache, "--pki-dir", pki]).exits(0)
}

/// Writes lines of an export into a file.
fn file(folder: &Path, name: &str, lines: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, lines).expect("our own folder");
    path
}

fn show(master: &Master, jid: &str) -> Value {
    master.command("salt-run", &["receipts.show", jid, "--out=json"]).exits(0).json()["m1"].clone()
}

fn export(master: &Master, jid: &str) -> String {
    let lines = master.command("salt-run", &["receipts.export", jid, "--out=json"]).exits(0).json();
    let lines: Vec<&str> = lines.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    lines.join("\n") + "\n"
}

fn verify(master: &Master) -> Value {
    master.command("salt-run", &["receipts.verify", "--out=json"]).exits(0).json()["m1"].clone()
}

/// The script in docs/receipts.md.
fn script() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/receipts.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let (_, rest) = text.split_once("```python\n").expect("a script");
    rest.split_once("```").expect("its end").0.to_owned()
}

#[test]
fn a_job_has_a_receipt_that_anyone_verifies() {
    let folder = tempfile::tempdir().expect("a folder");
    let master = Master::start("");
    let minion = master.minion("m1");
    let events = master.events();
    let mut outcomes = Vec::new();
    for (call, outcome) in [(["m1", "test.echo", "hello"], "ran"), (["m1", "nothing.here", "x"], "refused")] {
        let jid = master.start_job(&call);
        let returned = events.wait_return(&jid, "m1");
        assert!(returned.get("receipt").is_none(), "{returned}");
        let shown = show(&master, &jid);
        assert_eq!((&shown["outcome"], &shown["jid"], &shown["minion"]), (&json!(outcome), &json!(jid), &json!("m1")));
        assert!(shown["publication"].is_string() && shown["master"].is_string(), "{shown}");
        outcomes.push((jid, outcome));
    }
    let jid = master.start_job(&["m1", "test.sleep", "300"]);
    wait_for("it runs", || minion.path("cache/proc").join(&jid).exists().then_some(()));
    master.salt(&["m1", "saltutil.kill_job", &jid]).exits(0);
    events.wait_return(&jid, "m1");
    assert_eq!(show(&master, &jid)["outcome"], json!("killed"));
    outcomes.push((jid.clone(), "killed"));
    let ran = &show(&master, &outcomes[0].0)["calls"][0];
    assert_eq!((&ran["function"], &ran["module"]["name"]), (&json!("test.echo"), &json!("test")));
    assert!(ran["usage"]["wallUs"].as_u64() > Some(0), "{ran}");
    assert_eq!(verify(&master)["odd"], json!([]));
    // Anywhere else: all receipts of the host as one chain, and one that the master exports.
    let lines = on_host(&minion, "export").stdout;
    let all = file(folder.path(), "all", &lines);
    let all = all.to_str().expect("UTF-8");
    let said = receipt(&["verify", all]).exits(0).stdout;
    assert!(said.contains("receipts hold") && !said.contains("not here"), "{said}");
    let one = file(folder.path(), "one", &export(&master, &outcomes[0].0));
    let one = one.to_str().expect("UTF-8");
    receipt(&["verify", one]).exits(0);
    let key = show(&master, &jid)["minionKey"].as_str().expect("a fingerprint").to_owned();
    receipt(&["verify", one, "--minion-key", &key]).exits(0);
    let other = "00:".repeat(31) + "00";
    assert!(receipt(&["verify", one, "--minion-key", &other]).exits(1).stderr.contains("another key vouches"));
    let of_other = ["receipts.export", &outcomes[0].0, "minion=m2", "--out=json"];
    assert_eq!(master.command("salt-run", &of_other).exits(0).json(), json!([]));
    let bent = file(folder.path(), "bent", &lines.replace("\"payload\":\"ey", "\"payload\":\"eX"));
    receipt(&["verify", bent.to_str().expect("UTF-8")]).exits(1);
    let listed = on_host(&minion, "list").stdout;
    for (jid, outcome) in &outcomes {
        assert!(listed.lines().any(|line| line.contains(jid) && line.contains(outcome)), "{jid} {outcome}:\n{listed}");
    }
    // The script of the document, on the same files.
    let script = file(folder.path(), "verify.py", &script());
    let script = script.to_str().expect("UTF-8");
    assert_eq!(run(&python(), &[script, all]).exits(0).stdout.lines().count(), lines.lines().count());
    assert_ne!(run(&python(), &[script, bent.to_str().expect("UTF-8")]).code, 0);
}

#[test]
fn a_killed_minion_leaves_no_gap_and_no_fork() {
    let folder = tempfile::tempdir().expect("a folder");
    let master = Master::start("");
    let mut minion = master.minion("m1");
    let events = master.events();
    for round in 0..kills() {
        let jids: Vec<String> =
            (0..6).map(|n| master.start_job(&["m1", "test.echo", &format!("{round}.{n}")])).collect();
        // It writes the same files.
        minion.salt_call(&["--local", "test.echo", "beside"]).exits(0);
        // Each round another moment: before the first return, or after some of them.
        for jid in jids.iter().take(round % 6) {
            events.wait_return(jid, "m1");
        }
        minion.kill();
        let starts = events.count("salt/minion/m1/start");
        minion.up();
        wait_for("the start of the minion", || (events.count("salt/minion/m1/start") > starts).then_some(()));
    }
    wait_for("all returns", || (minion.spooled() == 0).then_some(()));
    let verified = verify(&master);
    assert_eq!(verified["odd"], json!([]), "{verified}");
    let lines = on_host(&minion, "export").stdout;
    let all = file(folder.path(), "all", &lines);
    let said = receipt(&["verify", all.to_str().expect("UTF-8")]).exits(0).stdout;
    assert!(!said.contains("not here"), "{said}");
    // The host has a receipt for each return that its master has, and none for a job that has no return.
    let of_host = predicates(&lines);
    let jids = |of: &dyn Fn(&Value) -> bool| -> BTreeSet<String> {
        of_host.iter().filter(|one| of(one)).map(|one| one["jid"].as_str().expect("a jid").to_owned()).collect()
    };
    let spooled = jids(&|one| one["series"] == "spooled" && !one["master"].is_null());
    let store = rusqlite::Connection::open(master.path("cache/jobs.db")).expect("the store");
    let read = |query: &str| -> BTreeSet<String> {
        let mut query = store.prepare(query).expect("a query");
        let rows = query.query_map([], |row| row.get(0)).expect("rows");
        rows.collect::<Result<_, _>>().expect("jids")
    };
    assert_eq!(read("select jid from receipts"), spooled);
    assert_eq!(read("select jid from returns where minion = 'm1'"), spooled);
    let calls = of_host.iter().filter(|one| one["calls"][0]["function"] == "test.echo" && one["master"].is_null());
    assert_eq!(calls.count(), kills(), "one for each call on the host");
}

/// What the lines of an export say.
fn predicates(lines: &str) -> Vec<Value> {
    use base64::Engine as _;
    let payload = |line: &str| -> Value {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let payload = line["envelope"]["payload"].as_str().expect("a payload");
        let payload = base64::engine::general_purpose::STANDARD.decode(payload).expect("base64");
        serde_json::from_slice::<Value>(&payload).expect("JSON")["predicate"].clone()
    };
    lines.lines().map(payload).collect()
}

/// What the owner gets of `receipts.*`.
fn owner(minion: &Minion, args: &[&str]) -> Value {
    minion.salt_call(&[&["--local", "--out=json"], args].concat()).exits(0).json()["local"].clone()
}

#[test]
fn the_owner_reads_receipts_of_calls_and_of_the_minions_own_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let master = Master::start("");
    let config = "schedule: {tick: {function: test.version, seconds: 1, return_job: false}}";
    let minion = master.minion_kind(Kind::Brine, "m1", config);
    let jid = master.start_job(&["m1", "test.ping"]);
    master.events();
    minion.salt_call(&["--local", "test.echo", "by hand"]).exits(0);
    minion.salt_call(&["test.echo", "by hand, told"]).exits(0);
    minion.salt_call(&["--local", "test.nothing"]);
    let of = |listed: &Value, function: &str| -> Vec<Value> {
        let rows = listed.as_array().expect("a list").iter();
        rows.filter(|row| row["functions"] == json!([function])).cloned().collect()
    };
    let listed = wait_for("a job of the schedule", || {
        let listed = owner(&minion, &["receipts.list"]);
        (of(&listed, "test.version").len() >= 2 && !of(&listed, "test.ping").is_empty()).then_some(listed)
    });
    let calls = of(&listed, "test.echo");
    assert_eq!(calls.len(), 2, "{listed}");
    assert!(calls.iter().all(|row| row["master"].is_null() && row["outcome"] == "ran"), "{listed}");
    assert_eq!(of(&listed, "test.nothing")[0]["outcome"], json!("refused"), "{listed}");
    assert_eq!(owner(&minion, &["receipts.list", "limit=1"]).as_array().map(Vec::len), Some(1));
    let shown = owner(&minion, &["receipts.show", calls[0]["jid"].as_str().expect("a jid")])[0].clone();
    assert_eq!((&shown["series"], &shown["publicationKept"]), (&json!("direct"), &Value::Null), "{shown}");
    // SHA-256 of ["by hand"] in MessagePack.
    let arguments = "b84e77cf015ddd087c4b6990405bc62e11798704e8c634dce6c87d9a06441101";
    assert_eq!(shown["arguments"], json!(arguments), "{shown}");
    let shown = owner(&minion, &["receipts.show", &jid])[0].clone();
    assert_eq!((&shown["series"], &shown["publicationKept"]["whole"]), (&json!("spooled"), &json!(true)), "{shown}");
    let said = minion.salt_call(&["--local", "receipts.show", "20200101000000000000"]);
    assert!(said.code != 0 && said.stderr.contains("there is no receipt of the job"), "{said:?}");
    let verified = owner(&minion, &["receipts.verify"]);
    assert_eq!((&verified["odd"], &verified["key"]), (&json!([]), &shown["minionKey"]), "{verified}");
    assert!(verified["receipts"].as_u64() > Some(5), "{verified}");
    let lines = minion.salt_call(&["--local", "--out=newline_values_only", "receipts.export"]).exits(0).stdout;
    let lines = file(folder.path(), "lines", &lines);
    receipt(&["verify", lines.to_str().expect("UTF-8")]).exits(0);
    let of_master = master.command("salt-run", &["--out=newline_values_only", "receipts.export"]).exits(0).stdout;
    let of_master = file(folder.path(), "of_master", &of_master);
    let piped = format!("exec {} verify - < {}", program("salt-receipt").display(), of_master.display());
    run(Path::new("/bin/sh"), &["-c", &piped]).exits(0);
    // A call that the master was told of has a receipt there, and what it was not told of is no gap.
    assert_eq!(verify(&master)["odd"], json!([]));
    for function in ["receipts.list", "receipts.verify", "receipts.export"] {
        let refused = master.salt(&["m1", function]).stdout;
        assert!(refused.contains("salt-call --local receipts.list"), "{refused}");
    }
}

#[test]
fn a_refusal_that_is_lost_is_no_gap() {
    let master = Master::start("");
    let minion =
        master.minion_kind(Kind::Brine, "m1", "process_count_max: 1\nsandbox: {max_waiting: 0, max_queued: 0}");
    let events = master.events();
    // One runs, and as many wait as there are places beside it.
    let jids: Vec<String> = (0..5).map(|_| master.start_job(&["m1", "test.sleep", "300"])).collect();
    wait_for("they are there", || jids.iter().all(|jid| minion.path("cache/proc").join(jid).exists()).then_some(()));
    let refused = master.start_job(&["m1", "test.sleep", "300"]);
    assert!(events.wait_return(&refused, "m1")["return"].as_str().is_some_and(|why| why.contains("busy")));
    let shown = show(&master, &refused);
    assert_eq!((&shown["outcome"], &shown["series"]), (&json!("refused"), &json!("direct")), "{shown}");
}

/// A host where no minion ever ran has no key that vouches for receipts. An empty list would look as if nothing had run.
#[test]
fn a_host_without_the_key_of_a_minion_says_so() {
    let minion = Minion::prepare(Kind::Brine, "m1", 1, "");
    std::fs::remove_dir_all(minion.path("pki")).expect("a prepared minion has a key");
    minion.salt_call(&["--local", "test.ping"]).exits(0);
    let said = minion.salt_call(&["--local", "receipts.list"]);
    assert!(said.code != 0 && said.stderr.contains("no receipts: this host has no key of a minion"), "{said:?}");
}

/// The minion's cachedir is put back to an older copy, with its spool and all else.
#[test]
fn a_restored_snapshot_shows_as_a_fork() {
    let folder = tempfile::tempdir().expect("a folder");
    let master = Master::start("");
    let mut minion = master.minion("m1");
    let events = master.events();
    master.salt(&["m1", "test.echo", "one"]).exits(0);
    minion.stop();
    let (cache, snapshot) = (minion.path("cache"), folder.path().join("snapshot"));
    let copy = |from: &Path, to: &Path| {
        let words = ["-a", from.to_str().expect("UTF-8"), to.to_str().expect("UTF-8")];
        run(Path::new("/bin/cp"), &words).exits(0)
    };
    copy(&cache, &snapshot);
    minion.up();
    wait_for("the minion", || (master.json("m1", &["test.ping"]) == true).then_some(()));
    assert_eq!(verify(&master)["odd"], json!([]));
    minion.stop();
    std::fs::remove_dir_all(&cache).expect("our own folder");
    copy(&snapshot, &cache);
    minion.up();
    wait_for("the minion", || (master.json("m1", &["test.ping"]) == true).then_some(()));
    let told = events.wait_tag("brine/receipt/fork/m1");
    assert!(told["error"].as_str().is_some_and(|why| why.contains("as by a restored snapshot")), "{told}");
    assert!(told["first"].is_u64() && told["first"] == told["last"] && told["jid"].is_string(), "{told}");
    let line = format!("the receipt of m1 for {} is odd: ", told["jid"].as_str().expect("a jid"));
    let log = master.daemon.as_ref().expect("it runs").log_text();
    let line = log.lines().find(|one| one.contains(&line)).unwrap_or_else(|| panic!("{line}:\n{log}"));
    assert!(line.ends_with(&format!("(number {})", told["first"])), "{line}");
    assert!(verify(&master)["odd"].as_array().is_some_and(|odd| !odd.is_empty()));
}

#[test]
fn a_return_that_was_tampered_with_is_told() {
    let mut master = Master::start("");
    let mut minion = master.minion("m1");
    let jid = master.start_job(&["m1", "test.sleep", "2"]);
    wait_for("it runs", || minion.path("cache/proc").join(&jid).exists().then_some(()));
    master.stop();
    let spooled = wait_for("the return", || {
        let mut files = std::fs::read_dir(minion.path("cache/spool")).ok()?.flatten().map(|file| file.path());
        files.find(|path| path.to_string_lossy().ends_with(&jid))
    });
    // Until its file is synced, the return is in a slot too, from which the next start would write the file anew.
    wait_for("the slot to be free", || {
        let slots = std::fs::read(minion.path("cache/spool.spare/slots")).ok()?;
        slots.chunks(4096).all(|slot| slot.starts_with(&[0; 4])).then_some(())
    });
    minion.kill();
    let mut bytes = std::fs::read(&spooled).expect("the return");
    // `return`: True becomes False.
    let at = bytes.windows(7).position(|part| part == b"return\xc3").expect("the value") + 6;
    bytes[at] = 0xc2;
    std::fs::write(&spooled, bytes).expect("our own folder");
    master.up();
    let events = master.events();
    minion.up();
    let told = events.wait_tag("brine/receipt/return/m1");
    assert_eq!(told["jid"], json!(jid));
    // The master tells of the receipt before it stores the return.
    let stored = wait_for("the return is taken all the same", || {
        let stored = master.command("salt-run", &["jobs.lookup_jid", &jid, "--out=json"]).exits(0).json();
        (!stored["m1"].is_null()).then_some(stored)
    });
    assert_eq!(stored["m1"], json!(false));
    assert_eq!(show(&master, &jid)["odd"], json!("return"));
}

#[test]
fn without_the_setting_there_are_none() {
    let master = Master::start("");
    let minion = master.minion_kind(Kind::Brine, "m1", "receipts: False");
    let jid = master.start_job(&["m1", "test.ping"]);
    master.events();
    wait_for("the return", || {
        let stored = master.command("salt-run", &["jobs.lookup_jid", &jid, "--out=json"]).exits(0).json();
        (stored["m1"] == json!(true)).then_some(())
    });
    assert_eq!(show(&master, &jid), Value::Null);
    assert!(!minion.path("cache/receipts").exists());
}
