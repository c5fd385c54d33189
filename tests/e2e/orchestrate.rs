//! Orchestration: states of the master, what they start, and whose rights they have.

use brine_kit::process::Output;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master};
use serde_json::{Value, json};

const CONFIG: &str = "id: the_master\ntimeout: 15\ngather_job_timeout: 15\nstate_events: True";

/// A master with these SLS files and more configuration, not started.
fn prepared(more: &str, files: &[(&str, &str)]) -> Master {
    let master = Master::prepare(Kind::Brine, CONFIG);
    std::fs::create_dir_all(master.path("srv/pillar")).expect("our own folder");
    std::fs::write(master.path("srv/pillar/top.sls"), "base: {the_master: [all]}\n").expect("our own folder");
    std::fs::write(master.path("srv/pillar/all.sls"), "word: base\n").expect("our own folder");
    let conf = std::fs::read_to_string(master.path("conf/master")).expect("just written");
    let roots = format!("pillar_roots: {{base: [{}]}}\n{more}\n", master.path("srv/pillar").display());
    std::fs::write(master.path("conf/master"), conf + &roots).expect("our own folder");
    for (path, text) in files {
        master.serve(path, text.as_bytes());
    }
    master
}

fn started(more: &str, files: &[(&str, &str)]) -> Master {
    let mut master = prepared(more, files);
    master.up();
    master
}

/// The results of a run by the ids of its states.
struct Results(Value);

impl Results {
    fn of(output: &Output) -> Self {
        Self(output.json()["data"]["the_master"].clone())
    }

    /// Result and comment of the state with this id.
    fn of_id(&self, id: &str) -> (&Value, &str) {
        let result = self.whole(id);
        (&result["result"], result["comment"].as_str().expect("a comment"))
    }

    fn whole(&self, id: &str) -> &Value {
        let all = self.0.as_object().unwrap_or_else(|| panic!("no results: {}", self.0));
        all.values().find(|result| result["__id__"] == id).unwrap_or_else(|| panic!("no {id} in {}", self.0))
    }
}

fn orchestrate(master: &Master, words: &[&str]) -> Output {
    master.command("salt-run", &[&["--out=json", "state.orchestrate"], words].concat())
}

const WEB: (&str, &str) = ("web.sls", "web_ok:\n  test.succeed_with_changes: []\nweb_same:\n  test.nop: []\n");
const BAD: (&str, &str) = ("bad.sls", "bad_one:\n  test.fail_without_changes: []\n");

const DEPLOY: &str = "
ping:
  salt.function:
    - name: test.arg
    - tgt: '*'
    - arg: [1]
    - kwarg: {word: {{ pillar.word }}}
web:
  salt.state:
    - tgt: {{ grains.id == 'the_master' and 'web1' }}
    - sls: web
    - require: [salt: ping]
failing:
  salt.state:
    - tgt: web1
    - sls: [web, bad]
never:
  salt.function:
    - name: test.ping
    - tgt: web1
    - require: [salt: failing]
rescued:
  test.succeed_without_changes:
    - onfail: [salt: failing]
nobody:
  salt.state:
    - tgt: nobody
    - sls: web
listed:
  salt.state:
    - tgt: [web1, gone]
    - tgt_type: list
    - sls: web
    - fail_minions: [gone]
batch:
  salt.function:
    - name: test.ping
    - tgt: '*'
    - batch: 50%
subset:
  salt.function:
    - name: test.echo
    - arg: [x]
    - tgt: '*'
    - subset: 1
counted:
  salt.runner:
    - name: test.arg
    - arg: [1]
    - a: {{ salt['saltutil.runner']('test.arg', kwarg={'k': 'v'})['kwargs']['k'] }}
keys:
  salt.wheel:
    - name: key.list
    - match: accepted
together:
  salt.parallel_runners:
    - runners:
        one: [{name: state.orchestrate}, {kwarg: {mods: inner, pillar: {word: inner}}}]
        two: [{name: test.arg}]
