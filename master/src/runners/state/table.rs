//! The states that there are, and what each takes.

use std::sync::Arc;

use brine_protocol::value::Value;
use brine_states::Parameters;
use futures_util::future::BoxFuture;

use super::super::function::Within;
use super::super::service::Runners;
use super::{in_master, minions, parallel, wait};
use crate::access::Principal;

/// Who acts in an orchestration, and for whom.
pub(super) struct Actor {
    pub(super) runners: Runners,
    /// The caller of the orchestration: all that it starts is judged as his.
    pub(super) by: Principal,
    /// For what it starts.
    pub(super) within: Within,
    /// `failhard` of the master.
    pub(super) failhard: bool,
    /// Bound on the bytes that minions return to one job.
    pub(super) return_max: usize,
}

/// A call of a state.
pub(super) struct StateCall {
    /// A map.
    pub(super) arguments: Value,
    /// Nothing may be changed.
    pub(super) test: bool,
    /// The environment of its SLS file.
    pub(super) saltenv: String,
}

/// What a state comes to: a result, or what Salt raises.
pub(super) type Done = Result<Value, String>;

type Start = fn(Arc<Actor>, StateCall) -> BoxFuture<'static, Done>;

/// A state that does something.
struct Row {
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    open: bool,
    start: Start,
}

const SALT: &[Row] = &[
    Row {
        name: "state",
        required: &["name", "tgt"],
        optional: &[
            "ssh",
            "tgt_type",
            "ret",
            "ret_config",
            "ret_kwargs",
            "highstate",
            "sls",
            "top",
            "saltenv",
            "test",
            "pillar",
            "pillarenv",
            "expect_minions",
            "exclude",
            "fail_minions",
            "allow_fail",
            "concurrent",
            "timeout",
            "batch",
            "queue",
            "subset",
            "orchestration_jid",
            "failhard",
        ],
        open: true,
        start: |actor, call| Box::pin(minions::state(actor, call)),
    },
    Row {
        name: "function",
        required: &["name", "tgt"],
        optional: &[
            "ssh",
            "tgt_type",
            "ret",
            "ret_config",
            "ret_kwargs",
            "expect_minions",
            "fail_minions",
            "fail_function",
            "arg",
            "kwarg",
            "timeout",
            "batch",
            "subset",
            "failhard",
        ],
        open: true,
        start: |actor, call| Box::pin(minions::function(actor, call)),
    },
    Row {
        name: "runner",
        required: &["name"],
        optional: &[],
        open: true,
        start: |actor, call| Box::pin(in_master::runner(actor, call)),
    },
    Row {
        name: "wheel",
        required: &["name"],
        optional: &[],
        open: true,
        start: |actor, call| Box::pin(in_master::wheel(actor, call)),
    },
    Row {
        name: "parallel_runners",
        required: &["name", "runners"],
        optional: &[],
        open: true,
        start: |actor, call| Box::pin(parallel::runners(actor, call)),
    },
    Row {
        name: "wait_for_event",
        required: &["name", "id_list"],
        optional: &["event_id", "timeout", "node"],
        open: false,
        start: |actor, call| Box::pin(wait::event(actor, call)),
    },
];

/// The states of `test`: name, required and optional parameters, whether they take others.
const TEST: &[(&str, &[&str], &[&str], bool)] = &[
    ("nop", &["name"], &[], true),
    ("succeed_without_changes", &["name"], &[], true),
    ("fail_without_changes", &["name"], &[], true),
    ("succeed_with_changes", &["name"], &[], true),
    ("fail_with_changes", &["name"], &[], true),
    (
        "configurable_test_state",
        &["name"],
        &["changes", "result", "comment", "warnings", "allow_test_mode_failure"],
        false,
    ),
    ("show_notification", &["name"], &["text"], true),
    ("mod_watch", &["name"], &["sfun"], true),
];

/// Returns what a state takes; none if it is not there.
pub(super) fn parameters(name: &str) -> Option<Parameters> {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    match name.split_once('.')? {
        ("salt", name) => {
            let row = SALT.iter().find(|row| row.name == name)?;
            Some(Parameters { required: texts(row.required), optional: texts(row.optional), open: row.open })
        }
        ("test", name) => {
            let (_, required, optional, open) = TEST.iter().find(|(known, ..)| *known == name)?;
            Some(Parameters { required: texts(required), optional: texts(optional), open: *open })
        }
        _ => None,
    }
}

/// Starts a state that does something; none if `name` is none of those.
pub(super) fn start(name: &str, actor: Arc<Actor>, call: StateCall) -> Option<BoxFuture<'static, Done>> {
    let name = name.strip_prefix("salt.")?;
    SALT.iter().find(|row| row.name == name).map(|row| (row.start)(actor, call))
}
