//! `log`: what templates write to the log.

use super::call::{Call, Row};
use super::{Answer, Level};
use crate::data::text;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row::new("debug", "message", |call| write(call, Level::Debug)),
    Row::new("info", "message", |call| write(call, Level::Info)),
    Row::new("warning", "message", |call| write(call, Level::Warning)),
    Row::new("error", "message", |call| write(call, Level::Error)),
    Row::new("critical", "message", |call| write(call, Level::Critical)),
    Row::new("exception", "message", |call| write(call, Level::Error)),
];

fn write(call: &Call<'_>, level: Level) -> Answer {
    if call.surroundings.log.is_some() {
        call.surroundings.say(level, &text(&call.need("message"))?);
    }
    Ok(Value::Bool(true))
}
