//! States in a minion's sandbox: one at a time by `state.single`, and runs that end in odd ways.

use brine_kit::programs::testing;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::{Value, json};

/// A master that serves the module `runs`, and a minion with this under `sandbox: modules:`, indented by four.
fn pair(modules: &str) -> (Master, Minion) {
    let master = Master::start("");
    let runs = std::fs::read(testing("runs")).expect("run `make modules` first");
    master.serve("_modules/runs.wasm", &runs);
    let minion = master.minion_kind(Kind::Brine, "web1", &format!("sandbox:\n  modules:\n{modules}\n"));
    // The minion fetches the module when it starts, or at its first call.
    master.json("web1", &["saltutil.sync_modules"]);
    (master, minion)
}

const GRANTED: &str = "    runs: {states: any, pillar: any}";

/// The one result in a return.
fn only(value: &Value) -> (&str, &Value) {
    let results = value.as_object().unwrap_or_else(|| panic!("no results: {value}"));
    assert_eq!(results.len(), 1, "{value}");
    results.iter().next().map(|(tag, result)| (tag.as_str(), result)).expect("one")
}

fn comment(result: &Value) -> &str {
    result["comment"].as_str().unwrap_or_else(|| panic!("no comment: {result}"))
}

#[test]
fn a_state_is_run_by_name() {
    let (master, minion) = pair(GRANTED);
    let value = master.json("web1", &["state.single", "test.succeed_with_changes", "name=foo"]);
    let (tag, result) = only(&value);
    assert_eq!(tag, "test_|-foo_|-foo_|-succeed_with_changes");
    for (key, expect) in [
        ("name", json!("foo")),
        ("result", json!(true)),
        ("comment", json!("Success!")),
        ("__id__", json!("foo")),
        ("__sls__", json!(null)),
        ("__run_num__", json!(0)),
        ("changes", json!({"testing": {"old": "Unchanged", "new": "Something pretended to change"}})),
    ] {
        assert_eq!(result[key], expect, "{key}");
    }
    assert!(result["duration"].is_f64() && result["start_time"].is_string(), "{result}");
    // With test=True, nothing is done. The code of a failed state is 2.
    let value = master.json("web1", &["state.single", "test.succeed_with_changes", "name=foo", "test=True"]);
    assert_eq!(only(&value).1["result"], json!(null));
    let call = |args: &[&str]| minion.salt_call(&[&["--local", "--retcode-passthrough", "--out=json"], args].concat());
    let failed = call(&["state.single", "test.fail_without_changes", "name=foo"]).exits(2).json();
    assert_eq!(comment(only(&failed["local"]).1), "Failure!");
    // What cannot be run is an error with Salt's words.
    for (state, more, expect) in [
        ("test.none", "a=1", json!(["Specified state 'test.none' was not found"])),
        ("none.none", "a=1", json!(["Specified state 'none.none' was not found"])),
        ("nothing", "a=1", json!("Invalid function passed")),
    ] {
        assert_eq!(master.json("web1", &["state.single", state, "name=foo", more]), expect);
    }
    let odd = master.json("web1", &["state.single", "test.configurable_test_state", "name=foo", "nonsense=1"]);
    let says = "SaltInvocationError: 'nonsense' is an invalid keyword argument for 'test.configurable_test_state'";
    assert_eq!(comment(only(&odd).1), format!("An exception occurred in this state: {says}"));
    let value = master.json("web1", &["state.single", "test.configurable_test_state", "name=foo", "changes=odd"]);
    assert!(comment(only(&value).1).starts_with("An exception occurred in this state: You have specified"), "{value}");
    // A state is no function, and the other way round.
    for fun in ["test.succeed_with_changes", "test.states.nop", "runs.states.told"] {
        let refused = master.json("web1", &[fun, "name=foo"]);
        assert!(refused.as_str().is_some_and(|text| text.contains("is not available")), "{fun}: {refused}");
    }
    let refused = master.json("web1", &["state.single", "test.ping", "name=foo"]);
    assert_eq!(refused, json!(["Specified state 'test.ping' was not found"]));
    // What there is.
    let all = master.json("web1", &["sys.list_state_functions", "test"]);
    assert!(all.as_array().is_some_and(|all| all.contains(&json!("test.nop"))), "{all}");
    let modules = master.json("web1", &["sys.list_state_modules"]);
    assert!(
        ["file", "runs", "test"].iter().all(|name| modules.as_array().is_some_and(|all| all.contains(&json!(name)))),
        "{modules}"
    );
    let spec = master.json("web1", &["sys.state_argspec", "test.show_notification"]);
    assert_eq!(spec["test.show_notification"]["args"], json!(["name", "text"]));
    let docs = master.json("web1", &["sys.state_doc", "test.nop"]);
    assert!(docs["test.nop"].as_str().is_some_and(|doc| doc.contains("Does nothing")), "{docs}");
    let functions = master.json("web1", &["sys.list_functions", "test"]);
    assert!(!functions.to_string().contains("succeed_with_changes"), "{functions}");
}

