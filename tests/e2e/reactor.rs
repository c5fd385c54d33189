//! The reactor: what starts what, whose events count, whose rights, and what ends loops and storms.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use brine_kit::wait::wait_for;
use brine_protocol::event::{Event, Framing, frame};
use brine_protocol::value::{Value as Wire, from_json};
use brine_tests::events::Events;
use brine_tests::salt::{Kind, Master};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A master with reactions (lines below `reactor:`, `DIR` is their folder), more configuration and SLS files.
fn started(reactions: &str, more: &str, files: &[(&str, &str)]) -> Master {
    let mut master = Master::prepare(Kind::Brine, "id: the_master\ntimeout: 15\ngather_job_timeout: 15");
    std::fs::create_dir_all(master.path("reactor")).expect("our own folder");
    for (file, text) in files {
        std::fs::write(master.path("reactor").join(file), text).expect("our own folder");
    }
    let conf = std::fs::read_to_string(master.path("conf/master")).expect("just written");
    let reactions = reactions.replace("DIR", &master.path("reactor").display().to_string());
    std::fs::write(master.path("conf/master"), format!("{conf}\nreactor:\n{reactions}\n{more}\n"))
        .expect("our own folder");
    master.up();
    master
}

/// Fires events as root of the master's host.
struct Fire(UnixStream);

impl Fire {
    fn new(master: &Master) -> Self {
        let path = master.path("sock/master_event_pull.ipc");
        Self(wait_for("the master's bus", || UnixStream::connect(&path).ok()))
    }

    fn event(&mut self, tag: &str, data: &Value) {
        self.events(1, |_| (tag.to_owned(), from_json(data)));
    }

    fn events(&mut self, count: usize, one: impl Fn(usize) -> (String, Wire)) {
        let all: Vec<u8> = (0..count)
            .flat_map(|n| {
                let (tag, data) = one(n);
                frame(&Event::new(tag, data), Framing::Prefixed)
            })
            .collect();
        self.0.write_all(&all).expect("the master takes events");
    }
}

/// The events of runs of `test.arg` with this keyword.
fn args_with(events: &Events, name: &str) -> Vec<Value> {
    let all = events.all().into_iter();
    let runs = all.filter(|(tag, data)| {
        tag.starts_with("salt/run/") && tag.ends_with("/new") && data["fun"] == "runner.test.arg"
    });
    runs.filter(|(_, data)| data["fun_args"].to_string().contains(name))
        .map(|(_, data)| data["fun_args"].clone())
        .collect()
}

fn log(master: &Master) -> String {
    std::fs::read_to_string(master.path("master.out")).expect("the master's output")
}

/// A runner that shows what a template sees.
const SHOW: &str = "show:\n  runner.test.arg:\n    - args:\n      - mark: {{ data.get('mark', tag)|json }}\n      - by: {{ fired_by|json }}\n      - tag: {{ tag }}\n      - data: {{ data|json }}\n";

