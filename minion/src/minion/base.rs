//! The common part of a minion and `salt-call`.

use std::path::PathBuf;
use std::sync::Arc;

use brine_sandbox::{Broker, Sandbox};
use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::error::MinionError;
use super::sandbox::{ComingBroker, MakeSandbox, sandbox_settings};
use crate::beacons::Beacons;
use crate::broker::{MinionBroker, Sources};
use crate::config::MinionOpts;
use crate::connection::{Channel, Masters};
use crate::events::Events;
use crate::filecache::MAX_FILE;
use crate::fileclient::{FileClient, OwnFiles};
use crate::grains::GrainsStore;
use crate::jobs::{CONTROL_SLOTS, JobLimits, JobParts, JobRunner, Jobs, ProcDir};
use crate::modules::Modules;
use crate::owner::Refusals;
use crate::owner::running::{self, Answering};
use crate::pillar::{OwnPillar, PillarStore, Refresh};
use crate::pki::Pki;
use crate::returners::Returners;
use crate::schedule::Schedule;
use crate::states::{Remembered, Runs};

/// The sandbox's bound on jobs at once, less the slots reserved for control jobs.
const MAX_SLOTS: usize = 1000;

/// The parts of a minion that `salt-call` has too.
pub(crate) struct Base {
    pub(crate) opts: Arc<MinionOpts>,
    pub(crate) grains: Arc<GrainsStore>,
    pub(crate) pillar: Arc<PillarStore>,
    pub(crate) refresh: Arc<Refresh>,
    pub(crate) procs: Arc<ProcDir>,
    pub(crate) modules: Arc<Modules>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) broker: Arc<MinionBroker>,
    pub(crate) masters: Masters,
    pub(crate) events: Arc<Events>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) beacons: Arc<Beacons>,
    pub(crate) schedule: Arc<Schedule>,
    /// Tells who looks what runs.
    _answering: Option<Answering>,
}