#[test]
fn a_state_is_told_of_itself() {
    let (master, _minion) = pair(GRANTED);
    let value = master.json("web1", &["runs.several", "runs.told", "2", "return"]);
    let told = &value[1]["changes"];
    let expect = json!({"id": "n1", "sls": "tests", "saltenv": "base", "number": 1, "changed": ["test: other"]});
    assert_eq!(told["state"], expect);
    assert_eq!(told["function"], json!("runs.states.told"));
    assert_eq!(told["called_by"], json!("runs.several"));
    let value = master.json("web1", &["runs.several", "runs.told", "1", "return", "test=True"]);
    assert_eq!(value[0]["changes"]["test"], json!(true));
}

/// What a state returns is rubbish, too much or nothing: a failed result says so, and the others go on.
#[test]
fn rubbish_is_a_failed_result() {
    let (master, _minion) = pair("    runs: {states: any, pillar: any, limits: {cpu: 500ms}}");
    let single = |state: &str, more: &[&str]| {
        let value = master.json("web1", &[&["state.single", state, "name=foo"], more].concat());
        let (_, result) = only(&value);
        assert_eq!((&result["result"], &result["changes"]), (&json!(false), &json!({})), "{value}");
        comment(result).to_owned()
    };
    for (more, expect) in [
        ("return=text", "Malformed state return. Data must be a dictionary type."),
        ("return=5", "Malformed state return. Data must be a dictionary type."),
        ("return={}", "'Changes' should be a dictionary."),
        ("return={changes: [], result: true, comment: x}", "'Changes' should be a dictionary."),
        ("return={changes: {}}", "The following keys were not present in the state return: result, comment."),
    ] {
        assert_eq!(single("runs.odd", &[more]), format!("An exception occurred in this state: {expect}"), "{more}");
    }
    assert!(single("runs.nothing", &[]).contains("Malformed state return"));
    assert!(single("runs.huge", &["mib=100"]).contains("memory"), "{}", single("runs.huge", &["mib=100"]));
    assert!(single("runs.huge", &["mib=6"]).contains("output limit of 4 MiB"), "{}", single("runs.huge", &["mib=6"]));
    assert!(single("runs.trap", &[]).contains("runs.states.trap"), "{}", single("runs.trap", &[]));
    assert!(single("runs.spin", &[]).contains("its CPU limit of 500 ms is used up"));
    assert_eq!(single("runs.odd", &[]), "Missing parameter return for state runs.odd\n");
    // A state cannot speak for the minion.
    let lies = "return={changes: {}, result: true, comment: x, __run_num__: 7, duration: 7, __id__: other}";
    let value = master.json("web1", &["state.single", "runs.odd", "name=foo", lies]);
    let (_, result) = only(&value);
    assert_eq!((&result["__run_num__"], &result["__id__"]), (&json!(0), &json!("foo")));
    assert_ne!(result["duration"], json!(7));
    let value = master.json("web1", &["runs.several", "runs.trap", "2", "return"]);
    assert_eq!(value.as_array().map(Vec::len), Some(2), "{value}");
}

/// The owner's policy tells a module's states from its functions.
#[test]
fn a_state_has_grants_of_its_own() {
    let secret = |grants: &str| {
        let (master, _minion) = pair(grants);
        let state = master.json("web1", &["state.single", "runs.secret", "name=foo"]);
        let function = master.json("web1", &["runs.secret"]);
        let show = master.json("web1", &["sandbox.show", "runs"]);
        (only(&state).1.clone(), function, show)
    };
    let refused = "pillar: false";
    let (state, function, show) = secret("    runs: {states: any, pillar: false}\n    runs.states: {pillar: any}");
    assert_eq!(state["result"], json!(true), "{state}");
    assert!(function.as_str().is_some_and(|text| text.contains("was refused")), "{function}");
    assert_eq!(show["has"]["runs.states.secret"]["pillar"], json!("any"), "{show}");
    assert_eq!(show["has"]["all"].get("pillar"), None, "{show}");
    // The line for a state grants its functions nothing.
    let (state, function, _) =
        secret(&format!("    runs: {{states: any, pillar: any}}\n    runs.states: {{{refused}}}"));
    assert!(comment(&state).contains("runs.states: {"), "{state}");
    assert!(function.is_object(), "{function}");
    let (state, ..) = secret(&format!("    runs: {{states: any, pillar: any}}\n    runs.states.secret: {{{refused}}}"));
    assert!(comment(&state).contains("runs.states.secret: {"), "{state}");
}

