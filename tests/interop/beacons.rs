//! Beacons of a Brine minion beside those of a Python minion on the same host, at the same master: the examples of Salt's
//! documentation, with values that this host reaches, and `beacons.*`.

use std::io::Write as _;

use brine_kit::process::run;
use brine_kit::wait::wait_for;
use brine_tests::events::Events;
use brine_tests::salt::{Kind, Master, python};
use serde_json::{Value, json};

/// A beacon: its name, its configuration, and the paths of values that move (`a.b`); `*` is all of them.
const ROWS: [(&str, &str, &[&str]); 19] = [
    (
        "load",
        "[{averages: {1m: [1000.0, 2000.0], 5m: [0.0, 1.5], 15m: [0.1, 1.0]}}, {emitatstartup: true}, {onchangeonly: false}]",
        &["1m", "5m", "15m"],
    ),
    ("memusage", "[{percent: 0%}]", &["memusage"]),
    ("memory", "[{beacon_module: memusage}, {percent: 0.5}, {interval: 1}]", &["memusage"]),
    ("swapusage", "[{percent: 0%}]", &["swapusage"]),
    ("diskusage", "[{/: 0%}]", &["diskusage"]),
    ("disks", "[{beacon_module: diskusage}, {'^\\/(?!home)pro.$': 0%}]", &[]),
    ("ps", "[{processes: {salt-master: running, no-such-process: stopped}}]", &[]),
    ("stopped", "[{beacon_module: ps}, {processes: {no-such-process: stopped}}]", &[]),
    ("neither", "[{beacon_module: ps}, {processes: {no-such-process: what}}]", &[]),
    (
        "network_info",
        "[{interfaces: {lo: {type: greater, bytes_recv: -1, errin: 100}}}]",
        &[
            "network_info.bytes_sent",
            "network_info.bytes_recv",
            "network_info.packets_sent",
            "network_info.packets_recv",
        ],
    ),
    (
        "errors",
        "[{beacon_module: network_info}, {interfaces: {lo: {type: equal, errin: 0}}}]",
        &[
            "network_info.bytes_sent",
            "network_info.bytes_recv",
            "network_info.packets_sent",
            "network_info.packets_recv",
        ],
    ),
    ("service", "[{services: {no-such-service: {}}}]", &[]),
    (
        "unclean",
        "[{beacon_module: service}, {services: {no-such-unclean: {onchangeonly: true, uncleanshutdown: PIDFILE}}}]",
        &[],
    ),
    (
        "delayed",
        "[{beacon_module: service}, {services: {no-such-other: {onchangeonly: true, delay: 1, is_running_state: false}}}]",
        &[],
    ),
    (
        "status",
        "[{time: [all]}, {loadavg: [1-min]}, {meminfo: [MemTotal]}, {cpustats: [all]}, {vmstats: [nr_free_pages, nothing]}]",
        &["data.time", "data.loadavg", "data.cpustats"],
    ),
    ("log", "[{file: LOGFILE}, {tags: {goodbye/world: {regex: '.*good-bye.*'}, broken: {regex: '('}}}]", &[]),
    ("inotify", "[{files: {WATCHED: {mask: [close_write]}}}]", &[]),
    (
        "tree",
        "[{beacon_module: inotify}, {files: {WATCHED: {mask: [create], recurse: true, auto_add: true, exclude: [WATCHED/file]}}}, {coalesce: true}]",
        &[],
    ),
    ("once", "[{beacon_module: ps}, {run_once: true}, {processes: {no-such-process: stopped}}]", &[]),
];

/// Configurations that beacons refuse, with Salt's words.
const REFUSED: [(&str, &str, &str); 8] = [
    ("r1", "[{beacon_module: memusage}]", "Configuration for memusage beacon requires percent."),
    ("r2", "[{beacon_module: load}]", "Averages configuration is required for load beacon."),
    ("r3", "[{beacon_module: ps}, {processes: [x]}]", "Processes for ps beacon must be a dictionary."),
    ("r4", "[{beacon_module: service}]", "Configuration for service beacon requires services."),
    ("r6", "[{beacon_module: inotify}]", "Configuration for inotify beacon must include files."),
    (
        "r7",
        "[{beacon_module: inotify}, {files: {/x: {mask: [dont_follow]}}}]",
        "Configuration for inotify beacon invalid mask option dont_follow.",
    ),
    (
        "r8",
        "[{beacon_module: inotify}, {files: {/x: {exclude: [/x/y]}}}]",
        "Configuration for inotify beacon must contain mask, recurse or auto_add items.",
    ),
    ("r5", "[{beacon_module: pkg}, {pkgs: x}]", "Configuration for pkg beacon requires list of pkgs."),
];