#[test]
fn events_of_minions_are_not_trusted_and_marked() {
    let reactions = "  - 'salt/state_result/*/trusted': DIR/show.sls\n    from_minions: true\n  \
                     - 'salt/state_result/*/plain': [DIR/show.sls]\n  - 'salt/minion/*/start': DIR/start.sls\n  \
                     - 'salt/state_result/*/back': DIR/caller.sls\n    from_minions: true\n  - root/*: [DIR/show.sls, DIR/caller.sls]\n";
    let start = "start:\n  runner.test.arg:\n    - args:\n      - mark: started\n      - data: {{ data|json }}\n";
    let caller = "back:\n  caller.test.arg:\n    - args: [{{ fired_by.kind }}]\n";
    let master = started(reactions, "", &[("show.sls", SHOW), ("start.sls", start), ("caller.sls", caller)]);
    let fire = "x:\n  test.show_notification:\n    - text: '{% raw %}{{ 7 * 7 }}{% endraw %}'\n    - fire_event: {{ pillar.tag }}\n";
    master.serve("fire.sls", fire.as_bytes());
    let events = master.events();
    let _minions = [master.minion("m1"), master.minion("m2")];
    // The start: its tag is the minion's own, and of its data only what the master knows.
    let run = wait_for("the reaction to the start", || args_with(&events, "started").into_iter().next());
    let data = &run[0]["data"];
    let known = (&data["id"], &data["tag"], data.get("data"));
    assert_eq!(known, (&json!("m1"), &json!("salt/minion/m1/start"), None), "{run}");
    let send = |tag: &str| {
        master.salt(&["m1", "state.apply", "fire", &format!("pillar={{tag: {tag}}}")]).exits(0);
        events.wait(tag, |seen, _| seen.starts_with("salt/state_result/") && seen.ends_with(&format!("/{tag}")));
    };
    send("plain");
    send("trusted");
    let run =
        wait_for("the reaction to a minion that is trusted", || args_with(&events, "/trusted").into_iter().next());
    assert_eq!(run[0]["by"], json!({"kind": "minion", "name": "m1"}));
    let text = run.to_string();
    assert!(text.contains("{{ 7 * 7 }}"), "what is in the data is text: {text}");
    assert!(args_with(&events, "/plain").is_empty(), "the event before it had no reaction");
    let said = log(&master);
    let line: Vec<_> = said.lines().filter(|line| line.contains("from_minions: true")).collect();
    assert!(line.len() == 1 && line[0].contains("/plain"), "{line:?}");
    // `caller` is for the minion that the event came from.
    send("back");
    let job = events.wait("the job of caller", |tag, data| tag.ends_with("/new") && data["fun"] == "test.arg");
    assert_eq!((&job["tgt"], &job["minions"], &job["arg"]), (&json!(["m1"]), &json!(["m1"]), &json!(["minion"])));
    events.wait_return(job["jid"].as_str().expect("a jid"), "m1");
    // Root's events need no such line, and come from no minion.
    Fire::new(&master).event("root/x", &json!({"mark": "root's"}));
    let run = wait_for("the reaction to root's event", || args_with(&events, "root's").into_iter().next());
    assert_eq!(run[0]["by"]["kind"], "root");
    wait_for("why caller does not run", || log(&master).contains("this one came from none").then_some(()));
}

#[test]
fn reactions_have_the_rights_that_reactor_acl_gives() {
    let all = "a:\n  local.test.ping: [{tgt: m1}]\nb:\n  local.test.echo: [{tgt: m1}, {arg: [x]}]\nc:\n  local.test.ping: [{tgt: m2}]\n\
               d:\n  runner.test.arg: [{mark: d}]\ne:\n  runner.manage.up: []\nf:\n  wheel.key.list_all: []\n\
               g:\n  runner.state.orchestrate: [{mods: orch}]\n";
    let acl = "reactor_acl: [{m1: [test.ping]}, {'@runner': [test.arg, state.orchestrate]}]\naudit_log: audit.json";
    let master = started("  - go: [DIR/all.sls]\n", acl, &[("all.sls", all)]);
    master.serve("orch.sls", b"may_not:\n  salt.function: [{name: test.echo}, {tgt: m1}, {arg: [x]}]\n");
    let _minions = [master.minion("m1"), master.minion("m2")];
    let events = master.events();
    Fire::new(&master).event("go", &json!({}));
    let end = events.wait("the end of the orchestration", |tag, data| {
        tag.starts_with("salt/run/") && tag.ends_with("/ret") && data["fun"] == "runner.state.orchestrate"
    });
    assert!(end["return"].to_string().contains("Reactor may not run test.echo on m1"), "{end}");
    wait_for("all refusals", || (log(&master).matches("is not started").count() >= 4).then_some(()));
    let jobs: Vec<Value> = events
        .all()
        .into_iter()
        .filter(|(tag, _)| tag.starts_with("salt/job/") && tag.ends_with("/new"))
        .map(|(_, data)| data)
        .collect();
    assert!(jobs.len() == 1 && jobs[0]["fun"] == "test.ping" && jobs[0]["minions"] == json!(["m1"]), "{jobs:?}");
    assert_eq!(jobs[0]["user"], "Reactor");
    let runs: Vec<Value> = events
        .all()
        .into_iter()
        .filter(|(tag, _)| tag.ends_with("/new") && !tag.starts_with("salt/job/"))
        .map(|(_, data)| data["fun"].clone())
        .collect();
    assert!(
        runs.len() == 2
            && runs.contains(&json!("runner.test.arg"))
            && runs.contains(&json!("runner.state.orchestrate")),
        "{runs:?}"
    );
    let audit = std::fs::read_to_string(master.path("audit.json")).expect("the audit log");
    let line = |outcome: &str, fun: &str| {
        audit.lines().any(|line| {
            line.contains(outcome) && line.contains(fun) && line.contains("\"Reactor\"") && line.contains("reactor")
        })
    };
    assert!(
        line("allowed", "test.ping")
            && line("refused", "test.echo")
            && line("refused", "key.list_all")
            && line("refused", "manage.up"),
        "{audit}"
    );
}