#[test]
fn states_are_run_where_the_owner_said() {
    let (master, _minion) = pair("    runs: {states: [\"test.nop\"], pillar: any}");
    let value = master.json("web1", &["runs.several", "test.nop", "1", "return"]);
    assert_eq!(value[0]["result"], json!(true), "{value}");
    let refused = master.json("web1", &["runs.several", "test.show_notification", "1", "return"]);
    let text = refused.as_str().unwrap_or_else(|| panic!("{refused}"));
    assert!(text.contains("module runs may not run the state test.show_notification"), "{text}");
    assert!(text.contains("states: [test.nop, test.show_notification]"), "{text}");
}

#[test]
fn several_states_run_at_once() {
    let (master, _minion) = pair(GRANTED);
    let value = master.json("web1", &["runs.together", "test.nop", "20"]);
    let mut numbers: Vec<u64> =
        value.as_array().unwrap_or_else(|| panic!("{value}")).iter().filter_map(Value::as_u64).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
    // A state that is not waited for ends with its job.
    assert_eq!(master.json("web1", &["runs.leave"]), json!(0));
    assert_eq!(master.json("web1", &["test.ping"]), json!(true));
    assert_eq!(master.json("web1", &["runs.exists", "runs.spin"]), json!(true));
    assert_eq!(master.json("web1", &["runs.exists", "runs.secret2"]), json!(false));
}

/// What is cut off has every state that ended, and one more that says so.
#[test]
fn a_run_that_is_cut_off_returns_what_ended() {
    let (master, mut minion) = pair("    runs: {states: any, pillar: any, limits: {cpu: 500ms}}");
    let cut = |value: &Value, count: usize| {
        let results = value.as_object().unwrap_or_else(|| panic!("{value}"));
        assert_eq!(results.len(), count + 1, "{value}");
        let last = &results["state_|-run_|-runs.several_|-cut_off"];
        assert!(comment(last).starts_with("The run was cut off: "), "{last}");
        assert_eq!((&last["result"], &last["__run_num__"]), (&json!(false), &json!(count)), "{last}");
        let ended = results.values().filter(|result| result["result"] == json!(true)).count();
        assert_eq!(ended, count, "{value}");
    };
    for then in ["trap", "fail", "spin"] {
        cut(&master.json("web1", &["runs.several", "test.nop", "5", then]), 5);
    }
    // Without a result, the failure is the return.
    let value = master.json("web1", &["runs.several", "test.nop", "0", "fail"]);
    assert!(value.is_string(), "{value}");
    // Only the module `state` says what came to something: this one was granted to run states, and nothing more.
    let value = master.json("web1", &["runs.keep", "a_|-b_|-c_|-d", "{result: false, changes: {}, comment: mine}"]);
    assert!(value.as_str().is_some_and(|text| text.contains("may not say what a state came to")), "{value}");
    // A job that is killed, and the minion itself. The last of the five states has its result.
    let kept = |minion: &Minion| {
        let folder = minion.path("cache/states");
        let files = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let contents = files.flatten().filter_map(|file| std::fs::read(file.path()).ok());
        contents.filter(|bytes| String::from_utf8_lossy(bytes).contains("n4_|-x")).map(|_| ()).next()
    };
    let events = master.events();
    let jid = master.start_job(&["web1", "runs.several", "test.nop", "5", "wait"]);
    wait_for("the states to end", || kept(&minion));
    master.json("web1", &["saltutil.kill_job", &jid]);
    cut(&events.wait_return(&jid, "web1")["return"], 5);
    let jid = master.start_job(&["web1", "runs.several", "test.nop", "5", "wait"]);
    wait_for("the states to end", || kept(&minion));
    minion.kill();
    minion.up();
    let event = events.wait_return(&jid, "web1");
    cut(&event["return"], 5);
    assert_eq!((&event["retcode"], &event["success"]), (&json!(2), &json!(false)), "{event}");
    wait_for("the files of runs to be gone", || kept(&minion).is_none().then_some(()));
}