impl Base {
    /// Gets everything ready that needs no master. `with_master` is false for `salt-call --local`, `lasting`
    /// for each process that is not the daemon.
    pub(crate) async fn prepare(
        opts: MinionOpts,
        with_master: bool,
        lasting: bool,
        make_sandbox: MakeSandbox,
    ) -> Result<Self, MinionError> {
        let opts = Arc::new(opts);
        let settings = sandbox_settings(&opts)?;
        let folder = |path: PathBuf| move |source| MinionError::Folder { path, source };
        make_private(&opts.cachedir).map_err(folder(opts.cachedir.clone()))?;
        // Standard modules are compiled while a new minion makes its key.
        let slots = opts.jobs.running_max.unwrap_or(settings.max_running).clamp(1, MAX_SLOTS);
        let (give_broker, broker_given) = oneshot::channel();
        let coming: ComingBroker = async { broker_given.await.ok() }.boxed().shared();
        let mut making = JoinSet::new();
        making.spawn(make_sandbox(coming, slots + CONTROL_SLOTS));
        let proc_dir = opts.cachedir.join("proc");
        let procs = ProcDir::open(&proc_dir, lasting).map_err(folder(proc_dir))?;
        let runs_dir = opts.cachedir.join("states");
        let remembered = Remembered::new(&opts.cachedir);
        let runs = Runs::open(&runs_dir, remembered).map_err(folder(runs_dir))?;
        let grains = GrainsStore::without_facts(Arc::clone(&opts));
        // Beside the sign-in, which does not tell them.
        let collecting = Arc::clone(&grains);
        let collecting = tokio::task::spawn_blocking(move || collecting.begin());
        let channel = match with_master {
            false => None,
            true => {
                let (dir, size) = (opts.pki_dir.clone(), opts.auth.keysize);
                let pki = tokio::task::spawn_blocking(move || Pki::open(&dir, size)).await;
                let pki = pki.expect("making a key neither panics nor is cancelled")?;
                let channel = Channel::new(Arc::clone(&opts), pki, Arc::clone(&grains));
                if lasting {
                    channel.begin_sign_in();
                }
                Some(channel)
            }
        };
        collecting.await.expect("collecting grains neither panics nor is cancelled");
        let masters = Masters::new(channel);
        let client = with_master.then(|| FileClient::of_masters(&masters, settings.compile.module));
        let modules = Modules::new(client, &opts.modules, &opts.modules_dir());
        let pillar = PillarStore::new();
        let (files, own_pillar) = match with_master {
            true => (FileClient::of_masters(&masters, MAX_FILE), None),
            false => {
                let files = FileClient::of_host(OwnFiles::new(&opts.config)?, MAX_FILE);
                (files, Some(OwnPillar::new(&opts.config)?))
            }
        };
        let (of, known) = (masters.clone(), Arc::clone(&grains));
        let refresh = Refresh::new(Arc::clone(&opts), of, own_pillar, known, Arc::clone(&pillar));
        let beacons = Beacons::new(Arc::clone(&opts), Arc::clone(&pillar));
        let schedule = {
            let (opts, pillar, grains) = (Arc::clone(&opts), Arc::clone(&pillar), Arc::clone(&grains));
            // Only the daemon fires.
            let opened = tokio::task::spawn_blocking(move || Schedule::new(&opts, pillar, grains, lasting));
            opened.await.expect("reading the schedule neither panics nor is cancelled")
        };
        let refusals = Refusals::new(&opts.cachedir, settings.learn.clone(), settings.tell_refusals);
        let broker = MinionBroker::new(Sources {
            refusals: Arc::clone(&refusals),
            schedule: Arc::clone(&schedule),
            opts: Arc::clone(&opts),
            grains: Arc::clone(&grains),
            pillar: Arc::clone(&pillar),
            procs: Arc::clone(&procs),
            modules: Arc::clone(&modules),
            refresh: Arc::clone(&refresh),
            runs: Arc::clone(&runs),
            beacons: Arc::clone(&beacons),
            masters: masters.clone(),
            files,
        });
        let answers: Arc<dyn Broker> = broker.clone();
        let _ = give_broker.send(answers);
        let made = making.join_next().await.expect("it was started above");
        let (sandbox, functions) = made.unwrap_or_else(|ended| std::panic::resume_unwind(ended.into_panic()))?;
        modules.attach(&sandbox);
        refresh.attach(&sandbox);
        let events = Events::new(Arc::clone(&opts), masters.clone(), Arc::clone(&grains));
        if with_master {
            modules.attach_events(Arc::clone(&events));
        }
        if with_master && lasting {
            refusals.attach_events(Arc::clone(&events));
        }
        broker.attach(&sandbox);
        beacons.attach(&sandbox);
        let answering = running::answer(&procs, &sandbox);
        let (walls, of) = (sandbox.walls_summary(), Arc::clone(&grains));
        let _ = tokio::task::spawn_blocking(move || of.put_walls(walls)).await;
        let returners = Returners::new(Arc::clone(&opts), Arc::clone(&sandbox), Arc::clone(&modules));
        let jobs = Jobs::new(JobParts {
            opts: Arc::clone(&opts),
            runner: JobRunner {
                id: opts.id.clone(),
                sandbox: Arc::clone(&sandbox),
                functions,
                modules: Arc::clone(&modules),
                runs,
                test: opts.jobs.test,
                multifunc_ordered: opts.jobs.multifunc_ordered,
            },
            procs: Arc::clone(&procs),
            masters: masters.clone(),
            events: Arc::clone(&events),
            grains: Arc::clone(&grains),
            pillar: Arc::clone(&pillar),
            returners,
            limits: JobLimits {
                slots,
                owner_set_slots: opts.jobs.running_max.is_some(),
                max_waiting: settings.max_waiting,
                max_queued: settings.max_queued,
                seen_jids: opts.jobs.seen_jids,
            },
        });
        Ok(Self {
            opts,
            grains,
            pillar,
            refresh,
            procs,
            modules,
            sandbox,
            broker,
            masters,
            events,
            jobs,
            schedule,
            beacons,
            _answering: answering,
        })
    }
}

fn make_private(dir: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o750).create(dir)
}
