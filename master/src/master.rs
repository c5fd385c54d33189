//! The parts of a running master, put together.

use std::sync::Arc;

use brine_daemon::profile::Timings;

use crate::admission::Admission;
use crate::audit::Audit;
use crate::auth::Authenticator;
use crate::bus::Bus;
use crate::config::{FileOpts, MasterOpts};
use crate::dispatch::Dispatcher;
use crate::fileserver::FileServer;
use crate::jobs::{JobCache, PythonJobFiles};
use crate::key_removal::KeyRemoval;
use crate::keys::MinionKeys;
use crate::lanes::Lanes;
use crate::live_settings::{LiveSettings, SharedSettings};
use crate::mine::{Mine, MineRules};
use crate::minion_events::MinionEvents;
use crate::peer::{Peer, PeerRules};
use crate::presence::Presence;
use crate::private_ops::PrivatePool;
use crate::refusals::Refusals;
use crate::returns::Returns;
use crate::runners::Runners;
use crate::sessions::Sessions;
use crate::throttle::Throttle;

/// What requests are answered and the maintenance works with.
pub(crate) struct Master {
    /// As they were at the start; what can change is in `live` and in the parts that keep it.
    pub(crate) opts: Arc<MasterOpts>,
    pub(crate) live: SharedSettings,
    pub(crate) keys: Arc<MinionKeys>,
    pub(crate) key_removal: Arc<KeyRemoval>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) auth: Authenticator,
    pub(crate) admission: Admission,
    pub(crate) audit: Arc<Audit>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) returns: Arc<Returns>,
    pub(crate) events: MinionEvents,
    pub(crate) runners: Runners,
    pub(crate) peer: Peer,
    pub(crate) presence: Arc<Presence>,
    pub(crate) files: Arc<FileServer>,
    pub(crate) mine: Arc<Mine>,
    pub(crate) jobs: Arc<JobCache>,
    pub(crate) python_jobs: PythonJobFiles,
    pub(crate) private: PrivatePool,
    pub(crate) bus: Bus,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) lanes: Arc<Lanes>,
    /// How long requests take, by command.
    pub(crate) timings: Timings,
}

impl Master {
    /// Takes up new settings, all of them or none.
    pub(crate) fn reload(&self, opts: &MasterOpts) -> Result<(), String> {
        // Python's files of the job cache lie where their hash says.
        let files = FileOpts { hash_type: self.opts.files.hash_type, ..opts.files.clone() };
        let files = FileServer::new(&files, &self.opts.cachedir)?;
        let mine = MineRules::read(opts.mine_get.as_ref(), &opts.nodegroups)?;
        let peer = PeerRules::read(opts)?;
        let access = self.admission.access.read(opts.access.clone());
        let access = access.map_err(|error| format!("the keys of local users cannot be prepared: {error}"))?;
        self.files.replace(&files);
        self.admission.access.replace(access);
        self.mine.replace(mine);
        self.peer.replace(peer);
        self.auth.gate.replace(opts.auth.clone());
        self.live.store(LiveSettings::new(opts).into());
        Ok(())
    }
}
