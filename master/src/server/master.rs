//! The parts of a running master.

use std::sync::{Arc, Mutex};

use crate::audit::Audit;
use crate::bus::{Bus, Subscription};
use crate::config::MasterOpts;
use crate::fileserver::FileServer;
use crate::jobs::JobCache;
use crate::maintenance::Maintenance;
use crate::mine::MineRules;
use crate::peer::PeerRules;
use crate::presence::Presence;
use crate::private_ops::PrivatePool;
use crate::reactor::Reactor;
use crate::requests::Handlers;

/// The parts of a running master.
pub(super) struct Master {
    /// The settings of the start. The parts themselves keep the live ones.
    pub(super) opts: MasterOpts,
    pub(super) handlers: Arc<Handlers>,
    pub(super) maintenance: Arc<Maintenance>,
    pub(super) audit: Arc<Audit>,
    pub(super) presence: Arc<Presence>,
    pub(super) jobs: Arc<JobCache>,
    pub(super) private: PrivatePool,
    pub(super) bus: Bus,
    pub(super) reactor: Arc<Reactor>,
    /// The events of the reactor, until it runs.
    pub(super) reactor_events: Mutex<Option<Subscription>>,
}

impl Master {
    /// Applies new settings, all of them or none.
    pub(super) fn reload(&self, opts: &MasterOpts) -> Result<(), String> {
        let Handlers { admission, auths, live, mine, peer, pillars, runners, .. } = &*self.handlers;
        // The folders of Python's job cache files depend on `hash_type`, so it does not change.
        let mut files = opts.files.clone();
        files.tree.hash_type = self.opts.files.tree.hash_type;
        let files = FileServer::new(&files, &self.opts.cachedir)?;
        let mine_rules = MineRules::read(&opts.mine)?;
        let peer_rules = PeerRules::read(&opts.peer)?;
        let access = admission.access.read(opts.access.clone());
        let access = access.map_err(|error| format!("the keys of local users cannot be prepared: {error}"))?;
        self.handlers.files.replace(&files);
        admission.access.replace(access);
        mine.replace(mine_rules);
        peer.replace(peer_rules);
        pillars.pillars.replace(&opts.pillar);
        runners.parts.orchestrations.replace(&opts.orchestrate);
        auths.auth.gate.replace(opts.gate.clone());
        live.store(opts.live.clone().into());
        self.reactor.replace(&opts.reactor);
        runners.parts.engines.replace(&opts.engines);
        Ok(())
    }
}
