//! The trait through which everything outside an instance happens, and the one check before it.
//!
//! An executor is what an escaped guest would speak through, so nothing that it says about itself is believed: which job a
//! call belongs to and what its module was granted is what the minion wrote down when it started the job.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_sandbox_wire::{ConfigOp, GrainsOp, HostError, HostOp, JobContext, JobsOp, LogLevel, ModulesOp, Sha256Hex};
use futures_util::future::BoxFuture;
use rmpv::Value;

use crate::ModuleName;
use crate::grants::Grants;

/// Who asks: what the minion wrote down when it started the call.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The job.
    pub job: Arc<JobContext>,
    /// The module whose instance it is.
    pub module: ModuleName,
    /// Its content.
    pub sha256: Sha256Hex,
    /// What its function was granted.
    pub grants: Arc<Grants>,
    /// When the call's wall clock is over.
    pub ends: Instant,
    /// The functions from the job's own to this one, each called by the one before it.
    pub chain: Arc<[String]>,
}

impl Caller {
    /// A job's own first call, which has so long.
    pub fn new(
        job: Arc<JobContext>,
        module: ModuleName,
        sha256: Sha256Hex,
        grants: Arc<Grants>,
        left: Duration,
    ) -> Self {
        let chain = Arc::from([job.function.clone()]);
        Self { job, module, sha256, grants, ends: Instant::now() + left, chain }
    }
}

/// What the minion does for modules. Calls arrive here only after [`check`] allowed them.
pub trait Broker: Send + Sync + 'static {
    /// Answers one call of a running instance. Dropped when the job ends: what it started has to end then too.
    fn host_call<'a>(&'a self, caller: &'a Caller, op: HostOp) -> BoxFuture<'a, Result<Value, HostError>>;

    /// One line that a module logs: no control characters, and within the job's budget.
    fn log(&self, job: &JobContext, level: LogLevel, message: &str);
}

/// Bytes of a key of grains or configuration. Nested keys of real hosts are below 200.
const MAX_KEY: usize = 1_024;
/// Bytes of a delimiter between parts of a key.
const MAX_DELIMITER: usize = 16;
/// Bytes of a name: of a module, an environment, a job.
const MAX_NAME: usize = 64;
/// Environments in one call.
const MAX_ENVIRONMENTS: usize = 32;

/// The one check of a call from a guest: against its module's grant, and against the bounds of what it passes.
pub(crate) fn check(grants: &Grants, op: &HostOp) -> Result<(), HostError> {
    let interface = op.interface();
    if !grants.allows(interface) {
        return Err(HostError::Denied(format!("{interface} was not granted to this module")));
    }
    let fits = match op {
        HostOp::Grains(GrainsOp::Items) | HostOp::Modules(ModulesOp::Names) | HostOp::Jobs(JobsOp::Running) => true,
        HostOp::Grains(GrainsOp::Get { key, delimiter }) => {
            key.len() <= MAX_KEY && delimiter.as_ref().is_none_or(|delimiter| delimiter.len() <= MAX_DELIMITER)
        }
        HostOp::Config(ConfigOp::Get { key }) => key.len() <= MAX_KEY,
        HostOp::Modules(ModulesOp::Describe { name }) => name.len() <= MAX_NAME,
        HostOp::Modules(ModulesOp::Sync { saltenv }) => saltenv.as_ref().is_none_or(|environments| {
            environments.len() <= MAX_ENVIRONMENTS
                && environments.iter().all(|environment| environment.len() <= MAX_NAME)
        }),
        HostOp::Jobs(JobsOp::Find { jid } | JobsOp::Kill { jid }) => jid.len() <= MAX_NAME,
        other => return Err(HostError::Denied(format!("{} is not there yet", other.interface()))),
    };
    if fits { Ok(()) } else { Err(HostError::Failed(format!("an argument of {interface} is too long"))) }
}

/// A line as it may go to the log: of one line, without what a terminal would obey.
pub(crate) fn printable(message: &str) -> String {
    message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn granted(imports: &[&str]) -> Grants {
        let imports: Vec<String> = imports.iter().map(ToString::to_string).collect();
        let hash = brine_sandbox_wire::Sha256Hex::from([0; 32]);
        Policy::default().decide(&"saltutil".parse().unwrap(), true, hash, &imports).unwrap()
    }

    fn each_op() -> Vec<HostOp> {
        vec![
            HostOp::Grains(GrainsOp::Items),
            HostOp::Grains(GrainsOp::Get { key: "os".into(), delimiter: None }),
            HostOp::Config(ConfigOp::Get { key: "id".into() }),
            HostOp::Modules(ModulesOp::Names),
            HostOp::Modules(ModulesOp::Describe { name: "test".into() }),
            HostOp::Modules(ModulesOp::Sync { saltenv: None }),
            HostOp::Jobs(JobsOp::Running),
            HostOp::Jobs(JobsOp::Find { jid: "1".into() }),
            HostOp::Jobs(JobsOp::Kill { jid: "1".into() }),
        ]
    }

    /// Each interface opens its own calls and no others; nothing is open without.
    #[test]
    fn grants_open_their_own_interface_only() {
        for op in each_op() {
            assert!(matches!(check(&Grants::default(), &op), Err(HostError::Denied(_))), "{op:?}");
            for interface in ["brine:host/grains", "brine:host/config", "brine:host/modules", "brine:host/jobs"] {
                let allowed = check(&granted(&[interface]), &op).is_ok();
                assert_eq!(allowed, op.interface() == interface, "{op:?} with {interface}");
            }
        }
    }

    #[test]
    fn arguments_are_bounded() {
        let all = granted(&["brine:host/grains", "brine:host/config", "brine:host/modules", "brine:host/jobs"]);
        let long = "x".repeat(MAX_KEY + 1);
        for op in [
            HostOp::Grains(GrainsOp::Get { key: long.clone(), delimiter: None }),
            HostOp::Grains(GrainsOp::Get { key: "a".into(), delimiter: Some(long.clone()) }),
            HostOp::Config(ConfigOp::Get { key: long.clone() }),
            HostOp::Modules(ModulesOp::Describe { name: long.clone() }),
            HostOp::Modules(ModulesOp::Sync { saltenv: Some(vec![long.clone()]) }),
            HostOp::Modules(ModulesOp::Sync { saltenv: Some(vec![String::new(); MAX_ENVIRONMENTS + 1]) }),
            HostOp::Jobs(JobsOp::Find { jid: long.clone() }),
            HostOp::Jobs(JobsOp::Kill { jid: long }),
        ] {
            assert!(matches!(check(&all, &op), Err(HostError::Failed(_))), "{op:?}");
        }
    }
}
