//! A job's load as it is published (§5.2) and its return (§6.2).

use crate::ids::{Jid, MinionId};
use crate::value::{Value, ValueExt};

/// One function of a job with its arguments as they were published.
#[derive(Debug, Clone, PartialEq)]
pub struct FunCall {
    /// `module.function`.
    pub fun: String,
    /// The arguments; keywords are in a map with `__kwarg__`, see [`split_kwargs`].
    pub arg: Vec<Value>,
}

/// A published job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobLoad {
    /// The functions: one, or several for a multi-function job.
    pub calls: Vec<FunCall>,
    /// Whether `fun` was a list: then `return`, `retcode` and `success` are maps.
    pub multi: bool,
    /// Whom it is for.
    pub tgt: Value,
    /// How `tgt` is read; `glob` when missing.
    pub tgt_type: String,
    /// The job's id.
    pub jid: Jid,
    /// Returners, a comma list; usually empty.
    pub ret: String,
    /// Who asked for it.
    pub user: String,
    /// The delimiter of grain and pillar targets.
    pub delimiter: String,
    /// Whether a start event is wanted.
    pub start_event: bool,
    /// `metadata`, to be copied to the return.
    pub metadata: Option<Value>,
    /// The whole load.
    pub raw: Value,
}

/// Why a load is no job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// A field is missing or has the wrong type.
    #[error("the load has no usable {0:?}")]
    Field(&'static str),
    /// The jid is none.
    #[error(transparent)]
    Jid(#[from] crate::ids::IdError),
}

impl JobLoad {
    /// Reads a load.
    ///
    /// # Errors
    /// When tgt, jid, fun or arg is missing or of a wrong type (§5.3).
    pub fn parse(load: &Value) -> Result<Self, JobError> {
        let _ = load;
        todo!()
    }

    /// The name of the function, or the names with commas between.
    pub fn fun(&self) -> String {
        self.calls.iter().map(|c| c.fun.as_str()).collect::<Vec<_>>().join(",")
    }
}

/// Separates keyword arguments (§5.2): maps with `__kwarg__: True` and texts `name=value`. Later ones win.
pub fn split_kwargs(arg: &[Value]) -> (Vec<Value>, Vec<(String, Value)>) {
    let _ = arg;
    todo!()
}

/// The `arg` list of a call: positional arguments and, if there are any, the keyword map at the end.
pub fn join_kwargs(args: Vec<Value>, kwargs: Vec<(String, Value)>) -> Vec<Value> {
    crate::args::condition_input(args, kwargs)
}

/// What one minion returned for one job.
#[derive(Debug, Clone, PartialEq)]
pub struct Return {
    /// Who returned.
    pub id: MinionId,
    /// For which job; none for `req`, which asks the master to allocate one (`salt-call`).
    pub jid: Option<Jid>,
    /// The function, or the list of functions.
    pub fun: Value,
    /// The arguments as they were published.
    pub fun_args: Value,
    /// The value; a map of function to value for several.
    pub return_: Value,
    /// 0 when all went well; a map for several functions.
    pub retcode: Value,
    /// Whether it went well; a map for several functions; `salt-call` does not send it.
    pub success: Option<Value>,
    /// Who asked for the job.
    pub user: Option<String>,
    /// The outputter to show it with.
    pub out: Option<String>,
    /// `metadata` of the job.
    pub metadata: Option<Value>,
    /// What the job used, a map; Brine's addition, which Salt passes through.
    pub usage: Option<Value>,
}

impl Return {
    /// A return of one function.
    pub fn new(id: MinionId, jid: Jid, fun: impl Into<String>, fun_args: Vec<Value>, return_: Value, retcode: i64) -> Self {
        Self {
            id,
            jid: Some(jid),
            fun: Value::from(fun.into()),
            fun_args: Value::Array(fun_args),
            return_,
            retcode: Value::from(retcode),
            success: Some(Value::from(retcode == 0)),
            user: None,
            out: None,
            metadata: None,
            usage: None,
        }
    }

    /// The load of the `_return` request.
    pub fn to_load(&self) -> Value {
        todo!()
    }

    /// Reads a `_return` load (or the data of a `salt/job/<jid>/ret/<id>` event).
    ///
    /// # Errors
    /// When id, jid or return is missing or of a wrong type.
    pub fn parse(load: &Value) -> Result<Self, JobError> {
        let _ = load;
        todo!()
    }

    /// The highest return code.
    pub fn worst_retcode(&self) -> i64 {
        match &self.retcode {
            Value::Map(entries) => entries.iter().filter_map(|(_, v)| v.as_i64()).max().unwrap_or(0),
            Value::Array(items) => items.iter().filter_map(Value::as_i64).max().unwrap_or(0),
            other => other.as_i64().unwrap_or_else(|| i64::from(other.truthy())),
        }
    }
}
