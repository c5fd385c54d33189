//! Runs of small SLS files have the returns of stock Salt, durations and times left out. The state functions of `test` are
//! below, in Rust; the commands of conditions are `true` and `false`.
#![allow(clippy::unwrap_used)]

mod common;

use brine_render::{Dict, Value};
use brine_states::run::{Answer, Call, Check, Finished, Run, Step};
use brine_states::{Compiler, Limits};
use common::{Memory, decode, encode};
use serde_json::{Value as Json, json};

/// What a state function of `test` returns.
fn state(call: &Call) -> Result<Value, String> {
    let given = |name: &str| call.arguments.get(name).unwrap_or_default();
    let text = |name: &str, default: &str| match given(name) {
        Value::None => default.into(),
        other => other,
    };
    let changes = decode(&json!({"testing": {"old": "Unchanged", "new": "Something pretended to change"}}));
    let none = Value::dict([]);
    let (changes, result, comment) = match call.function.as_str() {
        "test.nop" => (none, true.into(), "Success!".into()),
        "test.succeed_without_changes" => (none, true.into(), text("comment", "Success!")),
        "test.succeed_with_changes" if call.test => {
            (changes, Value::None, "If we weren't testing, this would be successful with changes".into())
        }
        "test.succeed_with_changes" => (changes, true.into(), text("comment", "Success!")),
        "test.fail_without_changes" if call.test => {
            (none, false.into(), "If we weren't testing, this would be a failure!".into())
        }
        "test.fail_without_changes" => (none, false.into(), text("comment", "Failure!")),
        "test.fail_with_changes" if call.test => {
            (changes, Value::None, "If we weren't testing, this would be failed with changes".into())
        }
        "test.fail_with_changes" => (changes, false.into(), text("comment", "Failure!")),
        "test.show_notification" => (none, true.into(), given("text")),
        "test.configurable_test_state" => {
            let changed = match given("changes") {
                Value::None | Value::Bool(true) => true,
                Value::Bool(false) => false,
                _ => {
                    return Err(
                        "salt.exceptions.SaltInvocationError: You have specified the state option 'changes' with \
                                invalid arguments. It must be either True, False, or 'Random'"
                            .to_owned(),
                    );
                }
            };
            let result = if call.test { if changed { Value::None } else { true.into() } } else { text("result", "") };
            let result = if result == Value::from("") { true.into() } else { result };
            let comment = text("comment", if call.test { "This is a test" } else { "" });
            (if changed { changes } else { none }, result, comment)
        }
        "test.mod_watch" => {
            let mut changed = Vec::new();
            if let Some(Value::Dict(requisites)) = call.low.get("__reqs__")
                && let Some(Value::List(watched)) = requisites.get("watch")
            {
                for low in watched.borrow().iter() {
                    let Value::Dict(low) = low else { continue };
                    let of = |name: &str| low.get(name).unwrap().as_str().unwrap().to_owned();
                    let tag = format!("{}_|-{}_|-{}_|-{}", of("state"), of("__id__"), of("name"), of("fun"));
                    let Some(Value::Dict(result)) = call.running.get(&tag) else { continue };
                    if result.get("changes").unwrap().truthy() {
                        changed.push(Value::from(format!("{}: {}", of("state"), of("__id__"))));
                    }
                }
            }
            let changes = Value::dict([("Requisites with changes".into(), Value::list(changed))]);
            let result = call.arguments.get("result").unwrap_or_else(|| true.into());
            (changes, result, text("comment", "Watch statement fired."))
        }
        other => panic!("{other}"),
    };
    let returned = Dict::default();
    returned.set("name", call.arguments.get("name").unwrap());
    returned.set("changes", changes);
    returned.set("result", result);
    returned.set("comment", comment);
    Ok(returned.into())
}

fn value(value: impl Into<Value>) -> Answer {
    Answer::Value { value: value.into(), code: 0 }
}

fn check(check: &Check) -> Answer {
    match check {
        Check::Command { command, .. } => Answer::Code(i64::from(command != "true")),
        Check::Function { name, positional, .. } => match name.as_str() {
            "test.true" => value(true),
            "test.false" => value(false),
            "test.echo" => match positional {
                Value::List(list) => value(list.borrow()[0].clone()),
                _ => panic!("{positional:?}"),
            },
            other => panic!("{other}"),
        },
        Check::Exist(paths) => value(paths.iter().all(|path| path == "/")),
    }
}

