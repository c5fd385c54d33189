//! `minion.d/_schedule.conf`: the entries that `schedule.*` persists, as Salt writes them.

use std::path::{Path, PathBuf};

use brine_daemon::trust;
use brine_protocol::config::{SCHEDULE_FILE, yaml};
use brine_protocol::value::{Value, ValueExt, empty_map, map};

use super::whose::MASTER;
use crate::own_yaml;

/// Upper bound on the bytes of the file.
const MAX_BYTES: u64 = 16 << 20;
/// The arguments of jobs may be secrets.
const MODE: u32 = 0o600;

/// The file.
pub(super) struct Saved {
    path: PathBuf,
}

impl Saved {
    pub(super) fn new(conf_dir: &Path) -> Self {
        Self { path: conf_dir.join("minion.d").join(SCHEDULE_FILE) }
    }

    /// The entries in the file; none if there is no file.
    pub(super) fn read(&self) -> Result<Value, String> {
        let name = self.path.display();
        trust::check(&self.path).map_err(|e| e.to_string())?;
        let text = match brine_files::read_named_text(&self.path, MAX_BYTES) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(empty_map()),
            Err(e) => return Err(format!("{name} cannot be read: {e}")),
        };
        let read = yaml::load(&text).map_err(|e| format!("{name} is no YAML: {e}"))?;
        match read.get("schedule") {
            Some(schedule) if schedule.entries().is_some() => Ok(schedule.clone()),
            Some(schedule) if schedule.truthy() => Err(format!("{name}: schedule is no dict")),
            _ => Ok(empty_map()),
        }
    }

    /// Replaces the file, without what begins with `_` but the master of an entry.
    pub(super) fn write(&self, schedule: &Value) -> Result<(), String> {
        let failed = |why: String| format!("{} cannot be written: {why}", self.path.display());
        let shown = |key: &Value| !key.text().is_some_and(|key| key.starts_with('_') && key != MASTER);
        let entries = schedule.entries().unwrap_or_default().iter().map(|(name, entry)| {
            let entry = match entry.entries() {
                Some(items) => Value::Map(items.iter().filter(|(key, _)| shown(key)).cloned().collect()),
                None => entry.clone(),
            };
            (name.clone(), entry)
        });
        let whole = map([("schedule", Value::Map(entries.collect()))]);
        let text = own_yaml::write(&whole).map_err(failed)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(failed(format!("it would have more than {MAX_BYTES} bytes")));
        }
        // What cannot be read again would lose all entries.
        yaml::load(&text).map_err(|e| failed(e.to_string()))?;
        if std::fs::symlink_metadata(&self.path).is_ok_and(|meta| meta.is_symlink()) {
            return Err(failed("it is a symbolic link".to_owned()));
        }
        if let Some(dir) = self.path.parent() {
            std::fs::create_dir_all(dir).map_err(|e| failed(e.to_string()))?;
        }
        brine_protocol::files::write_synced(&self.path, text.as_bytes(), MODE).map_err(|e| failed(e.to_string()))
    }
}
