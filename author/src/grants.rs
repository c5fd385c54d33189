//! `--grant` and `--limit`: parts of the configuration in YAML, and the options that a refusal suggests.

use brine_protocol::config::yaml;
use brine_protocol::value::{Value, ValueExt};

use crate::failure::Failure;

/// Several options merged into one map of the configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Merged(Vec<(Value, Value)>);

impl Merged {
    pub(crate) fn value(&self) -> Value {
        Value::Map(self.0.clone())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known.text() == Some(key)).map(|(_, value)| value)
    }
}

/// Parses options in the syntax of the configuration: `filesystem: {/srv: ro}`, or `disks` for `disks: true`. Lists and
/// maps of one key are merged; of other values the last one applies.
pub(crate) fn merge(option: &str, example: &str, texts: &[String]) -> Result<Merged, Failure> {
    let mut merged = Merged::default();
    for text in texts {
        let misread =
            |why: &str| Failure::usage(format!("{option} '{text}': {why}; it is written as in {option} '{example}'"));
        let read = yaml::load(text).map_err(|error| misread(&error.to_string()))?;
        let entries = match read {
            Value::Map(entries) => entries,
            Value::String(word) => vec![(Value::String(word), Value::from(true))],
            _ => return Err(misread("it names nothing")),
        };
        for (key, value) in entries {
            match merged.0.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => add(known, value),
                None => merged.0.push((key, value)),
            }
        }
    }
    Ok(merged)
}

fn add(known: &mut Value, more: Value) {
    match (known, more) {
        (Value::Array(known), Value::Array(more)) => known.extend(more),
        (Value::Map(known), Value::Map(more)) => {
            for (key, value) in more {
                known.retain(|(old, _)| *old != key);
                known.push((key, value));
            }
        }
        (known, more) => *known = more,
    }
}

/// Returns the grants in a refusal's configuration line that are missing here, as options. The line is at the end of
/// the sandbox's message: `… in the minion's configuration: NAME: {sha256: …, disks: true}`.
pub(crate) fn lacking(words: &str, granted: &Merged) -> Option<String> {
    let (_, line) = words.split_once("in the minion's configuration: ")?;
    let entry = &line[line.find('{')?..];
    let Value::Map(entries) = yaml::load(&entry[..closing(entry)?]).ok()? else { return None };
    let own = ["sha256", "signed_by", "user", "limits", "max_running", "max_queued"];
    let options: Vec<String> = entries
        .iter()
        .filter_map(|(key, value)| Some((key.text()?, value)))
        .filter(|(key, value)| !own.contains(key) && granted.get(key) != Some(*value))
        .map(|(key, value)| format!("--grant '{key}: {}'", asked(key, value)))
        .collect();
    (!options.is_empty()).then(|| options.join(" "))
}

/// Returns the value to grant. If only the user can know it, returns its form.
fn asked(key: &str, value: &Value) -> String {
    let empty = matches!(value, Value::Array(items) if items.is_empty())
        || matches!(value, Value::Map(entries) if entries.is_empty());
    match key {
        _ if !empty => flow(value),
        "filesystem" | "changes" => "{/FOLDER: ro}".to_owned(),
        "process" => "[/PATH/OF/PROGRAM]".to_owned(),
        "network" => "[\"HOST:PORT\"]".to_owned(),
        _ => "[NAME]".to_owned(),
    }
}

/// Returns the end of the map with which a text begins.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Writes a value on one line of YAML.
fn flow(value: &Value) -> String {
    match value {
        Value::Map(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}: {}", flow(key), flow(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(_) => {
            let text = value.text().unwrap_or_default();
            let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
            let is_text = yaml::load(text).is_ok_and(|read| read.text() == Some(text));
            if is_text && text.chars().all(plain) { text.to_owned() } else { format!("{text:?}") }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(texts: &[&str]) -> Merged {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        merge("--grant", "disks", &texts).unwrap()
    }

    #[test]
    fn options_add_up() {
        for (texts, expect) in [
            (&["disks"][..], "{disks: true}"),
            (&["process: [/bin/ls]", "process: [/bin/df]"], "{process: [/bin/ls, /bin/df]}"),
            (&["filesystem: {/srv: ro}", "filesystem: {/srv: rw, /tmp: ro}"], "{filesystem: {/srv: rw, /tmp: ro}}"),
            (&["process: any", "process: [/bin/ls]"], "{process: [/bin/ls]}"),
            (&["{disks: true, grains: false}"], "{disks: true, grains: false}"),
            (&[], "{}"),
        ] {
            assert_eq!(flow(&merged(texts).value()), expect);
        }
        for bad in ["", "7", "[a]", "a: [", "a: b: c"] {
            assert!(merge("--grant", "disks", &[bad.to_owned()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_a_refusal_asks_for() {
        let line = "x.y must not; the owner of this host grants it by this line under sandbox: modules: in the minion's configuration: \
                    x: {sha256: 12, process: [\"/bin/a}b\", /bin/ls], disks: true}. More.";
        let lacking = |grants: &[&str]| lacking(line, &merged(grants));
        assert_eq!(lacking(&["disks"]).unwrap(), r#"--grant 'process: ["/bin/a}b", /bin/ls]'"#);
        assert_eq!(lacking(&["disks", "process: [\"/bin/a}b\", /bin/ls]"]), None);
        assert_eq!(super::lacking("no line", &Merged::default()), None);
    }
}
