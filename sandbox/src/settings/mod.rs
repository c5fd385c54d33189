//! The `sandbox:` section of the minion's configuration. It decides what code may do on this host, so an unknown key or
//! an invalid value is an error, never a default.
//!
//! - `entry.rs`  rules for one module; `signers.rs` signatures; `limits.rs` limits of jobs and the compiler;
//!   `values.rs` single values
//! - `recordings.rs` what recordings of calls may take and must not show
//! - `profiles/` blocks of grants that Brine ships, or that the owner wrote as files of the same kind
//! - `files.rs`  the part that reads from the host: symbolic links, write permissions; `keys.rs` key files

mod entry;
mod files;
mod keys;
mod limits;
pub(crate) mod profiles;
mod recordings;
mod signers;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeSet;
use std::time::Duration;

use rmpv::Value;

pub use files::others_may_write;
pub use recordings::RecordingSettings;

use crate::policy::{Entry, Rules};
use crate::{CompileLimits, Limits, ModuleName, Policy};

/// Default of jobs that compute at the same time on a machine with few cores: most of them wait for short times.
const MIN_RUNNING: usize = 16;
/// The same for each core on a machine with many cores.
const RUNNING_PER_CORE: usize = 4;
/// Default of jobs that have begun and wait for something. Each costs some 100 KB, a place for its calls to the host,
/// and the memory it holds.
const MAX_WAITING: usize = 256;
/// Default of jobs that wait to begin: enough for a burst from a large highstate, and a bound on what a master can
/// queue.
const MAX_QUEUED: usize = 1_000;
/// Default idle time of executors with direct grants. Each costs some MB, and a few milliseconds to start.
const EXECUTOR_IDLE: Duration = Duration::from_secs(60);
/// Upper bound on masters with entries of their own. Every module is decided on for each of them.
const MAX_MASTERS: usize = 16;

/// The checked `sandbox:` section of the minion's configuration. Every setting has a default.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `limits`
    pub limits: Limits,
    /// `modules`, `masters`, `profiles`, `replace_standard`, `revoked`
    pub policy: Policy,
    /// `keys`: the owner's folder of keys, absolute or beside the configuration. None: `module_keys` there, if it
    /// exists.
    pub keys: Option<String>,
    /// `profiles_dir`: the owner's folder of profiles, absolute or beside the configuration. None: `profiles.d` there, if it
    /// exists.
    pub profiles_dir: Option<String>,
    /// `max_running`
    pub max_running: usize,
    /// `max_waiting`
    pub max_waiting: usize,
    /// `max_queued`
    pub max_queued: usize,
    /// `compile`
    pub compile: CompileLimits,
    /// `user`: a name or a number. None: the sandbox's own user if the minion is root.
    pub user: Option<String>,
    /// `require_second_wall`
    pub require_second_wall: bool,
    /// `executor_idle`
    pub executor_idle: Duration,
    /// `total_memory`: bytes of memory of all running jobs together.
    pub total_memory: u64,
    /// `recordings`
    pub recordings: RecordingSettings,
    /// `learn`
    pub learn: Learn,
    /// `tell_refusals`
    pub tell_refusals: Tell,
}

/// What masters are told of refusals, by an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tell {
    /// Nothing.
    Nothing,
    /// The functions, their jobs and how often.
    #[default]
    Brief,
    /// Also what was wanted, which may name what is on this host, and the line that would grant it.
    Full,
}

/// Of which modules the jobs are kept that were refused something, for suggestions. It grants nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Learn {
    /// Only the last job of each refusal.
    #[default]
    No,
    /// Of all.
    All,
    /// Of these.
    Modules(BTreeSet<ModuleName>),
}

impl Learn {
    /// Whether the jobs of this module are kept.
    pub fn has(&self, module: &str) -> bool {
        match self {
            Self::No => false,
            Self::All => true,
            Self::Modules(names) => names.iter().any(|name| name.as_str() == module),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            limits: Limits::default(),
            policy: Policy::default(),
            keys: None,
            profiles_dir: None,
            max_running: MIN_RUNNING.max(RUNNING_PER_CORE * cores),
            max_waiting: MAX_WAITING,
            max_queued: MAX_QUEUED,
            compile: CompileLimits::default(),
            user: None,
            require_second_wall: false,
            executor_idle: EXECUTOR_IDLE,
            total_memory: crate::kernel::memory::half(),
            recordings: RecordingSettings::default(),
            learn: Learn::No,
            tell_refusals: Tell::Brief,
        }
    }
}

/// An invalid setting: its path and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {why}")]
pub struct SettingsError {
    /// The setting's path in the configuration: `sandbox:limits:memory`.
    pub key: String,
    /// One line.
    pub why: String,
}

type Result<T> = std::result::Result<T, SettingsError>;

fn error<T>(key: &str, why: impl Into<String>) -> Result<T> {
    // The text may contain a key or a value, and an error must be one line.
    let line = |text: &str| brine_text::line(text).into_owned();
    Err(SettingsError { key: line(key), why: line(&why.into()) })
}

