//! Between JSON as the answers have it and values: what JSON cannot say is text that begins with `!`.

use brine_render::value::{Date, Entries};
use brine_render::{Dict, Key, Value, json, yaml};
use serde_json::Value as Json;

/// Reads JSON; dicts are ordered, as those of rendered files.
///
/// # Panics
/// The text is no JSON.
pub fn read(text: &str) -> Value {
    let limits = yaml::Limits { text: 1 << 30, values: 1 << 28, ..yaml::Limits::default() };
    json::load(text, &limits).expect("JSON")
}

/// A value as the answers mean it.
pub fn decode(value: &Value, ordered: bool) -> Value {
    match value {
        Value::List(list) => Value::list(list.borrow().iter().map(|item| decode(item, ordered))),
        Value::Str(text) => decode_text(text).unwrap_or_else(|| value.clone()),
        Value::Dict(dict) => {
            let entries: Entries = dict
                .borrow()
                .iter()
                .map(|(key, item)| {
                    let key = key.as_str().and_then(decode_text).and_then(|key| Key::new(key).ok());
                    (key, item)
                })
                .zip(dict.borrow().keys())
                .map(|((new, item), old)| (new.unwrap_or_else(|| old.clone()), decode(item, ordered)))
                .collect();
            Dict::from_entries(entries, ordered).into()
        }
        other => other.clone(),
    }
}

fn decode_text(text: &str) -> Option<Value> {
    let (class, value) = text.strip_prefix('!')?.split_once(':')?;
    Some(match class {
        "int" => Value::Int(value.parse().ok()?),
        "float" => Value::Float(value.parse().ok()?),
        "bool" => Value::Bool(value == "True"),
        "NoneType" => Value::None,
        "date" => {
            let mut parts = value.split('-');
            let mut next = || parts.next()?.parse::<u16>().ok();
            let (year, month, day) = (next()?, next()?, next()?);
            Value::Date(Date { year, month: month.try_into().ok()?, day: day.try_into().ok()? })
        }
        _ => return None,
    })
}

/// JSON of a value, as the answers have it.
pub fn encode(value: &Value) -> Json {
    match value {
        Value::None => Json::Null,
        Value::Bool(b) => Json::Bool(*b),
        Value::Int(n) => match (i64::try_from(*n), u64::try_from(*n)) {
            (Ok(n), _) => n.into(),
            (_, Ok(n)) => n.into(),
            _ => Json::String(n.to_string()),
        },
        Value::Float(n) => serde_json::Number::from_f64(*n).map_or(Json::Null, Json::Number),
        Value::Str(text) => Json::String(without_addresses(text)),
        Value::Bytes(bytes) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            serde_json::json!({ "!bytes": hex })
        }
        Value::List(list) => Json::Array(list.borrow().iter().map(encode).collect()),
        Value::Tuple(items) => Json::Array(items.iter().map(encode).collect()),
        Value::Set(set) => {
            let mut items: Vec<Value> = set.borrow().iter().map(|key| key.value().clone()).collect();
            items.sort_by_key(text);
            Json::Array(items.iter().map(encode).collect())
        }
        Value::Dict(dict) => Json::Object(
            dict.borrow()
                .iter()
                .map(|(key, item)| {
                    let name = key.as_str().map_or_else(|| marked(key.value()), str::to_owned);
                    (name, encode(item))
                })
                .collect(),
        ),
        other => Json::String(marked(other)),
    }
}

fn marked(value: &Value) -> String {
    let class = value.type_name().rsplit('.').next().unwrap_or_default().to_owned();
    format!("!{class}:{}", text(value))
}

fn text(value: &Value) -> String {
    let mut out = String::new();
    // a String takes all
    let _ = value.write_str(&mut out);
    out
}

/// `0x` and eight hexadecimal digits or more are `0xADDR`.
pub fn without_addresses(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..].find(|c: char| !matches!(c, '0'..='9' | 'a'..='f')).unwrap_or(rest.len() - at - 2);
        out.push_str(&rest[..at]);
        out.push_str(if digits >= 8 { "0xADDR" } else { &rest[at..at + 2 + digits] });
        rest = &rest[at + 2 + digits..];
    }
    out + rest
}
