//! Making a master's parts and putting them together, in the order in which a failure costs least.

use std::sync::Arc;

use arc_swap::ArcSwap;
use brine_daemon::profile::Timings;
use brine_daemon::user;
use brine_zmtp::Publisher;
use tokio_util::sync::CancellationToken;

use super::StartError;
use super::master::Master;
use crate::access::Access;
use crate::admission::Admission;
use crate::audit::{self, Audit};
use crate::auth::{Authenticator, Gate};
use crate::bus::{Bus, Subscription};
use crate::config::MasterOpts;
use crate::dispatch::Dispatcher;
use crate::event_return;
use crate::fileserver::FileServer;
use crate::jobs::{JobCache, PythonJobFiles, ReturnerName};
use crate::key_removal::KeyRemoval;
use crate::keys::{MasterKey, MinionKeys};
use crate::lanes::Lanes;
use crate::live_settings::{LiveSettings, SharedSettings};
use crate::maintenance::Maintenance;
use crate::mine::Mine;
use crate::minion_data::MinionData;
use crate::minion_events::MinionEvents;
use crate::peer::{self, Peer, PeerRules};
use crate::presence::{self, Presence};
use crate::private_ops::PrivatePool;
use crate::publisher::{CurrentKey, PublisherHandle};
use crate::refusals::Refusals;
use crate::requests::{Auths, Handlers, Pillars};
use crate::returns::Returns;
use crate::runners::{self, Runners};
use crate::sessions::Sessions;
use crate::targets::Targets;
use crate::throttle::Throttle;

/// The events that each returner of `event_return` is to keep.
type KeptEvents = Vec<(ReturnerName, Subscription)>;

/// What only reads settings: their mistakes come before anything is made.
pub(super) struct Configured {
    files: FileServer,
    mine: Mine,
    peer: PeerRules,
}

impl Configured {
    pub(super) fn read(opts: &MasterOpts) -> Result<Self, StartError> {
        let files = FileServer::new(&opts.files, &opts.cachedir).map_err(StartError::Settings)?;
        let mine = Mine::new(&opts.cachedir, opts.minion_data_cache, opts.mine_get.as_ref(), &opts.nodegroups);
        let peer = PeerRules::read(opts).map_err(StartError::Settings)?;
        Ok(Self { files, mine: mine.map_err(StartError::Settings)?, peer })
    }
}

/// What opens or makes files.
pub(super) struct Opened {
    /// The key that signs the master's key (`master_sign_pubkey`).
    sign_key: Option<MasterKey>,
    keys: Arc<MinionKeys>,
    access: Arc<Access>,
    sessions: Arc<Sessions>,
    jobs: Arc<JobCache>,
    bus: Bus,
    audit: Arc<Audit>,
    private: PrivatePool,
    publish_key: CurrentKey,
}

impl Opened {
    pub(super) async fn open(opts: &Arc<MasterOpts>) -> Result<Self, StartError> {
        let failed = |what| {
            let path = opts.cachedir.clone();
            move |why| StartError::Cache { what, path, why }
        };
        let of_key = Arc::clone(opts);
        let open = move || MasterKey::open(&of_key.pki_dir, "master", Some(&of_key.id), of_key.keysize);
        let key = tokio::task::spawn_blocking(open).await.map_err(StartError::KeyTask)??;
        let sign_key = match opts.master_sign_pubkey {
            true => Some(MasterKey::open(&opts.pki_dir, &opts.master_sign_key_name, None, opts.keysize)?),
            false => None,
        };
        let keys = Arc::new(MinionKeys::open(&opts.pki_dir)?);
        let users = ["root".to_owned(), opts.user.clone(), user::current()];
        let access = Access::open(opts.access.clone(), &opts.cachedir, &users).map_err(failed("the local keys"))?;
        let sessions = Sessions::open(opts.cachedir.join("sessions"), opts.publish_session);
        let sessions = sessions.map_err(failed("the session keys"))?;
        let private = PrivatePool::new(Arc::clone(key.ops()));
        let publish_key = CurrentKey::new(private.clone()).await?;
        let jobs = JobCache::open(&opts.cachedir.join("jobs.db"), &opts.job_cache)?;
        let bus = Bus::new(opts.event_framing, opts.max_event_size);
        let audit = Audit::open(opts.audit.clone(), bus.clone()).map_err(|why| StartError::Cache {
            what: "the audit log (audit_log)",
            path: opts.audit.path.clone().unwrap_or_default(),
            why,
        })?;
        Ok(Self {
            sign_key,
            keys,
            access: Arc::new(access),
            sessions: Arc::new(sessions),
            jobs: Arc::new(jobs),
            bus,
            audit: Arc::new(audit),
            private,
            publish_key,
        })
    }

