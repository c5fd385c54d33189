//! `process`: run programs.
//!
//! - `check.rs` which, with what around them; `programs.rs` which granted program is meant

mod check;
mod programs;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::names::Names;
use crate::prelude::*;
pub use programs::{PROGRAM_FOLDERS, Program};

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

/// Programs, and how they may be run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessGrant {
    /// Which: absolute paths.
    pub programs: Names,
    /// Users beside the module's own that they may run as.
    pub users: Names,
    /// Groups beside those of their user.
    pub groups: Names,
    /// Variables that may be set beside the harmless ones of locale and time zone.
    pub env: Names,
    /// Directories, with what is below them, beside `/` that they may start in.
    pub cwd: Names,
    /// Whether what made itself a session of its own stays when the program ended well.
    pub detach: bool,
    /// Bytes of the largest file that they may write; none: what the minion itself may.
    pub file_size: Option<u64>,
    /// What this host's folders of programs are links to.
    pub host: Host,
}

/// What a decision needs to know of the host; found out once, so that the decision does not look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Folders that are the same as others: `/bin` is `/usr/bin`.
    pub folders: Arc<BTreeMap<String, String>>,
    /// The user that the minion runs as.
    pub user: Option<Arc<str>>,
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
