//! `brine:host/process`: runs programs of this host, without a shell in between, and ends them with the job that
//! started them.
//!
//! - `request.rs` checks a request against the bounds and the grant · `account.rs` the user · `program.rs` the file
//! - `probe.rs` programs that are to look and are kept from changing anything
//! - `run.rs` runs a program · `group.rs` ends it · `cgroup.rs` its control group · `output.rs` its output
//!
//! All descendants of a program end with the program: when its job ends, when its time is over, and when it ends by
//! itself. There is one exception: if the grant says `detach: true` and the program ended with 0, descendants in a
//! session of their own stay, as the daemon of a service script does. The program's supervisor (`brine_spawn`) ensures
//! this even if the minion is killed.
//!
//! Arguments, variables and input may hold passwords, so they are not logged. The log names the user, the file and the
//! number of arguments.

mod account;
mod cgroup;
mod group;
mod output;
mod probe;
mod program;
mod request;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use brine_egress::Shares;
use brine_protocol::value::Value;
use brine_sandbox::{Caller, HostError, ProcessOp};
use tracing::info;

use super::slow::Slow;
use super::{MinionBroker, Perform};
use cgroup::Groups;
use request::Request;

/// Upper bound on programs at once; a module has three quarters of it at most. It is larger than the default bound on jobs (16, or 4 for each core). Each program
/// takes a process, a waiting thread, and up to twice the bytes of output that are kept.
const MAX_PROGRAMS: usize = 64;
/// Upper bound on `which` and `shell` requests at once.
const MAX_LOOKS: usize = 16;
/// The time for one such request: the file may lie on a file system that hangs.
const LOOK: Duration = Duration::from_secs(5);

impl Perform<ProcessOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: ProcessOp) -> Result<Value, HostError> {
        self.processes.answer(caller, op).await
    }
}

/// Runs programs for modules.
pub(super) struct Processes {
    places: Shares,
    most: usize,
    looks: Slow,
    groups: Arc<Groups>,
}

impl Processes {
    pub(super) fn new() -> Self {
        Self::at_most(MAX_PROGRAMS)
    }

    fn at_most(most: usize) -> Self {
        Self { places: Shares::new(most), most, looks: Slow::new(MAX_LOOKS, LOOK), groups: Arc::default() }
    }

    pub(super) async fn answer(&self, caller: &Caller, op: ProcessOp) -> Result<Value, HostError> {
        let found = match op {
            // The sandbox lets none come here in plan mode; this check shares no code with that one.
            ProcessOp::Run(asked) if caller.plans() => {
                return Err(HostError::Planned(format!("would run: {}", asked.argv.join(" "))));
            }
            ProcessOp::Look(_) if !caller.plans() => {
                return Err(HostError::Denied("a look is for a job with test=True".to_owned()));
            }
            ProcessOp::Run(asked) => {
                return self.run(caller, Request::read(*asked, &caller.grants)?).await;
            }
            ProcessOp::Look(asked) => {
                let mut request = Request::read(*asked, &caller.grants)?;
                // What looks leaves no daemon, whatever the grant says of changes.
                request.detach = false;
                return self.run(caller, request).await;
            }
            ProcessOp::Probe(asked) => {
                let mut request = Request::read(*asked, &caller.grants)?;
                if caller.plans()
                    && let Some(unable) = probe::prepare(&mut request)?
                {
                    return Ok(unable);
                }
                return self.run(caller, request).await;
            }
            ProcessOp::Which { name } => {
                let programs = caller.grants.process.all_programs();
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
        let Some(place) = self.places.try_take(caller.module.as_str()) else {
            let most = self.most;
            return Err(HostError::Failed(format!(
                "busy: {most} programs of jobs run on this minion, or three quarters of that many of this module; try again later"
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
