//! `fileserver.*`: what the file server offers.

use std::sync::Arc;

use brine_protocol::value::{Value, ValueExt, map};

use super::{Call, Outcome};
use crate::fileserver::FileRequest;
use crate::master::Master;

/// Answers as a minion would be answered; `saltenv` is `base` unless the caller says.
pub(super) async fn ask(master: &Arc<Master>, what: FileRequest, call: &Call) -> Outcome {
    let saltenv = call.get(0, "saltenv").and_then(ValueExt::text).unwrap_or("base").to_owned();
    Ok(master.files.answer(what, map([("saltenv", Value::from(saltenv)), ("prefix", Value::from(""))])).await)
}
