//! Beacons of a minion: that they look and tell, and what odd ones can do.

use brine_kit::process::run;
use brine_kit::programs::{program, testing};
use brine_kit::wait::wait_for;
use brine_tests::events::Events;
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::{Value, json};

/// The owner's lines for the modules of these tests.
const GRANTED: &str = "sandbox:\n  modules:\n    watcher.beacons: {pillar: [role], limits: {wall: 1s}}\n    \
                       runs: {states: any, pillar: any}\n";

fn pair(config: &str, pillar: &str) -> (Master, Minion, Events) {
    pair_with("", config, pillar)
}

/// `granted` are further lines of the owner.
fn pair_with(granted: &str, config: &str, pillar: &str) -> (Master, Minion, Events) {
    let mut master = Master::prepare(Kind::Brine, "pillar_roots: {base: [../srv/pillar]}");
    for name in ["watcher", "waiter", "runs"] {
        let module = std::fs::read(testing(name)).expect("run `make modules` first");
        master.serve(&format!("_modules/{name}.wasm"), &module);
    }
    let folder = master.path("srv/pillar");
    std::fs::create_dir_all(&folder).expect("our own folder");
    std::fs::write(folder.join("top.sls"), "base: {'*': [a]}\n").expect("our own folder");
    std::fs::write(folder.join("a.sls"), pillar).expect("our own folder");
    master.up();
    let events = master.events();
    let minion = master.minion_kind(Kind::Brine, "web1", &format!("{GRANTED}{granted}{config}"));
    (master, minion, events)
}

fn tag(name: &str) -> String {
    format!("salt/beacon/web1/{name}/")
}

/// Waits until a beacon has looked so many times more, by its events.
fn wait_looks(events: &Events, name: &str, more: usize) {
    let wanted = events.count(&tag(name)) + more;
    wait_for(&format!("{more} looks of {name}"), || (events.count(&tag(name)) >= wanted).then_some(()));
}

fn log_of(minion: &Minion) -> String {
    std::fs::read_to_string(minion.path("minion.out")).unwrap_or_default()
}

#[test]
fn what_a_beacon_does_wrong_is_its_own_and_is_said_once() {
    let odd = [
        ("spin", "[{beacon_module: watcher}, {do: spin}]"),
        ("large", "[{beacon_module: watcher}, {do: large}]"),
        ("many", "[{beacon_module: watcher}, {do: many}]"),
        ("state", "[{beacon_module: watcher}, {do: state}]"),
        ("trap", "[{beacon_module: watcher}, {do: trap}]"),
        ("fail", "[{beacon_module: watcher}, {do: fail}]"),
        ("tags", "[{beacon_module: watcher}, {do: tag}, {interval: 0}]"),
        ("pillar", "[{beacon_module: watcher}, {do: pillar}]"),
        ("refused", "[{beacon_module: watcher}, {refuse: its own words}]"),
        ("off", "[{beacon_module: watcher}, {enabled: false}]"),
        ("unknown", "[{x: 1}]"),
        ("no_beacon", "[{beacon_module: test}]"),
        ("../etc", "[{beacon_module: watcher}]"),
        ("negative", "[{beacon_module: watcher}, {interval: -5}]"),
        ("path", "[{beacon_module: ../../watcher}]"),
        ("scalar", "5"),
    ];
    let odd: String = odd.iter().map(|(name, said)| format!("  {name}: {said}\n")).collect();
    let (master, minion, events) =
        pair(&format!("beacons:\n{odd}  watcher: [{{do: count}}]\n"), "role: web\nsecret: x\n");
    wait_looks(&events, "watcher", 1);
    // Each look knows of the one before, though each has an instance of its own.
    let looks = |data: &Value| data["looks"].as_u64().unwrap_or_default();
    let third = events.wait("a third look", |t, data| t == tag("watcher") && looks(data) == 3);
    assert_eq!(third["function"], json!("watcher.beacons.beacon"));
    assert_eq!(third["id"], json!("web1"));
    // Salt's event of a look that failed is empty; the reason is in the log.
    for name in ["spin", "large", "trap", "fail", "state"] {
        let event = events.wait_tag(&tag(name));
        let keys: Vec<&String> = event.as_object().expect("a dict").keys().collect();
        assert_eq!(keys, ["_stamp"], "{name}: {event}");
    }
    // A tag leads nowhere else, and the id is the minion's.
    let told = events.wait_tag("salt/beacon/web1/tags/ok");
    assert_eq!(told["id"], json!("web1"));
    assert!(!events.all().iter().any(|(tag, data)| tag.contains("ret/web1") && data["id"] == "another"));
    // It has the grants of its line, and no others.
    assert_eq!(events.wait_tag(&tag("pillar"))["pillar"], json!({"role": "web"}));
    wait_looks(&events, "watcher", 4);
    let log = log_of(&minion);
    for line in [
        "Unable to start spin beacon, watcher.beacons.beacon was stopped: its wall clock limit of 1 s is used up\n",
        "Unable to start large beacon, watcher.beacons.beacon was stopped: its memory limit of 64 MiB is used up\n",
        "Unable to start trap beacon, watcher.beacons.beacon trapped: it gave up (`unreachable` was executed); its last log line: panicked at testing/watcher/src/lib.rs:38:29: as told\n",
        "Unable to start fail beacon, it fails as told\n",
        "Unable to start state beacon, its state has 100000 bytes, more than 65536\n",
        "Beacon refused configuration invalid, not running.",
        "Unable to process beacon unknown: there is no module",
        "Unable to process beacon no_beacon: the module test is no beacon",
        "Unable to process beacon path: there is no module",
        "Beacon ../etc is not run: its name is to be one word",
        "Beacon negative is not run: interval is to be a number of seconds, 0 to a year, not -5",
        "Beacon scalar is not run: Configuration for beacon must be a list.",
    ] {
        assert_eq!(log.matches(line).count(), 1, "{line}\n{log}");
    }
    for name in ["off", "refused", "unknown", "negative", "no_beacon"] {
        assert_eq!(events.count(&tag(name)), 0, "{name}");
    }
    // No job calls a beacon, by any name.
    for fun in ["watcher.beacon", "watcher.validate", "watcher.beacons.beacon", "watcher.beacons"] {
        let answer = master.json("web1", &[fun, "[]"]);
        assert!(answer.as_str().is_some_and(|text| text.contains("is not available")), "{fun}: {answer}");
    }
}

