//! Applies a changed configuration to a running daemon: some settings take effect at once, the others are named in the
//! log.

use brine_cli::logging;
use brine_protocol::config::{Config, settings};
use brine_protocol::value::{Value, ValueExt};

use crate::args;

/// Applies the log levels and opens the log file again, so that a log rotation only needs to send SIGHUP.
///
/// # Errors
/// When a level is unknown; then nothing changes.
pub fn logs(config: &Config) -> Result<(), String> {
    let (console, file) = args::levels(config)?;
    logging::set_levels(logging::parse_level(&console)?, logging::parse_level(&file)?);
    if let Err(error) = logging::reopen() {
        tracing::error!("{error}; the log goes on into the file that was open");
    }
    Ok(())
}

/// The names of the settings that differ between two configurations, sorted.
fn list_changed(before: &Config, now: &Config) -> Vec<String> {
    let entries = |config: &Config| config.opts().entries().unwrap_or_default().to_vec();
    let (before, now) = (entries(before), entries(now));
    let differs = |one: &[(Value, Value)], other: &[(Value, Value)]| -> Vec<String> {
        let differing = one.iter().filter(|entry| !other.contains(entry));
        differing.filter_map(|(key, _)| key.text().map(str::to_owned)).collect()
    };
    let mut changed = differs(&now, &before);
    changed.extend(differs(&before, &now));
    changed.sort();
    changed.dedup();
    changed
}

/// Logs which changed settings take effect now, and which at the next start.
pub fn report(before: &Config, now: &Config) {
    let (at_once, later): (Vec<String>, Vec<String>) =
        list_changed(before, now).into_iter().partition(|key| settings::is_live(key, now.role()));
    let words = |keys: &[String]| if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
    // The level is one that is displayed by default, because the operator who reloads wants to see this.
    tracing::warn!("configuration read again: {} changed", words(&at_once));
    if !later.is_empty() {
        tracing::warn!("these settings changed too and count from the next start: {}", words(&later));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::config::Role;
    use std::path::Path;

    #[test]
    fn what_changed_is_named() {
        let config = |text| Config::from_yaml(text, Path::new("/etc/salt/master"), Role::Master).unwrap();
        let (before, now) = (config("log_level: info\nid: m\ngone: 1"), config("log_level: debug\nid: m\nnew: {a: 1}"));
        assert_eq!(list_changed(&before, &now), ["gone", "log_level", "new"]);
        assert!(list_changed(&before, &before).is_empty());
    }
}