#[test]
fn one_run_at_a_time() {
    let (master, _minion) = pair(GRANTED);
    let events = master.events();
    let jid = master.start_job(&["web1", "state.single", "test.nop", "name=foo"]);
    events.wait_return(&jid, "web1");
    assert_eq!(master.json("web1", &["state.running"]), json!([]));
    // A run that lasts: its state sleeps as long as its job's time.
    let long = master.start_job(&["web1", "state.single", "runs.spin", "name=foo"]);
    let sentence = wait_for("the other run", || {
        let running = master.json("web1", &["state.running"]);
        running[0].as_str().map(str::to_owned)
    });
    assert!(sentence.starts_with("The function \"state.single\" is running as PID "), "{sentence}");
    assert!(sentence.ends_with(&format!("with jid {long}")), "{sentence}");
    let refused = master.json("web1", &["state.single", "test.nop", "name=bar"]);
    assert_eq!(refused, json!([sentence]));
    let value = master.json("web1", &["state.single", "test.nop", "name=bar", "concurrent=True"]);
    assert_eq!(only(&value).1["result"], json!(true), "{value}");
    let waits = master.start_job(&["web1", "state.single", "test.nop", "name=bar", "queue=True"]);
    master.json("web1", &["saltutil.kill_job", &long]);
    events.wait_return(&long, "web1");
    let value = events.wait_return(&waits, "web1")["return"].clone();
    assert_eq!(only(&value).1["result"], json!(true), "{value}");
}

/// A master with SLS files and pillar, and a minion.
fn with_files() -> (Master, Minion) {
    let mut master = Master::prepare(Kind::Brine, "pillar_roots: {base: [../srv/pillar]}");
    std::fs::create_dir_all(master.path("srv/pillar")).expect("our own folder");
    std::fs::write(master.path("srv/pillar/top.sls"), "base: {'*': [ports]}\n").expect("our own folder");
    std::fs::write(master.path("srv/pillar/ports.sls"), "ports: [80, 443]\n").expect("our own folder");
    for (path, text) in [
        ("top.sls", "base:\n  'web*': [base]\n  'db*': [web]\n"),
        ("base/init.sls", "based:\n  test.nop\n"),
        (
            "web.sls",
            "include: [base]\n\
             changed:\n  test.succeed_with_changes:\n    - require: [{test: based}]\n\
             {% for port in pillar.ports %}\n\
             port-{{ port }}:\n  test.configurable_test_state:\n    - name: {{ grains.id }}\n    - changes: True\n    \
             - result: True\n    - comment: \"{{ salt['test.echo'](port) }}\"\n    - onchanges: [{test: changed}]\n\
             {% endfor %}\n\
             fails:\n  test.fail_without_changes\n\
             after:\n  test.nop:\n    - require: [{test: fails}]\n\
             first:\n  test.nop:\n    - order: 1\n    - require_in: [{test: based}]\n",
        ),
        (
            "beside.sls",
            "a:\n  test.nop: [parallel: true]\nb:\n  test.nop: [parallel: true]\nc:\n  test.nop: [require: [test: a, test: b]]\n",
        ),
        ("broken.sls", "a:\n  test.nop: {{ nothing.here }}\n"),
        ("lost.sls", "a:\n  test.nop: [require: [test: nobody]]\n"),
    ] {
        master.serve(path, text.as_bytes());
    }
    master.up();
    let minion = master.minion("web1");
    (master, minion)
}

/// Each result as id, result and comment, in the order of the run.
fn outcomes(run: &Value) -> Vec<(String, Value, String)> {
    let mut results: Vec<&Value> = run.as_object().unwrap_or_else(|| panic!("no results: {run}")).values().collect();
    results.sort_by_key(|result| result["__run_num__"].as_u64());
    let told = |result: &&Value| {
        (result["__id__"].as_str().unwrap_or_default().to_owned(), result["result"].clone(), comment(result).to_owned())
    };
    results.iter().map(told).collect()
}

