//! The module `loop`: states that call a function until its answer is the wanted one. Their documentation is in
//! `wit/world.wit`; comments and results are Salt's.
//!
//! - [`condition`] expressions of Python over an answer · [`compare`] Python's comparisons of values
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "loop",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

mod compare;
mod condition;

use brine_guest::host::functions;
use brine_guest::states::{StateResult, is_dry_run, no_changes};
use brine_guest::{Data, Value};
use wasi::clocks::monotonic_clock;

use exports::states::Guest;

struct Module;

/// Upper bound on the seconds that are waited, so that a number fits.
const MAX_SECONDS: f64 = 86_400.0 * 365.0;

fn value(data: Option<Data>) -> Result<Value, String> {
    data.map_or(Ok(Value::None), |data| data.value())
}

/// Whether this minion has a function.
fn is_known(name: &str) -> Result<bool, String> {
    let known = functions::call("sys.list_functions", &[name.into()], &Value::Dict(Vec::new()).into())?.value()?;
    Ok(matches!(known, Value::List(known) if known.iter().any(|known| known.text() == Some(name))))
}

/// A number of seconds, as Python's `isinstance(value, (int, float))` takes one: also a truth value.
fn seconds(value: &Value, default: f64) -> Option<f64> {
    let seconds = match value {
        Value::None => default,
        Value::Bool(is) => f64::from(u8::from(*is)),
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        _ => return None,
    };
    Some(if seconds.is_nan() { 0.0 } else { seconds.clamp(0.0, MAX_SECONDS) })
}

fn sleep(seconds: f64) {
    if seconds > 0.0 {
        monotonic_clock::subscribe_duration((seconds * 1e9) as u64).block();
    }
}

fn now() -> f64 {
    monotonic_clock::now() as f64 / 1e9
}

/// The arguments of each call.
struct Call {
    name: String,
    args: Vec<Data>,
    kwargs: Data,
}

impl Call {
    fn new(name: &str, args: Value, kwargs: Value) -> Result<Self, String> {
        let args = match args {
            Value::None => Vec::new(),
            Value::List(args) => args.into_iter().map(Data::from).collect(),
            other => return Err(format!("the arguments are to be a list, not {}", other.kind())),
        };
        let kwargs = match kwargs {
            Value::None => Value::Dict(Vec::new()),
            Value::Dict(_) => kwargs,
            other => return Err(format!("the keywords are to be a dict, not {}", other.kind())),
        };
        Ok(Self { name: name.to_owned(), args, kwargs: kwargs.into() })
    }

    fn run(&self) -> Result<Value, String> {
        functions::call(&self.name, &self.args, &self.kwargs)?.value()
    }
}

impl Guest for Module {
    fn until(
        name: String,
        m_args: Option<Data>,
        m_kwargs: Option<Data>,
        condition: Option<Data>,
        period: Option<Data>,
        timeout: Option<Data>,
    ) -> Result<StateResult, String> {
        let condition = value(condition)?;
        let (period, timeout) = (seconds(&value(period)?, 1.0), seconds(&value(timeout)?, 60.0));
        if !is_known(&name)? {
            return Ok(StateResult::bad(format!("Cannot find module {name}")));
        }
        if condition == Value::None {
            return Ok(StateResult::bad("An exit condition must be specified"));
        }
        let Some(period) = period else {
            return Ok(StateResult::bad("Period must be specified as a float in seconds"));
        };
        let Some(timeout) = timeout else {
            return Ok(StateResult::bad("Timeout must be specified as a float in seconds"));
        };
        if is_dry_run() {
            return Ok(StateResult::would(format!("The execution module {name} will be run"), no_changes()));
        }
        let text = condition.to_text();
        let condition = condition::parse(&text)?;
        let call = Call::new(&name, value(m_args)?, value(m_kwargs)?)?;
        let end = now() + timeout;
        while now() < end {
            if condition.holds(&call.run()?)? {
                return Ok(StateResult::good(format!("Condition {text} was met")));
            }
            sleep(period);
        }
        Ok(StateResult::bad(format!("Timed out while waiting for condition {text}")))
    }

    fn until_no_eval(
        name: String,
        expected: Data,
        compare_operator: Option<String>,
        timeout: Option<Data>,
        period: Option<Data>,
        init_wait: Option<Data>,
        args: Option<Data>,
        kwargs: Option<Data>,
    ) -> Result<StateResult, String> {
        let operator = compare_operator.as_deref().unwrap_or("eq");
        let expected = expected.value()?;
        let (period, timeout) = (seconds(&value(period)?, 1.0), seconds(&value(timeout)?, 60.0));
        let comparator = compare::Comparator::named(operator);
        let is_comparator = comparator.is_some() || is_known(operator)?;
        // Salt's order: a dry run has the last word, also of what is wrong.
        if is_dry_run() {
            let comment = format!("Would have waited for \"{name}\" to produce \"{}\".", expected.to_text());
            return Ok(StateResult::would(comment, no_changes()));
        }
        if !is_known(&name)? {
            return Ok(StateResult::bad(format!("Module.function \"{name}\" is unavailable.")));
        }
        let Some(period) = period else {
            return Ok(StateResult::bad("Period must be specified as a float in seconds"));
        };
        let Some(timeout) = timeout else {
            return Ok(StateResult::bad("Timeout must be specified as a float in seconds"));
        };
        if !is_comparator {
            return Ok(StateResult::bad(format!("Invalid operator \"{operator}\" supplied.")));
        }
        sleep(seconds(&value(init_wait)?, 0.0).ok_or("init_wait is to be a number of seconds")?);
        let call = Call::new(&name, value(args)?, value(kwargs)?)?;
        let end = now() + timeout;
        let mut attempts = 0;
        while now() < end {
            attempts += 1;
            let answer = match call.run() {
                Ok(answer) => answer,
                Err(why) => return Ok(StateResult::bad(format!("Exception occurred while executing {name}: {why}"))),
            };
            let is_so = match comparator {
                Some(comparator) => comparator.compare(&answer, &expected)?,
                None => {
                    let both = Value::List(vec![answer, expected.clone()]);
                    Call::new(operator, both, Value::None)?.run()?.truthy()
                }
            };
            if is_so {
                return Ok(StateResult::good(format!("Call provided the expected results in {attempts} attempts")));
            }
            sleep(period);
        }
        Ok(StateResult::bad(format!("Call did not produce the expected result after {attempts} attempts")))
    }
}

#[cfg(target_family = "wasm")]
export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_numbers() {
        assert_eq!(seconds(&Value::None, 60.0), Some(60.0));
        assert_eq!(seconds(&Value::Bool(true), 60.0), Some(1.0));
        assert_eq!(seconds(&Value::Float(0.25), 60.0), Some(0.25));
        assert_eq!(seconds(&Value::Int(-3), 60.0), Some(0.0));
        assert_eq!(seconds(&Value::Float(f64::INFINITY), 60.0), Some(MAX_SECONDS));
        assert_eq!(seconds(&"1".into(), 60.0), None);
    }
}
