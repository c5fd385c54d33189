//! A job's own timeout: `executor_opts: {timeout: 5}` of the publication (`salt --executor-opts`). It can only lower the owner's
//! limits.

use std::time::Duration;

use brine_protocol::value::{Value, ValueExt};

const KEY: &str = "executor_opts";
/// A day. No limit is longer, so a longer timeout changes nothing.
const MAX: Duration = Duration::from_secs(24 * 3600);

/// The timeout in a job's load, if there is one. Options of Salt's other executors are ignored.
///
/// # Errors
/// A sentence for the job's return when the timeout cannot be read.
pub(crate) fn parse(load: &Value) -> Result<Option<Duration>, String> {
    match load.get(KEY).and_then(|opts| opts.get("timeout")).filter(|timeout| !timeout.is_nil()) {
        None => Ok(None),
        Some(said) => read(said).map(Some).ok_or_else(|| {
            let shown: String = said.python_repr().chars().take(40).collect();
            format!("The job's {KEY} say timeout: {shown}, which is no time; write 5, \"5s\", \"500ms\" or \"2m\".")
        }),
    }
}

fn read(said: &Value) -> Option<Duration> {
    let (number, unit) = match said.text() {
        None => (said.as_f64()?, 1.0),
        Some(text) => {
            let text = text.trim();
            let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
            let (number, unit) = text.split_at(split);
            let unit = match unit.trim() {
                "" | "s" => 1.0,
                "ms" => 0.001,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
            (number.parse::<f64>().ok()?, unit)
        }
    };
    let time = Duration::try_from_secs_f64(number * unit).ok()?;
    (time >= Duration::from_millis(1)).then_some(time.min(MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{map, text};

    fn said(timeout: impl Into<Value>) -> Result<Option<Duration>, String> {
        parse(&map([(KEY, map([("timeout", timeout)]))]))
    }

    #[test]
    fn times_take_the_forms_that_people_write() {
        for (value, millis) in [
            (Value::from(5), 5_000),
            (Value::from(0.25), 250),
            (text("5"), 5_000),
            (text("5s"), 5_000),
            (text(" 500 ms"), 500),
            (text("1.5m"), 90_000),
            (text("2h"), 7_200_000),
            (Value::from(u64::MAX / 4), 86_400_000),
        ] {
            assert_eq!(said(value.clone()), Ok(Some(Duration::from_millis(millis))), "{value}");
        }
        assert_eq!(said(Value::Nil), Ok(None));
        for load in
            [map([(KEY, Value::Nil)]), map([(KEY, map([("splaytime", 3)]))]), map([(KEY, "x")]), map([("a", 1)])]
        {
            assert_eq!(parse(&load), Ok(None), "{load}");
        }
        let wrong =
            [Value::from(0), Value::from(-1), Value::from(true), Value::from(f64::NAN), Value::from(f64::INFINITY)];
        let texts = ["", "s", "soon", "-5", "5 days", "1e9s", "0", "5s5", "."].map(text);
        for value in wrong.into_iter().chain(texts).chain([Value::Array(vec![])]) {
            let error = said(value.clone()).unwrap_err();
            assert!(error.contains("no time") && !error.contains('\n'), "{value}");
        }
    }
}
