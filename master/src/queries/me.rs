//! `me`: what the caller may do, so that a page offers no more. Right: none, it is about the caller alone.

use brine_protocol::value::{Value, map};

use super::jobs::OF_OTHERS;
use super::keys::RIGHT;
use super::{Answer, Asked};
use crate::access::Allowed;
use crate::runners;

#[expect(clippy::unused_async, reason = "the form of all queries")]
pub(super) async fn answer(asked: Asked) -> Answer {
    let callable = |form: &'static str| {
        let mut names: Vec<&str> = runners::names(form).filter(|fun| asked.may_call(form, fun)).collect();
        names.sort_unstable();
        Value::Array(names.into_iter().map(Value::from).collect())
    };
    let reach = asked.caller.reach();
    Ok(map([
        ("fleet", Value::from(reach != Allowed::On(Vec::new()))),
        ("everywhere", Value::from(reach == Allowed::Everywhere)),
        ("jobs", Value::from(asked.may_call("runner", OF_OTHERS))),
        ("keys", Value::from(asked.may_call("wheel", RIGHT))),
        ("runners", callable("runner")),
        ("wheels", callable("wheel")),
    ]))
}
