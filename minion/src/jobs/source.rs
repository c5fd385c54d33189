//! Where a job comes from, and what follows from that: one row of [`Source::rules`] for each source.

use std::sync::Arc;

use brine_protocol::ids::Jid;
use brine_protocol::job::{FunCall, JobLoad};
use brine_protocol::value::{Value, ValueExt, map};
use tokio::sync::oneshot;

use super::outcomes::Called;
use super::proc::SALT_CALL;
use crate::config::MinionOpts;
use crate::receipts::SignedPublication;
use crate::returns::ReturnSender;

/// Where a job comes from.
pub(crate) enum Source {
    /// A publication of a master.
    Master {
        /// The fingerprint of the master's key.
        master: Arc<str>,
        /// What the master signed.
        asked: Arc<SignedPublication>,
        /// Where the return is kept until that master has acknowledged it.
        returns: Arc<ReturnSender>,
    },
    /// A call on this host.
    Call {
        /// The arguments as typed, for the return that the preferred master gets; none if it gets no return.
        report: Option<Value>,
        /// Whether somebody typed it, and not a program for others: the master's runner `salt.cmd`.
        typed: bool,
        /// Receives the outcome.
        answer: oneshot::Sender<Called>,
    },
    /// The minion itself, to fill its mine on the master whose key has this fingerprint.
    Mine(Arc<str>),
    /// The minion itself, by its schedule, a beacon or at its start. See [`own_job`].
    Own {
        /// Whose rights the job has: of the master with this fingerprint, or of this host's owner. What a master configured (by its
        /// pillar or by a job) has that master's rights, so that it can never do more later than the master could at once.
        master: Option<Arc<str>>,
        /// Whether the job has a file in `proc/`.
        recorded: bool,
        /// Who gets the outcome.
        reply: Reply,
        /// Called when the outcome is kept, before it is sent.
        on_end: Option<OnEnd>,
    },
}

/// Notes that a job has ended.
pub(crate) type OnEnd = Box<dyn FnOnce() + Send>;

/// Who gets the outcome of a job that the minion started by itself.
pub(crate) enum Reply {
    /// The master, by the spool, as Salt's `return_job` says.
    Master {
        /// Where the return is kept until the master has acknowledged it.
        returns: Arc<ReturnSender>,
        /// The jid of the return; none is the job's own.
        as_jid: Option<AsJid>,
    },
    /// Nobody: a failure is logged.
    Nobody,
}

/// What a source decides about its jobs.
pub(super) struct Rules {
    /// The fingerprint of the master that asked; none for a job of this host.
    pub(super) master: Option<Arc<str>>,
    /// What that master signed; none for a job that no publication asked for.
    pub(super) asked: Option<Arc<SignedPublication>>,
    /// What is checked first.
    pub(super) checks: Checks,
    /// Whether a blackout refuses the job.
    pub(super) blackout: bool,
    /// Whether the job has a file in `proc/`.
    pub(super) recorded: bool,
    /// What becomes of the outcome and its usage.
    pub(super) delivery: Delivery,
}

/// What is checked before a job is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Checks {
    /// The target, the jid and the bounds on jobs.
    Publication,
    /// The bounds on jobs.
    Bounds,
    /// Nothing.
    None,
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
        typed: bool,
        /// As in [`Source::Call`].
        answer: oneshot::Sender<Called>,
    },
    /// `mine.update` sent its data to the mine itself; the outcome is logged.
    Mine,
    /// As [`Source::Own`] says.
    Own(Reply, Option<OnEnd>),
}

