//! Updates of modules from the viewpoint of an operator and an owner: installed automatically, held, approved, rolled
//! back.

use std::time::{Duration, Instant};

use brine_kit::process::Output;
use brine_kit::wait::wait_for;
use brine_kit::wat::{number_with, wasm};
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::{Value, json};

/// An import that lists modules: `modules: true`.
const LISTS: &str = r#"(import "brine:host/modules@1.0.0" (instance (export "names" (func (result (list string))))))"#;

/// Returns a module with this version, whose `number` returns this, and with these imports.
fn module(version: &str, number: u32, imports: &str) -> Vec<u8> {
    wasm(number_with(&format!(r#"(@custom "version" "{version}") {imports}"#), number))
}

/// Returns a module with `number`, and with `wait`, which reads the clock for this many seconds and then returns the
/// number.
fn slow(number: u32, seconds: u64) -> Vec<u8> {
    let text = format!(
        r#"(component
            (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (result u64)))))
            (core func $now (canon lower (func $clock "now")))
            (core module $m
                (import "clock" "now" (func $now (result i64)))
                (func (export "number") (result i32) i32.const {number})
                (func (export "wait") (result i32)
                    (local $end i64)
                    (local.set $end (i64.add (call $now) (i64.const {seconds}000000000)))
                    (loop $again (br_if $again (i64.lt_u (call $now) (local.get $end))))
                    i32.const {number}))
            (core instance $i (instantiate $m (with "clock" (instance (export "now" (func $now))))))
            (func (export "number") (result u32) (canon lift (core func $i "number")))
            (func (export "wait") (result u32) (canon lift (core func $i "wait"))))"#
    );
    wasm(text)
}

struct Host {
    // The minion ends first.
    minion: Minion,
    master: Master,
}

impl Host {
    fn start(sandbox: &str) -> Self {
        let master = Master::start("");
        let minion = master.minion_kind(Kind::Brine, "web1", sandbox);
        // The sync at the start has ended.
        assert_eq!(master.json("web1", &["saltutil.sync_modules"]), json!([]));
        Self { minion, master }
    }

    fn serve(&self, module: &[u8]) {
        self.master.serve("_modules/deploy.wasm", module);
    }

    /// Serves and syncs a module that must be installed.
    fn update(&self, module: &[u8]) {
        self.serve(module);
        assert_eq!(self.master.json("web1", &["saltutil.sync_modules"]), json!(["modules.deploy"]));
    }

    /// Serves and syncs a module that must be refused. Returns the job's text.
    fn refused(&self, module: &[u8]) -> String {
        self.serve(module);
        let output = self.master.salt(&["web1", "saltutil.sync_modules"]).exits(1);
        assert!(output.stdout.contains("modules that were not taken, the last good ones stay"), "{output:?}");
        output.stdout
    }

    fn number(&self) -> Value {
        self.master.json("web1", &["deploy.number"])
    }

    fn ask(&self, function: &str) -> Value {
        self.master.json("web1", &[&format!("sandbox.{function}"), "deploy"])
    }

    fn listed(&self) -> Value {
        self.master.json("web1", &["sandbox.list"])["deploy"].clone()
    }

    /// Runs a command on the host itself.
    fn own(&self, words: &[&str]) -> Output {
        self.minion.salt_call(&[&["--local", "--out=json"], words].concat())
    }

    fn answers(&self, number: u32) {
        wait_for(&format!("version {number} to answer"), || (self.number() == json!(number)).then_some(()));
    }
}

#[test]
fn an_update_that_asks_for_more_is_held_told_and_approved_by_the_owner_alone() {
    let host = Host::start("");
    let events = host.master.events();
    host.update(&module("1.0.0", 1, ""));
    host.update(&module("1.1.0", 2, ""));
    assert_eq!(host.number(), json!(2));
    let list = host.listed();
    assert_eq!((&list["held"], &list["previous"], &list["version"]), (&json!(false), &json!("1.0.0"), &json!("1.1.0")));
    let age = list["last_sync"]["age_s"].as_u64().unwrap_or_else(|| panic!("no age: {list}"));
    assert!(age < 300 && list["last_sync"]["master"].as_str().is_some_and(|it| it.contains(':')), "{list}");

    // The update asks for more: the old version stays in use, and operators and owners are told.
    let text = host.refused(&module("2.0.0", 3, LISTS));
    assert!(
        text.contains("update 2.0.0 of module deploy is held") && text.contains("sandbox.approve deploy"),
        "{text}"
    );
    let event = events.wait_tag("salt/minion/web1/sandbox/held");
    let data = &event["data"];
    assert_eq!((&data["name"], &data["held"]["version"]), (&json!("deploy"), &json!("2.0.0")), "{event}");
    assert!(data["permissions"]["added"]["brine:host/modules"].is_string(), "{event}");
    assert_eq!(host.number(), json!(2));
    assert_eq!(host.listed()["held"], json!(true));
    let diff = host.ask("diff");
    assert_eq!((&diff["in_use"]["version"], &diff["held"]["version"]), (&json!("1.1.0"), &json!("2.0.0")));
    assert!(diff["lines"].as_str().is_some_and(|lines| lines.contains("modules: true")), "{diff}");
    // A further sync sends no second event and does not fetch the module again.
    host.master.salt(&["web1", "saltutil.sync_modules"]).exits(1);
    assert_eq!(events.count("salt/minion/web1/sandbox/held"), 1);

    // The suggested command as a job of the master: directly, and through a function that calls others.
    let hash = diff["held"]["sha256"].as_str().expect("a hash").to_owned();
    let words: Vec<&str> = diff["approve"].as_str().expect("a command").split(' ').collect();
    let ["salt-call", "--local", approve @ ..] = words.as_slice() else { panic!("{diff}") };
    let refused = host.master.salt(&[&["web1"], approve].concat()).exits(1);
    assert!(refused.stdout.contains("approved on the host itself"), "{refused:?}");
    // The mine says no more of a function that fails than Salt's does.
    let nested = host.master.salt(&["web1", "mine.send", "x", "mine_function=sandbox.approve", "deploy", &hash]);
    assert_eq!(nested.stdout, "web1:\n    False\n", "{nested:?}");
    assert_eq!(host.number(), json!(2));
    assert_eq!(host.listed()["held"], json!(true));

    // The owner approves while the minion runs.
    let pid = host.minion.running().pid();
    let approved = host.own(approve).exits(0).json()["local"].clone();
    assert_eq!((&approved["state"], &approved["version"]), (&json!("in use"), &json!("2.0.0")), "{approved}");
    host.answers(3);
    assert_eq!(host.minion.running().pid(), pid);
    let list = host.listed();
    assert_eq!((&list["held"], &list["previous"]), (&json!(false), &json!("1.1.0")));
    // The next version asks for the same and is installed automatically.
    host.update(&module("2.1.0", 4, LISTS));
    assert_eq!(host.number(), json!(4));
}

