//! Makes a master's parts and connects them; cheap checks come first.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use brine_daemon::profile::Timings;
use brine_daemon::user;
use brine_protocol::keys::PrivateKey;
use brine_protocol::sealed::Vault;
use brine_receipts::Fingerprint;
use brine_tls::{Acceptor, Identity};
use brine_zmtp::Publisher;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::MasterStartError;
use super::master::Master;
use crate::access::Access;
use crate::admission::Admission;
use crate::audit::{self, Audit};
use crate::auth::{Authenticator, Gate};
use crate::bus::{Bus, Subscription};
use crate::chains::Chains;
use crate::config::MasterOpts;
use crate::dispatch::Dispatcher;
use crate::engines::Engines;
use crate::event_return;
use crate::fileserver::FileServer;
use crate::jobs::{JobCache, PythonJobFiles, ReturnerName};
use crate::key_removal::KeyRemoval;
use crate::keys::{KeyOpts, MasterKey, MinionKeys, NodeKeys};
use crate::lanes::Lanes;
use crate::live_settings::SharedSettings;
use crate::maintenance::Maintenance;
use crate::mine::Mine;
use crate::minion_data::MinionData;
use crate::minion_events::MinionEvents;
use crate::nodes::Remote;
use crate::peer::{self, Peer, PeerRules};
use crate::pillar::Pillars;
use crate::presence::{self, Presence};
use crate::private_ops::PrivatePool;
use crate::publisher::{CurrentKey, PublisherHandle, Signer};
use crate::queries::Queries;
use crate::reactor::Reactor;
use crate::refusals::Refusals;
use crate::requests::{Auths, Handlers, OpenHooks, PeerKeys, PillarRequests};
use crate::returns::ReturnIntake;
use crate::runners::{self, Runners};
use crate::sandbox_reports::SandboxReports;
use crate::sessions::Sessions;
use crate::targets::Targets;
use crate::throttle::Throttle;

/// The subscriptions of the returners of `event_return`.
type KeptEvents = Vec<(ReturnerName, Subscription)>;

/// The parts that only read settings. Made first, so that wrong settings fail before anything else is made.
pub(super) struct Configured {
    files: FileServer,
    mine: Mine,
    peer: PeerRules,
}

impl Configured {
    pub(super) fn read(opts: &MasterOpts) -> Result<Self, MasterStartError> {
        let files = FileServer::new(&opts.files, &opts.cachedir).map_err(MasterStartError::Settings)?;
        let mine = Mine::new(&opts.cachedir, &opts.mine);
        let peer = PeerRules::read(&opts.peer).map_err(MasterStartError::Settings)?;
        Ok(Self { files, mine: mine.map_err(MasterStartError::Settings)?, peer })
    }
}