/// An SLS that is missing or does not render, a reaction to everything, loops, a storm, hostile data: the master goes on.
#[test]
fn what_is_wrong_or_too_much_is_told_and_harms_nothing() {
    let reactions = "  - '*': DIR/all.sls\n    from_minions: true\n  - broken: [DIR/broken.sls, DIR/missing.sls, DIR/show.sls]\n  \
                     - feed: DIR/feed.sls\n  - ping: DIR/pong.sls\n  - pong: DIR/ping.sls\n  - data: DIR/show.sls\n";
    let files = [
        ("all.sls", "all:\n  local.test.arg: [{tgt: m1}, {arg: [all]}]\n"),
        ("broken.sls", "{% if %}"),
        ("show.sls", SHOW),
        ("feed.sls", "again:\n  runner.event.send: [{tag: feed}, {data: {mark: fed}}]\n"),
        ("ping.sls", "x:\n  runner.event.send: [{tag: ping}]\n"),
        ("pong.sls", "x:\n  runner.event.send: [{tag: pong}]\n"),
    ];
    let mut master = started(reactions, "", &files);
    let mut minion = brine_tests::salt::Minion::prepare(Kind::Brine, "m1", master.ret_port, "");
    master.accept(&mut minion);
    let events = master.events();
    let mut fire = Fire::new(&master);
    let jobs = |events: &Events| {
        events.all().iter().filter(|(tag, data)| tag.ends_with("/new") && data["fun"] == "test.arg").count()
    };
    // Neither its jobs nor their returns have reactions, which would never end.
    let before = jobs(&events);
    fire.event("something", &json!({}));
    wait_for("the reaction to all", || (jobs(&events) > before).then_some(()));
    fire.event("broken", &json!({"mark": "beside"}));
    wait_for("the reaction beside the broken ones", || args_with(&events, "beside").into_iter().next());
    let said = log(&master);
    assert!(said.contains("broken.sls does not render") && said.contains("missing.sls is not there"));
    // A loop of one and a loop of two.
    for tag in ["feed", "ping"] {
        fire.event(tag, &json!({}));
        let stopped = format!("\"{tag}\" does not react to {tag}, which it has caused itself");
        wait_for("the loop's end", || log(&master).contains(&stopped).then_some(()));
    }
    assert!(events.count("feed") <= 2 && events.count("pong") == 1 && events.count("ping") <= 2);
    // Data that is large, deep, or looks like a template.
    let deep = (0..60).fold(json!("{{ salt['saltutil.runner']('test.arg') }}"), |inner, _| json!([inner]));
    fire.event("data", &json!({"mark": "deep", "deep": deep, "{% raw %}": "\n- a: b\n"}));
    let run = wait_for("the reaction to deep data", || args_with(&events, "\"mark\":\"deep\"").into_iter().next());
    assert!(run.to_string().contains("{{ salt['saltutil.runner']('test.arg') }}"));
    fire.event("data", &json!({"mark": "huge", "huge": "x".repeat(3 << 20)}));
    wait_for("the reaction to huge data", || args_with(&events, "\"mark\":\"huge\"").into_iter().next());
    // A storm: what is beyond the bounds is counted and told, and a job comes back meanwhile.
    let began = Instant::now();
    for _ in 0..40 {
        fire.events(1_000, |n| ("storm".to_owned(), from_json(&json!({"n": n}))));
    }
    master.salt(&["m1", "test.ping"]).exits(0);
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    let told = events.wait("what was left out", |tag, _| tag == "brine/reactor/left_out");
    let left: u64 = told.as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    assert!(left > 0, "{told}");
    wait_for("the line in the log", || log(&master).contains("the reactor left out: ").then_some(()));
    master.stop();
}

