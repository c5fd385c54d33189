//! What the parts of the master share.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use brine_daemon::profile::Timings;

use crate::access::Access;
use crate::audit::Audit;
use crate::auth::Gate;
use crate::bus::Bus;
use crate::config::MasterOpts;
use crate::facts::KnownFacts;
use crate::fileserver::FileServer;
use crate::jobs::{JobCache, PythonJobFiles};
use crate::keys::{KeyStore, MasterKey};
use crate::live::Live;
use crate::mine::Mine;
use crate::peer::Peer;
use crate::private_ops::PrivatePool;
use crate::publisher::{CurrentKey, PublisherHandle};
use crate::quotas::Quotas;
use crate::refusals::Refusals;
use crate::requests::{Auths, Lanes, SentTo};
use crate::runners::Runs;
use crate::sessions::Sessions;

/// A running master's parts. Every request handler gets this and nothing else.
pub(crate) struct Master {
    /// As they were at the start; what can change is in `live` and in the parts that keep it.
    pub(crate) opts: MasterOpts,
    pub(crate) live: ArcSwap<Live>,
    pub(crate) keys: Arc<KeyStore>,
    pub(crate) access: Access,
    pub(crate) audit: Arc<Audit>,
    pub(crate) gate: Gate,
    pub(crate) facts: Arc<KnownFacts>,
    pub(crate) private: PrivatePool,
    /// The key that signs the master's key (`master_sign_pubkey`).
    pub(crate) sign_key: Option<MasterKey>,
    pub(crate) sessions: Sessions,
    pub(crate) publish_key: CurrentKey,
    pub(crate) publisher: PublisherHandle,
    /// The port that was bound, which minions are told.
    pub(crate) publish_port: u16,
    pub(crate) bus: Bus,
    pub(crate) jobs: JobCache,
    pub(crate) python_jobs: PythonJobFiles,
    pub(crate) files: FileServer,
    pub(crate) mine: Mine,
    pub(crate) peer: Peer,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) auths: Auths,
    pub(crate) sent_to: SentTo,
    pub(crate) refusals: Refusals,
    pub(crate) quotas: Quotas,
    /// What requests take, by command.
    pub(crate) timings: Timings,
    /// The runners that run now.
    pub(crate) runs: Runs,
    /// Wakes the maintenance: something may have to be rotated.
    pub(crate) rotate: tokio::sync::Notify,
}

/// Now, unix ms.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
