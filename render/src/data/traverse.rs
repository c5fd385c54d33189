//! `a:b:0`: a way into dicts and lists (`salt.utils.data.traverse_dict_and_list`).

use super::{CallError, argument};
use crate::value::{Key, TextKey, Value};

/// The value at the end of a way; none if the way leads nowhere.
///
/// # Errors
/// The key is nothing to go by.
pub fn traverse(data: &Value, key: &Value, delimiter: &str) -> Result<Option<Value>, CallError> {
    let parts = match key {
        Value::Str(_) if delimiter.is_empty() => return Err(CallError::python("empty separator")),
        Value::Str(text) if !text.contains(delimiter) => return step(data, key),
        Value::Str(text) => text.split(delimiter).map(Value::str).collect(),
        Value::Int(_) | Value::Bool(_) => return step(data, key),
        Value::List(items) => items.borrow().clone(),
        Value::Tuple(items) => items.to_vec(),
        other => return Err(CallError::python(format!("'{}' object is not iterable", other.type_name()))),
    };
    let mut at = data.clone();
    for part in &parts {
        match step(&at, part)? {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

fn step(at: &Value, part: &Value) -> Result<Option<Value>, CallError> {
    Ok(match at {
        Value::List(list) => {
            let list = list.borrow();
            let embedded = |key: &Value| {
                let key = Key::new(key.clone()).ok()?;
                list.iter().find_map(|item| match item {
                    Value::Dict(dict) => dict.borrow().get(&key).cloned(),
                    _ => None,
                })
            };
            match part {
                Value::Str(text) => match integer(text) {
                    Some(index) => embedded(&Value::Int(index)).or_else(|| place(&list, index)),
                    None => embedded(part),
                },
                Value::Int(index) => embedded(part).or_else(|| place(&list, *index)),
                Value::Bool(is) => embedded(part).or_else(|| place(&list, i128::from(*is))),
                other => {
                    return Err(CallError::python(format!(
                        "int() argument must be a string, a bytes-like object or a real number, not '{}'",
                        other.type_name()
                    )));
                }
            }
        }
        Value::Dict(dict) => {
            let found = match part {
                Value::Str(text) => dict.borrow().get(&TextKey(text)).cloned(),
                other => Key::new(other.clone()).ok().and_then(|key| dict.borrow().get(&key).cloned()),
            };
            match (found, part) {
                (Some(found), _) => Some(found),
                (None, Value::Str(text)) => match argument(text) {
                    Value::Str(_) => None,
                    loaded => Key::new(loaded).ok().and_then(|key| dict.borrow().get(&key).cloned()),
                },
                _ => None,
            }
        }
        Value::Str(text) => match part {
            Value::Int(index) => {
                let count = text.chars().count() as i128;
                let index = if *index < 0 { index + count } else { *index };
                let at = usize::try_from(index).map_err(|_| CallError::python("string index out of range"))?;
                let c = text.chars().nth(at).ok_or_else(|| CallError::python("string index out of range"))?;
                Some(c.to_string().into())
            }
            _ => None,
        },
        Value::Tuple(items) => match part {
            Value::Int(index) => {
                Some(place(items, *index).ok_or_else(|| CallError::python("tuple index out of range"))?)
            }
            _ => None,
        },
        _ => None,
    })
}

fn place(items: &[Value], index: i128) -> Option<Value> {
    let index = if index < 0 { index + items.len() as i128 } else { index };
    items.get(usize::try_from(index).ok()?).cloned()
}

/// Python's `int()` of text; what has more than 127 bits is taken for the largest number.
pub fn integer(text: &str) -> Option<i128> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.split('_').any(|digits| digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let number: i128 = digits.replace('_', "").parse().unwrap_or(i128::MAX);
    Some(if text.starts_with('-') { -number } else { number })
}
