//! Compares what the crate makes of texts and values with the lines that `python/yaml_oracle.py` writes.
#![allow(
    clippy::unwrap_used,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "shared by tests, which fail by panicking"
)]

use std::fmt::Write as _;

use brine_render::value::{Date, DateTime, Entries};
use brine_render::yaml::{self, DumpOptions, Limits, Style, YamlErrorKind};
use brine_render::{Dict, Key, Value};
use serde_json::Value as Json;

fn error_class(kind: YamlErrorKind) -> &'static str {
    match kind {
        YamlErrorKind::Reader => "ReaderError",
        YamlErrorKind::Scanner => "ScannerError",
        YamlErrorKind::Parser => "ParserError",
        YamlErrorKind::Composer => "ComposerError",
        YamlErrorKind::Constructor => "ConstructorError",
        YamlErrorKind::Value => "ValueError",
        YamlErrorKind::Index => "IndexError",
        YamlErrorKind::Key => "KeyError",
        YamlErrorKind::Attribute => "AttributeError",
        YamlErrorKind::Limit => "limit",
    }
}

/// What our loader makes of a text, as the script writes it.
fn loaded(text: &str) -> (String, String) {
    match yaml::load(text, &Limits::default()) {
        Ok(value) => {
            let mut repr = String::new();
            value.write_repr(&mut repr).unwrap();
            ("ok".to_owned(), repr)
        }
        Err(error) => (error_class(error.kind).to_owned(), error.to_string()),
    }
}

/// Compares each line, and shows the first that differ.
pub fn compare(lines: &str, check: impl Fn(&Json) -> Option<String>) {
    let (mut all, mut wrong, mut shown) = (0, 0, String::new());
    for line in lines.lines() {
        all += 1;
        if let Some(difference) = check(&serde_json::from_str(line).unwrap()) {
            wrong += 1;
            if wrong <= 30 {
                writeln!(shown, "{difference}\n").unwrap();
            }
        }
    }
    assert!(all > 100, "{all} cases are too few");
    assert!(wrong == 0, "{wrong} of {all} differ from stock Salt\n{shown}");
}

pub fn check_load(case: &Json) -> Option<String> {
    let text = case[0].as_str().unwrap();
    let expect = (case[1].as_str().unwrap().to_owned(), case[2].as_str().unwrap().to_owned());
    let ours = loaded(text);
    (ours != expect).then(|| format!("text {text:?}\nsalt {expect:?}\nours {ours:?}"))
}

/// What JSON says, with Python's plain dicts.
pub fn plain(json: &Json) -> Value {
    match json {
        Json::Null => Value::None,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) => n.as_i64().map_or_else(|| Value::Float(n.as_f64().unwrap()), Value::from),
        Json::String(text) => Value::str(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(plain)),
        Json::Object(entries) => Value::dict(entries.iter().map(|(key, item)| (key.as_str().into(), plain(item)))),
    }
}

/// A value as the script writes it.
pub fn typed(json: &Json) -> Value {
    let number = |json: &Json, at: usize| json[at].as_i64().unwrap();
    let object = match json {
        Json::Null => return Value::None,
        Json::Bool(b) => return Value::Bool(*b),
        Json::String(text) => return Value::str(text.as_str()),
        Json::Array(items) => return Value::list(items.iter().map(typed)),
        Json::Object(object) => object,
        Json::Number(_) => panic!("numbers have a type"),
    };
    let (kind, content) = object.iter().next().unwrap();
    let entries = || -> Entries {
        let pairs = content.as_array().unwrap().iter();
        pairs.map(|pair| (Key::new(typed(&pair[0])).unwrap(), typed(&pair[1]))).collect()
    };
    let items = || content.as_array().unwrap().iter().map(typed);
    let date =
        || Date { year: number(content, 0) as u16, month: number(content, 1) as u8, day: number(content, 2) as u8 };
    match kind.as_str() {
        "int" => Value::Int(content.as_str().unwrap().parse().unwrap()),
        "float" => Value::Float(content.as_str().unwrap().parse().unwrap()),
        "bytes" => {
            let hex = content.as_str().unwrap();
            let bytes: Vec<u8> =
                (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
            Value::Bytes(bytes.into())
        }
        "tuple" => Value::tuple(items()),
        "set" => Value::Set(items().map(|item| Key::new(item).unwrap()).collect()),
        "ordered" => Value::Dict(Dict::from_entries(entries(), true)),
        "dict" => Value::Dict(Dict::from_entries(entries(), false)),
        "date" => Value::Date(date()),
        _ => Value::DateTime(DateTime {
            date: date(),
            hour: number(content, 3) as u8,
            minute: number(content, 4) as u8,
            second: number(content, 5) as u8,
            microsecond: number(content, 6) as u32,
            offset_minutes: content[7].as_i64().map(|minutes| minutes as i16),
        }),
    }
}

fn dump_options(json: &Json) -> DumpOptions {
    let mut options = DumpOptions::default();
    for (name, value) in json.as_object().unwrap() {
        match name.as_str() {
            "default_flow_style" => options.default_flow_style = value.as_bool(),
            "width" => options.width = value.as_i64().unwrap(),
            "indent" => options.indent = value.as_i64().unwrap(),
            "allow_unicode" => options.allow_unicode = value.as_bool().unwrap(),
            "sort_keys" => options.sort_keys = value.as_bool().unwrap(),
            _ => {
                options.default_style = Some(match value.as_str().unwrap() {
                    "'" => Style::SingleQuoted,
                    "\"" => Style::DoubleQuoted,
                    "|" => Style::Literal,
                    _ => Style::Folded,
                });
            }
        }
    }
    options
}

pub fn check_dump(case: &Json) -> Option<String> {
    let value = typed(&case[0]);
    let expect = case[2].as_str().unwrap();
    let ours = yaml::dump(&value, &dump_options(&case[1])).unwrap();
    (ours != expect).then(|| format!("value {value:?}\noptions {}\nsalt {expect:?}\nours {ours:?}", case[1]))
}

pub fn check_json(case: &Json) -> Option<String> {
    let text = case[0].as_str().unwrap();
    let expect = case[2].as_str().unwrap();
    let ours = match brine_render::json::load(text, &Limits::default()) {
        Ok(value) => {
            let mut repr = String::new();
            value.write_repr(&mut repr).unwrap();
            repr
        }
        // half characters
        Err(error) if error.limit => return None,
        Err(error) => error.to_string(),
    };
    (ours != expect).then(|| format!("text {text:?}\nsalt {expect:?}\nours {ours:?}"))
}