/// SLS files with pillar, grains, functions, includes and requisites.
#[test]
fn sls_files_are_applied() {
    let (master, minion) = with_files();
    let expect = |changes: Value, done: &str| {
        let line = |id: &str, result: Value, comment: &str| (id.to_owned(), result, comment.to_owned());
        vec![
            line("first", json!(true), "Success!"),
            line("based", json!(true), "Success!"),
            line("changed", changes.clone(), done),
            line("port-80", changes.clone(), "80"),
            line("port-443", changes, "443"),
            line("fails", json!(false), "Failure!"),
            line("after", json!(false), "One or more requisite failed: web.fails"),
        ]
    };
    let run = master.json("web1", &["state.apply", "web"]);
    assert_eq!(outcomes(&run), expect(json!(true), "Success!"));
    assert_eq!(run["test_|-port-80_|-web1_|-configurable_test_state"]["__sls__"], json!("web"));
    // Nothing is done with test=True.
    let trial = outcomes(&master.json("web1", &["state.sls", "web", "test=True"]));
    assert_eq!(trial[2].1, json!(null), "{trial:?}");
    // The caller's pillar goes before the minion's.
    let given = outcomes(&master.json("web1", &["state.apply", "web", "pillar={ports: [1]}", "exclude=[{id: after}]"]));
    assert!(!given.iter().any(|(id, ..)| id == "after"), "{given:?}");
    assert_eq!(given.iter().filter(|(id, ..)| id.starts_with("port-")).count(), 1, "{given:?}");
    // The outputter is Salt's, and so are the codes.
    let shown = master.salt(&["web1", "state.apply", "web"]).exits(1).stdout;
    assert!(shown.contains("Succeeded: 5 (changed=3)\nFailed:    2\n"), "{shown}");
    let call = |args: &[&str]| minion.salt_call(&[&["--retcode-passthrough"], args].concat());
    let shown = call(&["state.apply", "web"]).exits(2).stdout;
    assert!(shown.contains("          ID: changed\n    Function: test.succeed_with_changes\n"), "{shown}");
    call(&["state.apply", "broken"]).exits(1);
    let beside = outcomes(&master.json("web1", &["state.apply", "beside"]));
    assert_eq!(beside.len(), 3, "{beside:?}");
    assert!(beside.iter().all(|(_, result, _)| *result == json!(true)), "{beside:?}");
}

/// What the top files name, what would run, and what does not compile.
#[test]
fn states_are_shown_and_refused() {
    let (master, _minion) = with_files();
    let get = |args: &[&str]| master.json("web1", args);
    assert_eq!(get(&["state.show_top"]), json!({"base": ["base"]}));
    assert_eq!(outcomes(&get(&["state.highstate"])), [("based".into(), json!(true), "Success!".into())]);
    assert_eq!(outcomes(&get(&["state.apply"])).len(), 1);
    assert_eq!(get(&["state.show_states"]), json!(["base"]));
    assert_eq!(get(&["state.show_highstate"])["based"]["__sls__"], json!("base"));
    assert_eq!(get(&["state.show_lowstate"])[0]["__id__"], json!("based"));
    assert_eq!(get(&["state.show_sls", "web"])["changed"]["__sls__"], json!("web"));
    assert_eq!(get(&["state.show_low_sls", "web"]).as_array().map(Vec::len), Some(7));
    for (sls, says) in [
        ("none", "No matching sls found for 'none' in env 'base'"),
        ("broken", "Rendering SLS 'base:broken' failed: Jinja variable 'nothing' is undefined"),
        ("lost", "Referenced state does not exist for requisite [require: (test: nobody)] in state [a] in SLS [lost]"),
    ] {
        let refused = get(&["state.apply", sls]);
        assert!(refused[0].as_str().is_some_and(|error| error.starts_with(says)), "{refused}");
    }
    for (sls, there) in [("web", true), ("none", false), ("broken", false)] {
        assert_eq!(get(&["state.sls_exists", sls]), json!(there), "{sls}");
        master.salt(&["web1", "state.sls_exists", sls]).exits(i32::from(!there));
    }
    assert_eq!(get(&["state.id_exists", "changed,fails", "web"]), json!(true));
    assert_eq!(get(&["state.id_exists", "nobody", "web"]), json!(false));
    let one = outcomes(&get(&["state.sls_id", "changed", "web"]));
    assert_eq!(one.last().map(|(id, ..)| id.as_str()), Some("changed"), "{one:?}");
    assert!(!one.iter().any(|(id, ..)| id == "fails"), "{one:?}");
}

