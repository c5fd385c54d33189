//! A master that asks by detours for what only the owner of a host may do: `sandbox.grant`, `sandbox.revoke`, `sandbox.approve`.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use brine_kit::programs::testing;
use brine_kit::wait::wait_for;
use brine_protocol::event::{Event, Framing, frame};
use brine_protocol::value::from_json;
use brine_tests::compiled::{COMPILED, lay_out};
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::{Value, json};

/// A reaction that asks for each of them. Its lines are marked by what fired the event.
const ASK: &str = "{% set line = 'cmd: {process: [/bin/' ~ data.get('mark', 'beacon') ~ ']}' %}\n\
                   grant:\n  local.sandbox.grant:\n    - tgt: web1\n    - kwarg: {line: {{ line|json }}}\n\
                   revoke:\n  local.sandbox.revoke:\n    - tgt: web1\n    - kwarg: {line: {{ line|json }}}\n\
                   approve:\n  local.sandbox.approve:\n    - tgt: web1\n    - arg: [{{ data.get('mark', 'beacon') }}, aa]\n";
/// On the minion whose event it was.
const ASK_BACK: &str = "back:\n  caller.sandbox.grant:\n    - kwarg: {line: 'cmd: {process: [/bin/back]}'}\n";

fn fire(master: &Master, tag: &str, data: &Value) {
    let mut bus = wait_for("the master's bus", || UnixStream::connect(master.path("sock/master_event_pull.ipc")).ok());
    bus.write_all(&frame(&Event::new(tag, from_json(data)), Framing::Prefixed)).expect("the master takes events");
}

/// All that the owner's configuration says.
fn configuration(minion: &Minion) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in ["conf", "conf/minion.d"] {
        for item in std::fs::read_dir(minion.path(folder)).into_iter().flatten().flatten() {
            let path = item.path();
            if path.is_file() && !path.ends_with("minion.d/_schedule.conf") {
                files.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap_or_default()));
            }
        }
    }
    files.sort();
    files
}

/// A master whose reactor, pillar and files ask, and a minion whose owner let its modules call each other.
fn started() -> (Master, Minion) {
    let mut master = Master::prepare(Kind::Brine, "id: the_master\npillar_roots: {base: [../srv/pillar]}");
    let module = std::fs::read(testing("watcher")).expect("run `make modules` first");
    master.serve("_modules/watcher.wasm", &module);
    let pillar = "schedule: {widen: {function: sandbox.grant, args: ['cmd: {process: [/bin/scheduled]}'], seconds: 1}}\n\
                  mine_functions: {widen: [{mine_function: sandbox.grant}, 'cmd: {process: [/bin/mined]}']}\n\
                  beacons: {watcher: [{beacon_module: watcher}, {interval: 2}]}\n";
    for (file, text) in [("srv/pillar/top.sls", "base: {'*': [a]}\n"), ("srv/pillar/a.sls", pillar)] {
        std::fs::create_dir_all(master.path("srv/pillar")).expect("our own folder");
        std::fs::write(master.path(file), text).expect("our own folder");
    }
    let folder = master.path("reactor");
    std::fs::create_dir_all(&folder).expect("our own folder");
    for (file, text) in [("ask.sls", ASK), ("back.sls", ASK_BACK)] {
        std::fs::write(folder.join(file), text).expect("our own folder");
    }
    let dir = folder.display();
    let config = format!(
        "reactor:\n  - ask/root: [{dir}/ask.sls]\n  \
         - 'salt/beacon/web1/watcher/*': [{dir}/ask.sls, {dir}/back.sls]\n    from_minions: true\n"
    );
    let conf = std::fs::read_to_string(master.path("conf/master")).expect("just written");
    std::fs::write(master.path("conf/master"), conf + &config).expect("our own folder");
    master.up();
    let owner = "sandbox:\n  modules:\n    state: {functions: any, states: any}\n    module: {functions: any}\n    \
                 mine: {functions: any}\n    saltutil: {functions: any}\n    \
                 watcher.beacons: {pillar: [role], limits: {wall: 1s}}\n";
    let minion = master.minion_kind(Kind::Brine, "web1", owner);
    (master, minion)
}

#[test]
fn no_detour_of_a_master_leads_to_a_grant() {
    let (master, minion) = started();
    let events = master.events();
    let before = configuration(&minion);
    let own =
        |args: &[&str]| minion.salt_call(&[&["--local", "--out=json"], args].concat()).exits(0).json()["local"].clone();

    // Reactions to root and to a beacon of the minion.
    fire(&master, "ask/root", &json!({"mark": "root"}));
    for mark in ["root", "beacon"] {
        for function in ["sandbox.grant", "sandbox.revoke", "sandbox.approve"] {
            let ret = events.wait(&format!("{function} by {mark}"), |tag, data| {
                let of_job = tag.starts_with("salt/job/") && tag.ends_with("/ret/web1");
                of_job && data["fun"] == function && data["fun_args"].to_string().contains(mark)
            });
            assert!(ret["return"].to_string().contains("on the host itself"), "{mark} {function}: {ret}");
        }
    }
    let back = events.wait("the reaction on the minion itself", |tag, data| {
        tag.ends_with("/ret/web1") && data["fun_args"].to_string().contains("/bin/back")
    });
    assert!(back["return"].to_string().contains("on the host itself"), "{back}");

    // The schedule and the mine of the pillar.
    let refused = wait_for("the job of the pillar's schedule", || {
        let all = own(&["sandbox.refusals"]);
        let mut all = all.as_array()?.iter();
        all.find(|one| one["function"] == "sandbox.grant" && !one["jid"].as_str().unwrap_or_default().is_empty())
            .cloned()
    });
    assert!(refused["line"].is_null(), "{refused}");
    master.json("web1", &["mine.update"]);

    // States, templates and orchestrations.
    let line = "cmd: {process: [/bin/states]}";
    let state = format!("run:\n  module.run:\n    - sandbox.grant:\n      - line: '{line}'\n");
    master.serve("by_state.sls", state.as_bytes());
    master.serve(
        "by_template.sls",
        format!("x:\n  test.nop:\n    - name: {{{{ salt['sandbox.grant']('{line}') }}}}\n").as_bytes(),
    );
    let orchestration = format!(
        "ask:\n  salt.function:\n    - name: sandbox.grant\n    - tgt: web1\n    - kwarg: {{line: '{line}'}}\n"
    );
    master.serve("orchestration.sls", orchestration.as_bytes());
    for sls in ["by_state", "by_template"] {
        let ran = master.salt(&["web1", "state.apply", sls]);
        assert!(ran.code != 0 && ran.stdout.contains("on the host itself"), "{sls}: {ran:?}");
    }
    let ran = master.command("salt-run", &["state.orchestrate", "orchestration"]);
    assert!(ran.stdout.contains("on the host itself"), "{ran:?}");
    lay_out(&master.path("cache/salt_cmd").join(COMPILED));
    // A master's own host: salt-call there is typed by nobody.
    for words in [&["sandbox.grant", line][..], &["sandbox.revoke", line], &["sandbox.approve", "deploy", "aa"]] {
        let ran = master.command("salt-run", &[&["salt.cmd"], words].concat());
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("on the host itself"), "{words:?}: {said}");
    }
    assert_eq!(configuration(&minion), before);
    // The owner can.
    assert_eq!(own(&["sandbox.grant", line])["written"], json!(true));
}