#[test]
fn reactions_are_listed_added_and_removed_while_the_master_runs() {
    let master = started("  - a/*: [DIR/show.sls]\n", "", &[("show.sls", SHOW)]);
    let path = master.path("reactor/show.sls").display().to_string();
    let run = |words: &[&str]| master.command("salt-run", &[&["--out=json"], words].concat()).exits(0).json();
    assert_eq!(run(&["reactor.list"]), json!([{"a/*": [path]}]));
    let answer = |status: bool, comment: &str| json!({"status": status, "comment": comment});
    let reactors = format!("reactors={path}");
    assert_eq!(run(&["reactor.add", "b/*", &reactors]), answer(true, "Reactor added."));
    assert_eq!(run(&["reactor.add", "b/*", &reactors]), answer(false, "Reactor already exists."));
    let refused = run(&["reactor.add", "c", "reactors=/srv/../etc/x.sls"]);
    assert_eq!(refused["status"], false, "{refused}");
    assert_eq!(run(&["reactor.list"]), json!([{"a/*": [path]}, {"b/*": [path]}]));
    let events = master.events();
    let mut fire = Fire::new(&master);
    fire.event("b/x", &json!({"mark": "added"}));
    wait_for("the reaction that was added", || args_with(&events, "added").into_iter().next());
    assert_eq!(run(&["reactor.is_leader"]), json!(true));
    assert_eq!(run(&["reactor.set_leader", "False"]), json!(false));
    fire.event("b/x", &json!({"mark": "followed"}));
    assert_eq!(run(&["reactor.set_leader", "True"]), json!(true));
    assert_eq!(run(&["reactor.delete", "a/*"]), answer(true, "Reactor deleted."));
    fire.event("a/x", &json!({"mark": "removed"}));
    fire.event("b/x", &json!({"mark": "last"}));
    wait_for("the last reaction", || args_with(&events, "last").into_iter().next());
    assert!(args_with(&events, "followed").is_empty() && args_with(&events, "removed").is_empty());
    // A master without reactions has no reactor, as in Salt.
    let other = Master::start("");
    let said = other.command("salt-run", &["reactor.list"]);
    assert!(said.stdout.contains("Reactor system is not running."), "{said:?}");
}