/// A master with the module `runs` and these SLS files, and a minion with this in its configuration.
fn with_runs(files: &[(&str, &str)], configuration: &str) -> (Master, Minion) {
    let master = Master::start("");
    let runs = std::fs::read(testing("runs")).expect("run `make modules` first");
    master.serve("_modules/runs.wasm", &runs);
    for (path, text) in files {
        master.serve(path, text.as_bytes());
    }
    let sandbox = "sandbox: {modules: {runs: {states: any, pillar: any, limits: {cpu: 500ms}}}}\n";
    let minion = master.minion_kind(Kind::Brine, "web1", &format!("{sandbox}{configuration}\n"));
    master.json("web1", &["saltutil.sync_modules"]);
    (master, minion)
}

/// A state whose module never heard of test mode, and tries files, events, the mine, jobs, other modules and programs.
#[test]
fn a_hostile_state_changes_nothing_in_a_dry_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().canonicalize().expect("there");
    std::fs::write(dir.join("file"), "content").expect("our own folder");
    let at = dir.display();
    let granted = format!(
        "{{changes: {{{at}: rw}}, process: any, filesystem: {{}}, network: [\"127.0.0.1:*\"], functions: any, files: any, events: any, \
         mine: any, jobs: true, modules: true, disks: true, policy: true, pillar: any, static_grains: any}}"
    );
    let master = Master::start("");
    master.serve("_modules/hostile.wasm", &std::fs::read(testing("hostile")).expect("run `make modules` first"));
    let sls = format!(
        "sly:\n  hostile.sly: [name: {at}]\nafter:\n  test.succeed_with_changes: [prereq: [{{hostile: sly}}]]\n"
    );
    master.serve("sly.sls", sls.as_bytes());
    let _minion = master.minion_kind(
        Kind::Brine,
        "web1",
        &format!("sandbox: {{modules: {{hostile: {granted}, \"*\": {{}}}}}}\n"),
    );
    master.json("web1", &["saltutil.sync_modules"]);
    let content = || {
        let names = std::fs::read_dir(&dir).expect("our own folder").flatten().map(|file| file.file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        (names, std::fs::read_to_string(dir.join("file")).ok())
    };
    let before = content();
    let run = master.json("web1", &["state.apply", "sly", "test=True"]);
    let result = &run[format!("hostile_|-sly_|-{at}_|-sly")];
    assert!(result.is_object(), "{run}");
    assert_eq!(result["result"], json!(null), "{run}");
    assert_eq!(comment(result), format!("would run: /bin/touch {at}/touched"));
    let plan: Vec<&str> =
        result["plan"].as_array().expect("a plan").iter().filter_map(|entry| entry["would"].as_str()).collect();
    for expect in [
        "write: ",
        "remove: ",
        "set permissions: ",
        "fire the event sly/tag",
        "publish sly",
        "end the job",
        "run: /bin/touch",
    ] {
        assert!(plan.iter().any(|would| would.starts_with(expect)), "{expect}: {plan:?}");
    }
    // What another state asked for is in its own plan.
    assert_eq!(run["test_|-after_|-after_|-succeed_with_changes"]["plan"], json!([]), "{run}");
    assert_eq!(content(), before);
    // The attempts are real.
    let run = master.json("web1", &["state.single", "hostile.sly", &format!("name={at}")]);
    assert_eq!(only(&run).1["plan"], json!(null), "{run}");
    assert!(content().0.contains(&"put".to_owned()) && content().1.is_none(), "{run}: {:?}", content());
}

