//! States of items of grains that are lists.

use brine_guest::Value;
use brine_guest::lookup::traverse;

use super::{Came, contains};
use crate::DELIMITER;
use crate::change::{self, within};

pub(super) fn append(grains: &Value, name: &str, value: &Value, convert: bool, dry: bool) -> Came {
    let known = traverse(grains, name, DELIMITER);
    // Of the grains that are empty, Salt knows those that are within no other.
    let known = known.filter(|known| known.truthy() || grains.get(name).is_some());
    let shown = value.to_text();
    let added = || Value::dict([("added", value.clone())]);
    let changed = match known {
        None => return Came::bad(format!("Grain {name} does not exist")),
        Some(Value::List(items)) if contains(items, value) => {
            return Came::good(format!("Value {shown} is already in the list for grain {name}"));
        }
        Some(Value::List(_)) if dry => {
            return Came::would(format!("Value {shown} in grain {name} is set to be added"), added());
        }
        Some(Value::List(_)) => match change::append(grains, name, value.clone(), false, DELIMITER) {
            Ok(changed) => changed,
            Err(why) => return Came::bad(why),
        },
        Some(_) if !convert => return Came::bad(format!("Grain {name} is not a valid list")),
        Some(_) if dry => {
            let comment = format!("Grain {name} is set to be converted to list and value {shown} will be added");
            return Came::would(comment, added());
        }
        Some(Value::None) => within(grains, name, Value::List(vec![value.clone()]), DELIMITER),
        Some(one) => within(grains, name, Value::List(vec![one.clone(), value.clone()]), DELIMITER),
    };
    Came::writing(changed, format!("Value {shown} was added to grain {name}"), added())
}

pub(super) fn present(grains: &Value, name: &str, value: &Value, pending: &[Value], dry: bool) -> Came {
    let grain = traverse(grains, name, DELIMITER).cloned().unwrap_or_else(|| "".into());
    let there = match &grain {
        Value::List(items) if !items.is_empty() => Some(items.as_slice()),
        other if other.truthy() => return Came::bad(format!("Grain {name} is not a valid list")),
        _ => None,
    };
    let is_known = |value: &Value| contains(there.unwrap_or_default(), value) || contains(pending, value);
    let already = |value: &Value| match there {
        Some(_) => format!("Value {} is already in grain {name} (or pending)", value.to_text()),
        None => format!("Value {} is already pending in grain {name}", value.to_text()),
    };
    let (mut new, mut known) = (Vec::new(), Vec::new());
    let mut comment = String::new();
    let value = match value {
        Value::List(values) => {
            for one in values {
                let is_known = is_known(one) || contains(&new, one);
                if is_known { &mut known } else { &mut new }.push(one.clone());
            }
            if new.is_empty() {
                return Came::good(already(value));
            }
            if !known.is_empty() {
                let known = Value::List(known).to_text();
                comment = match there {
                    Some(_) => {
                        format!("Removed value {known} from update due to value found in \"{name}\" (or pending).\n")
                    }
                    None => format!("Removed value {known} from update due to value already pending in \"{name}\".\n"),
                };
            }
            Value::List(new)
        }
        one if is_known(one) => return Came::good(already(one)),
        one => one.clone(),
    };
    let shown = value.to_text();
    if dry {
        let comment = match there {
            Some(_) => format!("Value {shown} is set to be appended to grain {name}"),
            None => format!("Grain {name} is set to be added"),
        };
        return Came::would(comment, Value::dict([("new", grain)]));
    }
    match change::append(grains, name, value.clone(), false, DELIMITER) {
        Err(_) => Came::bad(failed(name, &value)),
        Ok((top, whole)) => {
            let changes = Value::dict([("new", Value::dict([(top.as_str(), whole.clone())]))]);
            Came::writing((top, whole), format!("{comment}Append value {shown} to grain {name}"), changes)
        }
    }
}

/// What is said where the grain has not got the items.
pub(super) fn failed(name: &str, value: &Value) -> String {
    format!("Failed append value {} to grain {name}", value.to_text())
}

/// Whether the grain is a list that has the item, or all items of a list.
pub(super) fn has(grains: &Value, name: &str, value: &Value) -> bool {
    let Some(Value::List(items)) = traverse(grains, name, DELIMITER) else { return false };
    match value {
        Value::List(values) => values.iter().all(|value| contains(items, value)),
        one => contains(items, one),
    }
}

