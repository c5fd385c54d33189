//! The same orchestrations on a Brine master and a Python master (3008), each with a Brine minion: their results must be
//! the same, state by state, except for times and jids.

use brine_tests::salt::{Kind, Master, Minion, line};
use serde_json::{Map, Value};

use crate::pythons;

const CONFIG: &str = "id: the_master\ntimeout: 15\ngather_job_timeout: 15\nworker_threads: 3\nauto_accept: True\n\
                      fileserver_list_cache_time: 0";

/// SLS files: of minions, and of the master.
const FILES: &[(&str, &str)] = &[
    ("web.sls", "web_ok:\n  test.succeed_with_changes: []\nweb_same:\n  test.nop: []\n"),
    ("same.sls", "same_ok:\n  test.nop:\n    - name: {{ pillar.get('word', 'none') }}\n"),
    ("bad.sls", "bad_one:\n  test.fail_without_changes: []\n"),
    ("orch/inner.sls", "inner:\n  test.show_notification:\n    - text: {{ pillar.word }} {{ sls }} {{ tpldir }}\n"),
    ("orch/innerbad.sls", "inner:\n  test.fail_with_changes: []\n"),
    (
        "orch/minions.sls",
        "
ping:
  salt.function: [{name: test.ping}, {tgt: '*'}]
web:
  salt.state: [{tgt: web1}, {sls: web}, {require: [{salt: ping}]}]
same:
  salt.state: [{tgt: web1}, {sls: [same]}, {pillar: {word: given}}, {require: [{salt: web}]}]
high:
  salt.state: [{tgt: web1}, {highstate: True}]
nobody:
  salt.function: [{name: test.ping}, {tgt: nobody}]
nobody_state:
  salt.state: [{tgt: nobody}, {sls: web}]
nobody_is_right:
  salt.state: [{tgt: nobody}, {sls: web}, {expect_minions: False}]
listed:
  salt.state: [{tgt: [web1, gone]}, {tgt_type: list}, {sls: web}]
listed_well:
  salt.state: [{tgt: [web1, gone]}, {tgt_type: list}, {sls: web}, {fail_minions: 'gone, other'}]
by_grain:
  salt.function: [{name: test.ping}, {tgt: 'role:web'}, {tgt_type: grain}]
compound:
  salt.function: [{name: test.echo}, {tgt: 'web* and G@role:web'}, {tgt_type: compound}, {arg: [x]}]
failing:
  salt.state: [{tgt: web1}, {sls: [web, bad]}]
never:
  salt.function: [{name: test.ping}, {tgt: web1}, {require: [{salt: failing}]}]
forgiven:
  salt.state: [{tgt: web1}, {sls: bad}, {fail_minions: [web1]}]
allowed:
  salt.state: [{tgt: web1}, {sls: bad}, {allow_fail: 1}]
bad_allow:
  salt.state: [{tgt: web1}, {sls: bad}, {allow_fail: x}]
bad_concurrent:
  salt.state: [{tgt: web1}, {sls: web}, {concurrent: x}]
nosls:
  salt.state: [{tgt: web1}, {sls: nothere}]
nothing:
  salt.state: [{tgt: web1}]
badfun:
  salt.function: [{name: test.nope}, {tgt: web1}]
falsefun:
  salt.function: [{name: test.false}, {tgt: web1}]
forgiven_false:
  salt.function: [{name: test.false}, {tgt: web1}, {fail_minions: [web1]}]
text_arg:
  salt.function: [{name: test.arg}, {tgt: web1}, {arg: a b}, {kwarg: {c: 3}}]
dry:
  salt.state: [{tgt: web1}, {sls: web}, {test: True}]
batch:
  salt.state: [{tgt: '*'}, {sls: web}, {batch: 1}]
subset:
  salt.function: [{name: test.ping}, {tgt: '*'}, {subset: 1}]
named:
  salt.function:
    - names: [test.ping, test.true]
    - tgt: web1
onfail:
  test.succeed_without_changes: [{onfail: [{salt: failing}]}]
onchanges:
  test.nop: [{onchanges: [{salt: web}]}]
onchanges_not:
  test.nop: [{onchanges: [{salt: same}]}]
watching:
  test.nop: [{watch: [{salt: web}]}]
unknown:
  nothere.run: [{name: x}]
",
    ),
    (
        "orch/master.sls",
        "
runner:
  salt.runner: [{name: test.arg}, {arg: [1]}, {kwarg: {a: b}}, {c: d}]
wheel:
  salt.wheel: [{name: key.list}, {match: acc}]
inner:
  salt.runner: [{name: state.orchestrate}, {mods: orch.inner}, {pillar: {word: inner}}]
innerbad:
  salt.runner: [{name: state.orch}, {mods: orch.innerbad}]
wrong:
  salt.runner: [{name: state.orchestrate}, {mods: orch.nothere}]
wait:
  salt.wait_for_event: [{name: 'never/*'}, {id_list: [a]}, {timeout: 1}]
template:
  test.show_notification:
    - text: \"{{ salt['saltutil.runner']('test.arg', kwarg={'a': 2}).kwargs.a }} {{ pillar.word }} {{ grains.id }} {{ opts.id }} {{ saltenv }}\"
",
    ),
    ("orch/hard.sls", "one:\n  salt.state: [{tgt: web1}, {sls: bad}, {failhard: True}]\ntwo:\n  test.nop: []\n"),
    ("top.sls", "base: {web1: [same]}\n"),
];

