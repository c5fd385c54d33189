//! `schedule`: see and change the jobs that the minion starts by itself.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    // What it adds can do no more than the master's jobs, which it stands for.
    standard: &[("schedule", Standard::All)],
    ..Declaration::new("schedule", "see and change the schedule of jobs", &["brine:host/schedule"], Kind::Flag)
};

/// Upper bound on the bytes of a job's name.
const MAX_NAME: usize = 256;
/// Upper bound on the bytes of a date or its format.
const MAX_DATE: usize = 256;
/// Upper bound on the bytes of jobs in one change.
const MAX_JOBS: usize = 4 << 20;

/// Where jobs of the schedule come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchedulePlace {
    /// The configuration, with what was changed since.
    Opts,
    /// The pillar.
    Pillar,
    /// Both.
    All,
}

/// A change of the schedule. Jobs are MessagePack values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScheduleChange {
    /// Adds or replaces jobs.
    Add(ByteBuf),
    /// Replaces a job.
    Modify(String, ByteBuf),
    /// Removes a job.
    Delete(String),
    /// Enables or disables all jobs.
    Enable(bool),
    /// Enables or disables a job.
    EnableJob(String, bool),
    /// Skips a job at a time, and may run it at another.
    Postpone(String, ByteBuf),
    /// Adds jobs as they are.
    Reload(ByteBuf),
    /// Runs a job now.
    Run(String),
    /// Writes the jobs to the file that keeps them.
    Save,
    /// Writes these jobs to that file.
    ReplaceSaved(ByteBuf),
}

impl ScheduleChange {
    fn parts(&self) -> (Option<&str>, Option<&[u8]>) {
        match self {
            Self::Add(data) | Self::Reload(data) | Self::ReplaceSaved(data) => (None, Some(data)),
            Self::Modify(name, data) | Self::Postpone(name, data) => (Some(name), Some(data)),
            Self::Delete(name) | Self::EnableJob(name, _) | Self::Run(name) => (Some(name), None),
            Self::Enable(_) | Self::Save => (None, None),
        }
    }
}

/// `brine:host/schedule`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScheduleOp {
    /// Returns a dict of jobs.
    List {
        /// Where they come from.
        place: SchedulePlace,
    },
    /// Returns the jobs of the file that keeps them.
    Saved,
    /// Returns a job.
    Status {
        /// Its name.
        name: String,
        /// The format of times.
        time_format: String,
    },
    /// Changes jobs, and returns all.
    Update {
        /// What changes.
        change: ScheduleChange,
        /// Whether the file that keeps them changes too.
        persist: bool,
    },
    /// Returns whether a text is a date.
    IsDate {
        /// The text.
        text: String,
        /// Its format.
        format: Option<String>,
    },
}

impl Operation for ScheduleOp {
    const INTERFACE: &'static str = "brine:host/schedule";

    fn size(&self) -> Size {
        match self {
            Self::List { .. } | Self::Saved => Size::default(),
            Self::Status { name, time_format } => Size::names(name.len() + time_format.len()),
            Self::Update { change, .. } => {
                let (name, data) = change.parts();
                Size { names: name.map_or(0, str::len), content: data.map_or(0, <[u8]>::len), ..Size::default() }
            }
            Self::IsDate { text, format } => Size::names(text.len() + format.as_ref().map_or(0, String::len)),
        }
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        let name = |name: &str| forms::text("the name of a job", name, MAX_NAME, Form::Line);
        let date = |text: &str| forms::size("a date and its format", text.len(), MAX_DATE);
        match &self {
            Self::List { .. } | Self::Saved => {}
            Self::Status { name: job, time_format } => {
                name(job)?;
                date(time_format)?;
            }
            Self::Update { change, .. } => {
                let (job, data) = change.parts();
                job.map_or(Ok(()), name)?;
                forms::size("the jobs", data.map_or(0, <[u8]>::len), MAX_JOBS)?;
            }
            Self::IsDate { text, format } => {
                date(text)?;
                format.as_deref().map_or(Ok(()), date)?;
            }
        }
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        let Self::Update { change, .. } = self else { return Planned::Look(self) };
        let what = match change {
            ScheduleChange::Add(_) | ScheduleChange::Reload(_) => "add jobs to the schedule".to_owned(),
            ScheduleChange::Modify(name, _) => format!("change the job {name} of the schedule"),
            ScheduleChange::Delete(name) => format!("delete the job {name} of the schedule"),
            ScheduleChange::Enable(true) => "enable the schedule".to_owned(),
            ScheduleChange::Enable(false) => "disable the schedule".to_owned(),
            ScheduleChange::EnableJob(name, true) => format!("enable the job {name} of the schedule"),
            ScheduleChange::EnableJob(name, false) => format!("disable the job {name} of the schedule"),
            ScheduleChange::Postpone(name, _) => format!("skip or postpone the job {name} of the schedule"),
            ScheduleChange::Run(name) => format!("run the job {name} of the schedule"),
            ScheduleChange::Save | ScheduleChange::ReplaceSaved(_) => "save the schedule".to_owned(),
        };
        Planned::Done(what, Answer::Nothing)
    }
}