impl Source {
    pub(super) fn rules(self) -> Rules {
        let asked = match &self {
            Self::Master { asked, .. } => Some(Arc::clone(asked)),
            _ => None,
        };
        let (master, checks, recorded, delivery) = match self {
            Self::Master { master, returns, .. } => (Some(master), Checks::Publication, true, Delivery::Spool(returns)),
            Self::Call { report, typed, answer } => {
                (None, Checks::None, true, Delivery::Caller { report, typed, answer })
            }
            Self::Mine(master) => (Some(master), Checks::None, false, Delivery::Mine),
            Self::Own { master, recorded, reply, on_end } => {
                (master, Checks::Bounds, recorded, Delivery::Own(reply, on_end))
            }
        };
        // Salt's `salt-call` works in a blackout too: it is how an owner ends one.
        let blackout = !matches!(delivery, Delivery::Caller { .. });
        Rules { master, asked, checks, blackout, recorded, delivery }
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

/// A job that the minion starts by itself, with one function. `args` and `kwargs` are as configured; `options` become a part of its load,
/// and those that Salt's return of a scheduled job has (`schedule`, `metadata`, `ret_config`, `ret_kwargs`) of its return.
pub(crate) fn own_job(
    opts: &MinionOpts,
    fun: &str,
    args: Vec<Value>,
    kwargs: Option<Value>,
    options: Vec<(&'static str, Value)>,
) -> JobLoad {
    let mut shown = args.clone();
    let mut arg = args;
    if let Some(kwargs) = kwargs.filter(|kwargs| kwargs.entries().is_some()) {
        shown.push(kwargs.clone());
        let mut kwargs = kwargs;
        kwargs.insert("__kwarg__", true);
        arg.push(kwargs);
    }
    let id = Value::from(&opts.id);
    let call = FunCall { fun: fun.to_owned(), arg: arg.clone() };
    let mut job = local_job(&opts.user, call, options);
    for (name, value) in [("tgt", id.clone()), ("id", id), ("arg", Value::Array(arg)), (OWN_ARGS, Value::Array(shown))]
    {
        job.raw.insert(name, value);
    }
    job.tgt = Value::from(&opts.id);
    job
}

/// The arguments as Salt shows those of a job that a minion started by itself. Only such a job's load has it.
pub(super) const OWN_ARGS: &str = "fun_args";
/// In the record of a job that the minion started by itself: false if nobody is to have its return, else the jid of that.
const RETURN_JOB: &str = "return_job";

/// What stands for a jid in a return of a job that no master published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsJid {
    /// `req`: the master makes a job for it.
    Requested,
    /// `nocache`: the master tells its bus and keeps nothing.
    NotKept,
}

impl AsJid {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Requested => "req",
            Self::NotKept => "nocache",
        }
    }
}

/// Who gets the return of a job, as its record says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// The master that published it.
    Publication,
    /// The master, for a job of the minion's own.
    Own {
        /// As in [`Reply::Master`].
        as_jid: Option<AsJid>,
    },
    /// Nobody who is there after a restart.
    Nobody,
}

impl Reply {
    /// Writes into a job's load who gets its return, for a start after this process was killed.
    pub(super) fn note(&self, load: &mut Value) {
        let noted = match self {
            Self::Master { as_jid, .. } => as_jid.map_or(Value::from(true), |as_jid| Value::from(as_jid.name())),
            Self::Nobody => Value::from(false),
        };
        load.insert(RETURN_JOB, noted);
    }
}

/// Reads what [`Reply::note`] wrote.
pub(super) fn noted_reply(load: &Value) -> Noted {
    if load.get(OWN_ARGS).is_none() {
        return Noted::Publication;
    }
    match load.get(RETURN_JOB) {
        Some(Value::Boolean(false)) | None => Noted::Nobody,
        Some(noted) => Noted::Own {
            as_jid: [AsJid::Requested, AsJid::NotKept].into_iter().find(|as_jid| noted.text() == Some(as_jid.name())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_who_gets_the_return() {
        let published = map([("fun", "test.ping")]);
        assert_eq!(noted_reply(&published), Noted::Publication);
        let own = || map([("fun", Value::from("test.ping")), (OWN_ARGS, Value::Array(Vec::new()))]);
        assert_eq!(noted_reply(&own()), Noted::Nobody);
        let mut load = own();
        Reply::Nobody.note(&mut load);
        assert_eq!(noted_reply(&load), Noted::Nobody);
        for (noted, as_jid) in
            [("req", Some(AsJid::Requested)), ("nocache", Some(AsJid::NotKept)), ("anything else", None)]
        {
            load.insert(RETURN_JOB, noted);
            assert_eq!(noted_reply(&load), Noted::Own { as_jid });
        }
    }
}