#[test]
fn beacons_change_with_the_pillar_and_by_jobs() {
    let (master, mut minion, events) = pair(
        "beacons:\n  own: [{beacon_module: watcher}]\n  quiet: [{beacon_module: watcher}, {disable_during_state_run: true}]\n",
        "beacons: {ours: [{beacon_module: watcher}]}\n",
    );
    wait_looks(&events, "own", 1);
    wait_looks(&events, "ours", 1);
    wait_looks(&events, "quiet", 1);
    // What the pillar says is the master's.
    let refused = master.json("web1", &["beacons.delete", "ours"]);
    assert_eq!(refused["comment"], json!("Cannot delete beacon item ours, it is configured in pillar."));
    std::fs::write(master.path("srv/pillar/a.sls"), "beacons: {other: [{beacon_module: watcher}]}\n")
        .expect("our own folder");
    master.json("web1", &["saltutil.refresh_pillar"]);
    wait_looks(&events, "other", 1);
    let then = events.count(&tag("ours"));
    // While states run, one that is to wait does. One that had begun may still tell.
    let jid = master.start_job(&["web1", "state.single", "runs.spin", "name=x"]);
    wait_looks(&events, "own", 2);
    let before = events.count(&tag("quiet"));
    wait_looks(&events, "own", 3);
    assert!(events.count(&tag("quiet")) <= before + 1);
    assert!(events.count(&tag("ours")) <= then + 1, "it is gone with the pillar");
    master.json("web1", &["saltutil.kill_job", &jid]);
    wait_looks(&events, "quiet", 1);
    // Saved, it is there after a restart; the rest of the configuration is as it was.
    let added = master.json("web1", &["beacons.add", "more", "[{'beacon_module': 'watcher'}]"]);
    assert_eq!(added, json!({"result": true, "comment": "Added beacon: more."}));
    wait_looks(&events, "more", 1);
    let saved = master.json("web1", &["beacons.save"]);
    assert_eq!(saved["result"], json!(true), "{saved}");
    let text = std::fs::read_to_string(minion.path("conf/minion.d/beacons.conf")).expect("it was written");
    assert!(text.starts_with("beacons:\n  more:\n  - beacon_module: watcher\n"), "{text}");
    assert!(!text.contains("other"), "those of the pillar are not this host's: {text}");
    let would = master.json("web1", &["beacons.reset", "test=True"]);
    assert_eq!(would, json!({"result": true, "comment": "Beacons would be reset."}));
    let local = minion.salt_call(&["--local", "--out=json", "beacons.delete", "more"]).json();
    assert!(local["local"]["comment"].as_str().is_some_and(|why| why.contains("this is not the daemon")), "{local}");
    minion.stop();
    minion.up();
    wait_looks(&events, "more", 2);
}

