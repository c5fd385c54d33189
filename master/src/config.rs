//! The master's configuration: Salt's keys and defaults (§12), read and checked once at the start. Each part defines
//! its own settings.

use std::path::PathBuf;

use brine_protocol::config::settings;
use brine_protocol::options;

use crate::access::AccessOpts;
use crate::audit::AuditOpts;
use crate::auth::GateOpts;
use crate::bus::BusOpts;
use crate::engines::EngineOpts;
use crate::event_return::EventReturnOpts;
use crate::fileserver::FileOpts;
use crate::jobs::JobCacheOpts;
use crate::keys::KeyOpts;
use crate::live_settings::LiveSettings;
use crate::maintenance::MaintenanceOpts;
use crate::mine::MineOpts;
use crate::minion_data::MinionDataOpts;
use crate::peer::PeerOpts;
use crate::pillar::PillarSettings;
use crate::ports::PortOpts;
use crate::publisher::PublisherOpts;
use crate::reactor::ReactorOpts;
use crate::requests::RequestOpts;
use crate::returns::ReturnRules;
use crate::runners::{OrchestrateOpts, RunnerOpts};

options! {
    /// The master's settings, one field for each part.
    #[derive(Debug)]
    pub struct MasterOpts from c {
        /// `id`: the master's name.
        pub(crate) id: String = c.get(settings::ID)?,
        /// `user`: the user that the master runs as.
        pub(crate) user: String = c.get(settings::USER)?,
        pub(crate) cachedir: PathBuf = c.get(settings::CACHEDIR)?,
        pub(crate) pidfile: PathBuf = c.get(settings::PIDFILE)?,
        pub(crate) access: AccessOpts = AccessOpts::from_config(c)?,
        pub(crate) audit: AuditOpts = AuditOpts::from_config(c)?,
        pub(crate) bus: BusOpts = BusOpts::from_config(c)?,
        pub(crate) engines: EngineOpts = EngineOpts::from_config(c)?,
        pub(crate) event_return: EventReturnOpts = EventReturnOpts::from_config(c)?,
        pub(crate) files: FileOpts = FileOpts::from_config(c)?,
        pub(crate) gate: GateOpts = GateOpts::from_config(c)?,
        pub(crate) jobs: JobCacheOpts = JobCacheOpts::from_config(c)?,
        pub(crate) keys: KeyOpts = KeyOpts::from_config(c)?,
        pub(crate) live: LiveSettings = LiveSettings::from_config(c)?,
        pub(crate) maintenance: MaintenanceOpts = MaintenanceOpts::from_config(c)?,
        pub(crate) mine: MineOpts = MineOpts::from_config(c)?,
        pub(crate) minion_data: MinionDataOpts = MinionDataOpts::from_config(c)?,
        pub(crate) orchestrate: OrchestrateOpts = OrchestrateOpts::from_config(c)?,
        pub(crate) peer: PeerOpts = PeerOpts::from_config(c)?,
        pub(crate) pillar: PillarSettings = PillarSettings::from_config(c)?,
        pub(crate) ports: PortOpts = PortOpts::from_config(c)?,
        pub(crate) publisher: PublisherOpts = PublisherOpts::from_config(c)?,
        pub(crate) reactor: ReactorOpts = ReactorOpts::from_config(c)?,
        pub(crate) requests: RequestOpts = RequestOpts::from_config(c)?,
        pub(crate) returns: ReturnRules = ReturnRules::from_config(c)?,
        pub(crate) runners: RunnerOpts = RunnerOpts::from_config(c)?,
    }
}
