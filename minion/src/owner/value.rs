//! Entries of the configuration as values: added to each other, taken away from each other, and written on one line.

use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::yaml_text;

/// The key that binds an entry to a content.
pub(super) const CONTENT: &str = "sha256";
/// What an entry says for every content, also if it is bound to one.
const OF_EVERY_CONTENT: [&str; 4] = ["limits", "max_running", "max_queued", "record"];

/// Adds what `more` says. The error names what both say differently.
pub(super) fn add(to: &mut Value, more: &Value) -> Result<(), String> {
    match (to, more) {
        (Value::Map(to), Value::Map(more)) => {
            for (key, value) in more {
                match to.iter_mut().find(|(known, _)| known == key) {
                    Some((_, known)) if key.text() == Some(CONTENT) && same_content(known, value) => {}
                    Some((_, known)) => add(known, value).map_err(|why| format!("{}: {why}", shown(key)))?,
                    None => to.push((key.clone(), value.clone())),
                }
            }
            Ok(())
        }
        (Value::Array(to), Value::Array(more)) => {
            for item in more {
                if !to.contains(item) {
                    to.push(item.clone());
                }
            }
            Ok(())
        }
        // Programs as a list are the short form of a map.
        (to @ Value::Array(_), Value::Map(_)) | (to @ Value::Map(_), Value::Array(_)) => {
            let (mut whole, other) = (programs(to.clone()), programs(more.clone()));
            add(&mut whole, &other)?;
            *to = whole;
            Ok(())
        }
        (to, more) if to == more => Ok(()),
        // More of the same path: `ro`, `rw`, `rw+setid`.
        (to, more) if rank(to).zip(rank(more)).is_some() => {
            if rank(to) < rank(more) {
                *to = more.clone();
            }
            Ok(())
        }
        // `any` and `true` say it all.
        (to, _) if to.text() == Some("any") => Ok(()),
        (to @ Value::Nil, more) => {
            *to = more.clone();
            Ok(())
        }
        (to, more) => Err(format!("the configuration says {}, which {} would replace", shown(to), shown(more))),
    }
}

/// Whether both are the same hash.
pub(super) fn same_content(one: &Value, other: &Value) -> bool {
    match (one.text(), other.text()) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        _ => one == other,
    }
}

/// What an entry says for its content alone: grants, the user, that it need not be signed, and that it may be older.
pub(super) fn of_content(entry: &Value) -> Value {
    let is_of_one = |key: &str, value: &Value| match key {
        CONTENT => false,
        "signed_by" => *value == Value::from(false),
        _ => *value != Value::from(false) && !OF_EVERY_CONTENT.contains(&key),
    };
    let entries = entry.entries().unwrap_or_default().iter();
    Value::Map(entries.filter(|(key, value)| is_of_one(key.text().unwrap_or_default(), value)).cloned().collect())
}

/// How much a word on a path opens.
fn rank(value: &Value) -> Option<usize> {
    ["ro", "rw", "rw+setid"].iter().position(|word| value.text() == Some(word))
}

fn programs(value: Value) -> Value {
    match value {
        list @ Value::Array(_) => Value::Map(vec![(Value::from("programs"), list)]),
        map => map,
    }
}

/// Takes away what `less` says. Returns whether nothing is left.
pub(super) fn take(from: &mut Value, less: &Value) -> bool {
    match (&mut *from, less) {
        (Value::Map(of), Value::Map(less)) => {
            for (key, value) in less {
                if let Some(at) = of.iter().position(|(known, _)| known == key)
                    && (key.text() != Some(CONTENT) && take(&mut of[at].1, value))
                {
                    of.remove(at);
                }
            }
            // The content to which nothing is granted any more.
            of.iter().all(|(key, _)| key.text() == Some(CONTENT))
        }
        (Value::Array(of), Value::Array(less)) => {
            of.retain(|item| !less.contains(item));
            of.is_empty()
        }
        (Value::Map(of), Value::Array(_)) if of.iter().any(|(key, _)| key.text() == Some("programs")) => {
            take(from, &programs(less.clone()))
        }
        (Value::Array(_), Value::Map(_)) => {
            let less = less.get("programs").cloned().unwrap_or(Value::Nil);
            take(from, &less)
        }
        (of, less) => of == less,
    }
}

/// The value in YAML's flow style.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Map(entries) => {
            let each: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}: {}", flow(key), flow(value))).collect();
            format!("{{{}}}", each.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => yaml_text(text.as_str().unwrap_or_default()),
        Value::Nil => "null".to_owned(),
        other => other.to_string(),
    }
}

fn shown(value: &Value) -> String {
    brine_protocol::text::short(&flow(value), 200)
}

/// Whether both say the same: the order of lists and maps counts nothing in grants.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Map(one), Value::Map(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.iter().any(|(known, found)| known == key && same(value, found)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().all(|item| other.iter().any(|found| same(item, found)))
        }
        (one, other) => one == other,
    }
}

