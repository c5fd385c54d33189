//! The minion's data and the master's data for it: grains in the master's cache, the pillar, the configuration.

use brine_tests::salt::{Master, line};
use serde_json::{Value, json};

use super::super::client::{Call, answers, call, calls};
use super::Fleet;

/// Mine functions: under their own name, under an alias, and restricted to some minions.
const MINE: &str = r#"{"grains.get": ["id"], "alias": [{"mine_function": "grains.get"}, "role"], "some": {"mine_function": "grains.get", "key": "id", "allow_tgt": "brine*"}}"#;

/// What stands for a value of the pillar.
const MASK: &str = "**********";

/// Writes the pillar of all minions.
pub(super) fn pillar(master: &Master, known: &str) {
    let top = "base:\n  '*': [common]\n";
    let common = format!(
        "known: {known}\nonly: {{{{ grains['id'] }}}}\nweb: {{tls: [a, b], 'k:x': 1}}\nplain: {{zero: 0, absent: false, none: null, empty: '', one: 1, half: 0.5}}\nrole: {{{{ grains.get('role') }}}}\nmine_functions: {MINE}\n"
    );
    for (name, text) in [("top.sls", top), ("common.sls", &common)] {
        std::fs::write(master.path("srv/pillar").join(name), text).expect("our own folder");
    }
}

pub(super) fn check(fleet: &Fleet) {
    let master = &fleet.master;
    let run = |args: &[&str]| master.command("salt-run", &[&["--out=json"], args].concat()).exits(0).json();
    let up = run(&["manage.up"]);
    assert_eq!(up, json!(["brine1", "brine2", "python"]));
    let versions = run(&["manage.versions"]);
    assert!(versions["Up to date"]["python"].is_string(), "{versions}");
    assert!(versions["Minion requires update"]["brine1"].is_string(), "{versions}");
    let cached = run(&["cache.grains", "tgt=brine1"]);
    assert_eq!((&cached["brine1"]["role"], &cached["brine1"]["id"]), (&json!("web"), &json!("brine1")));

    let made = ["os", "os_family", "osrelease", "kernel", "cpuarch", "host", "saltversioninfo"]
        .map(|grain| call("*", "grains.get", json!([grain])));
    for answer in &calls(master, &made)[..6] {
        assert_eq!(answer["brine1"], answer["python"], "a grain that Salt has otherwise");
    }
    answers(
        master,
        "brine1",
        &[
            ("grains.item", json!(["id", "none"]), json!({"id": "brine1", "none": ""})),
            ("grains.get", json!(["nested:tier:0"]), json!("front")),
            ("grains.has_value", json!(["role"]), json!(true)),
            ("pillar.get", json!(["known"]), json!(MASK)),
            ("pillar.get", json!(["web:tls:1", "unmask=True"]), json!("b")),
            ("pillar.get", json!(["web|k:x", "delimiter=|", "unmask=True"]), json!(1)),
            ("pillar.get", json!(["none", "x", "unmask=True"]), json!("x")),
            (
                "pillar.item",
                json!(["known", "web:tls", "none", "unmask=True"]),
                json!({"known": "v1", "web:tls": ["a", "b"], "none": ""}),
            ),
            ("pillar.keys", json!(["web"]), json!(["tls", "k:x"])),
            ("pillar.raw", json!(["role"]), json!("web")),
            ("config.get", json!(["id"]), json!("brine1")),
            ("config.get", json!(["role"]), json!("web")),
            ("config.get", json!(["web:tls"]), json!(["a", "b"])),
            ("config.get", json!(["web|k:x", "", "|"]), json!(1)),
            ("config.get", json!(["master_port"]), json!(master.ret_port)),
            ("config.get", json!(["none", 7]), json!(7)),
        ],
    );

    // `pillar.items` returns the current pillar. The pillar of jobs changes only with a refresh.
    pillar(master, "v2");
    let mine: Value = serde_json::from_str(MINE).expect("JSON");
    let plain = json!({"zero": 0, "absent": false, "none": null, "empty": "", "one": 1, "half": 0.5});
    let fresh = json!({"mine_functions": mine, "known": "v2", "only": "brine1", "web": {"tls": ["a", "b"], "k:x": 1}, "plain": plain, "role": "web"});
    answers(
        master,
        "brine1",
        &[
            ("pillar.items", json!(["unmask=True"]), fresh),
            ("pillar.ls", json!([]), json!(["known", "only", "web", "plain", "role", "mine_functions"])),
            ("pillar.raw", json!(["known"]), json!("v1")),
            ("saltutil.refresh_pillar", json!([]), json!(true)),
            ("pillar.raw", json!(["known"]), json!("v2")),
        ],
    );
    as_salt_answers(master);

    shown(master, &run);

    // Changed grains reach the master's cache, and so its targets, only with a refresh.
    let file = fleet.first.path("conf/grains");
    std::fs::write(&file, "role: db\nadded: 1\n").expect("our own folder");
    let refreshed = master.events();
    let by_role = || call("added:1", "test.ping", json!([])).tgt_type("grain");
    let before = calls(master, &[by_role(), call("brine1", "saltutil.refresh_modules", json!([])), by_role()]);
    assert_eq!(before, [json!({}), json!({"brine1": true}), json!({})]);
    answers(master, "brine1", &[("saltutil.refresh_grains", json!([]), json!(true))]);
    refreshed.wait_tag("minion/refresh/brine1");
    assert_eq!(calls(master, &[by_role()]), [json!({"brine1": true})]);
    assert_eq!(run(&["cache.grains", "tgt=brine1"])["brine1"]["added"], json!(1));
    std::fs::remove_file(&file).expect("our own file");
    answers(master, "brine1", &[("saltutil.refresh_grains", json!([]), json!(true))]);
    assert_eq!(calls(master, &[by_role()]), [json!({})]);
}

