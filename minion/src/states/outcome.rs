//! The result of one state, and the return of a run that was cut off.

use std::time::Instant;

use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::JobOutcome;

use crate::weight::weight;

/// When a state began, by this host's clock, and how long it runs.
pub(crate) struct Clock {
    wall: jiff::civil::Time,
    began: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { wall: jiff::Zoned::now().time(), began: Instant::now() }
    }

    /// Python's `time.isoformat()`, in local time.
    pub(crate) fn start_time(&self) -> String {
        let seconds = self.wall.strftime("%H:%M:%S").to_string();
        match self.wall.subsec_nanosecond() / 1_000 {
            0 => seconds,
            micros => format!("{seconds}.{micros:06}"),
        }
    }

    /// The milliseconds since the start, with three decimals.
    pub(super) fn milliseconds(&self) -> f64 {
        u32::try_from(self.began.elapsed().as_micros()).map_or(f64::MAX, f64::from) / 1_000.0
    }
}

/// A failed result.
pub(crate) fn failed(name: &Value, comment: &str) -> Value {
    map([
        ("name", name.clone()),
        ("changes", map::<&str, Value>([])),
        ("result", Value::from(false)),
        ("comment", Value::from(comment)),
    ])
}

/// A failed result in place of one that has no room in memory, with the small facts that the minion knows of it.
pub(super) fn without_room(result: &Value, most: usize) -> Value {
    const MAX_FACT: usize = 1 << 10;
    let fact = |key: &str| result.get(key).filter(|fact| weight(fact) <= MAX_FACT);
    let comment = format!(
        "Its result was dropped: the results of states that nothing has waited for have more than {most} bytes."
    );
    let mut left = failed(fact("name").unwrap_or(&Value::Nil), &comment);
    for key in ["__sls__", "__run_num__", "start_time", "duration", "__id__"] {
        if let Some(fact) = fact(key) {
            left.insert(key, fact.clone());
        }
    }
    left
}

/// The result of a state by what its instance came to: what it returned, in the form that Salt's has, or why there is
/// none.
pub(crate) fn result(name: &Value, outcome: JobOutcome) -> Value {
    let plan = outcome.plan.clone();
    let mut result = own_result(name, outcome);
    if let Some(plan) = plan {
        // Brine's own field: what the state asked for in test mode, and was not done.
        result.insert("plan", Value::Array(plan));
    }
    result
}

fn own_result(name: &Value, outcome: JobOutcome) -> Value {
    if outcome.stopped {
        // It would have changed something, which is Salt's result of a dry run.
        let said = outcome.value.text().unwrap_or_default();
        let mut result = failed(name, said.split_once("would ").map_or(said, |(before, _)| &said[before.len()..]));
        result.insert("result", Value::Nil);
        return result;
    }
    if !outcome.success {
        let why = outcome.value.text().map_or_else(|| outcome.value.python_str(), str::to_owned);
        return failed(name, &format!("An exception occurred in this state: {why}"));
    }
    match checked(outcome.value) {
        Ok(mut fields) => {
            // The order of Salt's own states.
            let mut result = map::<&str, Value>([("name", name.clone())]);
            for key in ["name", "changes", "result", "comment"] {
                if let Some(place) = fields.iter().position(|(known, _)| known.text() == Some(key)) {
                    result.insert(key, fields.remove(place).1);
                }
            }
            if let Value::Map(entries) = &mut result {
                entries.append(&mut fields);
            }
            result
        }
        Err(why) => failed(name, &format!("An exception occurred in this state: {why}")),
    }
}

/// Checks what a state returned, with the words of Salt's own check. The text of a comment in lines becomes one text,
/// an empty list of warnings none.
fn checked(value: Value) -> Result<Vec<(Value, Value)>, String> {
    let Value::Map(mut fields) = value else {
        return Err("Malformed state return. Data must be a dictionary type.".to_owned());
    };
    // What the minion itself says of a state.
    fields.retain(|(key, _)| {
        key.text().is_none_or(|key| !key.starts_with("__") && !matches!(key, "start_time" | "duration" | "plan"))
    });
    let get = |name: &str| fields.iter().find(|(key, _)| key.text() == Some(name)).map(|(_, value)| value);
    if !matches!(get("changes"), Some(Value::Map(_))) {
        return Err("'Changes' should be a dictionary.".to_owned());
    }
    let lacks: Vec<&str> = ["result", "comment"].into_iter().filter(|key| get(key).is_none()).collect();
    if !lacks.is_empty() {
        return Err(format!("The following keys were not present in the state return: {}.", lacks.join(", ")));
    }
    for (key, value) in &mut fields {
        match key.text() {
            Some("result") if !value.is_nil() => *value = Value::from(value.truthy()),
            Some("comment") => {
                if let Value::Array(lines) = value {
                    let lines: Vec<String> = lines.iter().map(|line| line.python_str()).collect();
                    *value = Value::from(lines.join("\n"));
                }
            }
            _ => {}
        }
    }
    fields.retain(|(key, value)| key.text() != Some("warnings") || value.truthy());
    Ok(fields)
}

