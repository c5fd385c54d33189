//! `process`: run programs.
//!
//! - `check.rs` which, with what around them

mod check;

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[("cmd", Standard::Least)],
    reported_for_all: true,
    ..Declaration::new("process", "run programs", &["brine:host/process"], Kind::Process)
};

/// `brine:host/process`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessOp {
    /// Runs a program to its end; answered by a map: `pid`, `code` (nil where a signal ended it), `signal` (nil where none did),
    /// `stdout` and `stderr` (binary), `stdout_dropped` and `stderr_dropped` (bytes over the cap), `timed_out`.
    Run(Box<ProcessRun>),
    /// Where a granted program is; answered by its absolute path, nil where the host has none.
    Which {
        /// A bare name or an absolute path.
        name: String,
    },
    /// Answered by the path of the shell that was granted, nil where none was. With a path: that one or nil.
    Shell {
        /// One in particular.
        path: Option<String>,
    },
}

/// One program to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRun {
    /// The program (a bare name, or an absolute path) and its arguments.
    pub argv: Vec<String>,
    /// The directory it starts in; absolute.
    pub cwd: Option<String>,
    /// Variables beside the minion's few (`PATH`, `HOME`, `LANG`…).
    pub env: Vec<(String, String)>,
    /// Only `env`.
    pub clean_env: bool,
    /// What it reads; nothing where none.
    pub stdin: Option<ByteBuf>,
    /// After this it is ended.
    pub timeout_ms: Option<u64>,
    /// The user it runs as.
    pub run_as: Option<String>,
    /// The group.
    pub group: Option<String>,
    /// Its umask.
    pub umask: Option<u32>,
    /// Bytes kept of each of its outputs; never more than the minion's own bound.
    pub max_output: Option<u64>,
    /// Standard error goes where standard output goes, in the order written.
    pub merge_stderr: bool,
}

impl Operation for ProcessOp {
    const INTERFACE: &'static str = "brine:host/process";

    fn size(&self) -> Size {
        match self {
            Self::Run(run) => Size {
                names: Size::optional(run.cwd.as_ref())
                    + Size::optional(run.run_as.as_ref())
                    + Size::optional(run.group.as_ref()),
                command: Size::list(&run.argv) + Size::pairs(&run.env),
                content: run.stdin.as_ref().map_or(0, |stdin| stdin.len()),
            },
            Self::Which { name } => Size::names(name.len()),
            Self::Shell { path } => Size::names(Size::optional(path.as_ref())),
        }
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        check::check(granted, self)
    }
}
