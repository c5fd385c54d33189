//! `salt.*`: runs functions of modules on minions or on the master's own host.

pub(super) mod on_master;

use brine_protocol::value::{Value, ValueExt, map};

use super::ask::{self, Question, TIMEOUT_MAX_SECONDS};
use super::function::{Function, Outcome, Run, functions};

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Runs a function of a standard module on the master's host, in a sandbox to which nothing is granted: no files,
    /// no programs, no network; test, grains, config, sys and what computes.
    "salt.cmd(fun, *args, **kwargs)" => on_master::cmd,
    /// Runs a function on minions, and returns what they returned.
    "salt.execute(tgt, fun, arg=(), timeout=None, tgt_type='glob', ret='', jid='', kwarg=None, **kwargs)" => execute,
};

async fn execute(run: Run) -> Outcome {
    if run.is("ret") || run.is("jid") {
        return Err(
            run.wrong("ret and jid are not taken: a job has a jid of its own, and its returns go to the job store")
        );
    }
    let kwargs = run.get("kwarg").and_then(ValueExt::entries).unwrap_or_default();
    let question = Question {
        tgt: run.get("tgt").cloned().ok_or_else(|| run.wrong("tgt must be a target"))?,
        tgt_type: run.text("tgt_type"),
        fun: run.find_text("fun").ok_or_else(|| run.wrong("fun must be a function"))?,
        args: run.get("arg").and_then(ValueExt::list).unwrap_or_default().to_vec(),
        kwargs: kwargs.iter().filter_map(|(name, value)| Some((name.text()?.to_owned(), value.clone()))).collect(),
        timeout: run.seconds("timeout", TIMEOUT_MAX_SECONDS)?,
        gather: None,
    };
    let answers = ask::minions(&run.parts, question).await?;
    Ok(map(answers.results().map(|(id, result)| (id, result.clone())).collect::<Vec<(&str, Value)>>()))
}
