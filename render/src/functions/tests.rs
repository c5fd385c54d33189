//! `test`: what gives back what it is given.

use super::Answer;
use super::call::{Call, Row};
use crate::data::CallError;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row::new("ping", "", |_| Ok(true.into())),
    Row::new("true", "", |_| Ok(true.into())).python("true_"),
    Row::new("false", "", |_| Ok(false.into())).python("false_"),
    Row::new("echo", "text", |call| Ok(call.need("text"))),
    Row::new("outputter", "data", |call| Ok(call.need("data"))),
    Row::new("kwarg", "**", |call| Ok(call.keywords())),
    Row::new("arg", "* **", arg),
    Row::new("exception", "message?", exception),
];

fn arg(call: &Call<'_>) -> Answer {
    let args = Value::tuple(call.star.iter().cloned());
    Ok(Value::dict([("args".into(), args), ("kwargs".into(), call.keywords())]))
}

fn exception(call: &Call<'_>) -> Answer {
    Err(CallError::python(&*call.text("message", "Test Exception")))
}