pub(super) fn absent(grains: &Value, name: &str, value: Value, dry: bool) -> Came {
    let items = match traverse(grains, name, DELIMITER) {
        Some(Value::List(items)) if !items.is_empty() => items,
        Some(other) if other.truthy() => return Came::bad(format!("Grain {name} is not a valid list")),
        _ => return Came::good(format!("Grain {name} does not exist")),
    };
    let values = match value {
        Value::List(values) => values,
        one => vec![one],
    };
    let mut left = items.clone();
    let (mut comments, mut deleted) = (Vec::new(), Vec::new());
    for value in values {
        let shown = value.to_text();
        let Some(at) = left.iter().position(|item| item.same(&value)) else {
            comments.push(format!("Value {shown} is absent from grain {name}"));
            continue;
        };
        if dry {
            comments.push(format!("Value {shown} in grain {name} is set to be deleted"));
        } else {
            left.remove(at);
            comments.push(format!("Value {shown} was deleted from grain {name}"));
        }
        deleted.push(value);
    }
    let comment = comments.join("\n");
    if deleted.is_empty() {
        return Came::good(comment);
    }
    let changes = Value::dict([("deleted", Value::List(deleted))]);
    if dry {
        return Came::would(comment, changes);
    }
    Came::writing(within(grains, name, Value::List(left), DELIMITER), comment, changes)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{grains, said};
    use super::*;

    fn add(name: &str, value: impl Into<Value>, convert: bool, dry: bool) -> String {
        said(append(&grains(), name, &value.into(), convert, dry))
    }

    #[test]
    fn a_list_that_is_there_grows() {
        assert_eq!(
            add("roles", "c", false, false),
            "True Value c was added to grain roles {'added': 'c'} > roles=['a', 'b', 'c']"
        );
        assert_eq!(add("roles", "c", false, true), "None Value c in grain roles is set to be added {'added': 'c'}");
        assert_eq!(add("roles", "a", false, false), "True Value a is already in the list for grain roles {}");
        assert_eq!(add("nothing", "a", true, false), "False Grain nothing does not exist {}");
        assert_eq!(add("none", "a", false, false), "False Grain none is not a valid list {}");
        assert_eq!(add("none", "a", true, false), "True Value a was added to grain none {'added': 'a'} > none=['a']");
        // One that is empty, and within another.
        assert_eq!(add("app:empty", "a", false, false), "False Grain app:empty does not exist {}");
        assert_eq!(add("role", "db", false, true), "False Grain role is not a valid list {}");
        assert_eq!(
            add("role", "db", true, true),
            "None Grain role is set to be converted to list and value db will be added {'added': 'db'}"
        );
        assert_eq!(
            add("role", vec!["db"], true, false),
            "True Value ['db'] was added to grain role {'added': ['db']} > role=['web', ['db']]"
        );
        assert_eq!(
            add("app:port", 81_i64, true, false),
            "True Value 81 was added to grain app:port {'added': 81} > app={'port': [80, 81], 'empty': []}"
        );
    }

    #[test]
    fn a_list_has_items() {
        let pending = ["p".into()];
        let real = |name: &str, value: Value| said(present(&grains(), name, &value, &[], false));
        let dry = |name: &str, value: Value| said(present(&grains(), name, &value, &pending, true));
        assert_eq!(real("roles", "a".into()), "True Value a is already in grain roles (or pending) {}");
        assert_eq!(
            real("roles", "c".into()),
            "True Append value c to grain roles {'new': {'roles': ['a', 'b', 'c']}} > roles=['a', 'b', 'c']"
        );
        assert_eq!(
            real("roles", vec!["c", "b"].into()),
            "True Removed value ['b'] from update due to value found in \"roles\" (or pending).\nAppend value ['c'] \
             to grain roles {'new': {'roles': ['a', 'b', 'c']}} > roles=['a', 'b', 'c']"
        );
        assert_eq!(
            real("new", vec!["c", "c"].into()),
            "True Removed value ['c'] from update due to value already pending in \"new\".\nAppend value ['c'] to \
             grain new {'new': {'new': ['c']}} > new=['c']"
        );
        assert_eq!(real("role", "x".into()), "False Grain role is not a valid list {}");
        assert_eq!(real("none", "x".into()), "False Failed append value x to grain none {}");
        assert_eq!(dry("roles", "p".into()), "True Value p is already in grain roles (or pending) {}");
        assert_eq!(
            dry("roles", vec!["p", "c"].into()),
            "None Value ['c'] is set to be appended to grain roles {'new': ['a', 'b']}"
        );
        assert_eq!(dry("new", "x".into()), "None Grain new is set to be added {'new': ''}");
        assert_eq!(dry("new", vec!["p"].into()), "True Value ['p'] is already pending in grain new {}");
        assert!(has(&grains(), "roles", &vec!["a", "b"].into()) && has(&grains(), "roles", &"a".into()));
        assert!(!has(&grains(), "roles", &vec!["a", "c"].into()) && !has(&grains(), "role", &"web".into()));
    }

    #[test]
    fn a_list_loses_items() {
        let real = |name: &str, value: Value| said(absent(&grains(), name, value, false));
        let dry = |name: &str, value: Value| said(absent(&grains(), name, value, true));
        assert_eq!(
            real("roles", vec!["a", "x", "a"].into()),
            "True Value a was deleted from grain roles\nValue x is absent from grain roles\nValue a is absent from \
             grain roles {'deleted': ['a']} > roles=['b']"
        );
        assert_eq!(dry("roles", "a".into()), "None Value a in grain roles is set to be deleted {'deleted': ['a']}");
        assert_eq!(dry("roles", "x".into()), "True Value x is absent from grain roles {}");
        assert_eq!(real("role", "x".into()), "False Grain role is not a valid list {}");
        assert_eq!(real("app:empty", "x".into()), "True Grain app:empty does not exist {}");
        assert_eq!(real("nothing", "x".into()), "True Grain nothing does not exist {}");
    }
}