    /// Opens the event bus to programs, when those who keep its events listen already.
    pub(super) fn listen(&self, opts: &MasterOpts) -> Result<KeptEvents, StartError> {
        let kept = event_return::subscribe(&opts.event_return, &self.bus);
        self.bus.listen(&opts.sock_dir)?;
        Ok(kept)
    }
}

/// Puts a master together whose minions listen to `port`.
pub(super) fn assemble(
    opts: Arc<MasterOpts>,
    configured: Configured,
    opened: Opened,
    publisher: Publisher,
    port: u16,
) -> Result<Master, StartError> {
    let bus = opened.bus.clone();
    let refusals = Arc::new(Refusals::new(bus.clone()));
    let auth = authenticator(&opts, &opened, &refusals, port);
    let Opened { keys, access, sessions, jobs, audit, private, publish_key, .. } = opened;
    let live: SharedSettings = Arc::new(ArcSwap::from_pointee(LiveSettings::new(&opts)));
    let (files, mine) = (Arc::new(configured.files), Arc::new(configured.mine));
    let python_jobs = PythonJobFiles::new(opts.cachedir.join("jobs"), opts.files.hash_type, opts.python_job_files);
    let throttle = Arc::new(Throttle::new(Arc::clone(&live), Arc::clone(&refusals), bus.clone()));
    let data = Arc::new(MinionData::new(&opts.cachedir));
    let presence = Presence { keys: keys.clone(), data: data.clone(), cachedir: opts.cachedir.clone(), port };
    let presence = Arc::new(presence);
    let has_data = opts.minion_data_cache;
    let targets = Arc::new(Targets { keys: keys.clone(), data, live: live.clone(), has_data });
    let (alg, key) = (opts.publish_signing_algorithm, publish_key.clone());
    let publisher = PublisherHandle::start(publisher, key, private.clone(), alg).map_err(StartError::Thread)?;
    let dispatcher = Arc::new(Dispatcher {
        targets: targets.clone(),
        access: access.clone(),
        audit: audit.clone(),
        jobs: jobs.clone(),
        publisher,
        bus: bus.clone(),
        refusals: refusals.clone(),
        python_files: (opts.job_cache.keep && python_jobs.on()).then(|| python_jobs.clone()),
        filters: opts.zmq_filtering,
    });
    let returns = Arc::new(Returns {
        jobs: jobs.clone(),
        throttle: throttle.clone(),
        bus: bus.clone(),
        refusals: refusals.clone(),
        bytes_max: opts.max_return_size,
        must_be_signed: opts.require_signed_returns,
        refuses_bad_signatures: opts.refuse_badly_signed_returns,
    });
    let key_removal = Arc::new(KeyRemoval::new(sessions.clone(), bus.clone(), opts.rotate_aes_key));
    let parts = runners::Parts {
        opts: opts.clone(),
        live: live.clone(),
        dispatcher: dispatcher.clone(),
        jobs: jobs.clone(),
        keys: keys.clone(),
        key_removal: key_removal.clone(),
        presence: presence.clone(),
        files: files.clone(),
        mine: mine.clone(),
        private: private.clone(),
        bus: bus.clone(),
        runs: runners::Runs::default(),
    };
    let (of_run, of_refusal) = (audit.clone(), refusals.clone());
    let runners = Runners { parts: parts.into(), returns: returns.clone(), audit: of_run, refusals: of_refusal };
    let peer = Arc::new(Peer {
        rules: ArcSwap::from_pointee(configured.peer),
        targets,
        dispatcher: dispatcher.clone(),
        runners: runners.clone(),
        jobs: jobs.clone(),
        audit: audit.clone(),
        refusals: refusals.clone(),
        user: opts.user.clone(),
        turns: peer::Turns::default(),
    });
    let maintenance = Maintenance {
        opts: opts.clone(),
        live: live.clone(),
        access: access.clone(),
        keys: keys.clone(),
        key_removal: key_removal.clone(),
        publish_key,
        sessions: sessions.clone(),
        dispatcher: dispatcher.clone(),
        jobs: jobs.clone(),
        python_jobs,
        files: files.clone(),
        mine: mine.clone(),
        peer: peer.clone(),
        presence: presence.clone(),
        throttle: throttle.clone(),
        refusals: refusals.clone(),
        bus: bus.clone(),
    };
    let timings = Arc::new(Timings::default());
    let pillars = Pillars {
        keeps_data: opts.minion_data_cache,
        tells_refresh: opts.minion_data_cache_events,
        cachedir: opts.cachedir.clone(),
        private: private.clone(),
        throttle: throttle.clone(),
        refusals: refusals.clone(),
        bus: bus.clone(),
    };
    let handlers = Handlers {
        opts: opts.clone(),
        live,
        keys,
        key_removal,
        sessions,
        auths: Arc::new(Auths::new(auth, refusals.clone(), timings.clone())),
        admission: Admission { access, audit: audit.clone(), refusals: refusals.clone(), bus: bus.clone() },
        dispatcher,
        returns,
        events: MinionEvents { throttle: throttle.clone(), bus: bus.clone(), refusals: refusals.clone() },
        pillars,
        runners,
        peer,
        files,
        mine,
        refusals,
        throttle,
        lanes: Lanes::default(),
        timings,
    };
    let (handlers, maintenance) = (Arc::new(handlers), Arc::new(maintenance));
    Ok(Master { opts, handlers, maintenance, audit, presence, jobs, private, bus })
}

