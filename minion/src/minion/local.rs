//! Calls without a master.

use std::sync::Arc;

use brine_protocol::job::FunCall;
use brine_protocol::value::Value;
use brine_sandbox::{Broker, Sandbox};

use super::base::Base;
use super::error::MinionError;
use super::sandbox::MakeSandbox;
use crate::accounts;
use crate::config::MinionOpts;
use crate::jobs::{Called, local_job};
use crate::pillar::PillarStore;

/// A minion without a master, as in `salt-call --local`: for `salt-module run` and for tests of hostile modules.
pub struct Local {
    base: Base,
}

impl Local {
    /// Gets everything ready.
    ///
    /// # Errors
    /// When a folder, a setting or the sandbox cannot be used.
    pub async fn prepare(opts: MinionOpts, make_sandbox: MakeSandbox) -> Result<Self, MinionError> {
        Ok(Self { base: Base::prepare(opts, false, false, make_sandbox).await? })
    }

    /// The sandbox of this minion.
    pub fn sandbox(&self) -> &Arc<Sandbox> {
        &self.base.sandbox
    }

    /// What performs the requests of modules, and is told what was refused.
    pub fn broker(&self) -> Arc<dyn Broker> {
        let broker: Arc<dyn Broker> = self.base.broker.clone();
        broker
    }

    /// Calls a function as `salt-call` does, with the arguments of a job. Whatever goes wrong is an outcome.
    pub async fn call(&self, fun: &str, arg: Vec<Value>) -> Called {
        let call = FunCall { fun: fun.to_owned(), arg };
        self.base.jobs.call(local_job(&accounts::own_name(), call, Vec::new()), None, true).await
    }

    /// The pillar, which a master would have sent.
    pub fn pillar(&self) -> &PillarStore {
        &self.base.pillar
    }
}
