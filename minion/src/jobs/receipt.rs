//! What a job's receipt says.

use std::sync::Arc;

use brine_protocol::job::JobLoad;
use brine_protocol::value::{Value, ValueExt};
use brine_receipts::{Call, Digest, Module, Outcome, Time, Usage};

use super::outcomes::Called;
use crate::receipts::{Draft, SignedPublication, hash};

/// Characters of a name; only a hostile one is longer.
const NAME_MAX: usize = 128;
/// Upper bound on the signers that are named.
const LIST_MAX: usize = 16;
/// Upper bound on the functions that are named, as on those that run.
const CALLS_MAX: usize = 256;

/// Of a job that ended now. `walls` are the names of those that held.
pub(super) fn draft(
    job: &JobLoad,
    each: &[Called],
    (master, publication): (Option<&str>, Option<Arc<SignedPublication>>),
    walls: Vec<String>,
    start: Time,
    killed: bool,
) -> Draft {
    let outcome = match () {
        () if killed => Outcome::Killed,
        () if each.iter().all(|called| !called.ran && called.outcome.usage.is_none()) => Outcome::Refused,
        () => Outcome::Ran,
    };
    Draft {
        master: master.and_then(|master| master.parse().ok()),
        publication,
        jid: job.jid.to_string(),
        arguments: match (job.raw.get("arg"), job.calls.first()) {
            (Some(arg), _) => hash(arg),
            // A call on this host, which has one function.
            (None, Some(call)) => hash(&Value::Array(call.arg.clone())),
            (None, None) => hash(&Value::Nil),
        },
        calls: each.iter().take(CALLS_MAX).map(call).collect(),
        policy: each.iter().find_map(|called| Some(Digest(called.provenance.as_ref()?.policy))),
        walls,
        start,
        end: Time::now(),
        outcome,
    }
}

fn cut(text: &str) -> String {
    let end = text.char_indices().nth(NAME_MAX).map_or(text.len(), |(at, _)| at);
    text[..end].to_owned()
}

fn call(called: &Called) -> Call {
    let module = called.provenance.as_ref().map(|from| Module {
        name: cut(super::module_of(&called.fun)),
        sha256: Digest(*from.sha256.bytes()),
        version: from.version.as_deref().map(cut),
        signers: from.signers.iter().take(LIST_MAX).map(|signer| cut(signer)).collect(),
        grants: Digest(from.grants),
    });
    let usage = called.outcome.usage.as_ref().map(|used| Usage {
        wall_us: used.wall_us,
        cpu_us: used.cpu_us,
        memory_peak: used.memory_peak,
        host_calls: used.host_calls,
        bytes_in: used.bytes_in,
        bytes_out: used.bytes_out,
    });
    Call { function: cut(&called.fun), retcode: called.outcome.retcode, module, usage }
}