beside:
  salt.function:
    - name: test.ping
    - tgt: web1
    - parallel: True
odd:
  cmd.run:
    - name: touch /tmp/never
";

#[test]
fn states_of_the_master_run_minions_runners_and_each_other() {
    let inner = ("inner.sls", "inner:\n  test.show_notification:\n    - text: {{ pillar.word }}\n");
    let master = started("", &[("deploy.sls", DEPLOY), WEB, BAD, inner]);
    let _minion = master.minion("web1");
    let events = master.events();
    let ran = orchestrate(&master, &["deploy"]).exits(1);
    assert_eq!((&ran.json()["retcode"], &ran.json()["outputter"]), (&json!(1), &json!("highstate")));
    let results = Results::of(&ran);
    for (id, result, comment) in [
        ("ping", true, "Function ran successfully. Function test.arg ran on web1."),
        ("web", true, "States ran successfully. Updating web1."),
        ("failing", false, "Run failed on minions: web1"),
        ("never", false, "One or more requisite failed: deploy.failing"),
        ("rescued", true, "Success!"),
        ("nobody", false, "No minions returned"),
        ("listed", true, "States ran successfully. Updating web1, gone."),
        ("batch", true, "Function ran successfully. Function test.ping ran on web1."),
        ("subset", true, "Function ran successfully. Function test.echo ran on web1."),
        ("counted", true, "Runner function 'test.arg' executed."),
        ("keys", true, "Wheel function 'key.list' executed."),
        ("together", true, "All runner functions executed successfully."),
        ("beside", true, "Function ran successfully. Function test.ping ran on web1."),
    ] {
        assert_eq!(results.of_id(id), (&json!(result), comment), "{id}");
    }
    // It has no `__id__`, as in Salt.
    let odd = &results.0["cmd_|-odd_|-touch /tmp/never_|-run"];
    let said = "State 'cmd.run' was not found in SLS 'deploy'\nReason: 'cmd.run' is not available.\n";
    assert_eq!((&odd["result"], &odd["comment"]), (&json!(false), &json!(said)));
    let changes = |id: &str| results.whole(id)["changes"].clone();
    assert_eq!(changes("ping")["ret"]["web1"]["kwargs"]["word"], json!("base"));
    assert_eq!(changes("web")["out"], json!("highstate"));
    assert_eq!(changes("web")["ret"]["web1"]["test_|-web_ok_|-web_ok_|-succeed_with_changes"]["result"], json!(true));
    assert_eq!(changes("counted"), json!({"return": {"args": [1], "kwargs": {"a": "v"}}}));
    assert_eq!(changes("keys"), json!({"return": {"minions": ["web1"]}}));
    let inner = &changes("together")["ret"]["one"]["data"]["the_master"];
    assert_eq!(inner["test_|-inner_|-inner_|-show_notification"]["comment"], json!("inner"));
    // Its events: what it starts, each result, and the end.
    let new = events.wait("the run", |tag, data| tag.ends_with("/new") && data["fun"] == "runner.state.orchestrate");
    let jid = new["jid"].as_str().expect("a jid");
    let args =
        events.wait("what is started", |tag, data| tag == format!("salt/run/{jid}/args") && data["type"] == "state");
    assert_eq!((&args["name"], &args["tgt"], &args["args"]["arg"]), (&json!("web"), &json!("web1"), &json!(["web"])));
    let first = events.wait_tag(&format!("salt/job/{jid}/prog/the_master/0"));
    assert_eq!((&first["len"], &first["ret"]["__id__"]), (&json!(14), &json!("ping")));
    let end = events.wait_tag(&format!("salt/run/{jid}/ret"));
    assert_eq!((&end["success"], &end["return"]["retcode"]), (&json!(false), &json!(1)));
    // A dry run starts nothing but dry runs.
    let would = Results::of(&orchestrate(&master, &["deploy", "test=True"]).exits(1));
    for (id, result, comment) in [
        ("ping", json!(null), "Function test.arg would be executed on target *"),
        ("web", json!(null), "States ran successfully. Updating web1."),
        ("counted", json!(null), "Runner function 'test.arg' would be executed."),
        ("keys", json!(null), "Wheel function 'key.list' would be executed."),
        ("together", json!(null), "Runner functions would be executed: state.orchestrate, test.arg"),
    ] {
        assert_eq!(would.of_id(id), (&result, comment), "{id}");
    }
    let there = &would.whole("web")["changes"]["ret"]["web1"]["test_|-web_ok_|-web_ok_|-succeed_with_changes"];
    assert_eq!(there["result"], json!(null));
    // For people, with the code of its end; what is given counts before the pillar's files.
    let shown = master.command("salt-run", &["state.orch", "inner", "pillar={word: given}"]).exits(0).stdout;
    assert!(
        shown.contains("the_master:") && shown.contains("Comment: given") && shown.contains("Succeeded: 1"),
        "{shown}"
    );
    let only = Results::of(&orchestrate(&master, &["inner,web", "exclude=web"]).exits(0));
    assert_eq!(only.0.as_object().map(serde_json::Map::len), Some(1), "{}", only.0);
    // One state, high data, and what an SLS renders to.
    let run = |words: &[&str]| master.command("salt-run", &[&["--out=json", "--quiet"], words].concat());
    let json_of = |words: &[&str]| master.command("salt-run", &[&["--out=json"], words].concat()).exits(0).stdout;
    run(&["state.orchestrate_single", "fun=salt.wheel", "name=key.list_all"]).exits(0);
    let single = json_of(&["state.orchestrate_single", "fun=salt.wheel", "name=key.list_all"]);
    assert!(
        single.contains("\"minions\"") && single.contains("salt_|-key.list_all_|-key.list_all_|-wheel"),
        "{single}"
    );
    let high = json_of(&["state.orchestrate_high", "{a: {salt.function: [{name: test.ping}, {tgt: web1}]}}"]);
    assert!(high.contains("Function test.ping ran on web1."), "{high}");
    let shown = json_of(&["state.orchestrate_show_sls", "inner"]);
    assert!(shown.contains("show_notification") && shown.contains("\"__sls__\": \"inner\""), "{shown}");
}