#[test]
fn a_thousand_beacons_are_as_many_as_there_may_be() {
    let many: String = (0..1010)
        .map(|n| format!("  b{n:04}: [{{beacon_module: memusage}}, {{percent: 0}}, {{interval: 1800}}]\n"))
        .collect();
    // In the order of the configuration, the last ones are too many.
    let (master, minion, events) = pair(&format!("beacons:\n  watcher: [{{do: count}}]\n{many}"), "x: 1\n");
    wait_looks(&events, "watcher", 2);
    wait_for("the bound to be said", || log_of(&minion).contains("there are more than 1000").then_some(()));
    let listed = master.json("web1", &["beacons.list", "return_yaml=False"]);
    assert_eq!(listed.as_object().map(serde_json::Map::len), Some(1011));
    let refused = master.json("web1", &["beacons.add", "ps", "[{'processes': {'x': 'stopped'}}]"]);
    assert_eq!(refused["comment"], json!("there are 1000 beacons, and no more may be"));
}

#[test]
fn files_are_watched_within_what_is_granted() {
    let folder = tempfile::tempdir().expect("a folder");
    let watched = folder.path().canonicalize().expect("it is there").join("watched");
    let (outside, at) = (watched.with_file_name("outside"), watched.display().to_string());
    for made in [&watched, &outside] {
        std::fs::create_dir(made).expect("our own folder");
    }
    let certificate = watched.with_file_name("web.pem");
    std::fs::write(&certificate, include_bytes!("../../wasm-modules/cert_info/src/certificate/web.pem")).expect("ours");
    let files = "mask: [create, delete, modify, moved_from, moved_to, close_write], recurse: true, auto_add: true";
    let granted = format!(
        "    inotify.beacons: {{changes: {{{at}: ro}}}}\n    cert_info.beacons: {{changes: {{{}: ro}}}}\n",
        certificate.display()
    );
    let config = format!(
        "beacons:\n  inotify: [{{files: {{{at}: {{{files}, exclude: [{at}/tmp, '{at}/*.swp']}}}}}}]\n  \
         elsewhere: [{{beacon_module: inotify}}, {{files: {{{out}: {{mask: [create]}}}}}}]\n  \
         odd: [{{beacon_module: inotify}}, {{files: {{{at}: {{mask: [everything]}}}}}}]\n  \
         cert_info: [{{files: [{cert}, {out}/none.pem, {cert}: {{notify_days: 0}}]}}, {{notify_days: 15}}, {{interval: 1}}]\n",
        out = outside.display(),
        cert = certificate.display(),
    );
    let (master, minion, events) = pair_with(&granted, &config, "x: 1\n");
    let seen = |tag: &str| -> Vec<(String, String)> {
        let of_tag = events.all().into_iter().filter(|(of, _)| *of == format!("salt/beacon/web1/inotify/{tag}"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        of_tag.map(|(_, data)| (text(&data["path"]), text(&data["change"]))).collect()
    };
    let mut tries = 0;
    wait_for("what is watched", || {
        tries += 1;
        std::fs::write(watched.join(format!("try{tries}")), "").expect("our own folder");
        (!seen(&at).is_empty()).then_some(())
    });
    std::fs::create_dir_all(watched.join("new/deep")).expect("our own folder");
    for name in ["new/deep/file", "x.swp", "tmpfile"] {
        std::fs::write(watched.join(name), "x").expect("our own folder");
    }
    std::fs::rename(watched.join("new"), outside.join("new")).expect("our own folder");
    std::fs::write(outside.join("new/deep/secret"), "x").expect("our own folder");
    std::fs::remove_file(watched.join("tmpfile")).expect("our own folder");
    std::fs::write(watched.join("last"), "x").expect("our own folder");
    let told = |path: &str, change: &str| (format!("{at}/{path}"), change.to_owned());
    wait_for("the last change", || seen(&at).contains(&told("last", "IN_CLOSE_WRITE")).then_some(()));
    let all = seen(&at);
    assert!(all.contains(&told("new", "IN_CREATE|IN_ISDIR")), "{all:?}");
    assert!(all.contains(&told("new", "IN_MOVED_FROM|IN_ISDIR")), "{all:?}");
    let below: Vec<String> = events.all().into_iter().map(|(_, data)| data["path"].to_string()).collect();
    for hidden in ["/secret", ".swp", "/watched/tmp"] {
        assert!(!below.iter().any(|path| path.contains(hidden)), "{hidden}: {below:?}");
    }
    let event = events.wait("an event of a file", |tag, data| tag.ends_with(&at) && data["change"] == "IN_CREATE");
    let mut keys: Vec<&String> = event.as_object().expect("a dict").keys().collect();
    keys.sort();
    assert_eq!(keys, ["_stamp", "change", "id", "path"]);
    // Certificates: one that expired, once for each mention.
    let event = events.wait_tag(&tag("cert_info"));
    let told = event["certificates"].as_array().expect("a list");
    assert_eq!(told.len(), 2);
    assert_eq!(told[0]["cert_path"], json!(certificate.display().to_string()));
    assert_eq!((&told[0]["has_expired"], &told[0]["subject_dict"]["CN"]), (&json!(true), &json!("web.example")));
    let log = log_of(&minion);
    let refused = format!(
        "Unable to start elsewhere beacon, inotify.beacons.watch was stopped: watches.wait was refused: module inotify may not look at {};",
        outside.display()
    );
    assert_eq!(log.matches(&refused).count(), 1, "{log}");
    let line = "Configuration for inotify beacon invalid mask option everything.";
    assert_eq!(log.matches(line).count(), 1, "{log}");
    // A beacon that is gone watches nothing.
    master.json("web1", &["beacons.delete", "inotify"]);
    let count = events.count(&format!("salt/beacon/web1/inotify/{at}"));
    std::fs::write(watched.join("after"), "x").expect("our own folder");
    wait_looks(&events, "cert_info", 3);
    assert_eq!(events.count(&format!("salt/beacon/web1/inotify/{at}")), count);
}

/// The beacons `waiter`, of a module that waits by itself, and one that has to look as always.
#[test]
fn a_beacon_that_waits_by_itself_is_called_again_and_harms_itself_alone() {
    let odd = ["sleep", "spin", "trap", "fail", "flood", "hasty", "idle", "pillar"];
    let odd: String = odd.iter().map(|odd| format!("  {odd}: [{{beacon_module: waiter}}, {{do: {odd}}}]\n")).collect();
    let more = "  waiter: []\n  slow: [{beacon_module: waiter}, {interval: 2}]\n  \
                quiet: [{beacon_module: waiter}, {disable_during_state_run: true}]\n  \
                once: [{beacon_module: waiter}, {run_once: true}]\n  watcher: [{do: count}]\n";
    let granted = "    waiter.beacons: {pillar: [role], limits: {wall: 2s}}\n";
    let (master, minion, events) = pair_with(granted, &format!("beacons:\n{odd}{more}"), "role: web\nsecret: x\n");
    // Its module is fetched and compiled after the start event.
    events.wait_tag(&tag("watcher"));
    let began = std::time::Instant::now();
    let watches = |data: &Value| data["watches"].as_u64().unwrap_or_default();
    // What one call hands on, the next one gets; none of them is a look.
    let event = events.wait("a third event", |t, data| t == tag("waiter") && watches(data) == 3);
    assert_eq!((&event["id"], &event["most_ms"]), (&json!("web1"), &json!(20_000)));
    // It has the grants of its line, and no others.
    assert_eq!(events.wait_tag(&tag("pillar"))["pillar"], json!({"role": "web"}));
    for name in ["sleep", "spin", "trap", "fail"] {
        let event = events.wait_tag(&tag(name));
        let keys: Vec<&String> = event.as_object().expect("a dict").keys().collect();
        assert_eq!(keys, ["_stamp"], "{name}: {event}");
    }
    events.wait("an idle one's tenth call", |t, data| t == tag("idle") && watches(data) == 10);
    // Ten calls in vain took nine pauses of a second.
    assert!(began.elapsed() > std::time::Duration::from_secs(8), "{:?}", began.elapsed());
    let seconds = began.elapsed().as_secs() + 2;
    let count = |name: &str| u64::try_from(events.count(&tag(name))).expect("few");
    // One whose calls return at once has ten a second at most, and a flood as many events as one look a second has.
    assert!((10..=10 * seconds).contains(&count("hasty")), "{} in {seconds} s", count("hasty"));
    assert!((500..=500 * seconds).contains(&count("flood")), "{} in {seconds} s", count("flood"));
    // An interval holds for it too.
    assert!((2..=seconds / 2 + 1).contains(&count("slow")), "{} in {seconds} s", count("slow"));
    assert!(count("fail") <= 4, "failures come less often: {}", count("fail"));
    assert_eq!(count("once"), 1);
    // One that looks is not held up.
    assert!(count("watcher") + 3 >= seconds - 2, "{} in {seconds} s", count("watcher"));
    let log = log_of(&minion);
    for line in [
        "Unable to start sleep beacon, waiter.beacons.watch was stopped: its wall clock limit of 2 s is used up\n",
        "Unable to start trap beacon, waiter.beacons.watch trapped: it gave up (`unreachable` was executed)",
        "Unable to start fail beacon, it fails as told\n",
    ] {
        assert_eq!(log.matches(line).count(), 1, "{line}\n{log}");
    }
    assert!(log.contains("of beacon flood, this is left out: 100 of its 600 events"), "{log}");
    assert!(!log.contains("it looks, and should watch"));
    // While states run, one that is to pause tells nothing; what it saw in a call that had begun is not told either.
    let jid = master.start_job(&["web1", "state.single", "runs.spin", "name=x"]);
    wait_looks(&events, "waiter", 3);
    let before = events.count(&tag("quiet"));
    wait_looks(&events, "waiter", 6);
    assert_eq!(events.count(&tag("quiet")), before);
    master.json("web1", &["saltutil.kill_job", &jid]);
    wait_looks(&events, "quiet", 1);
    // One that is turned off or gone ends at once, also in its call; so do all with the minion.
    master.json("web1", &["beacons.disable_beacon", "waiter"]);
    master.json("web1", &["beacons.delete", "hasty"]);
    let before = (events.count(&tag("waiter")), events.count(&tag("hasty")));
    wait_looks(&events, "watcher", 3);
    assert_eq!((events.count(&tag("waiter")), events.count(&tag("hasty"))), before);
    master.json("web1", &["beacons.enable_beacon", "waiter"]);
    wait_looks(&events, "waiter", 2);
    let mut minion = minion;
    let stopping = std::time::Instant::now();
    minion.stop();
    assert!(stopping.elapsed() < std::time::Duration::from_secs(10), "{:?}", stopping.elapsed());
}

/// A beacon that waits has as much of a processor as its owner gives a call, however long it may wait; and a call that was
/// recorded is the same without the host.
#[test]
fn a_beacon_that_waits_is_bounded_by_what_it_computes_and_can_be_replayed() {
    let granted = "    waiter.beacons: {pillar: [role], record: on, limits: {cpu: 1s, wall: 1h}}\n";
    let beacons = "beacons:\n  waiter: []\n  spin: [{beacon_module: waiter}, {do: spin}]\n";
    let (_master, minion, events) = pair_with(granted, beacons, "role: web\n");
    wait_looks(&events, "waiter", 3);
    let event = events.wait_tag(&tag("spin"));
    assert_eq!(event.as_object().expect("a dict").keys().collect::<Vec<_>>(), ["_stamp"], "{event}");
    let log = log_of(&minion);
    let line = "Unable to start spin beacon, waiter.beacons.watch was stopped: its CPU limit of 1 s is used up\n";
    assert_eq!(log.matches(line).count(), 1, "{log}");
    // One that waits for longer than that is not ended: it computes nothing.
    wait_looks(&events, "waiter", 10);
    assert!(!log_of(&minion).contains("Unable to start waiter beacon"));
    let files = std::fs::read_dir(minion.path("cache/recordings")).expect("recordings");
    let files: Vec<_> = files.map(|entry| entry.expect("an entry").path()).collect();
    let recorded = files.iter().find(|path| {
        let text = String::from_utf8_lossy(&std::fs::read(path).expect("our own folder")).into_owned();
        path.to_string_lossy().contains("waiter.beacons.watch") && !text.contains("spin")
    });
    let recorded = recorded.unwrap_or_else(|| panic!("no call was recorded: {files:?}"));
    let words = ["replay".to_owned(), recorded.display().to_string(), testing("waiter").display().to_string()];
    let replayed = run(&program("salt-module"), &words.each_ref().map(String::as_str)).exits(0);
    assert!(replayed.stderr.starts_with("The same as in the recording, with "), "{replayed:?}");
    assert!(replayed.stdout.contains("watches"), "{replayed:?}");
}
