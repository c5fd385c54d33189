//! `brine:host/process`: programs of this host, without a shell in between, ended with the job that started them.
//!
//! - `request.rs` what is asked, within bounds and within the grant · `account.rs` who it runs as · `program.rs` which file
//! - `run.rs`     from start to end · `group.rs` ending all that it started · `output.rs` what it writes
//!
//! What a program is told goes to nobody's log, since arguments, variables and input hold passwords: the log has who ran which
//! file with how many arguments.

mod account;
mod group;
mod output;
mod program;
mod request;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use brine_protocol::value::{Value, map};
use brine_sandbox::{Caller, HostError, Names, ProcessOp};
use tokio::sync::Semaphore;
use tracing::info;

use request::Request;

/// Programs at once. More than the jobs a minion runs at once unless its owner says otherwise (16, or 4 a core); each is a
/// process, a thread that waits for it, and up to two times the output that is kept.
const MAX_PROGRAMS: usize = 64;
/// Names and paths of `which` and `shell`: what the kernel takes.
const MAX_PATH: usize = 4_096;

/// Runs programs for modules.
pub(super) struct Processes {
    places: Arc<Semaphore>,
    most: usize,
}

impl Processes {
    pub(super) fn new() -> Self {
        Self::at_most(MAX_PROGRAMS)
    }

    fn at_most(most: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(most)), most }
    }

    pub(super) async fn answer(&self, caller: &Caller, op: ProcessOp) -> Result<Value, HostError> {
        let grant = caller.grants.process.clone();
        match op {
            ProcessOp::Run(asked) => {
                let request = Request::read(*asked, &caller.grants)?;
                let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
                    HostError::Failed(format!("{} programs of jobs run on this minion; try again later", self.most))
                })?;
                info!(
                    jid = caller.job.jid,
                    function = caller.job.function,
                    module = caller.module.as_str(),
                    user = request.user.as_deref().unwrap_or_default(),
                    "runs {} with {} arguments",
                    brine_protocol::logging::one_line(&request.program),
                    request.args.len()
                );
                run::run(request, place).await
            }
            ProcessOp::Which { name } => blocking(move || program::which(&grant.programs, &name)).await,
            ProcessOp::Shell { path } => blocking(move || program::shell(&grant.programs, path.as_deref())).await,
        }
    }
}

/// Looks at files where that may take its time.
async fn blocking(look: impl FnOnce() -> Option<String> + Send + 'static) -> Result<Value, HostError> {
    match tokio::task::spawn_blocking(look).await {
        Ok(found) => Ok(found.map_or(Value::Nil, Value::from)),
        Err(_) => Err(HostError::Failed("the minion failed".to_owned())),
    }
}