fn learn(path: &str, value: &Value) -> Result<Learn> {
    match value {
        Value::Array(_) => {
            let names = values::list(path, value, |path, text| values::name(path, text).map(drop))?;
            Ok(Learn::Modules(names.iter().filter_map(|name| name.parse().ok()).collect()))
        }
        Value::Boolean(true) => Ok(Learn::All),
        Value::Boolean(false) => Ok(Learn::No),
        _ => error(path, format!("true, false or a list of modules is expected, not {value}")),
    }
}

fn tell(path: &str, value: &Value) -> Result<Tell> {
    match (value.as_bool(), value.as_str()) {
        (Some(false), _) => Ok(Tell::Nothing),
        (Some(true), _) => Ok(Tell::Brief),
        (_, Some("full")) => Ok(Tell::Full),
        _ => error(path, format!("true, false or full is expected, not {value}")),
    }
}

impl Settings {
    /// Reads the value of `sandbox`; nil stands for an empty section. Pure: it reads no key files and resolves no
    /// symbolic links, so whatever depends on them is refused. [`Settings::load`] reads them too.
    ///
    /// # Errors
    ///
    /// A key is unknown or a value is invalid.
    pub fn read(value: &Value) -> Result<Self> {
        Self::read_with(value, &profiles::Library::default())
    }

    fn read_with(value: &Value, library: &profiles::Library) -> Result<Self> {
        let mut settings = Self::default();
        for (key, value) in values::entries("sandbox", value)? {
            let path = format!("sandbox:{key}");
            match key {
                "limits" => limits::limits(&path, value)?.apply(&mut settings.limits),
                "compile" => limits::compile(&path, value, &mut settings.compile)?,
                "modules" => entry::modules(&path, value, &mut settings.policy.general)?,
                "masters" => settings.masters(&path, value)?,
                "profiles" => settings.policy.profiles = profiles::read(&path, value, library)?,
                "profiles_dir" => settings.profiles_dir = Some(values::text(&path, value)?.to_owned()),
                "replace_standard" => {
                    let names = values::list(&path, value, |path, text| values::name(path, text).map(drop))?;
                    settings.policy.replace_standard = names.iter().filter_map(|name| name.parse().ok()).collect();
                }
                "revoked" => settings.policy.revoked = signers::revoked(&path, value)?,
                "keys" => settings.keys = Some(values::text(&path, value)?.to_owned()),
                "max_running" => settings.max_running = values::count(&path, value, 1..=1_000)?,
                "max_waiting" => settings.max_waiting = values::count(&path, value, 0..=2_000)?,
                "max_queued" => settings.max_queued = values::count(&path, value, 0..=1_000_000)?,
                "user" => settings.user = Some(values::user(&path, value)?),
                "require_second_wall" => settings.require_second_wall = values::flag(&path, value)?,
                "executor_idle" => {
                    settings.executor_idle = Duration::from_millis(values::milliseconds(&path, value)?);
                }
                "learn" => settings.learn = learn(&path, value)?,
                "tell_refusals" => settings.tell_refusals = tell(&path, value)?,
                "recordings" => recordings::read(&path, value, &mut settings.recordings)?,
                "total_memory" => settings.total_memory = values::size(&path, value, 64 << 20..=1 << 44)?,
                _ => {
                    let known = "user, require_second_wall, executor_idle, max_running, max_waiting, max_queued, total_memory, \
                                 limits, learn, tell_refusals, recordings, compile, modules, masters, profiles, profiles_dir, replace_standard, keys and revoked";
                    return error(&path, format!("there is no such setting; there are {known}"));
                }
            }
        }
        keys::read(&mut settings.policy, None)?;
        Ok(settings)
    }

    fn masters(&mut self, path: &str, value: &Value) -> Result<()> {
        for (fingerprint, value) in values::entries(path, value)? {
            let path = format!("{path}:{fingerprint}");
            let pairs: Vec<&str> = fingerprint.split(':').collect();
            if pairs.len() != 32
                || !pairs.iter().all(|pair| pair.len() == 2 && pair.chars().all(|c| c.is_ascii_hexdigit()))
            {
                return error(
                    &path,
                    "a master's fingerprint is expected: 32 pairs of hex digits, as `salt-key -F master` shows it",
                );
            }
            let mut rules = Rules::default();
            for (key, value) in values::entries(&path, value)? {
                let path = format!("{path}:{key}");
                match key {
                    "modules" => entry::modules(&path, value, &mut rules)?,
                    _ => return error(&path, "there is no such setting; there is modules"),
                }
            }
            let counted = |entry: &Entry| entry.max_running.is_some() || entry.max_queued.is_some();
            if rules.modules.values().any(counted) || counted(&rules.every) {
                return error(&path, "max_running and max_queued are for the jobs of all masters together");
            }
            if self.policy.masters.insert(fingerprint.to_ascii_lowercase(), rules).is_some() {
                return error(&path, "this master is there twice");
            }
            if self.policy.masters.len() > MAX_MASTERS {
                return error(&path, format!("there are more than {MAX_MASTERS} masters"));
            }
        }
        Ok(())
    }
}