/// Salt gives who may start an orchestration all that root may.
#[test]
fn an_orchestration_has_the_rights_of_its_caller_and_no_more() {
    let files = [
        (
            "all.sls",
            "
his:
  salt.function: [{name: test.ping}, {tgt: web1}]
others:
  salt.function: [{name: test.ping}, {tgt: '*'}]
other_function:
  salt.function: [{name: test.echo}, {tgt: web1}, {arg: [stolen]}]
states:
  salt.state: [{tgt: web1}, {sls: web}]
his_runner:
  salt.runner: [{name: test.arg}]
other_runner:
  salt.runner: [{name: salt.execute}, {kwarg: {tgt: '*', fun: test.echo, arg: [stolen]}}]
parallel:
  salt.parallel_runners: [{runners: {a: [{name: salt.execute}, {kwarg: {tgt: '*', fun: test.echo}}]}}]
nested:
  salt.runner: [{name: state.orchestrate}, {mods: nested}]
wheel:
  salt.wheel: [{name: key.delete}, {match: web1}]
",
        ),
        ("nested.sls", "deep:\n  salt.function: [{name: test.echo}, {tgt: web1}, {arg: [stolen]}]\n"),
        (
            "template.sls",
            "{% do salt['saltutil.runner']('salt.execute', arg=['*', 'test.echo', ['stolen']]) %}\na:\n  test.nop: []\n",
        ),
        ("cmd.sls", "{% do salt['saltutil.cmd']('web1', 'test.echo', ['stolen']) %}\na:\n  test.nop: []\n"),
        ("wheel.sls", "{% do salt['saltutil.wheel']('key.delete', 'web1') %}\na:\n  test.nop: []\n"),
        ("wait.sls", "seen:\n  salt.wait_for_event: [{name: 'secret/*'}, {id_list: [a]}, {timeout: 3}]\n"),
        WEB,
    ];
    let mut master = prepared("", &files);
    let users = master.path("users");
    std::fs::write(&users, "fred:fred-secret\n").expect("our own folder");
    let conf = std::fs::read_to_string(master.path("conf/master")).expect("just written");
    let rights = format!(
        "external_auth: {{file: {{^filename: {}, fred: [{{'@runner': [state.orchestrate, test.arg]}}, {{web1: [test.ping]}}]}}}}\n\
         audit_log: {}\n",
        users.display(),
        master.path("audit").display()
    );
    std::fs::write(master.path("conf/master"), conf + &rights).expect("our own folder");
    master.up();
    let _minions = [master.minion("web1"), master.minion("web2")];
    let events = master.events();
    let as_fred = |words: &[&str]| {
        let log_in = ["-a", "file", "--username=fred", "--password=fred-secret", "--out=json", "state.orchestrate"];
        master.command("salt-run", &[&log_in, words].concat())
    };
    let results = Results::of(&as_fred(&["all"]).exits(1));
    for (id, good) in [("his", true), ("his_runner", true)] {
        assert_eq!(results.of_id(id).0, &json!(good), "{id}: {:?}", results.whole(id));
    }
    for (id, said) in [
        ("others", "fred may not run test.ping on *: Authorization error occurred."),
        ("other_function", "fred may not run test.echo on web1: Authorization error occurred."),
        ("states", "fred may not run state.sls on web1: Authorization error occurred."),
        ("other_runner", "Authentication failure of type \"eauth\" occurred for user fred."),
        ("parallel", "Authentication failure of type \"eauth\" occurred for user fred."),
        ("nested", "Runner function 'state.orchestrate' failed."),
        ("wheel", "Authentication failure of type \"eauth\" occurred for user fred."),
    ] {
        let (result, comment) = results.of_id(id);
        assert!(result == &json!(false) && comment.contains(said), "{id}: {:?}", results.whole(id));
    }
    let deep = &results.whole("nested")["changes"]["return"]["data"]["the_master"];
    assert!(deep.to_string().contains("fred may not run test.echo on web1"), "{deep}");
    for name in ["template", "cmd", "wheel"] {
        let refused = as_fred(&[name]).exits(1).stdout;
        assert!(refused.contains("Rendering SLS") && refused.contains("fred"), "{name}: {refused}");
    }
    // Events of others are not for him: not even whether they happen.
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| Results::of(&as_fred(&["wait"]).exits(1)));
        events.wait("the wait", |tag, data| tag.ends_with("/new") && data["fun_args"][0] == "wait");
        master.command("salt-run", &["event.send", "secret/x", "{id: a}"]).exits(0);
        waiting.join().expect("no panic")
    });
    assert_eq!(waiting.of_id("seen"), (&json!(false), "Timeout value reached."));
    // Nothing of it was done, and each try has its line.
    assert!(!events.all().iter().any(|(_, data)| data.to_string().contains("test.echo") && data["minions"].is_array()));
    assert!(master.salt(&["*", "test.ping", "--out=json", "--static"]).exits(0).stdout.contains("web1"));
    let audit = std::fs::read_to_string(master.path("audit")).expect("the audit log");
    let refused = |fun: &str| {
        let is_it = |line: &&str| line.contains("\"refused\"") && line.contains("\"fred\"") && line.contains(fun);
        audit.lines().filter(is_it).count()
    };
    for fun in ["\"test.echo\"", "\"salt.execute\"", "\"key.delete\"", "\"state.sls\""] {
        assert!(refused(fun) >= 1, "{fun}: {audit}");
    }
    // Root's orchestration does what root may.
    let results = Results::of(&orchestrate(&master, &["nested"]).exits(0));
    assert_eq!(results.of_id("deep").0, &json!(true));
}

