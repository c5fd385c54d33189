//! `brine:host/process`: programs of this host, without a shell in between, ended with the job that started them.
//!
//! - `request.rs` what is asked, within bounds and within the grant · `account.rs` who it runs as · `program.rs` which file
//! - `run.rs`     from start to end · `group.rs` ending it · `cgroup.rs` its control group · `output.rs` what it writes
//!
//! All that a program started ends with it: when its job ends, when its time is over, and when it ends by itself. Only where the
//! grant says `detach: true`, and the program ended with 0, does what made itself a session of its own stay, as a daemon does that
//! a service's script starts. A program's supervisor (`brine_spawn`) sees to that, also when the minion is killed.
//!
//! What a program is told goes to nobody's log, since arguments, variables and input hold passwords: the log has who ran which
//! file with how many arguments.

mod account;
mod cgroup;
mod group;
mod output;
mod program;
mod request;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use brine_protocol::value::Value;
use brine_sandbox::{Caller, HostError, ProcessOp};
use tokio::sync::Semaphore;
use tracing::info;

use super::slow::Slow;
use super::{MinionBroker, Perform};
use cgroup::Groups;
use request::Request;

/// Programs at once. More than the jobs a minion runs at once unless its owner says otherwise (16, or 4 a core); each is a
/// process, a thread that waits for it, and up to two times the output that is kept.
const MAX_PROGRAMS: usize = 64;
/// `which` and `shell` at once, and how long one may take: programs may lie on a file system that hangs.
const MAX_LOOKS: usize = 16;
const LOOK: Duration = Duration::from_secs(5);

impl Perform<ProcessOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: ProcessOp) -> Result<Value, HostError> {
        self.processes.answer(caller, op).await
    }
}

/// Runs programs for modules.
pub(super) struct Processes {
    places: Arc<Semaphore>,
    most: usize,
    looks: Slow,
    groups: Arc<Groups>,
}

impl Processes {
    pub(super) fn new() -> Self {
        Self::at_most(MAX_PROGRAMS)
    }

    fn at_most(most: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(most)), most, looks: Slow::new(MAX_LOOKS, LOOK), groups: Arc::default() }
    }

    pub(super) async fn answer(&self, caller: &Caller, op: ProcessOp) -> Result<Value, HostError> {
        let found = match op {
            ProcessOp::Run(asked) => return self.run(caller, Request::read(*asked, &caller.grants)?).await,
            ProcessOp::Which { name } => {
                let programs = caller.grants.process.programs.clone();
                self.looks.ask("looking for a program", move || program::which(&programs, &name)).await?
            }
            ProcessOp::Shell { path } => {
                let grant = caller.grants.process.clone();
                self.looks.ask("looking for a shell", move || program::shell(&grant, path.as_deref())).await?
            }
        };
        Ok(found.map_or(Value::Nil, Value::from))
    }

    async fn run(&self, caller: &Caller, request: Request) -> Result<Value, HostError> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let most = self.most;
            return Err(HostError::Failed(format!(
                "busy: {most} programs of jobs run on this minion; try again later"
            )));
        };
        info!(
            jid = caller.job.jid,
            function = caller.job.function,
            module = caller.module.as_str(),
            user = request.user.as_deref().map(tracing::field::debug),
            "runs {:?} with {} arguments",
            request.program,
            request.args.len()
        );
        run::run(request, place, Arc::clone(&self.groups)).await
    }
}
