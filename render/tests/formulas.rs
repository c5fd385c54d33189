//! Templates of public formulas beside what stock Salt renders (`tests/python/formula_oracle.py` records it; it is not in
//! the tree). Does nothing unless `BRINE_FORMULA_RENDERS` names the folder of the records.
#![allow(clippy::unwrap_used)]

mod common;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use brine_render::functions::{self, Surroundings};
use brine_render::jinja::{self, CallError, Host, Limits, Settings, Source};
use brine_render::{Dict, Value};
use common::typed;
use serde_json::Value as Json;

/// The files of a formula, and the answers that a template got from stock Salt's functions.
struct Recorded {
    folders: Vec<PathBuf>,
    surroundings: Surroundings,
    /// Those not used yet.
    tape: RefCell<Vec<Json>>,
    /// Functions that were computed and gave something else than stock's.
    differences: RefCell<Vec<String>>,
}

fn repr(value: &Value) -> String {
    let mut out = String::new();
    value.write_repr(&mut out).unwrap();
    out
}

impl Recorded {
    /// Stock's answer to a call, the next one of those with these arguments.
    fn recorded(
        &self,
        name: &str,
        positional: &[Value],
        keyword: &[(Rc<str>, Value)],
    ) -> Option<Result<Value, CallError>> {
        let mut tape = self.tape.borrow_mut();
        let kwargs = Value::dict(keyword.iter().map(|(name, value)| ((&**name).into(), value.clone())));
        let at = tape.iter().position(|line| {
            line["fun"].as_str() == Some(name)
                && typed(&line["args"]) == Value::list(positional.iter().cloned())
                && typed(&line["kwargs"]) == kwargs
        })?;
        let line = tape.remove(at);
        Some(match line["error"].as_str() {
            Some(error) => Err(CallError { refused: line["refused"] == Json::Bool(true), message: error.to_owned() }),
            None => Ok(typed(&line["ret"])),
        })
    }
}

impl Host for Recorded {
    fn load(&self, path: &str) -> Result<Option<Source>, String> {
        if path.split('/').any(|part| part == "..") {
            return Ok(None);
        }
        for folder in &self.folders {
            if let Ok(text) = std::fs::read_to_string(folder.join(path.trim_start_matches('/'))) {
                return Ok(Some(Source { path: format!("/TMP/cache/files/base/{path}"), text }));
            }
        }
        Ok(None)
    }

    fn has_function(&self, name: &str) -> bool {
        functions::known(name) || self.tape.borrow().iter().any(|line| line["fun"].as_str() == Some(name))
    }

    fn call(&self, name: &str, positional: Vec<Value>, keyword: Vec<(Rc<str>, Value)>) -> Result<Value, CallError> {
        let theirs = self.recorded(name, &positional, &keyword);
        match functions::call(&self.surroundings, name, positional.clone(), keyword) {
            Some(ours) => {
                if let Some(theirs) = &theirs {
                    let show = |answer: &Result<Value, CallError>| match answer {
                        Ok(value) => repr(value),
                        Err(error) => format!("error {}", error.message),
                    };
                    if show(theirs) != show(&ours) {
                        let text = format!("{name}{positional:?}\n salt {}\n ours {}", show(theirs), show(&ours));
                        self.differences.borrow_mut().push(text);
                    }
                }
                ours
            }
            None => theirs.unwrap_or_else(|| {
                Err(CallError::python(format!("{name} with these arguments is not on the tape: {positional:?}")))
            }),
        }
    }
}

/// Renders a recorded template; the result as stock's is written, and what functions answered differently.
fn rendered(head: &Json, shared: &HashMap<String, Value>, line: &Json) -> (Result<String, String>, Vec<String>) {
    let context = Dict::default();
    for (name, value) in line["context"].as_object().unwrap() {
        context.set(
            name,
            match value["shared"].as_str() {
                Some(key) => shared[key].clone(),
                None => typed(value),
            },
        );
    }
    let dict = |name: &str| match context.get(name) {
        Some(Value::Dict(dict)) => dict,
        _ => Dict::default(),
    };
    let mut surroundings = Surroundings::new("web1", dict("grains"), dict("pillar"), dict("opts"));
    // the records are of `salt-call --local`
    surroundings.is_remote = false;
    let folders = head["files"].as_array().unwrap().iter().map(|f| PathBuf::from(f.as_str().unwrap())).collect();
    let tape = line["calls"].as_array().unwrap().iter().filter(|line| !line.is_null()).cloned().collect();
    let host = Recorded { folders, surroundings, tape: RefCell::new(tape), differences: RefCell::default() };
    context.set("salt", jinja::functions());
    for name in line["opaque"].as_array().unwrap() {
        context.set(name.as_str().unwrap(), Value::dict([]));
    }
    let text = line["template"].as_str().unwrap();
    let done = jinja::render(text, &context, &host, &Settings::default(), &Limits::default());
    (done.map_err(|error| error.to_string()), host.differences.take())
}