/// Runs to the end; parallel states finish when somebody waits for one.
fn run(mut run: Run<'_>, mut look: impl FnMut(&Step)) -> Dict {
    let mut started: Vec<Call> = Vec::new();
    loop {
        let step = run.next("12:00:00.000000").unwrap();
        look(&step);
        let answer = match step {
            Step::Done(results) => return results,
            Step::Call(call) => match state(&call) {
                Ok(result) => Answer::Result(result, 1.0),
                Err(why) => Answer::Raised(format!("Traceback (most recent call last):\n  File x\n{why}\n"), 1.0),
            },
            Step::Start { call, .. } => {
                started.push(call);
                Answer::Done
            }
            Step::Wait => {
                assert!(!started.is_empty(), "a wait for nothing");
                let call = started.remove(0);
                run.finished(Finished {
                    tag: call.tag.clone(),
                    result: state(&call),
                    start_time: "12:00:00.000000".to_owned(),
                    duration: 1.0,
                });
                Answer::Done
            }
            Step::Check(question) => check(&question),
            Step::Init(_) => value(true),
            Step::Aggregate { low, .. } => value(low),
            Step::Sleep { .. } | Step::Pause(_) | Step::Event(_) | Step::Refresh(_) => Answer::Done,
        };
        run.tell(answer);
    }
}

/// A return without what differs from run to run, as the oracle cleans it.
fn cleaned(results: &Dict) -> Json {
    let mut results = encode(&results.clone().into());
    for result in results.as_object_mut().unwrap().values_mut() {
        let result = result.as_object_mut().unwrap();
        result.remove("start_time");
        result.remove("duration");
        let comment = result["comment"].as_str().unwrap_or_default().to_owned();
        if comment.contains("Traceback") {
            let comment = comment.trim_end_matches('\n').replace("Traceback (most recent call last):", "");
            let (first, last) = (comment.lines().next().unwrap(), comment.lines().last().unwrap());
            result.insert("comment".to_owned(), json!(format!("{first}{last}")));
        }
    }
    results
}

/// Python has the names of failed requisites in the order of their hashes.
fn sorted(mut results: Json) -> Json {
    const FAILED: &str = "One or more requisite failed: ";
    for result in results.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
        if let Some(names) = result["comment"].as_str().and_then(|comment| comment.strip_prefix(FAILED)) {
            let mut names: Vec<&str> = names.split(", ").collect();
            names.sort_unstable();
            result["comment"] = json!(format!("{FAILED}{}", names.join(", ")));
        }
    }
    results
}

#[test]
fn runs_return_what_stock_salt_returns() {
    let mut different = Vec::new();
    let mut count = 0;
    for line in include_str!("data/runs.jsonl").lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let host = Memory::new(&case["files"]);
        let options = host.options(&case["options"]);
        let compiler = Compiler::new(&host, &options, Limits::default());
        let ours = match compiler.sls(&["a".to_owned()], &[], None).unwrap() {
            Ok(compiled) => cleaned(&run(compiled, |_| ())),
            Err(errors) => json!({ "errors": errors }),
        };
        count += 1;
        let (ours, stock) = (sorted(ours), &sorted(case["return"].clone()));
        let order = |json: &Json| json.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>());
        if ours != *stock || order(&ours) != order(stock) {
            different.push(format!("{}\n    ours  {ours}\n    stock {stock}", case["name"]));
        }
    }
    assert!(different.is_empty(), "{}\n{} of {count} differ", different.join("\n"), different.len());
}

/// The steps of a run of one file, each as a word.
fn steps(text: &str, settings: &Json) -> Vec<String> {
    let host = Memory::new(&json!({"base": {"a.sls": text}}));
    let options = host.options(settings);
    let compiler = Compiler::new(&host, &options, Limits::default());
    let compiled = compiler.sls(&["a".to_owned()], &[], None).unwrap().unwrap();
    let mut steps = Vec::new();
    run(compiled, |step| {
        steps.push(match step {
            Step::Call(call) => format!("call {}{}", call.tag, if call.test { " test" } else { "" }),
            Step::Start { call, after } => format!("start {} {after}", call.tag),
            Step::Wait => "wait".to_owned(),
            Step::Sleep { seconds, splay } => format!("sleep {seconds} {splay}"),
            Step::Event(event) => format!("event {:?} {}", event.name, event.length),
            Step::Refresh(refresh) => format!("{refresh:?}"),
            Step::Check(check) => format!("{check:?}"),
            other => format!("{other:?}").split([' ', '(']).next().unwrap().to_owned(),
        });
    });
    steps
}