/// The orchestrations: `state.orchestrate` with these words.
const RUNS: &[&[&str]] = &[
    &["orch.minions"],
    &["orch.minions", "test=True"],
    &["orch.master"],
    &["orch.master", "test=True"],
    &["orch.hard"],
    &["orch.inner,orch.hard", "exclude=orch.hard", "pillar={word: given}"],
    &["orch.nothere"],
];

struct World {
    master: Master,
    _minion: Minion,
}

impl World {
    fn new(kind: Kind) -> Self {
        let mut master = Master::prepare(kind, CONFIG);
        std::fs::remove_dir(master.path("srv/salt/_modules")).expect("our own folder");
        for (path, text) in FILES {
            master.serve(path, text.as_bytes());
        }
        std::fs::create_dir_all(master.path("srv/pillar")).expect("our own folder");
        std::fs::write(master.path("srv/pillar/top.sls"), "base: {'*': [all]}\n").expect("our own folder");
        std::fs::write(master.path("srv/pillar/all.sls"), "word: base\n").expect("our own folder");
        std::fs::create_dir_all(master.path("conf/master.d")).expect("our own folder");
        let roots = format!("pillar_roots: {{base: [{}]}}\n", master.path("srv/pillar").display());
        std::fs::write(master.path("conf/master.d/roots.conf"), roots).expect("our own folder");
        master.up();
        let minion = master.minion_kind(Kind::Brine, "web1", "grains: {role: web}");
        Self { master, _minion: minion }
    }
}

/// The last JSON document of a text: Salt prints lines for people before it.
fn last(text: &str) -> Value {
    let starts = text.match_indices('{').map(|(at, _)| at).filter(|at| *at == 0 || text[..*at].ends_with('\n'));
    let documents = starts.filter_map(|at| serde_json::Deserializer::from_str(&text[at..]).into_iter().next()?.ok());
    documents.into_iter().reduce(|_, next| next).unwrap_or_else(|| panic!("no JSON in {text:?}"))
}

/// Without what differs from run to run.
fn steady(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let kept = entries.iter().filter(|(name, _)| {
                !matches!(name.as_str(), "start_time" | "duration" | "__jid__" | "_stamp") && !name.starts_with("__pub")
            });
            Value::Object(kept.map(|(name, value)| (name.clone(), steady(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(steady).collect(),
        other => other.clone(),
    }
}

#[test]
fn orchestrations() {
    if line() != 3008 {
        return;
    }
    let (brine, salt) = std::thread::scope(|scope| {
        let brine = scope.spawn(|| World::new(Kind::Brine));
        let salt = World::new(Kind::Python);
        (brine.join().expect("no panic"), salt)
    });
    let of = |words: &&[&str]| {
        let all = ["--out=json", "state.orchestrate"].iter().chain(words.iter());
        all.map(|word| (*word).to_owned()).collect::<Vec<_>>()
    };
    let calls: Vec<Vec<String>> = RUNS.iter().map(|words| [vec!["salt-run".to_owned()], of(words)].concat()).collect();
    let expected = pythons(&salt.master, &calls, 1);
    let mut wrong = String::new();
    for (words, expected) in RUNS.iter().zip(expected) {
        let own = of(words);
        let ours = brine.master.command("salt-run", &own.iter().map(String::as_str).collect::<Vec<_>>());
        let (mine, theirs) = (last(&ours.stdout), last(&expected.stdout));
        let top = |whole: &Value| (whole["retcode"].clone(), whole["outputter"].clone());
        if ours.code != expected.code || top(&mine) != top(&theirs) {
            wrong.push_str(&format!("{words:?}: code {} instead of {}\n", ours.code, expected.code));
        }
        let (mine, theirs) = (&mine["data"]["the_master"], &theirs["data"]["the_master"]);
        let (Some(mine), Some(theirs)) = (mine.as_object(), theirs.as_object()) else {
            if mine != theirs {
                wrong.push_str(&format!("{words:?}: {mine} instead of {theirs}\n"));
            }
            continue;
        };
        if mine.keys().ne(theirs.keys()) {
            wrong.push_str(&format!("{words:?}: {:?} instead of {:?}\n", mine.keys(), theirs.keys()));
        }
        for (tag, theirs) in theirs {
            let (mine, theirs) = (steady(mine.get(tag).unwrap_or(&Value::Null)), steady(theirs));
            if mine != theirs {
                wrong.push_str(&format!("{words:?}, {tag}:\n  {mine}\ninstead of\n  {theirs}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
