//! Jobs that the reactor publishes.

use std::sync::Arc;

use brine_client::Published;
use brine_protocol::args::condition_input;
use brine_protocol::value::{Value, ValueExt as _, map};

use super::ask;
use super::service::Runners;
use crate::access::Principal;
use crate::cause;

/// A job of a reaction.
#[derive(Debug)]
pub(crate) struct ReactorJob {
    pub(crate) tgt: Value,
    pub(crate) tgt_type: String,
    pub(crate) fun: String,
    pub(crate) args: Vec<Value>,
    pub(crate) kwargs: Vec<(String, Value)>,
    /// Returners, separated by commas.
    pub(crate) ret: String,
    /// `metadata` and the like: `kwargs` of the request. A map.
    pub(crate) options: Value,
}

impl Runners {
    /// Publishes a job of the reactor by the way of all callers. Returns whether it reaches a minion; waits for none.
    ///
    /// # Errors
    /// The reactor may not, or the master cannot: a sentence.
    pub(crate) async fn publish_for_reactor(&self, job: &ReactorJob, by: &Principal) -> Result<bool, String> {
        let (tgt, tgt_type) =
            ask::without_groups(&self.parts, &job.tgt, &job.tgt_type).map_err(|failure| failure.0.python_str())?;
        let mut load = map([
            ("cmd", Value::from("publish")),
            ("tgt", tgt),
            ("fun", job.fun.as_str().into()),
            ("arg", Value::Array(condition_input(job.args.clone(), job.kwargs.clone()))),
            ("tgt_type", tgt_type.into()),
            ("ret", job.ret.as_str().into()),
            ("jid", "".into()),
            ("user", by.name().into()),
            // Only Python's clients read a job back from files.
            ("python_job_files", false.into()),
        ]);
        if job.options.truthy() {
            load.insert("kwargs", job.options.clone());
        }
        let chain = match by {
            Principal::Reactor(reaction) => Arc::clone(reaction.chain()),
            _ => Arc::default(),
        };
        let answer = cause::within(chain, self.parts.dispatcher.answer(load, by)).await;
        let answer = answer.map_err(|fault| fault.to_string())?;
        match answer.get("error") {
            None => Ok(Published::from_reply(&answer).is_ok()),
            Some(error) => Err(error.get_text("message").map_or_else(|| error.python_str(), str::to_owned)),
        }
    }
}