/// A module prepares itself once in a run, and merges chunks that may run together; arguments come from functions, and results are
/// events.
#[test]
fn modules_prepare_their_states() {
    let files = [
        (
            "joined.sls",
            "a:\n  runs.joined: [aggregate: true]\n\
             b:\n  runs.joined: [aggregate: true]\n\
             c:\n  runs.joined: [aggregate: true, require: [{runs: a}]]\n\
             d:\n  runs.joined\n",
        ),
        (
            "slots.sls",
            "a:\n  test.show_notification:\n    - text: __slot__:salt:test.echo('it, works') ~ !\n\
             b:\n  runs.odd:\n    - return: {result: true, comment: '__slot__:salt:test.arg(k=v).kwargs.k', changes: {}}\n\
             c:\n  test.show_notification:\n    - text: __slot__:salt:no.such(1)\n",
        ),
        (
            "fired.sls",
            "a:\n  test.succeed_with_changes: [fire_event: true]\nb:\n  test.nop: [fire_event: my/own]\nc: test.nop\n",
        ),
    ];
    let (master, minion) = with_runs(&files, "");
    let run = master.json("web1", &["state.apply", "joined"]);
    let names = |id: &str| run[format!("runs_|-{id}_|-{id}_|-joined")]["changes"]["names"].clone();
    // The chunk that requires the first cannot run with it; those that were merged run on their own as well, as in Salt.
    assert_eq!(names("a"), json!(["a", "b"]), "{run}");
    assert_eq!((names("b"), names("c"), names("d")), (json!(["b"]), json!(["c"]), json!(["d"])), "{run}");
    let log = minion.running().log_text();
    assert_eq!(log.matches("runs is ready before a").count(), 1, "{log}");
    assert_eq!(log.matches("runs is ready before").count(), 1, "{log}");
    let run = master.json("web1", &["state.apply", "slots"]);
    let said: Vec<String> = outcomes(&run).into_iter().map(|(.., said)| said).collect();
    assert_eq!(said, ["it, works!", "v", "__slot__:salt:no.such(1)"], "{run}");
    // Results are told on the master's bus where the SLS file says so, by the names that Salt's reactors wait for.
    let events = master.events();
    let jid = master.start_job(&["web1", "state.apply", "fired"]);
    for (end, name, changes) in [("a", "a", 1), ("my/own", "b", 0)] {
        let event = events.wait_tag(&format!("salt/state_result/{jid}/web1/{end}"));
        let told = &event["data"]["ret"];
        assert_eq!(
            (&told["name"], &told["result"], &event["id"]),
            (&json!(name), &json!(true), &json!("web1")),
            "{event}"
        );
        assert_eq!(told["changes"].as_object().map(serde_json::Map::len), Some(changes), "{event}");
    }
    events.wait_return(&jid, "web1");
    let fired = |(tag, _): &(String, _)| tag.starts_with("salt/state_result/");
    assert_eq!(events.all().iter().filter(|event| fired(event)).count(), 2);
}

/// Runs are paused, ended, asked for and disabled, as by Salt.
#[test]
fn runs_are_steered() {
    let files = [("three.sls", "a: test.nop\nb: test.nop\nc: test.nop\n"), ("slow.sls", "a: runs.spin\nb: test.nop\n")];
    let (master, _minion) = with_runs(&files, "");
    let get = |args: &[&str]| master.json("web1", args);
    let events = master.events();
    // The first state lasts for half a second: time enough to say that the second is to wait.
    let jid = master.start_job(&["web1", "state.apply", "slow"]);
    get(&["state.pause", &jid, "b"]);
    assert_eq!(get(&["state.get_pauses"])[&jid], json!({"b": {}}));
    get(&["state.resume", &jid, "b"]);
    let run = events.wait_return(&jid, "web1")["return"].clone();
    assert_eq!(outcomes(&run).len(), 2, "{run}");
    assert_eq!(get(&["state.get_pauses"]), json!({}));
    let jid = master.start_job(&["web1", "state.apply", "slow"]);
    get(&["state.soft_kill", &jid, "b"]);
    let run = events.wait_return(&jid, "web1")["return"].clone();
    assert_eq!(outcomes(&run).len(), 1, "{run}");
    // The job has ended: it cannot be paused, and need not go on.
    let odd = get(&["state.pause", &jid]);
    assert!(odd.as_str().is_some_and(|text| text.contains(&format!("no job {jid} runs here"))), "{odd}");
    assert_eq!(get(&["state.resume", &jid]), json!(null));
    let odd = get(&["state.pause", "../x"]);
    assert!(odd.as_str().is_some_and(|text| text.contains("is no job's id")), "{odd}");
    // A run that somebody asks for, and the owner of the host begins.
    assert_eq!(get(&["state.check_request"]), json!({}));
    assert_eq!(outcomes(&get(&["state.request", "three"])).len(), 3);
    assert_eq!(get(&["state.check_request"])["default"]["mods"], json!("three"));
    assert_eq!(outcomes(&get(&["state.run_request"])).len(), 3);
    assert_eq!(get(&["state.run_request"]), json!({}));
    get(&["state.request", "three"]);
    assert_eq!(get(&["state.clear_request", "other"]), json!(false));
    assert_eq!(get(&["state.clear_request"]), json!(true));
    assert_eq!(get(&["state.check_request"]), json!({}));
    // Runs that are disabled.
    assert_eq!(get(&["state.disable", "three"]), json!({"res": true, "msg": "Info: three state disabled."}));
    assert_eq!(get(&["state.list_disabled"]), json!(["three"]));
    let says = "The state file \"three\" is currently disabled, to re-enable, run state.enable three.";
    assert_eq!(get(&["state.apply", "three"]), json!([says]));
    assert_eq!(get(&["state.enable", "three"]), json!({"res": true, "msg": "Info: three state enabled."}));
    assert_eq!(outcomes(&get(&["state.apply", "three"])).len(), 3);
}

