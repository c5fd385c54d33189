//! What the machine asks of its host, and the answers.

use brine_render::{Dict, Value};

use crate::fault::Fault;

/// What is next in a run.
#[derive(Debug)]
pub enum Step {
    /// Call a state function. Answer: [`Answer::Result`] or [`Answer::Raised`].
    Call(Call),
    /// Start a parallel state, `after` so many seconds. Answer: [`Answer::Done`]; its end comes by
    /// [`Run::finished`](super::Run::finished).
    Start {
        /// The call.
        call: Call,
        /// Seconds until it begins.
        after: u64,
    },
    /// Wait until a parallel state has finished. Answer: [`Answer::Done`].
    Wait,
    /// Ask something before or after a state. Answer: as [`Check`] says.
    Check(Check),
    /// Wait so many seconds. Answer: [`Answer::Done`].
    Sleep {
        /// The seconds.
        seconds: u64,
        /// At random up to so many more.
        splay: u64,
    },
    /// Prepare a module (`mod_init`) before its first state. Answer: [`Answer::Value`], true if that was enough.
    Init(Dict),
    /// Merge chunks that can run together into one (`mod_aggregate`). Answer: [`Answer::Value`], the new chunk.
    Aggregate {
        /// The chunk whose turn it is.
        low: Dict,
        /// Those that can run with it.
        chunks: Vec<Dict>,
        /// The results so far.
        running: Dict,
    },
    /// Whether the run is paused or ended here (`state.pause`, `state.soft_kill`). Answer: [`Answer::Done`] to go on, or
    /// [`Answer::Kill`].
    Pause(Dict),
    /// Fire an event. Answer: [`Answer::Done`].
    Event(Event),
    /// Read modules, grains or pillar anew. Answer: [`Answer::Done`].
    Refresh(Refresh),
    /// The run has ended: the results by tag.
    Done(Dict),
}

/// A call of a state function.
#[derive(Clone, Debug)]
pub struct Call {
    /// The chunk's tag: the key of its result.
    pub tag: String,
    /// `pkg.installed`
    pub function: String,
    /// What it is called with.
    pub arguments: Dict,
    /// The chunk: `runas`, `umask` (as `__umask__`), `__env__`, `__reqs__` and so on are in it.
    pub low: Dict,
    /// The results so far.
    pub running: Dict,
    /// Nothing may be changed.
    pub test: bool,
}

/// A question of `unless`, `onlyif`, `creates` or `check_cmd`.
#[derive(Clone, Debug)]
pub enum Check {
    /// Run a command in a shell. Answer: [`Answer::Code`], [`Answer::Raised`] if it cannot be run, or [`Answer::Refused`].
    Command {
        /// The command line.
        command: String,
        /// `cwd`, `runas`, `env`, `umask`, `timeout`, `shell` and so on, for `cmd.retcode`.
        options: Dict,
    },
    /// Call an execution function. Answer: [`Answer::Value`], or [`Answer::Raised`].
    Function {
        /// Its name.
        name: String,
        /// Its arguments.
        positional: Value,
        /// Its named arguments.
        keyword: Dict,
    },
    /// Whether all paths are there. Answer: [`Answer::Value`].
    Exist(Vec<String>),
}

/// An event about a result.
#[derive(Clone, Debug)]
pub struct Event {
    /// `fire_event`: the tag ends with this name. Otherwise, it is an event of the job's progress.
    pub name: Option<String>,
    /// The result.
    pub result: Dict,
    /// The number of chunks.
    pub length: usize,
}

/// What is to be read anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refresh {
    /// The modules.
    pub modules: bool,
    /// The grains.
    pub grains: bool,
    /// The pillar.
    pub pillar: bool,
}

/// The end of a parallel state.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The tag of its call.
    pub tag: String,
    /// What it returned, or the text of what it raised.
    pub result: Result<Value, String>,
    /// When it began: the time of the day.
    pub start_time: String,
    /// Milliseconds.
    pub duration: f64,
}

/// An answer to a step.
#[derive(Clone, Debug)]
pub enum Answer {
    /// What a state function returned, and how many milliseconds it took.
    Result(Value, f64),
    /// What was raised, with its traceback if there is one, and how many milliseconds it took.
    Raised(String, f64),
    /// What was asked may not be done here: the state fails, and this says why.
    Refused(String),
    /// A program's exit code.
    Code(i64),
    /// A value. `code` is the exit code that an execution function has set.
    Value {
        /// The value.
        value: Value,
        /// The exit code, if not 0.
        code: i64,
    },
    /// It is done.
    Done,
    /// The run ends here.
    Kill,
}

impl Answer {
    pub(super) fn unexpected(&self) -> Fault {
        Fault::Limit(format!("the run was given an answer to another question: {self:?}"))
    }
}
