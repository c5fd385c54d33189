//! The records of the job store: jobs and returns.

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::job::{fun_text, is_success, worst_retcode};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt};

use super::query::{JobReturn, StoredJob};
use super::receipts::NewReceipt;

/// Characters of a target in the list of jobs.
const TARGET_TEXT_MAX: usize = 1_024;
/// Characters of a user's name in the list of jobs.
const USER_TEXT_MAX: usize = 64;

/// A return that is to be stored.
#[derive(Debug, Clone)]
pub struct NewReturn {
    /// The job's id.
    pub jid: Jid,
    /// The sender, as the channel proved it.
    pub minion: MinionId,
    /// The function that ran.
    pub fun: String,
    /// When it arrived, unix ms.
    pub at_ms: i64,
    /// The job's exit code.
    pub retcode: i64,
    /// Whether the function succeeded.
    pub success: bool,
    /// The whole return, disk flavour of msgpack.
    pub load: Vec<u8>,
    /// The receipt that came with it.
    pub receipt: Option<Box<NewReceipt>>,
}

/// The result of storing a return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// The return is new and now in the store.
    New,
    /// The store already had a return for this job and minion, which stays.
    Duplicate,
}

/// A record to store.
#[derive(Debug, Clone)]
pub enum Record {
    /// A published job.
    Job(StoredJob),
    /// A return of a minion.
    Return(NewReturn),
}

/// The result of storing a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// The record is stored; for a return, whether it was new.
    Kept(Added),
    /// The record can never be stored there, for this reason.
    Refused(String),
}

impl StoredJob {
    /// Makes a job from its load, with the current time as its start.
    pub(crate) fn to_record(jid: Jid, load: &Value, minions: Vec<MinionId>) -> Self {
        Self {
            jid,
            fun: fun_text(load),
            user: load.get_text("user").unwrap_or("root").chars().take(USER_TEXT_MAX).collect(),
            tgt: load.get("tgt").map(ValueExt::python_str).unwrap_or_default().chars().take(TARGET_TEXT_MAX).collect(),
            tgt_type: load.get_text("tgt_type").unwrap_or("glob").to_owned(),
            started_ms: super::now_ms(),
            minions,
            load: msgpack::encode_disk(load),
        }
    }

    /// Makes a job from a load of another returner: the published load, maybe with `Minions`.
    pub(super) fn from_load(jid: Jid, started_ms: i64, mut load: Value) -> Self {
        let minions = load.remove("Minions").unwrap_or(Value::Nil);
        let minions = minions.list().unwrap_or_default().iter();
        Self {
            fun: fun_text(&load),
            user: load.get_text("user").unwrap_or("root").to_owned(),
            tgt: load.get("tgt").map(ValueExt::python_str).unwrap_or_default(),
            tgt_type: load.get_text("tgt_type").unwrap_or("glob").to_owned(),
            minions: minions.filter_map(|id| MinionId::try_from(id.text()?).ok()).collect(),
            load: msgpack::encode_disk(&load),
            jid,
            started_ms,
        }
    }
}

impl NewReturn {
    /// Makes a return from its load.
    pub(crate) fn from_load(jid: Jid, minion: MinionId, at_ms: i64, load: &Value) -> Self {
        Self {
            fun: fun_text(load),
            retcode: worst_retcode(load),
            success: is_success(load),
            load: msgpack::encode_disk(load),
            receipt: None,
            jid,
            minion,
            at_ms,
        }
    }
}

impl From<NewReturn> for JobReturn {
    fn from(new: NewReturn) -> Self {
        let NewReturn { minion, at_ms, retcode, success, load, .. } = new;
        Self { minion, at_ms, retcode, success, load }
    }
}
