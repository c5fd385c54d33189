//! What a job's receipt says, before it has its number.

use std::sync::Arc;

use brine_protocol::job::{JobLoad, worst_retcode};
use brine_protocol::msgpack;
use brine_protocol::publication::Sealed;
use brine_protocol::value::{Value, ValueExt};
use brine_receipts::{Asked, Call, Digest, Fingerprint, Head, Module, Outcome, Receipt, Time, Usage};
use serde_bytes::ByteBuf;

use crate::jobs::Called;

/// Upper bound on a publication that is kept beside its receipt: the jobs of every day, not those with files in their arguments.
const MAX_KEPT: usize = 16 * 1024;
/// Characters of a name; only a hostile one is longer.
const NAME_MAX: usize = 128;
/// Upper bound on the signers and walls that are named.
const LIST_MAX: usize = 16;
/// Upper bound on the functions that are named, as on those that run.
const CALLS_MAX: usize = 256;

/// A publication as its master signed it.
#[derive(Debug)]
pub struct SignedPublication {
    hash: Digest,
    asked: Option<Asked>,
}

impl SignedPublication {
    /// Of a publication that was verified.
    pub fn of(sealed: &Sealed) -> Self {
        let blob = sealed.blob();
        let asked = sealed.signature().map(|(alg, signature)| Asked {
            algorithm: alg.as_str().to_owned(),
            signature: signature.to_vec(),
            blob: (blob.len() <= MAX_KEPT).then(|| ByteBuf::from(blob)),
        });
        Self { hash: Digest::of(blob), asked }
    }
}

/// What is known of a job when it has ended.
pub(crate) struct Draft {
    pub(super) master: Option<Fingerprint>,
    publication: Option<Arc<SignedPublication>>,
    jid: String,
    arguments: Digest,
    calls: Vec<Call>,
    policy: Option<Digest>,
    walls: Vec<String>,
    start: Time,
    end: Time,
    outcome: Outcome,
}

impl Draft {
    /// Of a job that ended now. `walls` is as the grain `sandbox` has them.
    pub(crate) fn new(
        job: &JobLoad,
        each: &[Called],
        (master, publication): (Option<&str>, Option<Arc<SignedPublication>>),
        walls: &Value,
        start: Time,
        killed: bool,
    ) -> Self {
        let outcome = match () {
            () if killed => Outcome::Killed,
            () if each.iter().all(|called| !called.ran && called.outcome.usage.is_none()) => Outcome::Refused,
            () => Outcome::Ran,
        };
        Self {
            master: master.and_then(|master| master.parse().ok()),
            publication,
            jid: job.jid.to_string(),
            arguments: job.raw.get("arg").map_or_else(|| hash(&Value::Nil), hash),
            calls: each.iter().take(CALLS_MAX).map(call).collect(),
            policy: each.iter().find_map(|called| Some(Digest(called.provenance.as_ref()?.policy))),
            walls: names(walls),
            start,
            end: Time::now(),
            outcome,
        }
    }

    /// The receipt after `last`, of the job with this return.
    pub(super) fn receipt(&self, minion: &str, minion_key: Fingerprint, last: Option<Head>, load: &Value) -> Receipt {
        Receipt {
            version: Receipt::VERSION,
            number: last.map_or(1, |head| head.number + 1),
            previous: last.map(|head| head.hash),
            minion: minion.to_owned(),
            minion_key,
            master: self.master,
            publication: self.publication.as_ref().map(|publication| publication.hash),
            jid: self.jid.clone(),
            arguments: self.arguments,
            calls: self.calls.clone(),
            policy: self.policy,
            walls: self.walls.clone(),
            start: self.start,
            end: self.end,
            retcode: worst_retcode(load),
            outcome: self.outcome,
            returned: load.get("return").map_or_else(|| hash(&Value::Nil), hash),
        }
    }

    pub(super) fn asked(&self) -> Option<Asked> {
        self.publication.as_ref()?.asked.clone()
    }
}

fn hash(value: &Value) -> Digest {
    Digest::of(&msgpack::encode_network(value))
}

fn cut(text: &str) -> String {
    text.chars().take(NAME_MAX).collect()
}

fn call(called: &Called) -> Call {
    let module = called.provenance.as_ref().map(|from| Module {
        name: cut(called.fun.split_once('.').map_or(&called.fun, |(module, _)| module)),
        sha256: from.sha256.to_string().parse().unwrap_or(Digest([0; 32])),
        version: from.version.as_deref().map(cut),
        signers: from.signers.iter().take(LIST_MAX).map(|signer| cut(signer)).collect(),
        grants: Digest(from.grants),
    });
    let usage = called.outcome.usage.as_ref().map(|used| Usage {
        wall_us: used.wall_us,
        cpu_us: used.cpu_us,
        memory_peak: used.memory_peak,
        host_calls: u64::from(used.host_calls),
        bytes_in: used.bytes_in,
        bytes_out: used.bytes_out,
    });
    Call { function: cut(&called.fun), retcode: called.outcome.retcode, module, usage }
}

/// The walls that hold, with the version of landlock.
fn names(walls: &Value) -> Vec<String> {
    let held = walls.get("walls").and_then(|walls| walls.entries()).unwrap_or_default();
    let held = held.iter().filter(|(_, value)| value.truthy()).filter_map(|(name, value)| {
        let name = name.text()?;
        Some(value.as_u64().map_or_else(|| name.to_owned(), |version| format!("{name} {version}")))
    });
    held.take(LIST_MAX).collect()
}
