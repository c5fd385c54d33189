//! Changes of the beacons while the minion runs, and the file that keeps them. The sentences are Salt's, for its programs.

use std::path::PathBuf;

use brine_protocol::config::{settings, yaml};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_sandbox::BeaconEdit;

use super::{BEACONS, Beacons, ENABLED};
use crate::own_yaml;

/// Upper bound on the beacons of the configuration.
pub(super) const MAX_BEACONS: usize = 1_000;
/// Upper bound on their bytes in MessagePack, all together. Their text, which is saved, has up to twice as many as a rule.
const MAX_TOTAL: usize = 512 << 10;
/// Upper bound on the bytes of the file: the minion reads it at its start, with the rest of its configuration.
const MAX_FILE: usize = 1 << 20;
/// Mode of the file: a configuration may have secrets.
const MODE: u32 = 0o640;
const FILE: &str = "beacons.conf";

impl Beacons {
    /// Changes the beacons of the configuration. Returns these, and why nothing was changed if it was not.
    pub(crate) fn edit(&self, edit: BeaconEdit) -> (Result<(), String>, Value) {
        let mut own = self.own();
        let done = self.apply(&mut own, edit);
        let now = own.clone();
        drop(own);
        if done.is_ok() {
            self.changes.send_replace(());
        }
        (done, now)
    }

    fn apply(&self, own: &mut Value, edit: BeaconEdit) -> Result<(), String> {
        if self.runner_is_missing() {
            return Err("beacons are the daemon's, and this is not the daemon: ask it by `salt`, or change its \
                        configuration"
                .to_owned());
        }
        let of_pillar = |name: &str, what: &str| match self.is_of_pillar(name) {
            true => Err(format!("Cannot {what} beacon item {name}, it is configured in pillar.")),
            false => Ok(()),
        };
        match edit {
            BeaconEdit::Put { name, config } => {
                of_pillar(&name, "modify")?;
                let config = msgpack::decode(&config, &msgpack::Limits::DISK);
                let config = config.map_err(|e| format!("the configuration of {name} cannot be read: {e}"))?;
                super::config::read(&name, &config).map_err(|why| format!("Beacon {name}: {why}"))?;
                put(own, &name, config)?;
            }
            BeaconEdit::Delete { name } => {
                of_pillar(&name, "delete")?;
                drop(own.remove(&name));
            }
            BeaconEdit::Enable(on) => own.insert(ENABLED, on),
            BeaconEdit::EnableBeacon { name, on } => {
                of_pillar(&name, if on { "enable" } else { "disable" })?;
                match own.get_mut(&name) {
                    Some(Value::Array(items)) => match items.iter_mut().find(|item| item.has(ENABLED)) {
                        Some(item) => item.insert(ENABLED, on),
                        None => items.push(map([(ENABLED, on)])),
                    },
                    Some(item @ Value::Map(_)) => item.insert(ENABLED, on),
                    _ => return Err(format!("Beacon item {name} not found.")),
                }
            }
            BeaconEdit::Reset => *own = empty_map(),
        }
        Ok(())
    }

    /// Turns a beacon off that was to look once.
    pub(super) fn looked_once(&self, name: &str) {
        if !self.is_of_pillar(name) {
            drop(self.edit(BeaconEdit::EnableBeacon { name: name.to_owned(), on: false }));
        }
    }

    /// Where the beacons of the configuration are saved.
    pub(crate) fn saved_in(&self) -> PathBuf {
        let pattern = self.opts.config.get(settings::DEFAULT_INCLUDE).unwrap_or_default();
        let folder = pattern.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.opts.conf_dir.join(folder).join(FILE)
    }

    /// Writes them to the file. Nothing else of it stays.
    ///
    /// # Errors
    /// One line.
    pub(crate) async fn save(&self) -> Result<(), String> {
        let (own, path) = (self.own().clone(), self.saved_in());
        let write = move || {
            let text = text(own)?;
            // What it leads to is not the minion's to replace.
            if std::fs::symlink_metadata(&path).is_ok_and(|there| there.is_symlink()) {
                return Err(format!("{} is a symbolic link", path.display()));
            }
            let folder = path.parent().map(std::fs::create_dir_all);
            folder.unwrap_or(Ok(())).map_err(|e| e.to_string())?;
            brine_protocol::files::write_synced(&path, text.as_bytes(), MODE).map_err(|e| e.to_string())
        };
        tokio::task::spawn_blocking(write).await.map_err(|_| "the minion failed".to_owned())?
    }
}

