//! `jobs`: list and kill the minion's running jobs.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[("saltutil", Standard::All), ("state", Standard::All)],
    ..Declaration::new("jobs", "see and end running jobs", &["brine:host/jobs"], Kind::Flag)
};

/// `brine:host/jobs`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobsOp {
    /// Returns an array of maps, one for each job except the caller's.
    Running,
    /// Returns a map, which is empty if there is no such job.
    Find {
        /// The job.
        jid: String,
    },
    /// Returns whether there was such a job.
    Kill {
        /// The job.
        jid: String,
    },
}

impl Operation for JobsOp {
    const INTERFACE: &'static str = "brine:host/jobs";

    fn size(&self) -> Size {
        match self {
            Self::Running => Size::default(),
            Self::Find { jid } | Self::Kill { jid } => Size::names(jid.len()),
        }
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        if let Self::Find { jid } | Self::Kill { jid } = &self {
            forms::text("the id of a job", jid, forms::MAX_WORD, Form::Line)?;
        }
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        match self {
            Self::Kill { jid } => Planned::Done(format!("end the job {jid}"), Answer::True),
            look => Planned::Look(look),
        }
    }
}