fn authenticator(opts: &MasterOpts, opened: &Opened, refusals: &Arc<Refusals>, publish_port: u16) -> Authenticator {
    let Opened { sign_key, keys, sessions, audit, private, publish_key, bus, .. } = opened;
    Authenticator {
        gate: Arc::new(Gate::new(opts.auth.clone(), keys.clone())),
        keys: keys.clone(),
        sessions: sessions.clone(),
        private: private.clone(),
        sign_key: sign_key.clone(),
        publish_key: publish_key.clone(),
        publish_port,
        audit: audit.clone(),
        refusals: refusals.clone(),
        bus: bus.clone(),
        opts: opts.auth.clone(),
    }
}

/// What goes on besides answering, until `stop`.
pub(super) fn maintain(
    master: &Master,
    kept_events: KeptEvents,
    stop: CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let Master { opts, maintenance, audit, presence, jobs, bus, .. } = master;
    let (presence, bus) = (opts.presence_events.then(|| presence.clone()), bus.clone());
    let every = opts.loop_interval;
    let keep_events =
        event_return::run(jobs.clone(), opts.event_return.clone(), opts.id.clone(), kept_events, stop.clone());
    let (maintain, watch) = (maintenance.clone().run(stop.clone()), audit::watch_keys(audit.clone(), stop.clone()));
    async move {
        let tell_presence = async {
            if let Some(presence) = presence {
                presence::tell(&presence, &bus, every, stop).await;
            }
        };
        tokio::join!(maintain, watch, tell_presence, keep_events);
    }
}