#[test]
fn a_bad_version_is_left_and_does_not_come_back_by_itself() {
    let host = Host::start("");
    host.update(&module("1.0.0", 1, ""));
    let bad = module("1.1.0", 2, "");
    host.update(&bad);
    let answer = host.ask("rollback");
    assert_eq!((&answer["now"]["version"], &answer["left"]["version"]), (&json!("1.0.0"), &json!("1.1.0")), "{answer}");
    assert_eq!(host.number(), json!(1));
    let text = host.refused(&bad);
    assert!(text.contains("this host went back from it"), "{text}");
    assert_eq!(host.number(), json!(1));
    host.update(&module("1.2.0", 3, ""));
    assert_eq!(host.number(), json!(3));
    // The owner rolls back beside the running minion, and approves the version again.
    host.own(&["sandbox.rollback", "deploy"]).exits(0);
    host.answers(1);
    let diff = host.ask("diff");
    let hash = diff["held"]["sha256"].as_str().expect("a hash").to_owned();
    assert_eq!(diff["held"]["version"], json!("1.2.0"));
    host.own(&["sandbox.approve", "deploy", &hash]).exits(0);
    host.answers(3);
}

#[test]
fn what_the_owner_granted_before_is_not_held_and_a_first_version_is_held_with_words() {
    let host = Host::start("sandbox: {modules: {deploy: {modules: true}}}");
    host.update(&module("1.0.0", 1, ""));
    host.update(&module("2.0.0", 2, LISTS));
    assert_eq!(host.number(), json!(2));
    // Another module, called before it was synced.
    host.master.serve("_modules/other.wasm", &module("1.0.0", 5, LISTS));
    let events = host.master.events();
    let output = host.master.salt(&["web1", "other.number"]);
    assert!(output.stdout.contains("module other 1.0.0 is held"), "{output:?}");
    assert!(output.stdout.contains("salt-call --local sandbox.approve other"), "{output:?}");
    events.wait_tag("salt/minion/web1/sandbox/held");
    let held = host.master.json("web1", &["sandbox.diff", "other"])["held"]["sha256"].clone();
    host.own(&["sandbox.approve", "other", held.as_str().expect("a hash")]).exits(0);
    wait_for("the module to answer", || (host.master.json("web1", &["other.number"]) == json!(5)).then_some(()));
}

#[test]
fn jobs_of_the_old_version_end_on_it_and_a_bad_update_is_nobody_elses_trouble() {
    let mut host = Host::start("");
    host.update(&slow(1, 8));
    let events = host.master.events();
    let jid = host.master.start_job(&["web1", "deploy.wait"]);
    wait_for("the job to run", || {
        let running = host.master.json("web1", &["saltutil.running"]);
        running.as_array().is_some_and(|all| all.iter().any(|job| job["fun"] == "deploy.wait")).then_some(())
    });
    host.update(&slow(2, 8));
    assert_eq!(host.number(), json!(2));
    assert_eq!(events.count(&format!("salt/job/{jid}/ret/web1")), 0, "the old one ended too early for this test");
    // Other functions continue at the same speed while bad modules arrive.
    let ping = || {
        let began = Instant::now();
        assert_eq!(host.master.json("web1", &["test.ping"]), json!(true));
        began.elapsed()
    };
    let before = (0..3).map(|_| ping()).max().expect("some");
    host.serve(b"\0asm\x0d\0\x01\0 and no component");
    let sync = host.master.start_job(&["web1", "saltutil.sync_modules"]);
    let during = (0..5).map(|_| ping()).max().expect("some");
    assert!(during < before * 3 + Duration::from_secs(1), "{before:?}, and {during:?} with a bad update");
    assert_eq!(events.wait_return(&sync, "web1")["success"], json!(false));
    assert_eq!(host.number(), json!(2));
    let event = events.wait_return(&jid, "web1");
    assert_eq!((&event["return"], &event["success"]), (&json!(1), &json!(true)), "{event}");

    // Without a master everything stays as it was.
    host.master.kill();
    host.minion.stop();
    assert_eq!(host.own(&["deploy.number"]).exits(0).json()["local"], json!(2));
    let list = host.own(&["sandbox.list"]).exits(0).json();
    assert!(list["local"]["deploy"]["last_sync"]["age_s"].is_u64(), "{list}");
}