/// Adds or replaces a beacon.
fn put(own: &mut Value, name: &str, config: Value) -> Result<(), String> {
    if !own.has(name) && own.entries().is_some_and(|all| all.len() >= MAX_BEACONS) {
        return Err(format!("there are {MAX_BEACONS} beacons, and no more may be"));
    }
    let before = own.clone();
    own.insert(name, config);
    let size = msgpack::encode_disk(own).len();
    if size > MAX_TOTAL {
        *own = before;
        return Err(format!("all beacons together would have {size} bytes, more than {MAX_TOTAL}"));
    }
    Ok(())
}

/// The text of the file.
fn text(own: Value) -> Result<String, String> {
    if own.entries().is_none_or(<[_]>::is_empty) {
        return Ok(String::new());
    }
    let whole = map([(BEACONS, own)]);
    let text = own_yaml::write(&whole)?;
    if text.len() > MAX_FILE {
        return Err(format!("the file would have {} bytes, more than {MAX_FILE}", text.len()));
    }
    // With a file that cannot be read, the minion would not start again.
    yaml::load(&text).map_err(|e| format!("the file could not be read again: {e}"))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::list;

    use super::*;
    use crate::beacons::tests::beacons;

    fn of_bytes(bytes: usize) -> Value {
        list([map([("files", "x".repeat(bytes))])])
    }

    #[test]
    fn what_is_put_is_bounded_together() {
        let mut own = empty_map();
        let refused = (0..MAX_BEACONS).find_map(|nth| put(&mut own, &format!("b{nth}"), of_bytes(60 << 10)).err());
        assert!(refused.unwrap().starts_with("all beacons together would have "));
        assert_eq!(own.entries().unwrap().len(), 8, "what was refused is not there");
        assert!(put(&mut own, "b0", of_bytes(10)).is_ok() && put(&mut own, "small", of_bytes(10)).is_ok());
        assert!(text(own).is_ok());
        let mut own = empty_map();
        (0..MAX_BEACONS).for_each(|nth| put(&mut own, &format!("b{nth}"), of_bytes(10)).unwrap());
        assert!(put(&mut own, "one more", of_bytes(10)).unwrap_err().starts_with("there are 1000 beacons"));
        assert!(put(&mut own, "b7", of_bytes(20)).is_ok() && text(own).is_ok());
    }

    #[test]
    fn a_file_that_could_not_be_read_is_not_written() {
        // What little is in MessagePack can be much as text.
        let deep = |items| (0..12).fold(list(vec![Value::Nil; items]), |inner, _| list([inner]));
        let of = |beacons: usize| Value::Map((0..beacons).map(|nth| (format!("b{nth}").into(), deep(4_000))).collect());
        assert!(text(of(1)).is_ok());
        assert!(msgpack::encode_disk(&of(40)).len() < MAX_TOTAL, "it can be put");
        let why = text(of(40)).unwrap_err();
        assert!(why.starts_with("the file would have ") && why.ends_with("more than 1048576"), "{why}");
        // The configuration's reader has a bound on levels, as the writer has not.
        let deeper = (0..120).fold(Value::from(1), |inner, _| list([inner]));
        let why = text(map([("b", deeper)])).unwrap_err();
        assert!(why.contains("levels"), "{why}");
        assert_eq!(text(empty_map()).unwrap(), "");
    }

    /// A beacon that is small as a message may be too large as text.
    #[tokio::test]
    async fn a_file_that_was_saved_stays_when_the_next_one_would_be_too_large() {
        let folder = tempfile::tempdir().unwrap();
        let beacons = beacons(folder.path());
        let put = |name: String, config: Value| {
            let config = msgpack::encode_disk(&config).into();
            beacons.edit(BeaconEdit::Put { name, config }).0
        };
        put("load".to_owned(), list([map([("interval", 5)])])).unwrap();
        beacons.save().await.unwrap();
        let saved = || std::fs::read_to_string(folder.path().join("minion.d/beacons.conf")).unwrap();
        let before = saved();
        assert_eq!(before, "beacons:\n  load:\n  - interval: 5\n");
        let deep = (0..12).fold(list(vec![Value::Nil; 4_000]), |inner, _| list([inner]));
        (0..40).for_each(|nth| put(format!("b{nth}"), deep.clone()).unwrap());
        assert!(beacons.save().await.unwrap_err().starts_with("the file would have "));
        assert_eq!(saved(), before);
        assert!(put("large".to_owned(), of_bytes(MAX_TOTAL)).is_err());
    }
}
