//! The same reactions on a Brine master and a Python master (3008), each with a Brine minion: what they start, with which
//! arguments, must be the same.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use brine_kit::wait::wait_for;
use brine_protocol::event::{Event, Framing, frame};
use brine_protocol::value::from_json;
use brine_tests::events::Events;
use brine_tests::salt::{Kind, Master, Minion, line};
use serde_json::{Value, json};

const CONFIG: &str = "id: the_master\ntimeout: 15\ngather_job_timeout: 15\nworker_threads: 3\nauto_accept: True\n\
                      fileserver_list_cache_time: 0";

/// A reaction: its name, its SLS files (a path that begins with `salt/` is served, others are absolute), the data of the
/// event, and how much it starts.
struct Row(&'static str, &'static [(&'static str, &'static str)], &'static str, usize);

const ROWS: &[Row] = &[
    // As the documentation of the reactor has them.
    Row(
        "args",
        &[(
            "a.sls",
            "install:\n  local.test.arg:\n    - tgt: web1\n    - args:\n      - fun: pkg.installed\n      - name: zsh\n",
        )],
        "{}",
        1,
    ),
    Row(
        "legacy",
        &[(
            "a.sls",
            "install:\n  local.test.arg:\n    - tgt: web1\n    - arg:\n      - pkg.installed\n      - zsh\n    - kwarg:\n        fromrepo: updates\n",
        )],
        "{}",
        1,
    ),
    Row(
        "highstate",
        &[("a.sls", "highstate_run:\n  local.test.ping:\n    - tgt: {{ data['id'] }}\n")],
        "{id: web1}",
        1,
    ),
    Row(
        "compound",
        &[("a.sls", "x:\n  local.test.ping:\n    - tgt: 'web* and G@role:web'\n    - tgt_type: compound\n")],
        "{}",
        1,
    ),
    Row(
        "listed",
        &[("a.sls", "x:\n  local.test.ping:\n    - tgt: [web1, other]\n    - tgt_type: list\n    - ret: ''\n")],
        "{}",
        1,
    ),
    Row("alias", &[("a.sls", "x:\n  cmd.test.ping:\n    - tgt: '*'\n")], "{}", 1),
    Row(
        "orchestrate",
        &[(
            "a.sls",
            "run_orch:\n  runner.state.orchestrate:\n    - args:\n      - mods: orch.simple\n      - pillar:\n          event_tag: {{ tag }}\n          event_data: {{ data.fields|json }}\n",
        )],
        "{fields: {branch: main, n: [1, 2]}}",
        1,
    ),
    Row(
        "orchestrate_legacy",
        &[("a.sls", "run_orch:\n  runner.state.orchestrate:\n    - mods: orch.simple\n    - pillar: {word: x}\n")],
        "{}",
        1,
    ),
    Row(
        "runner_args",
        &[("a.sls", "x:\n  runner.test.arg:\n    - args:\n      - first: 1\n      - second: [2]\n")],
        "{}",
        1,
    ),
    Row("runner_legacy", &[("a.sls", "x:\n  runner.test.arg:\n    - first: 1\n    - second: {a: b}\n")], "{}", 1),
    Row("runner_both", &[("a.sls", "x:\n  runner.test.arg:\n    - arg: [1, a b]\n    - kwarg: {c: 3}\n")], "{}", 1),
    Row(
        "wheel_args",
        &[("a.sls", "x:\n  wheel.key.delete:\n    - args:\n      - match: {{ data.id }}\n")],
        "{id: gone1}",
        1,
    ),
    Row("wheel_legacy", &[("a.sls", "x:\n  wheel.key.delete:\n    - match: {{ data.id }}\n")], "{id: gone2}", 1),
    Row(
        "condition",
        &[(
            "a.sls",
            "{% if data.act == 'pend' and data['id'].startswith('web') %}\nx:\n  local.test.arg:\n    - tgt: web1\n    - arg: [{{ tag }}]\n{% else %}\ny:\n  runner.test.arg: []\n{% endif %}\n",
        )],
        "{act: pend, id: web9}",
        1,
    ),
    Row(
        "posted",
        &[(
            "a.sls",
            "{% set payload = data['post']|load_json %}\nx:\n  local.test.arg:\n    - tgt: web1\n    - args:\n      - branch: {{ payload.branch }}\n",
        )],
        "{post: '{\"branch\": \"main\"}'}",
        1,
    ),
    // More than one.
    Row(
        "several",
        &[(
            "a.sls",
            "b:\n  local.test.arg: [{tgt: web1}, {arg: [b]}]\na:\n  local.test.arg: [{tgt: web1}, {arg: [a]}]\nc:\n  local.test.arg: [{tgt: web1}, {arg: [c]}, {order: 1}]\n",
        )],
        "{}",
        3,
    ),
    Row(
        "requires",
        &[(
            "a.sls",
            "a:\n  local.test.arg: [{tgt: web1}, {arg: [a]}, {require: [{local: b}]}]\nb:\n  local.test.arg: [{tgt: web1}, {arg: [b]}]\n",
        )],
        "{}",
        2,
    ),
    Row(
        "two_files",
        &[
            (
                "a.sls",
                "same:\n  local.test.arg: [{tgt: web1}, {arg: [first]}]\nmore:\n  local.test.arg: [{tgt: web1}, {arg: [more]}]\n",
            ),
            ("b.sls", "same:\n  local.test.arg: [{tgt: web1}, {arg: [second]}]\n"),
        ],
        "{}",
        2,
    ),
    Row(
        "named",
        &[("a.sls", "x:\n  local.test.arg:\n    - names: [one, two]\n    - tgt: web1\n    - arg: [n]\n")],
        "{}",
        2,
    ),
    Row("served", &[("salt/reactor/a.sls", "x:\n  local.test.arg: [{tgt: web1}, {arg: [served]}]\n")], "{}", 1),
    Row(
        "glob*",
        &[
            ("glob1.sls", "one:\n  local.test.arg: [{tgt: web1}, {arg: [one]}]\n"),
            ("glob2.sls", "two:\n  local.test.arg: [{tgt: web1}, {arg: [two]}]\n"),
        ],
        "{}",
        2,
    ),
    Row(
        "json",
        &[("a.sls", "#!json\n{\"x\": {\"local.test.arg\": [{\"tgt\": \"web1\"}, {\"arg\": [\"json\"]}]}}\n")],
        "{}",
        1,
    ),
    // Entries of which several are for one tag, and what documentation shows of authentication, hooks and pillar.
    Row("pair", &[("a.sls", "one:\n  local.test.arg: [{tgt: web1}, {arg: [exact]}]\n")], "{}", 2),
    Row("pair*", &[("glob1.sls", "two:\n  local.test.arg: [{tgt: web1}, {arg: [by glob]}]\n")], "{}", 2),
    Row(
        "rejoin",
        &[(
            "a.sls",
            "{% if not data['result'] and data['id'].startswith('ink') %}\nminion_remove:\n  wheel.key.delete:\n    - args:\n      - match: {{ data['id'] }}\nminion_rejoin:\n  local.test.arg:\n    - tgt: web1\n    - args:\n      - cmd: ssh -o StrictHostKeyChecking=no \"{{ data['id'] }}\" 'sleep 10 && service salt-minion restart'\n{% endif %}\n{% if 'act' in data and data['act'] == 'pend' and data['id'].startswith('ink') %}\nminion_add:\n  wheel.key.accept:\n    - args:\n      - match: {{ data['id'] }}\n{% endif %}\n",
        )],
        "{id: ink7, result: false, act: reject}",
        2,
    ),
    Row(
        "sls_pillar",
        &[(
            "a.sls",
            "revision:\n  local.test.arg:\n    - tgt: 'kernel:Linux'\n    - tgt_type: grain\n    - kwarg:\n        mods: deploy\n        pillar:\n          revision: {{ data['data']['revision'] }}\n          ids: {{ data['data']['ids']|json }}\n",
        )],
        "{data: {revision: '0012', ids: [1, b]}}",
        1,
    ),
    Row(
        "macro",
        &[(
            "a.sls",
            "{% macro ping(name) %}\nping_{{ name }}:\n  local.test.arg:\n    - tgt: web1\n    - args:\n      - who: {{ name }}\n{% endmacro %}\n{% for name in data.names %}{{ ping(name) }}{% endfor %}\n",
        )],
        "{names: [b, a]}",
        2,
    ),
    Row(
        "included_map",
        &[(
            "a.sls",
            "{% set map = {'web': 'web1'} %}\nx:\n  local.test.arg:\n    - tgt: {{ map.get(data.role, 'nobody') }}\n    - arg: [{{ tag.split('/')|last }}]\n",
        )],
        "{role: web}",
        1,
    ),
    Row(
        "salt_cmd",
        &[("a.sls", "x:\n  runner.salt.cmd:\n    - args:\n      - fun: test.arg\n      - marked: true\n")],
        "{}",
        1,
    ),
    Row(
        "event_send",
        &[(
            "a.sls",
            "x:\n  runner.event.send:\n    - args:\n      - tag: other/tag\n      - data: {a: {{ data.a }}}\n",
        )],
        "{a: 5}",
        1,
    ),
    Row(
        "kwargs_of_job",
        &[(
            "a.sls",
            "x:\n  local.test.arg:\n    - tgt: web1\n    - arg: [a, {b: c}, 1.5, null, true]\n    - kwarg: {d: '1', e: 2}\n    - metadata: {who: reactor}\n",
        )],
        "{}",
        1,
    ),
    // What is in the data is text, whatever it looks like.
    Row(
        "hostile",
        &[("a.sls", "x:\n  local.test.arg:\n    - tgt: web1\n    - arg: [{{ data.text|json }}]\n")],
        "{text: \"{{ salt['test.ping']() }}{% raw %}\\n- é\"}",
        1,
    ),
    // What is wrong starts nothing, and does not keep others from it.
    Row(
        "broken_jinja",
        &[
            ("a.sls", "x:\n  local.test.ping: [{tgt: {{ nothing.there.at_all }}}]\n"),
            ("b.sls", "y:\n  local.test.arg: [{tgt: web1}, {arg: [beside]}]\n"),
        ],
        "{}",
        1,
    ),
    Row("broken_yaml", &[("a.sls", "x: [\n")], "{}", 0),
    Row("a_list", &[("a.sls", "- x\n- y\n")], "{}", 0),
    Row("no_target", &[("a.sls", "x: local.test.ping\ny:\n  local.test.arg: [{tgt: web1}, {arg: [y]}]\n")], "{}", 1),
    // An unknown kind, such as `pkg.installed`, ends the reactor of stock Salt, so it is no row here.
    Row("bad_args", &[("a.sls", "x:\n  local.test.arg: [{tgt: web1}, {args: [{a: 1, b: 2}]}]\n")], "{}", 0),
    Row("unknown_runner", &[("a.sls", "x:\n  runner.no.such: [{a: 1}]\n")], "{}", 0),
    Row("missing_argument", &[("a.sls", "x:\n  runner.jobs.list_job: []\n")], "{}", 0),
    Row("empty", &[("a.sls", "{% if data.go %}x: y{% endif %}")], "{}", 0),
    Row("end", &[("a.sls", "x:\n  local.test.arg: [{tgt: web1}, {arg: [end]}]\n")], "{}", 1),
];

struct World {
    master: Master,
    _minion: Minion,
}

impl World {
    fn new(kind: Kind) -> Self {
        let mut master = Master::prepare(kind, CONFIG);
        std::fs::remove_dir(master.path("srv/salt/_modules")).expect("our own folder");
        master.serve("orch/simple.sls", b"done:\n  test.nop: []\n");
        let mut entries = Vec::new();
        for Row(name, files, ..) in ROWS {
            let folder = master.path(&format!("reactor/{}", name.trim_end_matches('*')));
            std::fs::create_dir_all(&folder).expect("our own folder");
            let mut paths = Vec::new();
            for (file, text) in *files {
                if let Some(served) = file.strip_prefix("salt/") {
                    master.serve(served, text.as_bytes());
                    paths.push(format!("salt://{served}"));
                    continue;
                }
                std::fs::write(folder.join(file), text).expect("our own folder");
                paths.push(folder.join(file).display().to_string());
            }
            if name.ends_with('*') {
                paths = vec![folder.join("glob*.sls").display().to_string()];
            }
            entries.push(json!({format!("row/{name}"): paths}));
        }
        std::fs::create_dir_all(master.path("conf/master.d")).expect("our own folder");
        let text = json!({ "reactor": entries }).to_string();
        std::fs::write(master.path("conf/master.d/reactor.conf"), text).expect("our own folder");
        master.up();
        let minion = master.minion_kind(Kind::Brine, "web1", "grains: {role: web}");
        Self { master, _minion: minion }
    }

    /// What each row starts, by its name.
    fn run(&self) -> Vec<(&'static str, Vec<String>)> {
        let events = self.master.events();
        let mut pull = UnixStream::connect(self.master.path("sock/master_event_pull.ipc")).expect("the master's bus");
        let mut seen = 0;
        let mut all = Vec::new();
        for Row(name, _, data, count) in ROWS {
            let data = from_json(&brine_data(data));
            let event = Event::new(format!("row/{}", name.trim_end_matches('*')), data);
            pull.write_all(&frame(&event, Framing::Prefixed)).expect("the master takes events");
            // A row without any counts with the next one, whose job comes after it.
            if *count > 0 {
                wait_for(&format!("what {name} starts"), || (started(&events, seen).len() >= *count).then_some(()));
            }
            let started = started(&events, seen);
            seen += started.len();
            all.push((*name, started));
        }
        all
    }
}

/// What the runners of the reactor answer, without the folder of the master.
fn managed(master: &Master) -> Vec<(String, Value)> {
    let sls = master.path("reactor/alias/a.sls").display().to_string();
    let more = format!("reactors={sls}");
    let listed = format!("reactors=[{sls}, /srv/other.sls]");
    let commands: [&[&str]; 11] = [
        &["reactor.is_leader"],
        &["reactor.add", "more/*", &more],
        &["reactor.add", "more/*", &more],
        &["reactor.add", "event=list/*", &listed],
        &["reactor.list"],
        &["reactor.delete", "more/*"],
        &["reactor.delete", "more/*"],
        &["reactor.list"],
        &["reactor.set_leader", "False"],
        &["reactor.is_leader"],
        &["reactor.set_leader", "value=True"],
    ];
    let run = |words: &&[&str]| {
        let folder = master.folder.path().display().to_string();
        let said = master.command("salt-run", &[&["--out=json"], *words].concat()).exits(0).stdout;
        let (said, shown) = (said.replace(&folder, "FOLDER"), words.join(" ").replace(&folder, "FOLDER"));
        // Salt's prints the event by which it asks, too.
        let values = serde_json::Deserializer::from_str(&said).into_iter::<Value>().map_while(Result::ok);
        (shown, values.last().unwrap_or(Value::String(said)))
    };
    commands.iter().map(run).collect()
}

fn brine_data(text: &str) -> Value {
    brine_protocol::value::to_json(&brine_protocol::config::yaml::load(text).expect("the rows have YAML"))
}

/// With the keys of maps in their order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// What has been started after the first `from` that were.
fn started(events: &Events, from: usize) -> Vec<String> {
    let shown = |(tag, data): &(String, Value)| {
        let parts: Vec<&str> = tag.split('/').collect();
        match parts.as_slice() {
            ["salt", "job", _, "new"] => {
                let of = |name: &str| data[name].to_string();
                Some(format!("{} on {} ({}) with {}", of("fun"), of("tgt"), of("tgt_type"), of("arg")))
            }
            ["salt", "run" | "wheel", _, "new"] => {
                Some(format!("{} with {} by {}", data["fun"], sorted(&data["fun_args"]), data["user"]))
            }
            _ => None,
        }
    };
    // Jobs of clients that look for jobs are no reactions.
    let all = events.all();
    let all = all.iter().filter(|(_, data)| data["fun"] != "saltutil.find_job");
    all.filter_map(shown).skip(from).collect()
}

#[test]
fn reactions() {
    if line() != 3008 {
        return;
    }
    let (brine, salt) = std::thread::scope(|scope| {
        let brine = scope.spawn(|| World::new(Kind::Brine));
        let salt = World::new(Kind::Python);
        (brine.join().expect("no panic"), salt)
    });
    let (theirs, mine) = std::thread::scope(|scope| {
        let mine = scope.spawn(|| brine.run());
        (salt.run(), mine.join().expect("no panic"))
    });
    let wrong: String = mine
        .iter()
        .zip(&theirs)
        .filter(|(mine, theirs)| mine != theirs)
        .map(|((name, mine), (_, theirs))| format!("{name}:\n  {theirs:#?}\ninstead of\n  {mine:#?}\n"))
        .collect();
    assert!(wrong.is_empty(), "{wrong}");
    let answers = std::thread::scope(|scope| {
        let mine = scope.spawn(|| managed(&brine.master));
        (managed(&salt.master), mine.join().expect("no panic"))
    });
    assert_eq!(answers.1, answers.0, "left is Brine");
    for ((_, started), Row(name, .., count)) in theirs.iter().zip(ROWS) {
        assert_eq!(started.len(), *count, "{name}: {started:?}");
    }
}
