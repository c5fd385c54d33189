//! What the master does, as its configuration says: Salt's keys and defaults (§12), read and checked once at the start. Each part reads
//! its own settings.

use std::path::PathBuf;

use brine_protocol::config::{Config, ConfigError, settings};

use crate::access::AccessOpts;
use crate::audit::AuditOpts;
use crate::auth::GateOpts;
use crate::bus::BusOpts;
use crate::event_return::EventReturnOpts;
use crate::fileserver::FileOpts;
use crate::jobs::JobCacheOpts;
use crate::keys::KeyOpts;
use crate::live_settings::LiveSettings;
use crate::maintenance::MaintenanceOpts;
use crate::mine::MineOpts;
use crate::minion_data::MinionDataOpts;
use crate::peer::PeerOpts;
use crate::ports::PortOpts;
use crate::publisher::PublisherOpts;
use crate::requests::RequestOpts;
use crate::returns::ReturnRules;
use crate::runners::RunnerOpts;

/// The master's settings, by the part that they are for.
#[derive(Debug)]
pub struct MasterOpts {
    /// `id`: the master's name.
    pub(crate) id: String,
    /// `user`: whom the master runs as.
    pub(crate) user: String,
    /// `cachedir`.
    pub(crate) cachedir: PathBuf,
    /// `pidfile`.
    pub(crate) pidfile: PathBuf,
    pub(crate) access: AccessOpts,
    pub(crate) audit: AuditOpts,
    pub(crate) bus: BusOpts,
    pub(crate) event_return: EventReturnOpts,
    pub(crate) files: FileOpts,
    pub(crate) gate: GateOpts,
    pub(crate) jobs: JobCacheOpts,
    pub(crate) keys: KeyOpts,
    pub(crate) live: LiveSettings,
    pub(crate) maintenance: MaintenanceOpts,
    pub(crate) mine: MineOpts,
    pub(crate) minion_data: MinionDataOpts,
    pub(crate) peer: PeerOpts,
    pub(crate) ports: PortOpts,
    pub(crate) publisher: PublisherOpts,
    pub(crate) requests: RequestOpts,
    pub(crate) returns: ReturnRules,
    pub(crate) runners: RunnerOpts,
}

impl MasterOpts {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// When an option has a value of a wrong type or form; the error names option, file and what is expected.
    pub fn from_config(c: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            id: c.get(settings::ID)?,
            user: c.get(settings::USER)?,
            cachedir: c.get(settings::CACHEDIR)?,
            pidfile: c.get(settings::PIDFILE)?,
            access: AccessOpts::from_config(c)?,
            audit: AuditOpts::from_config(c)?,
            bus: BusOpts::from_config(c)?,
            event_return: EventReturnOpts::from_config(c)?,
            files: FileOpts::from_config(c)?,
            gate: GateOpts::from_config(c)?,
            jobs: JobCacheOpts::from_config(c)?,
            keys: KeyOpts::from_config(c)?,
            live: LiveSettings::from_config(c)?,
            maintenance: MaintenanceOpts::from_config(c)?,
            mine: MineOpts::from_config(c)?,
            minion_data: MinionDataOpts::from_config(c)?,
            peer: PeerOpts::from_config(c)?,
            ports: PortOpts::from_config(c)?,
            publisher: PublisherOpts::from_config(c)?,
            requests: RequestOpts::from_config(c)?,
            returns: ReturnRules::from_config(c)?,
            runners: RunnerOpts::from_config(c)?,
        })
    }
}