#[test]
fn beacons_fire_what_salts_fire() {
    if run(&python(), &["-c", "import pyinotify"]).code != 0 {
        brine_kit::missing("pyinotify", "tools/salt-venv.sh installs it into the Python of the tests");
        return;
    }
    let master = Master::start("");
    let (log, pid) = (master.path("watched.log"), master.path("service.pid"));
    let watched = master.path("watched");
    std::fs::create_dir_all(&watched).expect("our own folder");
    std::fs::write(&log, "before\n").expect("our own folder");
    std::fs::write(&pid, "1\n").expect("our own folder");
    let config = |name: &str, config: &str| {
        let config = config.replace("LOGFILE", &log.display().to_string());
        let config = config.replace("WATCHED", &watched.display().to_string());
        format!("  {name}: {}\n", config.replace("PIDFILE", &pid.display().to_string()))
    };
    let mut beacons = "beacons:\n".to_owned();
    ROWS.iter().for_each(|(name, said, _)| beacons.push_str(&config(name, said)));
    REFUSED.iter().for_each(|(name, said, _)| beacons.push_str(&config(name, said)));
    let granted = format!(
        "{beacons}sandbox: {{profiles: [states], modules: {{service.beacons: {{changes: {{/etc: ro, /run: ro, /usr/lib: ro, {pid}: ro}}}}, \
         log: {{changes: {{{log}: ro}}}}, inotify: {{changes: {{{watched}: ro}}}}}}}}\n",
        watched = watched.display(),
        pid = pid.display(),
        log = log.display()
    );
    let events = master.events();
    let brine = master.minion_kind(Kind::Brine, "brine", &granted);
    let python = master.minion_kind(Kind::Python, "python", &beacons);
    // Lines count that come after the first look: some come at each try.
    let seen = |id: &str| {
        let mut file = std::fs::OpenOptions::new().append(true).open(&log).expect("our own file");
        writeln!(file, "a good-bye to all").expect("our own file");
        events.count(&format!("salt/beacon/{id}/log/goodbye/world")) > 0
    };
    for id in ["brine", "python"] {
        wait_for(&format!("the log's lines from {id}"), || seen(id).then_some(()));
    }
    // What is watched is known by what is told. The first event of each is of the same file.
    for id in ["brine", "python"] {
        let tag = format!("salt/beacon/{id}/inotify/{}", watched.display());
        wait_for(&format!("what {id} watches"), || {
            std::fs::write(watched.join("file"), "x").expect("our own folder");
            (events.count(&tag) > 0).then_some(())
        });
    }
    std::fs::create_dir_all(watched.join("directory")).expect("our own folder");
    let mut wrong = Vec::new();
    for (name, _, moving) in &ROWS {
        let [ours, salts] = ["brine", "python"].map(|id| first(&events, id, name, moving));
        if ours != salts {
            wrong.push(format!("{name}:\n  Brine {}\n  Salt  {}", ours, salts));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (name, _, words) in REFUSED {
        for minion in [&brine, &python] {
            wait_for(&format!("{} to refuse {name}", minion.id), || {
                let log = std::fs::read_to_string(minion.path("minion.out")).unwrap_or_default();
                let said = log.contains(&format!("Beacon {name} configuration invalid, not running."));
                (said && log.contains(words)).then_some(())
            });
        }
    }
    assert_eq!(events.count("salt/beacon/brine/once/"), 1);
    commands(&master);
}

/// The first event of a beacon: its tag, without what moves in it, and its data with the types of values that move.
fn first(events: &Events, id: &str, name: &str, moving: &[&str]) -> Value {
    let prefix = format!("salt/beacon/{id}/{name}/");
    let mut data = events.wait(&format!("an event {prefix}"), |tag, _| tag.starts_with(&prefix));
    let tag = events.all().into_iter().map(|(tag, _)| tag).find(|tag| tag.starts_with(&prefix)).expect("it came");
    assert_eq!(data["id"], id);
    let entries = data.as_object_mut().expect("a dict");
    entries.remove("_stamp");
    entries.remove("id");
    for path in moving {
        if let Some(value) = data.pointer_mut(&format!("/{}", path.replace('.', "/"))) {
            *value = shape(value);
        }
    }
    let tag = tag.strip_prefix(&prefix).expect("it begins so");
    json!([if name == "status" { "" } else { tag }, data])
}

/// The types of a value, with the keys of dicts.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(entries) => entries.iter().map(|(key, value)| (key.clone(), shape(value))).collect(),
        Value::Array(items) => json!([items.first().map(shape)]),
        Value::Number(number) => json!(if number.is_f64() { "float" } else { "int" }),
        Value::String(_) => json!("text"),
        other => other.clone(),
    }
}

