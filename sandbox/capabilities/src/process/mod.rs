//! `process`: run programs.
//!
//! - `check.rs` the check of programs, arguments and environment

mod check;

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[
        ("alias", Standard::Least),
        ("aliases", Standard::Least),
        ("alternatives", Standard::Least),
        ("archive", Standard::Least),
        ("cmd", Standard::Least),
        ("cron", Standard::Least),
        ("debconf", Standard::Least),
        ("dig", Standard::Least),
        ("git", Standard::Least),
        ("group", Standard::Least),
        ("iptables", Standard::Least),
        ("journald", Standard::Least),
        ("kmod", Standard::Least),
        ("locale", Standard::Least),
        ("mount", Standard::Least),
        ("network", Standard::Least),
        ("pip", Standard::Least),
        ("pkg", Standard::Least),
        ("postgres", Standard::Least),
        // A process is ended by the program `kill`.
        ("ps", Standard::Least),
        ("service", Standard::Least),
        ("shadow", Standard::Least),
        ("ssh", Standard::Least),
        ("ssh_known_hosts", Standard::Least),
        ("sysctl", Standard::Least),
        ("timezone", Standard::Least),
        ("user", Standard::Least),
        ("virtualenv", Standard::Least),
    ],
    reported_for_all: true,
    ..Declaration::new("process", "run programs", &["brine:host/process"], Kind::Process)
};

/// `brine:host/process`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessOp {
    /// Runs a program to its end. Returns a map: `pid`, `code` (nil if a signal ended it), `signal` (nil if none did),
    /// `stdout` and `stderr` (binary), `stdout_dropped` and `stderr_dropped` (bytes over the cap), `timed_out`.
    Run(Box<ProcessRun>),
    /// Runs a program that is to look: in plan mode it runs where it can change nothing. Returns what `Run` returns, or
    /// a text where this host cannot run a program in that way.
    Probe(Box<ProcessRun>),
    /// A command line of [`ProcessGrant::looks`](crate::ProcessGrant) in plan mode. No module can ask for it.
    Look(Box<ProcessRun>),
    /// Finds a granted program. Returns its absolute path, nil if the host does not have it.
    Which {
        /// A bare name or an absolute path.
        name: String,
    },
    /// Returns the path of the granted shell, nil if none was granted. With `path`: that shell or nil.
    Shell {
        /// The shell to find.
        path: Option<String>,
    },
}

/// One program to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRun {
    /// The program (a bare name, or an absolute path) and its arguments.
    pub argv: Vec<String>,
    /// The directory in which it starts; absolute.
    pub cwd: Option<String>,
    /// Variables in addition to the minion's few (`PATH`, `HOME`, `LANG`…).
    pub env: Vec<(String, String)>,
    /// Whether to set only `env`.
    pub clean_env: bool,
    /// Standard input. None: empty.
    pub stdin: Option<ByteBuf>,
    /// Time after which the minion ends it.
    pub timeout_ms: Option<u64>,
    /// The user as which it runs.
    pub run_as: Option<String>,
    /// The group.
    pub group: Option<String>,
    /// Its umask.
    pub umask: Option<u32>,
    /// Bytes kept of each output, at most the minion's own bound.
    pub max_output: Option<u64>,
    /// Whether standard error goes to standard output, in the order written.
    pub merge_stderr: bool,
}

impl Operation for ProcessOp {
    const INTERFACE: &'static str = "brine:host/process";

    fn size(&self) -> Size {
        match self {
            Self::Run(run) | Self::Probe(run) | Self::Look(run) => Size {
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

    fn planned(self, granted: &Grants) -> Planned<Self> {
        match self {
            Self::Run(mut run) => match granted.process.looks(&run.argv) {
                Some(program) if check::only_the_words_count(&granted.process, &run) => {
                    program.clone_into(&mut run.argv[0]);
                    Planned::Look(Self::Look(run))
                }
                _ => Planned::Stop(format!("run: {}", shown(&run.argv))),
            },
            look => Planned::Look(look),
        }
    }
}

/// Writes a command line for people, in a shell's form.
fn shown(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,@%+".contains(c);
    // A line of a log is one line, whatever a module wants to run.
    let visible = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    let word = |word: &String| match word.is_empty() || !word.chars().all(plain) {
        true => format!("'{}'", word.replace('\'', "'\\''").chars().map(visible).collect::<String>()),
        false => word.clone(),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}
