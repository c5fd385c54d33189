//! The functions that every template sees.

use std::cell::Cell;
use std::rc::Rc;

use super::error::{JinjaError, Res};
use super::interp::{Interp, Passed};
use super::methods::dict;
use super::object::{Cycler, Iter, IterKind, Joiner, Namespace, object};
use super::ops;
use super::scope::Scope;
use crate::value::{Dict, Value};

pub(super) const NAMES: [&str; 10] =
    ["range", "dict", "cycler", "ifelse", "joiner", "lipsum", "namespace", "odict", "raise", "show_full_context"];

/// What the sandbox allows.
const MAX_RANGE: i128 = 100_000;

pub(super) fn call(interp: &mut Interp, name: &str, passed: Passed, scope: Option<&Rc<Scope>>) -> Res<Value> {
    match name {
        "range" => range(interp, &passed),
        "dict" | "odict" | "namespace" => {
            let made = if name == "odict" { Dict::ordered() } else { Dict::default() };
            if let Some(first) = passed.positional.first() {
                dict::update(interp, &made, first)?;
            }
            for (name, value) in passed.keyword {
                made.set(&name, value);
            }
            Ok(if name == "namespace" { object(Namespace(made)) } else { made.into() })
        }
        "cycler" if passed.positional.is_empty() => Err(JinjaError::python("at least one item has to be provided")),
        "cycler" => Ok(object(Cycler { items: passed.positional, at: Cell::new(0) })),
        "joiner" => {
            let text = passed.get(0, "sep").unwrap_or_else(|| Value::str(", "));
            Ok(object(Joiner { text, used: Cell::new(false) }))
        }
        "lipsum" => Err(JinjaError::template("'lipsum' is not offered: it makes random text")),
        "ifelse" => interp.host.call("match.ifelse", passed.positional, passed.keyword).map_err(Into::into),
        "raise" => {
            let message = passed.need(0, "msg", "jinja_raise")?;
            Err(JinjaError::python(&*interp.text(&message)?))
        }
        _ => {
            let all = scope.map(|scope| scope.all()).unwrap_or_default();
            let plain = all.into_iter().filter(|(_, value)| !matches!(value, Value::Object(_)));
            Ok(Value::dict(plain.map(|(name, value)| ((&*name).into(), value))))
        }
    }
}

fn range(interp: &mut Interp, passed: &Passed) -> Res<Value> {
    let mut numbers = Vec::new();
    for value in &passed.positional {
        super::interp::check(value)?;
        numbers.push(ops::integer(value).ok_or_else(|| {
            JinjaError::python(format!("'{}' object cannot be interpreted as an integer", value.type_name()))
        })?);
    }
    let (start, stop, step) = match numbers[..] {
        [stop] => (0, stop, 1),
        [start, stop] => (start, stop, 1),
        [start, stop, step] => (start, stop, step),
        [] => return Err(JinjaError::python("range expected at least 1 argument, got 0")),
        _ => return Err(JinjaError::python(format!("range expected at most 3 arguments, got {}", numbers.len()))),
    };
    if step == 0 {
        return Err(JinjaError::python("range() arg 3 must not be zero"));
    }
    let span = if step > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
    let step_size = step.saturating_abs();
    let count = if span <= 0 { 0 } else { (span - 1) / step_size + 1 };
    if count > MAX_RANGE {
        let message = format!("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({MAX_RANGE}).");
        return Err(JinjaError::python(message));
    }
    interp.charge_values(count as usize)?;
    let items = (0..count).map(|at| Value::Int(start + at * step)).collect();
    Ok(Iter::of(IterKind::Range(start, stop, step), items))
}
