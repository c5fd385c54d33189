//! What functions answered when stock Salt compiled a case.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use brine_render::Value;
use brine_render::jinja::CallError;
use serde_json::Value as Json;

use crate::json;

struct Answer {
    result: Value,
    error: Option<String>,
}

/// The answers to equal calls, and how many of them were given.
type Calls = (usize, Vec<Rc<Answer>>);

/// The calls of one case: for each function with its arguments, the answers in their order. The last answers again.
#[derive(Default)]
pub struct Tape {
    answers: RefCell<HashMap<String, Calls>>,
    used: RefCell<BTreeMap<String, usize>>,
}

fn key(name: &str, positional: &Json, keyword: &Json) -> String {
    let mut sorted: Vec<(&String, &Json)> = keyword.as_object().into_iter().flatten().collect();
    sorted.sort_by_key(|(name, _)| *name);
    format!(
        "{name}{}{}",
        canonical(positional),
        sorted.iter().map(|(k, v)| format!("{k}{}", canonical(v))).collect::<String>()
    )
}

/// JSON with sorted keys.
fn canonical(value: &Json) -> String {
    match value {
        Json::Object(map) => {
            let mut sorted: Vec<_> = map.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            let entries: Vec<String> = sorted.iter().map(|(k, v)| format!("{k:?}:{}", canonical(v))).collect();
            format!("{{{}}}", entries.join(","))
        }
        Json::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

impl Tape {
    /// Adds a call with its answer.
    pub fn add(&self, call: &Value) {
        let Value::Dict(call) = call else { return };
        let get = |name: &str| call.get(name).unwrap_or_default();
        let name = get("fun");
        let name = name.as_str().unwrap_or_default();
        let key = key(name, &json::encode(&get("args")), &json::encode(&get("kwargs")));
        let error = get("error");
        let answer = Answer { result: json::decode(&get("ret"), false), error: error.as_str().map(str::to_owned) };
        self.answers.borrow_mut().entry(key).or_default().1.push(Rc::new(answer));
    }

    /// How often each function was answered.
    pub fn used(&self) -> BTreeMap<String, usize> {
        self.used.borrow().clone()
    }

    /// The answer to a call; none if stock Salt made no such call.
    pub fn call(
        &self,
        name: &str,
        positional: &[Value],
        keyword: &[(Rc<str>, Value)],
    ) -> Option<Result<Value, CallError>> {
        let positional = Json::Array(positional.iter().map(json::encode).collect());
        let keyword = Json::Object(keyword.iter().map(|(k, v)| (k.to_string(), json::encode(v))).collect());
        let mut answers = self.answers.borrow_mut();
        let (at, list) = answers.get_mut(&key(name, &positional, &keyword))?;
        let answer = list.get(*at).or(list.last())?.clone();
        *at += 1;
        *self.used.borrow_mut().entry(name.to_owned()).or_default() += 1;
        Some(match &answer.error {
            None => Ok(copy(&answer.result)),
            Some(error) => {
                let (class, message) = error.split_once(": ").unwrap_or(("", error));
                let refused = matches!(class, "CommandExecutionError" | "SaltInvocationError");
                Err(CallError { refused, message: message.to_owned() })
            }
        })
    }
}

/// Each answer is a value of its own: templates change what they are given.
fn copy(value: &Value) -> Value {
    match value {
        Value::List(list) => Value::list(list.borrow().iter().map(copy)),
        Value::Dict(dict) => Value::dict(dict.borrow().iter().map(|(key, item)| (key.clone(), copy(item)))),
        other => other.clone(),
    }
}
