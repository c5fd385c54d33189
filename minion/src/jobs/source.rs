//! Where a job comes from, and what follows from that: one row of [`Source::rules`] for each source.

use std::sync::Arc;

use brine_protocol::ids::Jid;
use brine_protocol::job::{FunCall, JobLoad};
use brine_protocol::value::{Value, ValueExt, map};
use tokio::sync::oneshot;

use super::outcomes::Called;
use super::proc::SALT_CALL;
use crate::returns::ReturnSender;

/// Where a job comes from.
pub(crate) enum Source {
    /// A publication of a master.
    Master {
        /// The fingerprint of the master's key.
        master: Arc<str>,
        /// Where the return is kept until that master has acknowledged it.
        returns: Arc<ReturnSender>,
    },
    /// A call on this host.
    Call {
        /// The arguments as typed, for the return that the preferred master gets; none if it gets no return.
        report: Option<Value>,
        /// Receives the outcome.
        answer: oneshot::Sender<Called>,
    },
    /// The minion itself, to fill its mine on the master whose key has this fingerprint.
    Mine(Arc<str>),
}

/// What a source decides about its jobs.
pub(super) struct Rules {
    /// The fingerprint of the master that asked; none for a job of this host.
    pub(super) master: Option<Arc<str>>,
    /// Whether the target, the jid and the bounds on jobs are checked first.
    pub(super) checked: bool,
    /// Whether the job has a file in `proc/`.
    pub(super) recorded: bool,
    /// What becomes of the outcome and its usage.
    pub(super) delivery: Delivery,
}

/// What becomes of a job's outcome.
pub(super) enum Delivery {
    /// The return and the usage are spooled and sent to the master that asked.
    Spool(Arc<ReturnSender>),
    /// The outcome goes to the caller; before that, the preferred master may get a return, once.
    Caller {
        /// As in [`Source::Call`].
        report: Option<Value>,
        /// As in [`Source::Call`].
        answer: oneshot::Sender<Called>,
    },
    /// `mine.update` sent its data to the mine itself; the outcome is logged.
    Mine,
}

impl Source {
    pub(super) fn rules(self) -> Rules {
        match self {
            Self::Master { master, returns } => {
                Rules { master: Some(master), checked: true, recorded: true, delivery: Delivery::Spool(returns) }
            }
            Self::Call { report, answer } => {
                Rules { master: None, checked: false, recorded: true, delivery: Delivery::Caller { report, answer } }
            }
            Self::Mine(master) => {
                Rules { master: Some(master), checked: false, recorded: false, delivery: Delivery::Mine }
            }
        }
    }
}

/// A job of this host with one function; `options` (`metadata`, `executor_opts`) become a part of its load.
pub(crate) fn local_job(user: &str, call: FunCall, options: Vec<(&'static str, Value)>) -> JobLoad {
    let jid = Jid::now();
    let mut raw = map([
        ("fun", Value::from(call.fun.as_str())),
        ("jid", Value::from(&jid)),
        ("tgt", Value::from(SALT_CALL)),
        ("user", Value::from(user)),
    ]);
    let mut metadata = None;
    for (name, value) in options {
        if name == "metadata" {
            metadata = Some(value.clone());
        }
        raw.insert(name, value);
    }
    JobLoad {
        calls: vec![call],
        multi: false,
        tgt: Value::from(SALT_CALL),
        tgt_type: "glob".to_owned(),
        jid,
        ret: String::new(),
        user: user.to_owned(),
        delimiter: ":".to_owned(),
        start_event: false,
        metadata,
        raw,
    }
}