/// The parts that open or make files.
pub(super) struct Opened {
    master_key: PrivateKey,
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
    pub(super) async fn open(opts: &MasterOpts) -> Result<Self, MasterStartError> {
        let failed = |what| {
            let path = opts.cachedir.clone();
            move |why| MasterStartError::Cache { what, path, why }
        };
        let KeyOpts { pki_dir, size, .. } = &opts.keys;
        let (dir, id, bits) = (pki_dir.clone(), opts.id.clone(), *size);
        let open = move || MasterKey::open(&dir, "master", Some(&id), bits);
        let key = tokio::task::spawn_blocking(open).await.map_err(MasterStartError::KeyTask)??;
        let sign_key =
            opts.keys.signed_by.as_ref().map(|name| MasterKey::open(pki_dir, name, None, *size)).transpose()?;
        let keys = Arc::new(MinionKeys::open(pki_dir)?);
        let users = ["root".to_owned(), opts.user.clone(), user::current()];
        let access = Access::open(opts.access.clone(), &opts.cachedir, &users).map_err(failed("the local keys"))?;
        let vault = Vault::of(key.private());
        let sessions = Sessions::open(opts.cachedir.join("brine_sessions"), opts.keys.session, vault);
        let sessions = sessions.map_err(failed("the session keys"))?;
        let private = PrivatePool::new(Arc::clone(key.ops()));
        let signer = opts.publisher.seals.then(|| Signer::new(key.private(), private.ops())).transpose()?;
        let publish_key = CurrentKey::new(private.clone(), signer).await?;
        let jobs = JobCache::open(&opts.cachedir.join("jobs.db"), &opts.jobs)?;
        let bus = Bus::new(opts.bus.framing, opts.bus.max_event_size);
        let audit = Audit::open(opts.audit.clone(), bus.clone()).map_err(|why| MasterStartError::Cache {
            what: "the audit log (audit_log)",
            path: opts.audit.path.clone().unwrap_or_default(),
            why,
        })?;
        Ok(Self {
            master_key: key.private().clone(),
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

    /// Prepares the port for salt-api on other hosts.
    pub(super) fn remote(&self, opts: &MasterOpts, listener: TcpListener) -> Result<Remote, MasterStartError> {
        if let Ok(address) = listener.local_addr() {
            tracing::info!(
                "answering salt-api on other hosts at {address}, with the key {}",
                self.private.public().fingerprint()
            );
        }
        let acceptor = Acceptor::new(Identity::new(&self.master_key)?);
        Ok(Remote { listener, acceptor, keys: NodeKeys::open(&opts.keys.pki_dir)? })
    }

    /// Subscribes the returners of `event_return`.
    pub(super) fn keep_events(&self, opts: &MasterOpts) -> KeptEvents {
        event_return::subscribe(&opts.event_return, &self.bus)
    }

    /// Opens the bus's sockets. Whoever may fire events then finds all that see them: the returners of `event_return`,
    /// the reactor and the engines have subscribed.
    pub(super) fn listen(&self, opts: &MasterOpts) -> Result<(), MasterStartError> {
        Ok(self.bus.listen(&opts.bus.sock_dir)?)
    }
}

/// The parts that several others need.
struct Shared<'a> {
    opts: &'a MasterOpts,
    opened: &'a Opened,
    live: SharedSettings,
    refusals: Arc<Refusals>,
    throttle: Arc<Throttle>,
    key_removal: Arc<KeyRemoval>,
    presence: Arc<Presence>,
    targets: Arc<Targets>,
    files: Arc<FileServer>,
    mine: Arc<Mine>,
    reports: Arc<SandboxReports>,
    pillars: Arc<Pillars>,
    chains: Arc<Chains>,
    engines: Arc<Engines>,
}

/// Makes a master whose publish port is `port`.
pub(super) fn assemble(
    opts: MasterOpts,
    configured: Configured,
    opened: &Opened,
    publisher: Publisher,
    port: u16,
) -> Result<Master, MasterStartError> {
    let Opened { keys, sessions, jobs, audit, private, publish_key, bus, .. } = opened;
    let refusals = Arc::new(Refusals::new(bus.clone()));
    let live: SharedSettings = Arc::new(ArcSwap::from_pointee(opts.live.clone()));
    let data = Arc::new(MinionData::new(&opts.cachedir));
    let has_data = opts.minion_data.keep;
    let reports = Arc::new(SandboxReports::default());
    let runtime = tokio::runtime::Handle::current();
    let pillars = Pillars::new(&opts.pillar, &opts.cachedir, runtime, refusals.clone());
    let presence = Presence { keys: keys.clone(), data: data.clone(), cachedir: opts.cachedir.clone(), port };
    let shared = Shared {
        throttle: Arc::new(Throttle::new(live.clone(), refusals.clone(), bus.clone())),
        key_removal: Arc::new(KeyRemoval::new(
            sessions.clone(),
            reports.clone(),
            bus.clone(),
            opts.keys.rotate_aes_key,
        )),
        targets: Arc::new(Targets { keys: keys.clone(), data, live: live.clone(), has_data }),
        presence: Arc::new(presence),
        files: Arc::new(configured.files),
        mine: Arc::new(configured.mine),
        pillars: Arc::new(pillars),
        chains: Arc::default(),
        engines: Engines::new(opts.engines.clone(), opts.id.clone(), opts.cachedir.clone(), bus.clone()),
        reports,
        opts: &opts,
        opened,
        live,
        refusals,
    };
    let whose = (sessions.clone(), keys.clone());
    let publisher = PublisherHandle::start(publisher, publish_key.clone(), whose, opts.publisher.alg);
    let python_jobs =
        PythonJobFiles::new(opts.cachedir.join("jobs"), opts.files.tree.hash_type, opts.jobs.python_files);
    let dispatcher = shared.dispatcher(publisher.map_err(MasterStartError::Thread)?, &python_jobs);
    let returns = shared.returns();
    let runners = shared.runners(&dispatcher, &returns);
    let peer = shared.peer(configured.peer, &dispatcher, &runners);
    let (reactor, reactor_events) =
        Reactor::new(opts.reactor.clone(), opts.id.clone(), runners.clone(), bus.clone(), shared.chains.clone());
    let maintenance = Arc::new(shared.maintenance(&dispatcher, &peer, python_jobs));
    let handlers = Arc::new(shared.handlers(port, dispatcher, returns, runners, peer));
    let presence = shared.presence;
    let (audit, jobs, private, bus) = (audit.clone(), jobs.clone(), private.clone(), bus.clone());
    let reactor_events = Mutex::new(reactor_events);
    Ok(Master { opts, handlers, maintenance, audit, presence, jobs, private, bus, reactor, reactor_events })
}

impl Shared<'_> {
    fn dispatcher(&self, publisher: PublisherHandle, python_jobs: &PythonJobFiles) -> Arc<Dispatcher> {
        Arc::new(Dispatcher {
            targets: self.targets.clone(),
            access: self.opened.access.clone(),
            audit: self.opened.audit.clone(),
            jobs: self.opened.jobs.clone(),
            publisher,
            bus: self.opened.bus.clone(),
            chains: self.chains.clone(),
            refusals: self.refusals.clone(),
            python_files: (self.opts.jobs.keep && python_jobs.on()).then(|| python_jobs.clone()),
            filters: self.opts.publisher.filters,
        })
    }

    fn returns(&self) -> Arc<ReturnIntake> {
        Arc::new(ReturnIntake {
            jobs: self.opened.jobs.clone(),
            throttle: self.throttle.clone(),
            bus: self.opened.bus.clone(),
            refusals: self.refusals.clone(),
            rules: self.opts.returns,
            vouched_keys: crate::returns::VouchedKeys::default(),
            // A key's fingerprint always reads as one.
            fingerprint: self.opened.private.public().fingerprint().parse().unwrap_or(Fingerprint([0; 32])),
        })
    }

    fn runners(&self, dispatcher: &Arc<Dispatcher>, returns: &Arc<ReturnIntake>) -> Runners {
        let parts = runners::Parts {
            opts: self.opts.runners.clone(),
            check_config: |config| MasterOpts::from_config(config).map(drop),
            live: self.live.clone(),
            dispatcher: dispatcher.clone(),
            jobs: self.opened.jobs.clone(),
            keys: self.opened.keys.clone(),
            key_removal: self.key_removal.clone(),
            presence: self.presence.clone(),
            files: self.files.clone(),
            mine: self.mine.clone(),
            pillars: self.pillars.clone(),
            private: self.opened.private.clone(),
            bus: self.opened.bus.clone(),
            runs: runners::Runs::default(),
            orchestrations: runners::Orchestrations::new(&self.opts.orchestrate),
            chains: self.chains.clone(),
            engines: self.engines.clone(),
        };
        let (audit, refusals) = (self.opened.audit.clone(), self.refusals.clone());
        Runners { parts: parts.into(), returns: returns.clone(), audit, refusals }
    }

    fn peer(&self, rules: PeerRules, dispatcher: &Arc<Dispatcher>, runners: &Runners) -> Arc<Peer> {
        Arc::new(Peer {
            rules: ArcSwap::from_pointee(rules),
            targets: self.targets.clone(),
            dispatcher: dispatcher.clone(),
            runners: runners.clone(),
            jobs: self.opened.jobs.clone(),
            audit: self.opened.audit.clone(),
            refusals: self.refusals.clone(),
            user: self.opts.user.clone(),
            turns: peer::Turns::default(),
        })
    }

    fn maintenance(&self, dispatcher: &Arc<Dispatcher>, peer: &Arc<Peer>, python_jobs: PythonJobFiles) -> Maintenance {
        Maintenance {
            opts: self.opts.maintenance.clone(),
            live: self.live.clone(),
            access: self.opened.access.clone(),
            keys: self.opened.keys.clone(),
            key_removal: self.key_removal.clone(),
            publish_key: self.opened.publish_key.clone(),
            sessions: self.opened.sessions.clone(),
            dispatcher: dispatcher.clone(),
            jobs: self.opened.jobs.clone(),
            python_jobs,
            files: self.files.clone(),
            mine: self.mine.clone(),
            peer: peer.clone(),
            presence: self.presence.clone(),
            throttle: self.throttle.clone(),
            refusals: self.refusals.clone(),
            bus: self.opened.bus.clone(),
        }
    }

    fn handlers(
        &self,
        publish_port: u16,
        dispatcher: Arc<Dispatcher>,
        returns: Arc<ReturnIntake>,
        runners: Runners,
        peer: Arc<Peer>,
    ) -> Handlers {
        let Opened { keys, access, sessions, audit, bus, .. } = self.opened;
        let Self { refusals, throttle, .. } = self;
        let timings = Arc::new(Timings::default());
        let auths = Auths::new(self.authenticator(publish_port), refusals.clone(), timings.clone());
        let (access, audit) = (access.clone(), audit.clone());
        Handlers {
            opts: self.opts.requests,
            live: self.live.clone(),
            keys: keys.clone(),
            key_removal: self.key_removal.clone(),
            sessions: sessions.clone(),
            auths: Arc::new(auths),
            admission: Admission { access, audit, refusals: refusals.clone(), bus: bus.clone() },
            dispatcher,
            returns,
            events: MinionEvents { throttle: throttle.clone(), bus: bus.clone(), refusals: refusals.clone() },
            pillars: self.pillars(),
            runners,
            peer,
            queries: Arc::new(self.queries()),
            files: self.files.clone(),
            mine: self.mine.clone(),
            refusals: refusals.clone(),
            throttle: throttle.clone(),
            lanes: Lanes::default(),
            shares: Arc::default(),
            peer_keys: PeerKeys::default(),
            open_hooks: OpenHooks::default(),
            timings,
        }
    }

    fn queries(&self) -> Queries {
        Queries {
            cachedir: self.opts.cachedir.clone(),
            hash_type: self.opts.files.tree.hash_type,
            access: self.opened.access.clone(),
            targets: self.targets.clone(),
            keys: self.opened.keys.clone(),
            master_key: self.opened.private.public().clean_pem().to_owned(),
            presence: self.presence.clone(),
            jobs: self.opened.jobs.clone(),
            files: self.files.clone(),
            reports: self.reports.clone(),
            turns: Queries::turns(),
        }
    }

    fn pillars(&self) -> PillarRequests {
        PillarRequests {
            pillars: self.pillars.clone(),
            opts: self.opts.minion_data,
            cachedir: self.opts.cachedir.clone(),
            private: self.opened.private.clone(),
            reports: self.reports.clone(),
            throttle: self.throttle.clone(),
            refusals: self.refusals.clone(),
            bus: self.opened.bus.clone(),
        }
    }

    fn authenticator(&self, publish_port: u16) -> Authenticator {
        let Opened { sign_key, keys, sessions, audit, private, publish_key, bus, .. } = self.opened;
        Authenticator {
            gate: Arc::new(Gate::new(self.opts.gate.clone(), keys.clone())),
            keys: keys.clone(),
            sessions: sessions.clone(),
            private: private.clone(),
            sign_key: sign_key.clone(),
            publish_key: publish_key.clone(),
            publish_port,
            audit: audit.clone(),
            refusals: self.refusals.clone(),
            bus: bus.clone(),
            opts: self.opts.gate.clone(),
        }
    }
}

/// Runs the tasks of a master besides answering requests, until `stop`.
pub(super) fn maintain(
    master: &Master,
    kept_events: KeptEvents,
    stop: CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let Master { opts, handlers, maintenance, audit, presence, jobs, bus, .. } = master;
    let runners = handlers.runners.clone();
    let (presence, bus) = (opts.maintenance.presence_events.then(|| presence.clone()), bus.clone());
    let every = opts.maintenance.loop_interval;
    let reactor = Arc::clone(&master.reactor);
    let reactor_events = master.reactor_events.lock().unwrap_or_else(PoisonError::into_inner).take();
    let engines = Arc::clone(&handlers.runners.parts.engines);
    let keep_events =
        event_return::run(jobs.clone(), opts.event_return.clone(), opts.id.clone(), kept_events, stop.clone());
    let (maintain, watch) = (maintenance.clone().run(stop.clone()), audit::watch_keys(audit.clone(), stop.clone()));
    let (reactor_stop, engines_stop, presence_stop) = (stop.clone(), stop.clone(), stop);
    async move {
        let tell_presence = async {
            if let Some(presence) = presence {
                presence::tell(&presence, &bus, every, presence_stop).await;
            }
        };
        tokio::join!(
            maintain,
            watch,
            tell_presence,
            keep_events,
            reactor.run(reactor_events, reactor_stop),
            engines.run(engines_stop),
            runners.tell_interrupted()
        );
    }
}
