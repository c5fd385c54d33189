//! The standard modules answer as Salt's modules of the same names do: each call here is made in both, with the same words
//! on the command line and the same configuration, and what comes back is compared.

use brine_tests::process::{Output, run};
use brine_tests::salt::{Kind, Minion};
use serde_json::{Value, json};

const CONFIG: &str =
    "file_client: local\ngrains: {role: web, nest: {list: [a, {k: v}], n: 1}, 'odd:key|x': {y: 2}}\nlog_level: quiet";

/// What is called, as one writes it on a command line.
const CALLS: &[&[&str]] = &[
    &["test.ping"],
    &["test.echo", "foo bar"],
    &["test.echo", "{a: [1, 2.5, null, true], b: ünïcödé}"],
    &["test.echo", "text=12"],
    &["test.arg", "1", "two", "3.1", "txt=hello", "wow={a: 1, b: hello}"],
    &["test.arg"],
    &["test.kwarg", "num=1", "txt=two", "env={a: 1, b: hello}"],
    &["test.outputter", "foobar"],
    &["test.retcode"],
    &["test.true"],
    &["test.false"],
    &["test.sleep", "0"],
    &["sys.doc", "nothing.there"],
    &["sys.list_modules", "grains", "test", "nothing"],
    &["sys.list_modules", "saltuti*"],
    &["sys.list_functions", "sys.list_modul*", "test.ping", "nothing"],
    &["sys.argspec", "test.ping"],
    &["sys.argspec", "test.echo"],
    &["sys.argspec", "test.arg"],
    &["sys.argspec", "test.kwarg"],
    &["sys.argspec", "grains.item"],
    &["sys.argspec", "nothing.there"],
    &["grains.get", "role"],
    &["grains.get", "nest"],
    &["grains.get", "nest:n"],
    &["grains.get", "nest:list:1:k"],
    &["grains.get", "odd:key|x|y", "delimiter=|"],
    &["grains.get", "nothing"],
    &["grains.get", "nothing", "default=[1]"],
    &["grains.item", "role", "nest:n", "nothing"],
    &["grains.item", "role", "id", "sanitize=True"],
    &["grains.item", "nothing", "default=7"],
    &["grains.has_value", "nest:n"],
    &["grains.has_value", "nothing"],
    &["saltutil.running"],
    &["saltutil.is_running", "test.*"],
    &["saltutil.find_job", "20250101000000000000"],
    &["saltutil.kill_job", "20250101000000000000"],
    &["saltutil.kill_all_jobs"],
];

/// Runs all calls as salt-call does, in one process: Python Salt takes a second or two to start.
const PYTHON: &str = "
import json, sys
import salt.client, salt.minion, salt.utils.args
functions = salt.client.Caller(sys.argv[1]).sminion.functions
def call(name, *words):
    parsed = salt.utils.args.parse_input(words)
    args, kwargs = salt.minion.load_args_and_kwargs(functions[name], parsed)
    return functions[name](*args, **kwargs)
print(json.dumps([call(*words) for words in json.loads(sys.argv[2])]))
";

#[test]
fn answers_are_salts() {
    let brine = Minion::prepare(Kind::Brine, "m1", 1, CONFIG);
    let python = Minion::prepare(Kind::Python, "m1", 1, CONFIG);
    let conf = python.path("conf/minion").display().to_string();
    let output =
        run(&Kind::Python.program("python"), &["-W", "ignore", "-c", PYTHON, &conf, &json!(CALLS).to_string()]);
    let expected = output.exits(0).json();

    let mut wrong = Vec::new();
    for (index, call) in CALLS.iter().enumerate() {
        let output: Output = brine.salt_call(&[&["--local", "--out=json"], *call].concat());
        let (ours, theirs) = (local(&output), expected[index].clone());
        if ours != theirs {
            wrong.push(format!("{}: {ours}, in Salt {theirs}; {}", call.join(" "), output.stderr));
        }
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn local(output: &Output) -> Value {
    serde_json::from_str::<Value>(&output.stdout).map_or(Value::Null, |answer| answer["local"].clone())
}