/// Calls of `beacons.*`, in their order.
fn commands(master: &Master) {
    let stopped = "[{'processes': {'a': 'stopped'}}, {'interval': 60}]";
    let calls: [&[&str]; 25] = [
        &["beacons.reset", "test=True"],
        &["beacons.reset"],
        &["beacons.list"],
        &["beacons.add", "ps", stopped, "test=True"],
        &["beacons.add", "ps", stopped],
        &["beacons.add", "ps", stopped],
        &["beacons.add", "second", "[{'beacon_module': 'ps'}, {'processes': {'b': 'stopped'}}]"],
        &["beacons.add", "no_such_beacon", "[]"],
        &["beacons.add", "memusage", "[{'x': 1}]"],
        &["beacons.list", "return_yaml=False"],
        &["beacons.list"],
        &["beacons.modify", "ps", stopped],
        &["beacons.modify", "ps", "[{'processes': {'a': 'running'}}, {'interval': 60}]"],
        &["beacons.modify", "ps", "[{'x': 1}]"],
        &["beacons.modify", "nothing", "[]"],
        &["beacons.disable_beacon", "ps"],
        &["beacons.enable_beacon", "ps"],
        &["beacons.disable_beacon", "nothing"],
        &["beacons.disable", "test=True"],
        &["beacons.disable"],
        &["beacons.enable"],
        &["beacons.delete", "ps", "test=True"],
        &["beacons.delete", "ps"],
        &["beacons.save"],
        &["beacons.list", "return_yaml=False", "include_pillar=False"],
    ];
    for call in calls {
        let [ours, salts] = ["brine", "python"].map(|id| {
            let mut answer = master.json(id, call);
            if let Some(comment) = answer.get_mut("comment").and_then(|comment| comment.as_str().map(str::to_owned)) {
                // The folder is the minion's own.
                let shown = comment.split('/').next().map(str::to_owned).filter(|_| call[0] == "beacons.save");
                answer["comment"] = json!(shown.unwrap_or(comment));
            }
            answer
        });
        assert_eq!(ours, salts, "{call:?}");
    }
    states(master);
}

/// The states of `beacon`, in their order.
fn states(master: &Master) {
    let wanted = ["name=third", "beacon_module=memusage", "percent=10"];
    let calls: [&[&str]; 8] = [
        &[&["beacon.present"], &wanted[..], &["test=True"]].concat(),
        &[&["beacon.present"], &wanted[..], &["save=True"]].concat(),
        &[&["beacon.present"], &wanted[..]].concat(),
        &["beacon.present", wanted[0], wanted[1], "percent=20"],
        &["beacon.disabled", wanted[0]],
        &["beacon.enabled", wanted[0]],
        &["beacon.absent", wanted[0]],
        &["beacon.absent", wanted[0], "test=True"],
    ];
    for call in calls {
        let [ours, salts] = ["brine", "python"].map(|id| {
            let answer = master.json(id, &[&["state.single"], call].concat());
            let state = answer.as_object().and_then(|states| states.values().next()).expect("a state");
            ["result", "comment", "changes"].map(|part| state[part].clone())
        });
        assert_eq!(ours, salts, "{call:?}");
    }
}
