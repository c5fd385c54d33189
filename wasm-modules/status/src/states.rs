//! States that judge what this host is doing. They change nothing, so a dry run does the same. Comments are Salt's.

use brine_guest::Value;
use brine_guest::states::StateResult;

use crate::exports::states::Guest;
use crate::{Data, Module, functions, processes};

impl Guest for Module {
    fn loadavg(name: String, maximum: Option<Data>, minimum: Option<Data>) -> Result<StateResult, String> {
        let bound = |data: Option<Data>| match data.map(|data| data.value()).transpose()? {
            Some(bound) if bound.truthy() => number(&bound).map(Some),
            _ => Ok(None),
        };
        Ok(judged(&name, &functions::call("loadavg")?, bound(maximum)?, bound(minimum)?))
    }

    fn process(name: String) -> Result<StateResult, String> {
        Ok(match processes::pid(&name)?.is_empty() {
            true => StateResult::bad(format!("Process signature \"{name}\" not found ")),
            false => StateResult::good(format!("Process signature \"{name}\" was found ")),
        })
    }
}

/// A bound, and its text in a comment: as it was given.
fn number(bound: &Value) -> Result<(f64, String), String> {
    let text = bound.to_text();
    let number = text.trim().parse().map_err(|_| format!("could not convert string to float: '{text}'"))?;
    Ok((number, text))
}

fn judged(name: &str, loads: &Value, maximum: Option<(f64, String)>, minimum: Option<(f64, String)>) -> StateResult {
    let Some(Value::Float(load)) = loads.get(name) else {
        return StateResult::bad(format!("Requested load average {name} not available "));
    };
    if let (Some((minimum, _)), Some((maximum, _))) = (&minimum, &maximum)
        && minimum >= maximum
    {
        return StateResult::bad("Min must be less than max");
    }
    let shown = Value::Float(*load).to_text();
    if let Some((_, said)) = minimum.filter(|(minimum, _)| load < minimum) {
        return StateResult::bad(format!("Load avg is below minimum of {said} at {shown}"));
    }
    if let Some((_, said)) = maximum.filter(|(maximum, _)| load > maximum) {
        return StateResult::bad(format!("Load avg above maximum of {said} at {shown}"));
    }
    StateResult::good("Load avg in acceptable range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_judged() {
        let loads = Value::dict([("1-min", Value::Float(0.5))]);
        let judge = |name: &str, maximum: Option<Value>, minimum: Option<Value>| {
            let bound = |bound: Option<Value>| bound.map(|bound| number(&bound).unwrap());
            let result = judged(name, &loads, bound(maximum), bound(minimum));
            (result.result, result.comment)
        };
        let bad = |comment: &str| (Some(false), comment.to_owned());
        assert_eq!(judge("x", None, None), bad("Requested load average x not available "));
        assert_eq!(judge("1-min", Some(1_i64.into()), Some(2_i64.into())), bad("Min must be less than max"));
        assert_eq!(judge("1-min", None, Some("0.75".into())), bad("Load avg is below minimum of 0.75 at 0.5"));
        assert_eq!(judge("1-min", Some(Value::Float(0.25)), None), bad("Load avg above maximum of 0.25 at 0.5"));
        assert_eq!(judge("1-min", Some(1_i64.into()), None), (Some(true), "Load avg in acceptable range".into()));
        assert!(number(&"much".into()).is_err());
    }
}