/// What minions return is bounded; a top file of the orchestration's, and a returner, go with the job.
#[test]
fn what_comes_back_is_bounded_and_what_goes_out_is_whole() {
    let sls = "
small:
  salt.function: [{name: test.echo}, {arg: [word]}, {tgt: web1}]
half:
  salt.function: [{name: test.echo}, {arg: ['LARGE']}, {tgt: web1}]
large:
  salt.function: [{name: test.echo}, {arg: ['LARGE']}, {tgt: web1}]
topped:
  salt.state: [{tgt: web1}, {top: other_top.sls}]
kept:
  salt.function: [{name: test.ping}, {tgt: web1}, {ret: [first, second]}, {ret_config: alternative}, {ret_kwargs: {a: 1}}]
last:
  test.nop: []
";
    let (sls, top) = (sls.replace("LARGE", &"x".repeat(2_200)), "base:\n  '*': [web]\n");
    let files = [("much.sls", sls.as_str()), ("other_top.sls", top), WEB];
    let master = started("orchestrate_max_return: 4096", &files);
    let _minion = master.minion("web1");
    let events = master.events();
    let ran = orchestrate(&master, &["much"]).exits(0);
    let results = Results::of(&ran);
    assert_eq!(results.whole("small")["changes"], json!({"ret": {"web1": "word"}}));
    let out = "left out: the results of this orchestration have more than 4096 bytes (orchestrate_max_return)";
    assert_eq!(results.whole("large")["changes"], json!({"ret": out}));
    for (id, comment) in [
        ("large", "Function ran successfully. Function test.echo ran on web1."),
        ("topped", "States ran successfully. Updating web1."),
        ("kept", "Function ran successfully. Function test.ping ran on web1."),
        ("last", "Success!"),
    ] {
        assert_eq!(results.of_id(id), (&json!(true), comment), "{id}");
    }
    let told = |name: &str| {
        let of =
            |tag: &str, data: &Value| tag.starts_with("salt/run/") && tag.ends_with("/args") && data["name"] == name;
        events.wait(name, of)["args"].clone()
    };
    assert_eq!(told("topped")["arg"], json!(["other_top.sls"]));
    let kept = told("test.ping");
    let expect = (&json!(["first", "second"]), &json!("alternative"), &json!({"a": 1}));
    assert_eq!((&kept["ret"], &kept["ret_config"], &kept["ret_kwargs"]), expect);
}