#[test]
fn a_retry_waits_between_attempts() {
    let text = "a: {test.fail_without_changes: [{retry: {attempts: 3, interval: 7, splay: 2}}]}";
    let call = "call test_|-a_|-a_|-fail_without_changes";
    assert_eq!(steps(text, &json!({})), [call, "sleep 7 2", call, "sleep 7 2", call, "Done"]);
}

#[test]
fn a_parallel_retry_starts_again_later() {
    let text = "a: {test.fail_without_changes: [{parallel: true}, {retry: {attempts: 2, interval: 7}}]}";
    let start = |after: u64| format!("start test_|-a_|-a_|-fail_without_changes {after}");
    assert_eq!(steps(text, &json!({})), [&start(0), "wait", &start(7), "wait", &start(7), "wait", "Done"]);
}

#[test]
fn states_that_never_succeed_do_not_use_up_the_time_of_the_others() {
    let never = "{test.fail_without_changes: [{retry: {attempts: 1000000, interval: 10}}]}";
    let parallel = "{test.fail_without_changes: [{parallel: true}, {retry: {attempts: 1000000, interval: 10}}]}";
    let text = format!("a: {never}\nb: {never}\nc: test.nop\np: {parallel}");
    let host = Memory::new(&json!({"base": {"a.sls": text}}));
    let options = host.options(&json!({}));
    let compiler = Compiler::new(&host, &options, Limits { patience: 35, ..Limits::default() });
    let (mut waited, mut starts) = (0, Vec::new());
    let results = run(compiler.sls(&["a".to_owned()], &[], None).unwrap().unwrap(), |step| match step {
        Step::Sleep { seconds, .. } => waited += seconds,
        Step::Start { after, .. } => starts.push(*after),
        _ => {}
    });
    assert_eq!((waited, starts.as_slice()), (30, [0, 10, 10, 10].as_slice()));
    let results = encode(&results.into());
    let gave_up = "It is not tried again: the retries of a run take 35 seconds, in all";
    for id in ["a", "b", "p"] {
        let result = &results[format!("test_|-{id}_|-{id}_|-fail_without_changes")];
        assert_eq!(result["result"], json!(false), "{id}");
        assert!(result["comment"].as_str().unwrap().ends_with(gave_up), "{id}: {}", result["comment"]);
    }
    assert_eq!(results["test_|-c_|-c_|-nop"]["result"], json!(true));
}

#[test]
fn no_more_parallel_states_run_than_are_allowed() {
    let text = "a: {test.nop: [{parallel: true}]}\nb: {test.nop: [{parallel: true}]}";
    let start = |id: &str| format!("start test_|-{id}_|-{id}_|-nop 0");
    assert_eq!(steps(text, &json!({"state_max_parallel": 1})), [&start("a"), "wait", &start("b"), "wait", "Done"]);
}

#[test]
fn a_trial_is_a_dry_run() {
    let text = "a: {test.nop: [{prereq: [{test: b}]}]}\nb: test.succeed_with_changes";
    let b = "call test_|-b_|-b_|-succeed_with_changes";
    let expect = [format!("{b} test"), "call test_|-a_|-a_|-nop".into(), b.into(), "Done".into()];
    assert_eq!(steps(text, &json!({})), expect);
}

#[test]
fn results_are_told_if_somebody_wants_them() {
    let text = "a: {test.nop: [{fire_event: true}, {name: n}]}\nb: {test.nop: [{fire_event: x/y}]}\nc: test.nop";
    let events = |settings: &Json| -> Vec<String> {
        steps(text, settings).into_iter().filter(|step| step.starts_with("event")).collect()
    };
    assert_eq!(events(&json!({})), ["event Some(\"n\") 3", "event Some(\"x/y\") 3"]);
    assert_eq!(events(&json!({"state_events": true}))[2], "event None 3");
}

#[test]
fn what_a_state_brings_is_read_anew() {
    let text = "a: {test.succeed_with_changes: [{reload_modules: true}]}\nb: {test.nop: [{reload_grains: true}]}\nc: \
                {test.nop: [{reload_pillar: true}]}\nd: {test.nop: [{reload_modules: true}]}";
    let asked: Vec<String> = steps(text, &json!({})).into_iter().filter(|step| step.starts_with("Refresh")).collect();
    let refresh = |modules: bool, grains: bool, pillar: bool| {
        format!("Refresh {{ modules: {modules}, grains: {grains}, pillar: {pillar} }}")
    };
    assert_eq!(asked, [refresh(true, false, false), refresh(false, true, false), refresh(false, false, true)]);
}

