//! `test.check_pillar`

use brine_guest::Value;

use crate::Data;

/// What is asked of the values of each list of keys: nothing but that they are there, or a type, as Python prints it.
const TYPES: [Option<&str>; 6] = [
    None,
    Some("<class 'bool'>"),
    Some("<class 'int'>"),
    Some("(<class 'str'>,)"),
    Some("<class 'list'>"),
    Some("<class 'dict'>"),
];

/// What a check came to.
pub(crate) struct Checked {
    pub(crate) is_right: bool,
    pub(crate) comment: String,
}

/// A key, or a list of keys.
pub(crate) fn keys(given: Option<Data>) -> Result<Vec<String>, String> {
    Ok(match given.map(|data| data.value()).transpose()? {
        None => Vec::new(),
        Some(Value::List(keys)) => keys.iter().map(Value::to_text).collect(),
        Some(key) if key.truthy() => vec![key.to_text()],
        Some(_) => Vec::new(),
    })
}

/// Looks up the keys, in the order of [`TYPES`].
pub(crate) fn check(
    keys: &[Vec<String>],
    verbose: bool,
    get: &dyn Fn(&str) -> Result<Value, String>,
) -> Result<Checked, String> {
    // As in dicts: a key that was asked for twice is told once, by the last.
    let (mut failed, mut fine) = (Vec::new(), Vec::new());
    for (wanted, keys) in TYPES.iter().zip(keys) {
        for key in keys {
            let value = get(key)?;
            let told = match value {
                Value::None => "is missing.".to_owned(),
                value if !is(&value, *wanted) => format!("is not {}.", wanted.unwrap_or_default()),
                _ => {
                    set(&mut fine, key, wanted.unwrap_or("None").to_owned());
                    continue;
                }
            };
            set(&mut failed, key, told);
        }
    }
    let mut comment: String = failed.iter().map(|(key, told)| format!("Pillar key \"{key}\" {told}\n")).collect();
    if verbose && !fine.is_empty() {
        comment.push_str("Those keys passed the check:\n");
        comment.extend(fine.iter().map(|(key, wanted)| format!("- {key} ({wanted})\n")));
    }
    Ok(Checked { is_right: failed.is_empty(), comment })
}

/// Python's `isinstance`, where a truth value is a number too.
fn is(value: &Value, wanted: Option<&str>) -> bool {
    match wanted {
        None => true,
        Some("<class 'bool'>") => matches!(value, Value::Bool(_)),
        Some("<class 'int'>") => matches!(value, Value::Int(_) | Value::Bool(_)),
        Some("(<class 'str'>,)") => matches!(value, Value::Text(_)),
        Some("<class 'list'>") => matches!(value, Value::List(_)),
        Some(_) => matches!(value, Value::Dict(_)),
    }
}

fn set(all: &mut Vec<(String, String)>, key: &str, told: String) {
    match all.iter_mut().find(|(known, _)| known == key) {
        Some((_, known)) => *known = told,
        None => all.push((key.to_owned(), told)),
    }
}
