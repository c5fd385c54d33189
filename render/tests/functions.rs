//! Execution functions that only compute, beside stock Salt's answers (`tests/python/functions_oracle.py` makes them).
#![allow(clippy::unwrap_used)]

mod common;

use std::rc::Rc;

use brine_render::functions::{self, Surroundings};
use brine_render::{Dict, Value};
use common::plain;
use serde_json::Value as Json;

fn repr(value: &Value) -> String {
    let mut out = String::new();
    value.write_repr(&mut out).unwrap();
    out
}

fn dict(json: &Json) -> Dict {
    match plain(json) {
        Value::Dict(dict) => dict,
        other => panic!("{other:?} is no dict"),
    }
}

fn surroundings(json: &Json) -> Surroundings {
    let id = json["id"].as_str().unwrap();
    Surroundings::new(id, dict(&json["grains"]), dict(&json["pillar"]), dict(&json["opts"]))
}

#[test]
fn calls_give_what_stock_salt_gives() {
    let lines = include_str!("data/functions.jsonl");
    let setting: Json = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let rest = lines.split_once('\n').unwrap().1;
    common::compare(rest, |case| {
        let name = case["call"].as_str().unwrap();
        let args: Vec<Value> = case["args"].as_array().unwrap().iter().map(plain).collect();
        let kwargs = dict(&case["kwargs"]);
        let keyword: Vec<(Rc<str>, Value)> =
            kwargs.borrow().iter().map(|(key, value)| (key.as_str().unwrap().into(), value.clone())).collect();
        let surroundings = surroundings(&setting);
        let ours = match functions::call(&surroundings, name, args.clone(), keyword) {
            None if !functions::known(name) => return (name != "log.nope").then(|| format!("{name} is unknown")),
            None => "for the host".to_owned(),
            Some(Ok(value)) => repr(&value),
            Some(Err(error)) => format!("{}error {}", if error.refused { "refused " } else { "" }, error.message),
        };
        let theirs = match (case["ret"].as_str(), case["error"].as_str()) {
            (Some(ret), _) => ret.to_owned(),
            (_, error) => {
                let refused = if case["refused"] == Json::Bool(true) { "refused " } else { "" };
                format!("{refused}error {}", error.unwrap())
            }
        };
        if ours != theirs {
            return Some(format!("{name} {} {}\nsalt {theirs}\nours {ours}", case["args"], case["kwargs"]));
        }
        let after = (repr(&Value::list(args)), repr(&Value::Dict(kwargs)));
        let expect = match case["after"].as_array() {
            Some(after) => (after[0].as_str().unwrap().to_owned(), after[1].as_str().unwrap().to_owned()),
            None => (repr(&plain(&case["args"])), repr(&plain(&case["kwargs"]))),
        };
        (after != expect).then(|| format!("{name} {} leaves\nsalt {expect:?}\nours {after:?}", case["args"]))
    });
}
