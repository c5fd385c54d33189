//! The parts of a running master, put together.

use std::sync::Arc;

use crate::audit::Audit;
use crate::bus::Bus;
use crate::config::MasterOpts;
use crate::fileserver::{FileOpts, FileServer};
use crate::jobs::JobCache;
use crate::maintenance::Maintenance;
use crate::mine::MineRules;
use crate::peer::PeerRules;
use crate::presence::Presence;
use crate::private_ops::PrivatePool;
use crate::requests::Handlers;

/// What a master works with, and what starts and ends with it.
pub(super) struct Master {
    /// As they were at the start; what can change is in the parts that keep it.
    pub(super) opts: MasterOpts,
    pub(super) handlers: Arc<Handlers>,
    pub(super) maintenance: Arc<Maintenance>,
    pub(super) audit: Arc<Audit>,
    pub(super) presence: Arc<Presence>,
    pub(super) jobs: Arc<JobCache>,
    pub(super) private: PrivatePool,
    pub(super) bus: Bus,
}

impl Master {
    /// Takes up new settings, all of them or none.
    pub(super) fn reload(&self, opts: &MasterOpts) -> Result<(), String> {
        let Handlers { admission, auths, live, mine, peer, .. } = &*self.handlers;
        // Python's files of the job cache lie where their hash says.
        let files = FileOpts { hash_type: self.opts.files.hash_type, ..opts.files.clone() };
        let files = FileServer::new(&files, &self.opts.cachedir)?;
        let mine_rules = MineRules::read(&opts.mine)?;
        let peer_rules = PeerRules::read(&opts.peer)?;
        let access = admission.access.read(opts.access.clone());
        let access = access.map_err(|error| format!("the keys of local users cannot be prepared: {error}"))?;
        self.handlers.files.replace(&files);
        admission.access.replace(access);
        mine.replace(mine_rules);
        peer.replace(peer_rules);
        auths.auth.gate.replace(opts.gate.clone());
        live.store(opts.live.clone().into());
        Ok(())
    }
}
