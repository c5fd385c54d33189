//! `publish`: publish jobs for other minions through the master, and start its runners.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    // The master permits functions and runners by `peer` and `peer_run`, to this minion.
    standard: &[("publish", Standard::All)],
    ..Declaration::new("publish", "publish jobs for other minions", &["brine:host/publish"], Kind::Names)
};

/// Upper bound on the functions of one job.
const MAX_FUNCTIONS: usize = 64;
/// Upper bound on the bytes of a target.
const MAX_TARGET: usize = 64 << 10;
/// Upper bound on the seconds that a master waits.
const MAX_TIMEOUT: u32 = 86_400;

/// `brine:host/publish`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublishOp {
    /// Publishes a job. Returns a map: `jid`, a text, and `minions`, an array of texts; nil if the master does not permit it.
    Job {
        /// One MessagePack value: the target's expression.
        tgt: ByteBuf,
        /// The target's type: `glob`.
        tgt_type: String,
        /// `test.ping`, or several with commas.
        function: String,
        /// One MessagePack value each.
        args: Vec<ByteBuf>,
        /// The master's returners, with commas; empty for none.
        returner: String,
        /// Seconds that the master is told.
        timeout: u32,
    },
    /// Returns a map of minions to maps with `ret`: what they returned so far.
    Returns {
        /// A job that this minion published.
        jid: String,
    },
    /// Runs a runner on the master. Returns what it returned.
    Runner {
        /// `manage.up`
        function: String,
        /// One MessagePack value each.
        args: Vec<ByteBuf>,
        /// Seconds that the master is told.
        timeout: u32,
    },
}

fn permit(granted: &Grants, function: &str, what: &str) -> Result<(), Refusal> {
    forms::function(function)?;
    granted.permit_name(Capability::Publish, function, format_args!("{what} {function}"))
}

fn arguments(args: &[ByteBuf], timeout: u32) -> Result<(), Refusal> {
    forms::size("the arguments", args.iter().map(|arg| arg.len()).sum(), forms::MAX_DATA)?;
    match timeout <= MAX_TIMEOUT {
        true => Ok(()),
        false => Err(malformed("the timeout", &format!("is more than {MAX_TIMEOUT} seconds"))),
    }
}

impl Operation for PublishOp {
    const INTERFACE: &'static str = "brine:host/publish";

    fn size(&self) -> Size {
        let bytes = |args: &[ByteBuf]| args.iter().map(|arg| arg.len() + Size::NAME).sum::<usize>();
        match self {
            Self::Job { tgt, tgt_type, function, args, returner, .. } => Size {
                names: tgt_type.len() + function.len() + returner.len(),
                content: tgt.len() + bytes(args),
                ..Size::default()
            },
            Self::Returns { jid } => Size::names(jid.len()),
            Self::Runner { function, args, .. } => {
                Size { names: function.len(), content: bytes(args), ..Size::default() }
            }
        }
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        match &self {
            Self::Job { tgt, tgt_type, function, args, returner, timeout } => {
                forms::size("the target", tgt.len(), MAX_TARGET)?;
                forms::text("the type of the target", tgt_type, forms::MAX_WORD, Form::Line)?;
                if !returner.is_empty() {
                    forms::text("the returner", returner, 4 * forms::MAX_WORD, Form::Line)?;
                }
                arguments(args, *timeout)?;
                let mut functions = function.split(',');
                functions.by_ref().take(MAX_FUNCTIONS).try_for_each(|one| permit(granted, one, "publish"))?;
                if functions.next().is_some() {
                    return Err(malformed("a job", &format!("has at most {MAX_FUNCTIONS} functions")));
                }
            }
            // The master answers about the jobs of this minion alone.
            Self::Returns { jid } => forms::text("the jid", jid, forms::MAX_WORD, Form::Line)?,
            Self::Runner { function, args, timeout } => {
                arguments(args, *timeout)?;
                permit(granted, function, "start the runner")?;
            }
        }
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        match self {
            Self::Job { function, .. } => Planned::Stop(format!("publish {function}")),
            Self::Runner { function, .. } => Planned::Stop(format!("start the runner {function}")),
            look @ Self::Returns { .. } => Planned::Look(look),
        }
    }
}