#[test]
fn an_orchestration_ends_as_its_bounds_and_its_operator_say() {
    let files = [
        ("itself.sls", "again:\n  salt.runner: [{name: state.orchestrate}, {mods: itself}]\n"),
        ("cmd.sls", "{{ salt['cmd.run']('id') }}\n"),
        ("broken.sls", "{{ nothing.here }}\n"),
        ("asks.sls", "a:\n  test.nop: [{unless: /bin/true}]\nb:\n  test.nop: [{creates: /etc/passwd}]\n"),
        (
            "slow.sls",
            "first:\n  test.nop: []\nwaits:\n  salt.wait_for_event: [{name: go}, {id_list: [a]}, {timeout: 60}]\nlast:\n  test.nop: []\n",
        ),
        ("hard.sls", "one:\n  test.fail_without_changes: [{failhard: True}]\ntwo:\n  test.nop: []\n"),
        (
            "again.sls",
            "one:\n  test.configurable_test_state: [{result: False}, {changes: False}, {retry: {attempts: 2, interval: 1}}]\n",
        ),
        (
            "late.sls",
            "first:\n  test.nop: []\nnever:\n  salt.wait_for_event: [{name: never}, {id_list: [a]}]\nlast:\n  test.nop: []\n",
        ),
    ];
    let mut master = started("orchestrate_max: 9", &files);
    let errors = |words: &[&str]| orchestrate(&master, words).exits(1).json()["data"]["the_master"][0].to_string();
    assert!(errors(&["nothere"]).contains("No matching sls found for 'nothere' in env 'base'"));
    assert!(errors(&["cmd"]).contains("cmd.run"), "{}", errors(&["cmd"]));
    assert!(errors(&["broken"]).contains("Rendering SLS 'base:broken' failed"), "{}", errors(&["broken"]));
    let refused = orchestrate(&master, &["slow", "pillar=[1]"]).exits(1).stdout;
    assert!(refused.contains("Pillar data must be formatted as a dictionary"), "{refused}");
    let refused = orchestrate(&master, &["slow", "pillar_enc=gpg"]).exits(1).stdout;
    assert!(refused.contains("pillar_enc is not taken"), "{refused}");
    // Nothing of the master's host is asked.
    let results = Results::of(&orchestrate(&master, &["asks"]).exits(1));
    for id in ["a", "b"] {
        let (result, comment) = results.of_id(id);
        assert!(result == &json!(false) && comment.contains("would look at the master's host"), "{}", results.0);
    }
    let deep = orchestrate(&master, &["itself"]).exits(1).stdout;
    assert!(deep.contains("orchestrations start each other, more than 8 deep"), "{deep}");
    let results = Results::of(&orchestrate(&master, &["hard"]).exits(1));
    assert_eq!(results.0.as_object().map(serde_json::Map::len), Some(1), "{}", results.0);
    let results = Results::of(&orchestrate(&master, &["again"]).exits(1));
    assert!(results.of_id("one").1.contains("Attempt 1: Returned a result of \"False\""), "{}", results.0);
    // It goes on without its client, waits where somebody pauses it, and ends where somebody ends it.
    let events = master.events();
    let begin = || {
        let started = master.command("salt-run", &["--async", "state.orchestrate", "slow"]).exits(0);
        let jid = started.stderr.trim().rsplit('/').next().expect("a jid").to_owned();
        events.wait_tag(&format!("salt/job/{jid}/prog/the_master/0"));
        jid
    };
    let run = |words: &[&str]| master.command("salt-run", words).exits(0);
    let jid = begin();
    run(&["state.pause", &jid, "last"]);
    run(&["event.send", "go", "{id: a}"]);
    events.wait_tag(&format!("salt/job/{jid}/prog/the_master/1"));
    run(&["state.resume", &jid, "last"]);
    let end = events.wait_tag(&format!("salt/run/{jid}/ret"));
    assert_eq!((&end["success"], &end["return"]["retcode"]), (&json!(true), &json!(0)), "{end}");
    let jid = begin();
    run(&["state.soft_kill", &jid, "last"]);
    run(&["event.send", "go", "{id: a}"]);
    let end = events.wait_tag(&format!("salt/run/{jid}/ret"));
    let killed = end["return"]["data"]["the_master"].to_string();
    assert!(killed.contains("waits") && !killed.contains("\"comment\":\"Success!\",\"name\":\"last\""), "{killed}");
    let unknown = master.command("salt-run", &["state.pause", "20260101000000000000"]).exits(1).stdout;
    assert!(unknown.contains("no orchestration runs as 20260101000000000000"), "{unknown}");
    // It is not resumed after a restart of the master, which says so.
    let jid = begin();
    master.kill();
    master.up();
    let found = wait_for("word of the run that was cut off", || {
        let found = master.command("salt-run", &["--out=json", "jobs.lookup_jid", &jid]).exits(0).json();
        found.as_object()?.values().next().cloned()
    });
    assert_eq!(found["success"], json!(false));
    assert!(found["return"].as_str().is_some_and(|said| said.contains("It is not resumed")), "{found}");
    // Its time is bounded: what had ended is there.
    let conf = std::fs::read_to_string(master.path("conf/master")).expect("just written");
    std::fs::write(master.path("conf/master"), conf + "orchestrate_timeout: 1\n").expect("our own folder");
    master.stop();
    master.up();
    let cut = orchestrate(&master, &["late"]).exits(1);
    let results = Results::of(&cut);
    assert_eq!(results.of_id("first").0, &json!(true));
    let said = "The orchestration was cut off: it took longer than 1 s (orchestrate_timeout). What was begun goes on where it runs.";
    assert_eq!(results.of_id("orchestration"), (&json!(false), said));
    assert_eq!(results.0.as_object().map(serde_json::Map::len), Some(2));
}