/// A state may run others: they have a pillar and parallel states of their own.
#[test]
fn a_run_within_a_run_has_its_own_pillar() {
    // `pillar.keys` says what is there without values, which module.run masks.
    let files = [
        (
            "outer.sls",
            "beside:\n  test.configurable_test_state: [{changes: True}, {parallel: True}]\n\
             before:\n  module.run: [{pillar.keys: [outer]}]\n\
             within:\n  module.run: [{state.sls: [{mods: inner}, {pillar: {outer: {b: 1}}}]}]\n\
             after:\n  module.run: [{pillar.keys: [outer]}]\n\
             last:\n  test.nop: [{require: [{test: beside}]}]\n",
        ),
        (
            "inner.sls",
            "first:\n  test.nop: [{parallel: True}]\nsees:\n  module.run: [{pillar.keys: [outer]}]\n\
             second:\n  test.nop: [{require: [{test: first}]}]\n",
        ),
    ];
    let master = Master::start("");
    for (path, text) in files {
        master.serve(path, text.as_bytes());
    }
    let _minion = master.minion_kind(Kind::Brine, "web1", "sandbox: {modules: {module: {functions: any}}}\n");
    let run = master.json("web1", &["state.apply", "outer", "pillar={outer: {a: 1}}"]);
    let of = |run: &Value, id: &str| {
        let all = run.as_object().unwrap_or_else(|| panic!("no results: {run}"));
        all.values().find(|result| result["__id__"] == id).unwrap_or_else(|| panic!("no {id} in {run}")).clone()
    };
    for id in ["before", "after"] {
        assert_eq!(of(&run, id)["changes"], json!({"pillar.keys": ["a"]}), "{run}");
    }
    let inner = &of(&run, "within")["changes"]["state.sls"];
    assert_eq!(of(inner, "sees")["changes"], json!({"pillar.keys": ["b"]}), "{run}");
    for (run, id) in [(&run, "beside"), (&run, "last"), (inner, "first"), (inner, "second")] {
        assert_eq!(of(run, id)["result"], json!(true), "{id}: {run}");
    }
}

/// What is wrong with one state is its own result, and the others go on.
#[test]
fn what_is_wrong_is_said_where_it_is() {
    let files = [
        ("beside.sls", "a:\n  runs.spin: [parallel: true]\nb:\n  test.nop: [parallel: true]\nc: test.nop\n"),
        ("python.sls", "a: own.made\nb: test.nop\n"),
        ("_states/own.py", "def made(name): pass\n"),
        ("named.sls", "a:\n  test.nop: [name: {x: 1}]\nb: test.nop\n"),
        (
            "asked.sls",
            "a:\n  test.nop:\n    - unless: [{fun: sys.list_modules}]\nb:\n  test.nop:\n    - onlyif: [{fun: sys.list_modules}]\n",
        ),
        ("again.sls", "a:\n  test.nop:\n    - retry: {attempts: 1000000, interval: 1000000}\nb: test.nop\n"),
    ];
    let (master, _minion) = with_runs(&files, "");
    let run = |args: &[&str]| outcomes(&master.json("web1", &[&["state.apply"], args].concat()));
    for (sls, expect) in [
        ("beside", "its CPU limit of 500 ms is used up"),
        ("python", "'own' is a state module in Python (_states/own.py)"),
    ] {
        let told = run(&[sls]);
        assert!(told[0].2.contains(expect) && told[0].1 == json!(false), "{sls}: {told:?}");
        assert!(told[1..].iter().all(|(_, result, _)| *result == json!(true)), "{sls}: {told:?}");
    }
    // As in Salt: what is no text is no name.
    assert_eq!(run(&["named"])[0], ("a".to_owned(), json!(true), "Success!".to_owned()));
    // Conditions are calls of other modules' functions.
    let said: Vec<String> = run(&["asked"]).into_iter().map(|(.., said)| said).collect();
    assert_eq!(said, ["unless condition is true", "Success!"]);
    for more in ["test=False", "test=None"] {
        assert_eq!(run(&["again", more]).len(), 2, "{more}");
    }
    assert!(run(&["again", "test=True"])[0].2.contains("a maximum of 10000 times"));
}
