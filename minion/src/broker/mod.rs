//! The broker performs the operations that modules request from this host. Each interface of `wit/` has one file.
//!
//! The sandbox has checked the module's grant when a call arrives here. Every argument still comes from a guest, so it
//! is checked again before it is used.

mod beacons;
mod changes;
mod config;
mod disks;
mod events;
mod files;
mod functions;
mod grains;
mod jobs;
mod kernel;
mod mine;
mod modules;
mod network;
mod pillar;
mod policy;
mod process;
mod progress;
mod publish;
mod receipts;
mod schedule;
mod slow;
mod states;
mod static_grains;
mod users;
mod watches;

use std::sync::{Arc, OnceLock, Weak};

use brine_egress::{Http, Resolver, SystemResolver};
use brine_protocol::value::Value;
use brine_sandbox::{Broker, Caller, HostError, HostOp, JobContext, LogLevel, RefusedCall, Sandbox};
use futures_util::future::BoxFuture;
use tracing::{Level, debug, enabled, error, info, trace, warn};

use crate::beacons::Beacons;
use crate::config::MinionOpts;
use crate::connection::Masters;
use crate::fileclient::FileClient;
use crate::grains::GrainsStore;
use crate::jobs::ProcDir;
use crate::modules::Modules;
use crate::owner::Refusals;
use crate::pillar::PillarStore;
use crate::pillar::Refresh;
use crate::schedule::Schedule;
use crate::states::Runs;
use changes::Changes;
use disks::Disks;
use events::Teller;
use files::Files;
use process::Processes;
use users::Users;
use watches::Watches;

/// Upper bound on the bytes of a key.
const MAX_KEY_BYTES: usize = 4096;

/// The parts of the minion that the broker reads.
pub(crate) struct Sources {
    pub(crate) opts: Arc<MinionOpts>,
    pub(crate) grains: Arc<GrainsStore>,
    pub(crate) pillar: Arc<PillarStore>,
    pub(crate) procs: Arc<ProcDir>,
    pub(crate) modules: Arc<Modules>,
    pub(crate) refresh: Arc<Refresh>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) beacons: Arc<Beacons>,
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) masters: Masters,
    /// The files of the master, or this host's own where there is none.
    pub(crate) files: FileClient,
}

/// The broker of this minion.
pub struct MinionBroker {
    opts: Arc<MinionOpts>,
    grains: Arc<GrainsStore>,
    pillar: Arc<PillarStore>,
    procs: Arc<ProcDir>,
    modules: Arc<Modules>,
    refresh: Arc<Refresh>,
    runs: Arc<Runs>,
    beacons: Arc<Beacons>,
    schedule: Arc<Schedule>,
    refusals: Arc<Refusals>,
    files: Files,
    changes: Changes,
    teller: Teller,
    masters: Masters,
    resolver: Arc<dyn Resolver>,
    http: Http,
    processes: Processes,
    disks: Disks,
    process_names: Arc<kernel::Names>,
    users: Users,
    watches: Watches,
    sandbox: OnceLock<Weak<Sandbox>>,
}

impl MinionBroker {
    /// Makes the broker.
    pub(crate) fn new(sources: Sources) -> Arc<Self> {
        let Sources {
            opts,
            grains,
            pillar,
            procs,
            modules,
            refresh,
            runs,
            schedule,
            beacons,
            refusals,
            masters,
            files,
        } = sources;
        let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver::default());
        Arc::new(Self {
            changes: Changes::new(&opts),
            files: Files::new(files, &opts.cachedir),
            teller: Teller::new(masters.clone()),
            masters,
            http: Http::new(Arc::clone(&resolver)),
            opts,
            grains,
            pillar,
            procs,
            modules,
            refresh,
            runs,
            beacons,
            schedule,
            refusals,
            resolver,
            processes: Processes::new(),
            disks: Disks::new(),
            process_names: Arc::default(),
            users: Users::new(),
            watches: Watches::new(),
            sandbox: OnceLock::new(),
        })
    }

    /// Sets the sandbox whose requests the broker performs. Called once, after the sandbox has started.
    pub fn attach(&self, sandbox: &Arc<Sandbox>) {
        let _ = self.sandbox.set(Arc::downgrade(sandbox));
    }

    fn sandbox(&self) -> Result<Arc<Sandbox>, HostError> {
        let sandbox = self.sandbox.get().and_then(Weak::upgrade);
        sandbox.ok_or_else(|| HostError::Failed("the sandbox is ending".to_owned()))
    }
}

/// Performs the operations of one interface.
trait Perform<Op> {
    async fn perform(&self, caller: &Caller, op: Op) -> Result<Value, HostError>;
}

macro_rules! dispatch {
    ($($capability:ident in $module:ident: $($op:ident($type:ident)),+;)+) => {
        impl MinionBroker {
            async fn dispatch(&self, caller: &Caller, op: HostOp) -> Result<Value, HostError> {
                match op { $($(HostOp::$op(op) => self.perform(caller, op).await,)+)+ }
            }
        }
    };
}

brine_sandbox::each_capability!(dispatch);

impl Broker for MinionBroker {
    fn refused(&self, refused: &RefusedCall<'_>) {
        self.refusals.note(refused);
    }

    fn secrets(&self, job: &JobContext) -> Vec<Value> {
        let of_run = self.runs.pillar(job);
        of_run.iter().map(|pillar| Value::clone(pillar)).chain([Value::clone(&self.pillar.now())]).collect()
    }

    fn host_call<'a>(&'a self, caller: &'a Caller, op: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        Box::pin(self.dispatch(caller, op))
    }

    fn log(&self, job: &JobContext, level: LogLevel, message: &str) {
        let (jid, function) = (&job.jid, &job.function);
        // Lines that the log does not have cost nothing.
        if is_logged(level)
            && let Some((beacon, turn)) = self.beacons.count_line(jid, message)
        {
            if turn.unsaid > 0 {
                warn!("{} lines of beacon {beacon} were left out", turn.unsaid);
            }
            if !turn.say {
                return;
            }
        }
        match level {
            LogLevel::Trace => trace!(jid, function, "module: {message}"),
            LogLevel::Debug => debug!(jid, function, "module: {message}"),
            LogLevel::Info => info!(jid, function, "module: {message}"),
            LogLevel::Warning => warn!(jid, function, "module: {message}"),
            LogLevel::Error => error!(jid, function, "module: {message}"),
        }
    }
}

fn is_logged(level: LogLevel) -> bool {
    match level {
        LogLevel::Trace => enabled!(Level::TRACE),
        LogLevel::Debug => enabled!(Level::DEBUG),
        LogLevel::Info => enabled!(Level::INFO),
        LogLevel::Warning => enabled!(Level::WARN),
        LogLevel::Error => enabled!(Level::ERROR),
    }
}

fn checked_key(key: &str) -> Result<&str, HostError> {
    if key.len() > MAX_KEY_BYTES {
        return Err(HostError::Denied(format!("a key of {} bytes names nothing", key.len())));
    }
    Ok(key)
}