#[test]
fn commands_of_conditions_have_the_options_of_the_state() {
    let text = "a: {test.nop: [{unless: 'false'}, {runas: bob}, {cwd: /}, {umask: '077'}, {shell: /bin/sh}]}";
    let asked = steps(text, &json!({}));
    let expect = "Command { command: \"false\", options: {'cwd': '/', 'root': None, 'runas': 'bob', 'env': None, \
                  'prepend_path': None, 'umask': None, 'timeout': None, 'success_retcodes': None, 'shell': '/bin/sh'} }";
    assert_eq!(asked[0], expect);
}

/// A state function that returns what is told.
fn returned(value: &Json) -> (Json, Json) {
    let host = Memory::new(&json!({"base": {"a.sls": "a: test.nop\nb: test.nop"}}));
    let options = host.options(&json!({}));
    let compiler = Compiler::new(&host, &options, Limits::default());
    let mut run = compiler.sls(&["a".to_owned()], &[], None).unwrap().unwrap();
    loop {
        match run.next("").unwrap() {
            Step::Call(call) if call.tag.contains("-a_") => run.tell(Answer::Result(decode(value), 0.0)),
            Step::Call(call) => run.tell(Answer::Result(state(&call).unwrap(), 0.0)),
            Step::Done(results) => {
                let results = encode(&results.into());
                return (results["test_|-a_|-a_|-nop"].clone(), results["test_|-b_|-b_|-nop"].clone());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_state_that_returns_rubbish_fails_and_the_others_go_on() {
    let dict = "An exception occurred in this state: Malformed state return. Data must be a dictionary type.";
    let changes = "An exception occurred in this state: 'Changes' should be a dictionary.";
    let keys =
        "An exception occurred in this state: The following keys were not present in the state return: name, comment.";
    for (value, comment) in [
        (json!(5), dict),
        (json!(null), dict),
        (json!([]), dict),
        (json!({}), changes),
        (json!({"changes": [], "result": true}), changes),
        (json!({"changes": {}, "result": true}), keys),
    ] {
        let (a, b) = returned(&value);
        assert_eq!((&a["result"], &a["comment"]), (&json!(false), &json!(comment)), "{value}");
        assert_eq!(b["result"], json!(true));
    }
    let odd = json!({"name": "a", "changes": {}, "result": "yes", "comment": ["one", "two"]});
    let (a, _) = returned(&odd);
    assert_eq!((&a["result"], &a["comment"]), (&json!(true), &json!("one\ntwo")));
}

#[test]
fn an_answer_to_another_question_ends_the_run_with_an_error() {
    let host = Memory::new(&json!({"base": {"a.sls": "a: test.nop"}}));
    let options = host.options(&json!({}));
    let compiler = Compiler::new(&host, &options, Limits::default());
    let mut run = compiler.sls(&["a".to_owned()], &[], None).unwrap().unwrap();
    assert!(matches!(run.next(""), Ok(Step::Call(_))));
    assert!(run.next("").is_err(), "no answer");
    run.tell(Answer::Code(0));
    assert!(run.next("").is_err());
    assert!(matches!(run.next(""), Ok(Step::Done(_))));
}

#[test]
fn one_id_runs_with_what_it_requires() {
    let text = "a: test.nop\nb: {test.nop: [{require: [{test: a}]}]}\nc: test.nop";
    let host = Memory::new(&json!({"base": {"a.sls": text}}));
    let options = host.options(&json!({}));
    let compiler = Compiler::new(&host, &options, Limits::default());
    let compiled = compiler.sls(&["a".to_owned()], &[], None).unwrap().unwrap();
    let results = run(compiled.only_id("b"), |_| ());
    let tags: Vec<String> = results.borrow().keys().map(|tag| tag.as_str().unwrap().to_owned()).collect();
    assert_eq!(tags, ["test_|-a_|-a_|-nop", "test_|-b_|-b_|-nop"]);
}

#[test]
fn a_run_can_be_ended_between_states() {
    let host = Memory::new(&json!({"base": {"a.sls": "a: test.nop\nb: test.nop"}}));
    let options = host.options(&json!({}));
    let compiler = Compiler::new(&host, &options, Limits::default());
    let mut run = compiler.sls(&["a".to_owned()], &[], None).unwrap().unwrap().with_pauses();
    let mut calls = 0;
    let results = loop {
        match run.next("").unwrap() {
            Step::Pause(low) if low.get("__id__") == Some("b".into()) => run.tell(Answer::Kill),
            Step::Pause(_) => run.tell(Answer::Done),
            Step::Call(call) => {
                calls += 1;
                run.tell(Answer::Result(state(&call).unwrap(), 0.0));
            }
            Step::Done(results) => break results,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((calls, results.borrow().len()), (1, 1));
}
