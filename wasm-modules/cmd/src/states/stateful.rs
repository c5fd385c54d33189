//! Stateful commands: their output says whether something changed, as a JSON object or as `NAME=VALUE` words of the last
//! line.

use brine_guest::Value;
use brine_guest::states::no_changes;

use super::Came;
use crate::words;

/// The result that the command reported.
///
/// # Errors
/// When its `changed` is no truth value.
pub(super) fn reported(came: Came) -> Result<Came, String> {
    let Came { result, changes: ran, .. } = came;
    let said = |name: &str| ran.get(name).map(Value::to_text).unwrap_or_default();
    let (stdout, stderr) = (said("stdout"), said("stderr"));
    if stdout.is_empty() {
        return Ok(Came { result, comment: stderr, changes: no_changes() });
    }
    // Where the last line begins, as Python's rfind has it.
    let (mut report, shown) = match serde_json::from_str::<serde_json::Value>(&stdout) {
        Ok(serde_json::Value::Object(object)) => {
            (object.into_iter().map(|(name, value)| (name, value_of(value))).collect(), String::new())
        }
        Ok(_) => {
            let comment = "script JSON output must be a JSON object (e.g., {})!".into();
            return Ok(Came { result: Some(false), comment, changes: no_changes() });
        }
        Err(_) => {
            let line = stdout.trim_end().rfind('\n');
            let Some(report) = pairs(line.map_or(&stdout, |at| &stdout[at + 1..])) else {
                let comment = "Failed parsing script output! Stdout must be JSON or a line of name=value pairs.".into();
                return Ok(Came { result: Some(false), comment, changes: ran });
            };
            // With one line, Salt cuts off its last character and nothing else.
            let before = line.unwrap_or_else(|| stdout.char_indices().next_back().map_or(0, |(at, _)| at));
            (report, stdout[..before].to_owned())
        }
    };
    let is_changed = match report.iter().find(|(name, _)| name == "changed") {
        Some((_, changed)) => truth(changed)?,
        None => false,
    };
    let comment = match report.iter().position(|(name, _)| name == "comment") {
        Some(at) => report.remove(at).1.to_text(),
        None => String::new(),
    };
    if !is_changed {
        return Ok(Came { result, comment, changes: no_changes() });
    }
    if let Value::Dict(ran) = ran {
        for (name, value) in ran {
            let name = name.to_text();
            if !report.iter().any(|(known, _)| *known == name) {
                report.push((name, value));
            }
        }
    }
    report.retain(|(name, _)| name != "stdout");
    report.push(("stdout".into(), shown.into()));
    let changes = Value::Dict(report.into_iter().map(|(name, value)| (name.into(), value)).collect());
    Ok(Came { result, comment, changes })
}

type Report = Vec<(String, Value)>;

/// `NAME=VALUE` words.
fn pairs(line: &str) -> Option<Report> {
    let mut report: Report = Vec::new();
    for word in words::split(line).ok()? {
        let (name, value) = word.split_once('=').filter(|(_, value)| !value.contains('='))?;
        report.retain(|(known, _)| known != name);
        report.push((name.into(), value.into()));
    }
    Some(report)
}

fn truth(value: &Value) -> Result<bool, String> {
    let text = value.to_text();
    match text.to_lowercase().as_str() {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => Err(format!("Failed parsing boolean value: {text}")),
    }
}

fn value_of(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::None,
        Json::Bool(value) => value.into(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::Big(number),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => text.into(),
        Json::Array(items) => Value::List(items.into_iter().map(value_of).collect()),
        Json::Object(object) => {
            Value::Dict(object.into_iter().map(|(name, value)| (name.into(), value_of(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stdout: &str) -> Result<(Option<bool>, String, Value), String> {
        let changes = Value::dict([
            ("pid", Value::Int(7)),
            ("retcode", Value::Int(0)),
            ("stdout", stdout.into()),
            ("stderr", "warned".into()),
        ]);
        let came = reported(Came { result: Some(true), comment: "run".into(), changes })?;
        Ok((came.result, came.comment, came.changes))
    }

    // What Salt's _reinterpreted_state makes of the same outputs.
    #[test]
    fn outputs_are_results() {
        let none = no_changes();
        assert_eq!(of(""), Ok((Some(true), "warned".into(), none.clone())));
        assert_eq!(of("changed=no comment='all is well'"), Ok((Some(true), "all is well".into(), none.clone())));
        assert_eq!(of("{\"changed\": false, \"comment\": \"ok\"}"), Ok((Some(true), "ok".into(), none.clone())));
        let (_, comment, changes) = of("one\nchanged=yes comment=done what=it\n").unwrap();
        assert_eq!(comment, "done");
        assert_eq!(changes.get("stdout"), Some(&"one".into()));
        assert_eq!(changes.get("what"), Some(&"it".into()));
        assert_eq!(changes.get("pid"), Some(&Value::Int(7)));
        let (_, _, changes) = of("{\"changed\": true, \"n\": [1, null]}").unwrap();
        assert_eq!(changes.get("stdout"), Some(&"".into()));
        assert_eq!(changes.get("n"), Some(&Value::List(vec![Value::Int(1), Value::None])));
        assert_eq!(of("changed=yes").unwrap().2.get("stdout"), Some(&"changed=ye".into()));
    }

    #[test]
    fn what_is_no_report_fails() {
        let (result, comment, changes) = of("[1]").unwrap();
        assert_eq!((result, changes), (Some(false), no_changes()));
        assert_eq!(comment, "script JSON output must be a JSON object (e.g., {})!");
        for odd in ["hello", "a=b=c", "a='b"] {
            let (result, comment, changes) = of(odd).unwrap();
            assert_eq!(result, Some(false), "{odd}");
            assert_eq!(comment, "Failed parsing script output! Stdout must be JSON or a line of name=value pairs.");
            assert_eq!(changes.get("stdout"), Some(&odd.into()));
        }
        assert_eq!(of("changed=maybe"), Err("Failed parsing boolean value: maybe".into()));
    }
}