/// The return of a run that was cut off: what its states came to, and one more that says so.
pub(super) fn cut_off(mut results: Vec<(Value, Value)>, fun: &str, why: &str) -> Value {
    let count = results.len();
    let are = if count == 1 { "state had its result" } else { "states had their results" };
    let comment = format!("The run was cut off: {why} {count} {are} before; what else was begun is not known.");
    let next = results.iter().filter_map(|(_, result)| result.get_i64("__run_num__")).max().map_or(0, |last| last + 1);
    let mut last = failed(&Value::from(fun), &comment);
    last.insert("__run_num__", next);
    last.insert("__id__", "run");
    last.insert("__sls__", Value::Nil);
    results.push((Value::from(format!("state_|-run_|-{fun}_|-cut_off")), last));
    Value::Map(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{list, text};

    fn returned(value: Value) -> Value {
        result(
            &text("n"),
            JobOutcome {
                value,
                retcode: 0,
                success: true,
                usage: None,
                sha256: None,
                plan: None,
                stopped: false,
                raised: false,
            },
        )
    }

    #[test]
    fn rubbish_is_a_failed_result_that_says_so() {
        let empty = || map::<&str, Value>([]);
        for (value, comment) in [
            (Value::Nil, "Malformed state return. Data must be a dictionary type."),
            (text("x"), "Malformed state return. Data must be a dictionary type."),
            (empty(), "'Changes' should be a dictionary."),
            (map([("changes", list::<Value>([]))]), "'Changes' should be a dictionary."),
            (map([("changes", empty())]), "The following keys were not present in the state return: result, comment."),
        ] {
            let result = returned(value);
            assert_eq!(result.get_text("comment"), Some(&*format!("An exception occurred in this state: {comment}")));
            assert_eq!((result.get_bool("result"), result.get_text("name")), (Some(false), Some("n")));
        }
        let failure = JobOutcome {
            value: text("why"),
            retcode: 1,
            success: false,
            usage: None,
            sha256: None,
            plan: None,
            stopped: false,
            raised: true,
        };
        assert_eq!(result(&text("n"), failure).get_text("comment"), Some("An exception occurred in this state: why"));
    }

    #[test]
    fn what_test_mode_stopped_would_have_changed_something() {
        let plan = vec![map([("fun", "m.states.s"), ("would", "run: x")])];
        let value = text("m.states.s was stopped: process.run: would run: x");
        let stopped = JobOutcome {
            value,
            retcode: 1,
            success: false,
            usage: None,
            sha256: None,
            plan: Some(plan.clone()),
            stopped: true,
            raised: false,
        };
        let result = result(&text("n"), stopped);
        assert_eq!(result.get("result"), Some(&Value::Nil));
        assert_eq!(result.get_text("comment"), Some("would run: x"));
        assert_eq!(result.get("plan"), Some(&Value::Array(plan)));
    }

    #[test]
    fn a_result_has_the_form_of_salts_and_no_word_of_the_minions() {
        let result = returned(map([
            ("result", Value::from(1)),
            ("comment", list(["a", "b"])),
            ("changes", map([("x", 1)])),
            ("warnings", list::<Value>([])),
            ("__run_num__", Value::from(7)),
            ("duration", Value::from(7)),
            ("pchanges", map([("y", 1)])),
        ]));
        let expect = map([
            ("name", text("n")),
            ("changes", map([("x", 1)])),
            ("result", Value::from(true)),
            ("comment", text("a\nb")),
            ("pchanges", map([("y", 1)])),
        ]);
        assert_eq!(result, expect);
    }

    #[test]
    fn a_run_that_is_cut_off_says_so() {
        let one = map([("result", Value::from(true)), ("__run_num__", Value::from(4))]);
        let value = cut_off(vec![(text("a"), one.clone())], "state.apply", "it was killed.");
        let [(_, first), (tag, last)] = value.entries().unwrap() else { panic!("{value}") };
        assert_eq!((first, tag.text()), (&one, Some("state_|-run_|-state.apply_|-cut_off")));
        assert_eq!(last.get_i64("__run_num__"), Some(5));
        assert!(
            last.get_text("comment").unwrap().starts_with("The run was cut off: it was killed. 1 state had its result")
        );
    }
}
