//! Arguments as Python takes them.

use brine_guest::{Data, Result, Value};

/// An argument that may be missing.
///
/// # Errors
/// When it is no value.
pub fn value(argument: Option<&Data>) -> Result<Value> {
    argument.map_or(Ok(Value::None), Data::value)
}

/// Whether an argument counts as true; `default` if it is missing.
///
/// # Errors
/// When it is no value.
pub fn flag(argument: Option<&Data>, default: bool) -> Result<bool> {
    argument.map_or(Ok(default), |argument| Ok(argument.value()?.truthy()))
}

/// The text of an argument; none if it is missing or None.
///
/// # Errors
/// When it is no value.
pub fn text(argument: Option<&Data>) -> Result<Option<String>> {
    Ok(Some(value(argument)?).filter(|value| *value != Value::None).map(|value| value.to_text()))
}

/// A list of names; none if it is missing or None. As in Python, a text is a list of its characters.
///
/// # Errors
/// When it is no value, or neither a list nor text.
pub fn names(argument: Option<&Data>, what: &str) -> Result<Option<Vec<String>>> {
    match value(argument)? {
        Value::None => Ok(None),
        Value::List(items) => Ok(Some(items.iter().map(Value::to_text).collect())),
        Value::Text(text) => Ok(Some(text.chars().map(String::from).collect())),
        other => Err(format!("{what} is to be a list, not {}", other.kind())),
    }
}

/// Sorted and without doubles.
pub fn set(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.dedup();
    names
}

/// `int(value)`; none where Python has no number for it.
pub fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Bool(flag) => Some((*flag).into()),
        Value::Float(number) if number.is_finite() => Some(*number as i64),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_list_of_its_characters() {
        assert_eq!(names(Some(&"ab".into()), "groups"), Ok(Some(vec!["a".into(), "b".into()])));
        assert_eq!(names(Some(&vec!["ab", "c"].into()), "groups"), Ok(Some(vec!["ab".into(), "c".into()])));
        assert_eq!(names(None, "groups"), Ok(None));
        assert_eq!(names(Some(&Value::Int(1).into()), "groups"), Err("groups is to be a list, not a number".into()));
    }

    #[test]
    fn a_missing_argument_is_not_one_that_is_none() {
        assert_eq!(flag(None, true), Ok(true));
        assert_eq!(flag(Some(&Value::None.into()), true), Ok(false));
        assert_eq!(integer(&" 12 ".into()), Some(12));
        assert_eq!(integer(&"x".into()), None);
    }
}