#[test]
fn formulas_render_as_with_stock_salt() {
    let Ok(folder) = std::env::var("BRINE_FORMULA_RENDERS") else { return };
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    let (mut all, mut equal, mut refused, mut refused_alike, mut shown) = (0, 0, 0, 0, String::new());
    for path in &paths {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let (mut own, mut own_equal) = (0, 0);
        for (line, ours, calls) in cases(path) {
            let theirs = match (line["output"].as_str(), line["error"].as_str()) {
                (Some(output), _) => Ok(output.to_owned()),
                (_, error) => Err(error.unwrap_or_default().to_owned()),
            };
            own += 1;
            // an exception of Python brings its traceback along
            let traced = theirs.as_ref().is_err_and(|text| text.contains("\nTraceback"));
            let short = |text: &String| {
                match traced {
                    true => {
                        text.split("\nTraceback").next().unwrap_or_default().split("; line ").next().unwrap_or_default()
                    }
                    false => text.trim(),
                }
                .to_owned()
            };
            let alike = match (&theirs, &ours) {
                (Ok(theirs), Ok(ours)) => theirs == ours,
                (Err(theirs), Err(ours)) => short(theirs).trim() == short(ours).trim(),
                _ => false,
            };
            refused += usize::from(theirs.is_err());
            refused_alike += usize::from(theirs.is_err() && alike);
            own_equal += usize::from(alike);
            if (!alike || !calls.is_empty()) && shown.len() < 200_000 {
                let sls = line["context"]["sls"].as_str().unwrap_or_default();
                writeln!(shown, "==== {name} {sls} {} ====", line["context"]["tplfile"]).unwrap();
                if !alike {
                    writeln!(shown, "{}", difference(&theirs, &ours)).unwrap();
                }
                calls.iter().for_each(|call| writeln!(shown, "call {call}").unwrap());
            }
        }
        all += own;
        equal += own_equal;
        if own != own_equal {
            writeln!(shown, "#### {name}: {own_equal} of {own}").unwrap();
        }
    }
    println!("{equal} of {all} templates equal; {refused_alike} of {refused} refusals alike\n{shown}");
    assert!(equal * 100 >= all * 98, "{equal} of {all}");
}

fn cases(path: &Path) -> Vec<(Json, Result<String, String>, Vec<String>)> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let (head, shared) = (lines.next().unwrap(), lines.next().unwrap());
    lines
        .map(|line| {
            // anew for each: templates change what they are given
            let used =
                ["grains", "pillar", "opts"].map(|name| line["context"][name]["shared"].as_str().unwrap_or_default());
            let values = used.iter().filter(|key| !key.is_empty()).map(|key| ((*key).to_owned(), typed(&shared[*key])));
            let (ours, calls) = rendered(&head, &values.collect(), &line);
            (line, ours, calls)
        })
        .collect()
}

fn difference(theirs: &Result<String, String>, ours: &Result<String, String>) -> String {
    match (theirs, ours) {
        (Ok(theirs), Ok(ours)) => {
            let at = theirs.lines().zip(ours.lines()).position(|(a, b)| a != b).unwrap_or(0);
            let part = |text: &str| text.lines().skip(at.saturating_sub(1)).take(4).collect::<Vec<_>>().join("\n  ");
            format!("line {at}\n salt {}\n ours {}", part(theirs), part(ours))
        }
        (theirs, ours) => {
            let cut = |text: &str| text.chars().take(700).collect::<String>();
            format!(
                "salt {}\nours {}",
                theirs.as_ref().map_or_else(|e| format!("error {}", cut(e)), |t| cut(t)),
                ours.as_ref().map_or_else(|e| format!("error {}", cut(e)), |t| cut(t))
            )
        }
    }
}
