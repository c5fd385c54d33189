//! `salt-module new --engine`: what it lays down is built, and a master runs it.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use brine_kit::wait::{Deadline as _, wait_for};
use brine_protocol::event::{Event, Framing, frame};
use brine_protocol::value::{Value, map};
use brine_tests::salt::{Kind, Master};
use brine_tests::{compiled, long};

use crate::COMPILE;
use crate::build::{guest_rustc, salt_module};

const LANGUAGES: [&str; 4] = ["rust", "c", "python", "js"];
/// Where the compiled engines are kept between runs of the tests.
const KEPT: &str = "compiled-engines";
/// A development build's compiler takes minutes for two interpreters, unless what it made is kept.
const COMPILING: Duration = Duration::from_secs(900);

#[test]
fn new_engines_greet_who_fires_events() {
    let languages = if long() { &LANGUAGES[..] } else { &LANGUAGES[..2] };
    let mut master = Master::prepare(Kind::Brine, "id: the_master");
    let folder = master.path("engines");
    fs::create_dir(&folder).unwrap();
    let rustc = guest_rustc();
    for lang in languages {
        let name = format!("greet_{lang}");
        let dir = master.path(&format!("src/{name}")).display().to_string();
        let new = salt_module(&["new", &name, "--engine", "--lang", lang, "--dir", &dir], &[]).exits(0);
        assert!(new.stdout.contains(&format!("engines: [{{{name}: ")), "{new:?}");
        let wasm = folder.join(format!("{name}.wasm"));
        let built = salt_module(&["build", &dir, "-o", wasm.to_str().unwrap()], &[("RUSTC", rustc.as_str())]).exits(0);
        assert!(built.stdout.contains("engine"), "{built:?}");
    }
    let entries: String = languages.iter().map(|lang| format!("  - greet_{lang}: {{tags: 'deploy/*'}}\n")).collect();
    let dir = folder.display();
    let config = format!("engines:\n{entries}engines_dirs: [{dir}]\nsandbox:\n  {COMPILE}\n  limits: {{wall: 15m}}\n");
    let conf = fs::read_to_string(master.path("conf/master")).unwrap();
    fs::write(master.path("conf/master"), conf + &config).unwrap();
    let (kept, compiled) = (crate::build::folder().join(KEPT), master.path("cache/engines/compiled"));
    fs::create_dir_all(&kept).unwrap();
    compiled::copy(&kept, &compiled).unwrap();
    master.up();
    let list = || master.command("salt-run", &["engines.list", "--out=json"]).exits(0).json();
    COMPILING.wait_for("all engines", || {
        languages.iter().all(|lang| list()[format!("greet_{lang}")]["state"] == "running").then_some(())
    });
    let mut bus = wait_for("the bus", || UnixStream::connect(master.path("sock/master_event_pull.ipc")).ok());
    let event = Event::new("deploy/done", map([("version", Value::from(5))]));
    bus.write_all(&frame(&event, Framing::Prefixed)).unwrap();
    for lang in languages {
        let name = format!("greet_{lang}");
        let line = format!("engine {name}: deploy/done: Hello, root! This is the_master.");
        wait_for(&line, || fs::read_to_string(master.path("master.out")).unwrap().contains(&line).then_some(()));
        let engine = wait_for("it to be done", || Some(list()[&name].clone()).filter(|it| it["handled"] == 1));
        assert!(engine["last_error"].is_null(), "{engine}");
    }
    compiled::copy(&compiled, &kept).unwrap();
}

#[test]
fn an_engine_has_no_states() {
    let said = salt_module(&["new", "greet", "--engine", "--state", "--lang", "rust"], &[]).exits(64);
    assert!(said.stderr.contains("--state"), "{said:?}");
}
