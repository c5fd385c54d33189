//! A host in memory, and JSON as stock Salt's answers have it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test uses a part")]

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use brine_render::jinja::CallError;
use brine_render::{Dict, Value, yaml};
use brine_states::{Fault, File, Host, Options, Parameters};
use serde_json::{Value as Json, json};

/// JSON of a value; a key that is no text is `!TYPE:VALUE`.
pub fn encode(value: &Value) -> Json {
    let marked = |value: &Value| {
        let class = value.type_name().rsplit('.').next().unwrap_or_default();
        let mut text = String::new();
        value.write_str(&mut text).unwrap();
        format!("!{class}:{text}")
    };
    match value {
        Value::None => Json::Null,
        Value::Bool(b) => json!(b),
        Value::Int(n) => json!(i64::try_from(*n).unwrap()),
        Value::Float(n) => json!(n),
        Value::Str(text) => json!(&**text),
        Value::List(list) => list.borrow().iter().map(encode).collect(),
        Value::Tuple(items) => items.iter().map(encode).collect(),
        Value::Dict(dict) => Json::Object(
            dict.borrow()
                .iter()
                .map(|(key, item)| (key.as_str().map_or_else(|| marked(key.value()), str::to_owned), encode(item)))
                .collect(),
        ),
        other => Json::String(marked(other)),
    }
}

/// A value of JSON.
pub fn decode(json: &Json) -> Value {
    brine_render::json::load(&json.to_string(), &yaml::Limits::default()).unwrap()
}

/// A file server in memory.
pub struct Memory {
    pub files: BTreeMap<String, BTreeMap<String, String>>,
    pub states: HashSet<String>,
    pub grains: Dict,
}

impl Memory {
    /// With files by environment, and the grains and state functions that stock Salt had.
    pub fn new(files: &Json) -> Self {
        let states: Vec<String> = serde_json::from_str(include_str!("../data/states.json")).unwrap();
        let grains = json!({"id": "web1", "os": "Debian", "os_family": "Debian", "kernel": "Linux", "osarch": "amd64",
            "osmajorrelease": 12, "osrelease": "12"});
        let Value::Dict(grains) = decode(&grains) else { unreachable!() };
        Self { files: serde_json::from_value(files.clone()).unwrap(), states: states.into_iter().collect(), grains }
    }

    /// The minion's settings.
    pub fn options(&self, settings: &Json) -> Options {
        let opts = json!({"id": "web1", "file_roots": self.files.keys().map(|env| (env.clone(), json!([]))).collect::<serde_json::Map<_, _>>()});
        let Value::Dict(opts) = decode(&opts) else { unreachable!() };
        let Value::Dict(own) = decode(settings) else { unreachable!() };
        for (name, value) in own.borrow().iter() {
            opts.borrow_mut().insert(name.clone(), value.clone());
        }
        let grains = opts.get("grains").unwrap_or_else(|| self.grains.clone().into());
        opts.set("grains", grains.clone());
        Options::new(&opts, grains, Value::dict([]))
    }
}

impl Host for Memory {
    fn environments(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }

    fn states(&self, saltenv: &str) -> Vec<String> {
        let files = self.files.get(saltenv).into_iter().flatten();
        let sls = files.filter_map(|(path, _)| path.strip_suffix(".sls"));
        sls.map(|path| path.strip_suffix("/init").unwrap_or(path).replace('/', ".")).collect()
    }

    fn load(&self, saltenv: &str, path: &str) -> Result<Option<File>, String> {
        let text = self.files.get(saltenv).and_then(|files| files.get(path));
        Ok(text.map(|text| File { path: format!("/TMP/cache/files/{saltenv}/{path}"), data: text.as_bytes().into() }))
    }

    fn has_function(&self, _: &str) -> bool {
        false
    }

    fn call(&self, _: &str, name: &str, _: Vec<Value>, _: Vec<(Rc<str>, Value)>) -> Result<Value, CallError> {
        Err(CallError { refused: true, message: format!("{name} is not here") })
    }

    fn has_state(&self, name: &str) -> bool {
        self.states.contains(name)
    }

    fn parameters(&self, name: &str) -> Option<Parameters> {
        let (module, function) = name.split_once('.')?;
        (module == "test" && self.has_state(name)).then(|| match function {
            "configurable_test_state" => Parameters {
                required: vec!["name".into()],
                optional: ["changes", "result", "comment", "warnings", "allow_test_mode_failure"]
                    .map(Into::into)
                    .into(),
                open: false,
            },
            "mod_watch" => Parameters { required: vec!["name".into()], optional: vec!["sfun".into()], open: true },
            "show_notification" => {
                Parameters { required: vec!["name".into()], optional: vec!["text".into()], open: true }
            }
            _ => Parameters { required: vec!["name".into()], optional: Vec::new(), open: true },
        })
    }

    fn is_target(&self, expression: &Value, matcher: &str, _: &Value) -> Result<bool, Fault> {
        let text = expression.as_str().unwrap_or_default();
        let grain = |text: &str| {
            let (name, value) = text.split_once(':').unwrap_or_default();
            self.grains.get(name).is_some_and(|grain| grain.as_str() == Some(value))
        };
        Ok(match matcher {
            "grain" => grain(text),
            _ => text.split(" and ").all(|part| match part.strip_prefix("G@") {
                Some(part) => grain(part),
                None => brine_patterns::fnmatch(part, "web1"),
            }),
        })
    }
}

/// Python with Salt, as `make interop` names it.
pub fn python() -> PathBuf {
    let installed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/venv/salt-3008/bin/python");
    std::env::var_os("BRINE_PYTHON").map_or_else(installed, PathBuf::from)
}