/// SIGHUP: what starts and who may start it. A reaction of runners outlives a rotation of logs.
#[test]
fn a_changed_configuration_counts_at_sighup() {
    let mut master = Master::prepare(Kind::Brine, "id: the_master");
    let (path, conf) = (master.path("show.sls"), master.path("conf/master"));
    std::fs::write(&path, SHOW).expect("our own folder");
    master.up();
    let before = std::fs::read_to_string(&conf).expect("just written");
    let hup = |more: &str, said: &str| {
        std::fs::write(&conf, format!("{before}\n{}\n", more.replace("SLS", &path.display().to_string())))
            .expect("our own folder");
        let seen = log(&master).len();
        master.daemon.as_ref().expect("it runs").signal(Signal::HUP);
        wait_for(said, || log(&master)[seen..].contains(said).then_some(()));
    };
    let read = "configuration read again";
    let events = master.events();
    let mut fire = Fire::new(&master);
    let mut reacts = |tag: &str| {
        fire.event(tag, &json!({"mark": tag}));
        wait_for(tag, || args_with(&events, &format!("{tag:?}")).into_iter().next());
    };
    // A master that had no reactor has one.
    hup("reactor: [{a/*: [SLS]}]", read);
    reacts("a/1");
    let run = |words: &[&str]| master.command("salt-run", &[&["--out=json"], words].concat()).exits(0).json();
    run(&["reactor.add", "b/*", &format!("reactors={}", path.display())]);
    hup("reactor: [{a/*: [SLS]}]", read);
    reacts("b/1");
    // What is wrong changes nothing.
    hup("reactor: [{c/*: [relative.sls]}]", "the configuration is not taken up");
    reacts("a/2");
    hup("reactor: [{c/*: [SLS]}]", read);
    reacts("c/1");
    assert_eq!(run(&["reactor.list"]), json!([{"c/*": [path]}]));
    hup("reactor: [{c/*: [SLS]}]\nreactor_acl: [test.ping]", read);
    Fire::new(&master).event("c/2", &json!({"mark": "refused"}));
    wait_for("the refusal", || log(&master).contains("is not started").then_some(()));
    hup("reactor: []", read);
    assert!(master.command("salt-run", &["reactor.list"]).stdout.contains("Reactor system is not running."));
}

/// A runner fires in the name of its caller: the template sees who it is.
#[test]
fn an_event_that_a_runner_sends_is_its_callers() {
    let config = "external_auth: {sharedsecret: {fred: ['@runner']}}\nsharedsecret: a-long-secret-for-tests";
    let master = started("  - x/*: [DIR/show.sls]\n", config, &[("show.sls", SHOW)]);
    let events = master.events();
    let login = ["-a", "sharedsecret", "--username=fred", "--password=a-long-secret-for-tests"];
    for (login, mark, by) in [(&[][..], "roots", ("root", None)), (&login[..], "freds", ("user", Some("fred")))] {
        let data = format!("{{mark: {mark}}}");
        master.command("salt-run", &[login, &["event.send", "x/1", &data]].concat()).exits(0);
        let run = wait_for(mark, || args_with(&events, mark).into_iter().next());
        let told = &run[0]["by"];
        assert_eq!(told["kind"], by.0, "{run}");
        assert!(by.1.is_none_or(|name| told["name"] == name), "{run}");
    }
}

/// A reaction has the rights of the reactor: who may call runners must not bring his own.
#[test]
fn a_user_with_all_runners_adds_no_reaction() {
    let config = "external_auth: {sharedsecret: {fred: ['@runner', '@events']}}\nsharedsecret: a-long-secret-for-tests";
    let master = started("  - a/*: [DIR/show.sls]\n", config, &[("show.sls", SHOW)]);
    let login = ["-a", "sharedsecret", "--username=fred", "--password=a-long-secret-for-tests"];
    for words in
        [&["reactor.add", "x", "reactors=/tmp/x.sls"][..], &["reactor.delete", "a/*"], &["reactor.set_leader", "False"]]
    {
        let said = master.command("salt-run", &[&login[..], words].concat());
        assert!(said.stdout.contains("only root of this host"), "{words:?}: {said:?}");
    }
    let listed = master.command("salt-run", &[&login[..], &["reactor.list"]].concat()).exits(0);
    assert!(listed.stdout.contains("a/*"), "{listed:?}");
}