/// The value at a path of keys.
pub(super) fn at<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key.as_str()))
}

/// Sets or removes the value at a path of keys. Maps that become empty are removed too. The error names what is no map.
pub(super) fn put(value: &mut Value, path: &[String], new: Option<Value>) -> Result<(), String> {
    let [key, rest @ ..] = path else { return Ok(()) };
    if value.is_nil() {
        *value = Value::Map(Vec::new());
    }
    let Value::Map(entries) = value else { return Err(format!("{key} is not in a map")) };
    let at = entries.iter().position(|(known, _)| known.text() == Some(key));
    match (rest.is_empty(), at, new) {
        (true, Some(at), Some(new)) => entries[at].1 = new,
        (true, None, Some(new)) => entries.push((Value::from(key.as_str()), new)),
        (true, Some(at), None) => {
            entries.remove(at);
        }
        (true, None, None) => {}
        (false, at, new) => {
            let at = at.unwrap_or_else(|| {
                entries.push((Value::from(key.as_str()), Value::Nil));
                entries.len() - 1
            });
            put(&mut entries[at].1, rest, new)?;
            if entries[at].1.entries().is_some_and(<[_]>::is_empty) {
                entries.remove(at);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(text: &str) -> Value {
        brine_protocol::config::yaml::load(text).unwrap()
    }

    fn added(to: &str, more: &str) -> Result<String, String> {
        let mut value = yaml(to);
        add(&mut value, &yaml(more)).map(|()| flow(&value))
    }

    #[test]
    fn entries_are_added_to_each_other() {
        for (to, more, expect) in [
            ("{process: [/a]}", "{process: [/b, /a]}", "{process: [/a, /b]}"),
            ("{grains: true}", "{process: [/a]}", "{grains: true, process: [/a]}"),
            ("{process: any}", "{process: [/a]}", "{process: any}"),
            ("{process: [/a]}", "{process: {programs: [/b], env: [X]}}", "{process: {programs: [/a, /b], env: [X]}}"),
            ("{process: {programs: [/a], env: [X]}}", "{process: [/b]}", "{process: {programs: [/a, /b], env: [X]}}"),
            ("{sha256: aa, grains: true}", "{sha256: AA, jobs: true}", "{sha256: aa, grains: true, jobs: true}"),
            ("{filesystem: {/a: ro}}", "{filesystem: {/b: rw}}", "{filesystem: {/a: ro, /b: rw}}"),
            // Who looks first and changes then is refused twice.
            ("{changes: {/a: ro}}", "{changes: {/a: rw}}", "{changes: {/a: rw}}"),
            ("{changes: {/a: rw+setid}}", "{changes: {/a: ro}}", "{changes: {/a: \"rw+setid\"}}"),
        ] {
            assert_eq!(added(to, more).as_deref(), Ok(expect), "{to} {more}");
        }
        // What the owner refused is not overridden by a line, nor is the content replaced that he granted it to.
        for (to, more) in [
            ("{process: false}", "{process: [/a]}"),
            ("{changes: false}", "{changes: {/a: ro}}"),
            ("{sha256: aa, grains: true}", "{sha256: bb, jobs: true}"),
        ] {
            assert!(added(to, more).unwrap_err().contains("would replace"), "{to} {more}");
        }
    }

    #[test]
    fn what_was_added_is_taken_away_again() {
        for (from, less, expect) in [
            ("{process: [/a, /b]}", "{process: [/b]}", "{process: [/a]}"),
            ("{process: [/a], grains: true}", "{process: [/a]}", "{grains: true}"),
            ("{process: {programs: [/a, /b], env: [X]}}", "{process: [/b]}", "{process: {programs: [/a], env: [X]}}"),
            ("{process: [/a, /b]}", "{process: {programs: [/a]}}", "{process: [/b]}"),
            ("{grains: true}", "{grains: false}", "{grains: true}"),
        ] {
            let mut value = yaml(from);
            assert!(!take(&mut value, &yaml(less)), "{from} {less}");
            assert_eq!(flow(&value), expect, "{from} {less}");
        }
        assert!(take(&mut yaml("{sha256: aa, process: [/a]}"), &yaml("{sha256: aa, process: [/a]}")));
    }

    #[test]
    fn a_text_that_means_something_in_yaml_stays_a_text() {
        for text in [
            "a: b", "# c", "{x}", "[y]", "null", "true", "12", "x\ny", "\"q\"", "'", "*a", "&b", "!c", "- d",
            "\u{202e}",
        ] {
            let value = Value::Map(vec![(Value::from(text), Value::Array(vec![Value::from(text)]))]);
            let written = flow(&value);
            assert!(!written.contains('\n'), "{written}");
            assert_eq!(yaml(&written), value, "{written}");
        }
    }
}
