//! The limit on open files.

use std::path::Path;

use brine_protocol::config::{Config, settings};
use brine_protocol::exit;
use rustix::process::{Resource, Rlimit};

use crate::ProcessError;

/// The limit on open files of this process; none for no limit.
#[derive(Debug, Clone, Copy)]
pub struct OpenFiles {
    limit: Option<u64>,
    wanted: u64,
}

/// Raises the limit on open files as far as the system permits; for root at least to `max_open_files`.
///
/// # Errors
/// When `max_open_files` is not a number.
pub fn raise_open_files(config: &Config) -> Result<OpenFiles, ProcessError> {
    let wanted = config.get(settings::MAX_OPEN_FILES);
    let wanted = wanted.map_err(|error| ProcessError::new(exit::USAGE, error.to_string()))?;
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    let below = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(a), Some(b)) => a < b,
    };
    // Root may also raise its hard limit.
    let most = if below(limit.maximum, Some(wanted)) { Some(wanted) } else { limit.maximum };
    let set = |current, maximum| rustix::process::setrlimit(Resource::Nofile, Rlimit { current, maximum });
    if below(limit.current, most) && set(most, most).is_ok() {
        limit.current = most;
    } else if below(limit.current, limit.maximum) && set(limit.maximum, limit.maximum).is_ok() {
        limit.current = limit.maximum;
    }
    Ok(OpenFiles { limit: limit.current, wanted })
}

/// The severity of having this many accepted keys with this limit on open files; none if there are enough files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tight {
    Info,
    Warning,
    Critical,
}

/// Salt's rule: the number of keys should be less than a quarter of the limit.
fn rate(accepted: u64, files: u64) -> Option<Tight> {
    let times = |n: u64| accepted.saturating_mul(n);
    if times(4) <= files {
        None
    } else if times(2) >= files {
        Some(Tight::Critical)
    } else if times(3) >= files {
        Some(Tight::Warning)
    } else {
        Some(Tight::Info)
    }
}

impl OpenFiles {
    /// Warns if the limit is lower than `max_open_files`.
    pub fn warn_if_few(self) {
        if let Some(line) = self.warning() {
            tracing::warn!("{line}");
        }
    }

    fn warning(self) -> Option<String> {
        let (have, wanted) = (self.limit.filter(|have| *have < self.wanted)?, self.wanted);
        Some(format!(
            "this process may have {have} open files, fewer than max_open_files ({wanted}): raise its hard limit (LimitNOFILE= of its \
             unit, or `ulimit -Hn`), or set max_open_files to what it has"
        ))
    }

    /// Warns, as Salt does, if the limit is low for the number of keys in the folder.
    pub fn compare_with_keys(self, accepted_dir: &Path) {
        compare(self.limit, accepted_dir);
    }
}

fn compare(limit: Option<u64>, accepted_dir: &Path) {
    let accepted = std::fs::read_dir(accepted_dir).map_or(0, |entries| {
        entries.flatten().filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b".")).count()
    });
    let accepted = u64::try_from(accepted).unwrap_or(u64::MAX);
    let Some(files) = limit else { return };
    let Some(tight) = rate(accepted, files) else { return };
    let soon = if accepted >= files { "salt-master will run out of them pretty soon! " } else { "" };
    let said = format!(
        "The number of accepted minion keys({accepted}) should be lower than 1/4 of the max open files soft setting({files}). \
         {soon}Please consider raising this value."
    );
    match tight {
        Tight::Info => tracing::info!("{said}"),
        Tight::Warning => tracing::warn!("{said}"),
        Tight::Critical => tracing::error!("{said}"),
    }
}

/// The number of files that this process may have open; none for no limit.
pub fn most_open_files() -> Option<u64> {
    rustix::process::getrlimit(Resource::Nofile).current
}

/// The number of open descriptors.
pub fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_than_wanted_are_said() {
        let line = |limit| OpenFiles { limit, wanted: 1_000 }.warning();
        assert!(line(None).is_none() && line(Some(1_000)).is_none());
        let line = line(Some(999)).unwrap();
        assert!(line.contains("999") && line.contains("max_open_files (1000)") && !line.contains('\n'), "{line}");
        let config =
            Config::from_yaml("max_open_files: 1", Path::new("/etc/salt/master"), brine_protocol::config::Role::Master);
        let raised = raise_open_files(&config.unwrap()).unwrap();
        let now = rustix::process::getrlimit(Resource::Nofile);
        assert_eq!((raised.limit, now.current), (now.current, now.maximum), "soft is hard now");
    }

    #[test]
    fn keys_are_measured_as_salt_does() {
        for (accepted, expected) in [
            (0, None),
            (250, None),
            (251, Some(Tight::Info)),
            (333, Some(Tight::Info)),
            (334, Some(Tight::Warning)),
            (499, Some(Tight::Warning)),
            (500, Some(Tight::Critical)),
            (5_000, Some(Tight::Critical)),
        ] {
            assert_eq!(rate(accepted, 1_000), expected, "{accepted}");
        }
    }
}