/// The pillar and the mine in calls that Salt's minion answers as well.
fn as_salt_answers(master: &Master) {
    // 3008 masks values first.
    if line() < 3008 {
        return;
    }
    calls(master, &[call("python", "saltutil.refresh_pillar", json!(["wait=True"]))]);
    let table = [
        ("pillar.get", json!(["known"])),
        ("pillar.get", json!(["plain"])),
        ("pillar.get", json!(["plain", "unmask=True"])),
        ("pillar.get", json!(["plain:none", "x"])),
        ("pillar.get", json!(["plain:zero", "x"])),
        ("pillar.get", json!(["web:tls:-1", "unmask=True"])),
        ("pillar.get", json!(["nothing", "default=shown"])),
        ("pillar.get", json!(["nothing", "default={a: 1}", "unmask=True"])),
        ("pillar.get", json!(["web", "default={tls: [c], more: 1}", "merge=True", "unmask=True"])),
        ("pillar.get", json!(["web", "default={tls: [c], more: 1}", "merge=True"])),
        ("pillar.get", json!(["web", "default={tls: [c]}", "merge=True", "merge_nested_lists=True", "unmask=True"])),
        ("pillar.get", json!(["web:tls", "default=[a, c]", "merge=True", "unmask=True"])),
        ("pillar.get", json!(["known", "default={a: 1}", "merge=True", "unmask=True"])),
        ("pillar.get", json!(["known", "pillarenv=base", "unmask=True"])),
        ("pillar.get", json!(["known", "saltenv=base"])),
        ("pillar.get", json!(["known", "pillarenv=nowhere"])),
        ("pillar.fetch", json!(["known", "unmask=True"])),
        ("pillar.item", json!(["known", "plain:zero", "nothing"])),
        ("pillar.item", json!(["known", "nothing", "default=7", "unmask=True"])),
        ("pillar.item", json!(["web/tls", "delimiter=/", "unmask=True"])),
        ("pillar.item", json!(["known", "pillarenv=base", "unmask=True"])),
        ("pillar.items", json!(["known", "web"])),
        ("pillar.items", json!(["known", "unmask=True"])),
        ("pillar.raw", json!(["web"])),
        ("pillar.raw", json!(["web", "unmask=False"])),
        ("pillar.raw", json!(["web:tls"])),
        ("pillar.keys", json!(["web"])),
        ("pillar.keys", json!(["plain"])),
        ("pillar.ls", json!([])),
        ("pillar.ls", json!(["known"])),
        ("pillar.ls", json!(["pillar={added: 1}"])),
        ("pillar.obfuscate", json!([])),
        ("pillar.obfuscate", json!(["unmask=True"])),
        ("pillar.obfuscate", json!(["web"])),
        ("pillar.filter_by", json!([{"v*": {"got": "known"}, "default": {"got": "default"}}, "known"])),
        ("pillar.filter_by", json!([{"b": "in the list", "default": "none"}, "web:tls", "merge=null"])),
        ("pillar.filter_by", json!([{"x": {"a": 1}, "default": {"b": 2}}, "nothing", "merge={c: 3}", "base=x"])),
        ("mine.valid", json!([])),
        ("mine.get", json!(["python", "grains.get"])),
        ("mine.get", json!(["python", "grains.get,alias"])),
        ("mine.get", json!(["python", "[grains.get]"])),
        ("mine.get", json!(["kernel:Linux", "grains.get", "grain"])),
        ("mine.get", json!(["brine1,python", "grains.get", "list", "exclude_minion=False"])),
        ("mine.get", json!(["known:v2", "grains.get", "pillar"])),
        ("mine.get", json!(["E@br.* or python", "grains.get", "compound"])),
        ("mine.get", json!(["nobody", "grains.get"])),
        ("mine.get", json!(["*", "nothing"])),
        ("mine.send", json!(["no_such.function"])),
        ("mine.send", json!(["test.arg", "1", "a=2"])),
        // With `clear`, Salt's master fails, and its minion does not look at the answer.
        ("mine.update", json!([])),
        ("mine.delete", json!(["test.arg"])),
        ("mine.flush", json!([])),
    ];
    let made: Vec<Call> =
        table.iter().map(|(fun, arg)| call("brine1,python", fun, arg.clone()).tgt_type("list")).collect();
    let answers = calls(master, &made);
    let wrong: Vec<String> = table
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| unlike(&answer["brine1"], &answer["python"]))
        .map(|((fun, arg), answer)| format!("{fun} {arg}: {answer}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Each minion's own id and role are all that may differ.
fn unlike(ours: &Value, theirs: &Value) -> bool {
    let plain = |value: &Value| value.to_string().replace("brine1", "python");
    ours.is_null() && !theirs.is_null() || plain(ours) != plain(theirs)
}

/// The mine: filled by the minions, read by the master's runner and by the Python minion.
fn shown(master: &Master, run: &dyn Fn(&[&str]) -> Value) {
    let all = json!({"brine1": true, "brine2": true, "python": true});
    assert_eq!(calls(master, &[call("*", "mine.update", json!([]))]), [all]);
    let ids = json!({"brine1": "brine1", "brine2": "brine2", "python": "python"});
    assert_eq!(run(&["mine.get", "*", "grains.get"]), ids);
    assert_eq!(run(&["mine.get", "*", "alias"]), json!({"brine1": "web", "brine2": "", "python": ""}));
    let get = |fun: &str| call("python", "mine.get", json!(["*", fun]));
    let [shown, hidden] = calls(master, &[get("grains.get"), get("some")]).try_into().expect("two");
    assert_eq!((&shown["python"], &hidden["python"]), (&ids, &json!({})));
    answers(
        master,
        "brine1",
        &[
            ("mine.send", json!(["sent", "role", "mine_function=grains.get"]), json!(true)),
            ("mine.delete", json!(["alias"]), json!(true)),
        ],
    );
    assert_eq!(run(&["mine.get", "*", "sent"]), json!({"brine1": "web"}));
    assert_eq!(run(&["mine.get", "brine*", "alias"]), json!({"brine2": ""}));
}
