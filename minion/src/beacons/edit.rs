//! Changes of the beacons while the minion runs, and the file that keeps them. The sentences are Salt's, for its programs.

use std::path::PathBuf;

use brine_protocol::config::settings;
use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_render::yaml::{DumpOptions, dump};
use brine_sandbox::BeaconEdit;

use super::{BEACONS, Beacons, ENABLED};

/// Upper bound on the beacons of the configuration.
pub(super) const MAX_BEACONS: usize = 1_000;
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
                let config = brine_protocol::msgpack::decode(&config, &brine_protocol::msgpack::Limits::DISK);
                let config = config.map_err(|e| format!("the configuration of {name} cannot be read: {e}"))?;
                super::config::read(&name, &config).map_err(|why| format!("Beacon {name}: {why}"))?;
                if !own.has(&name) && own.entries().is_some_and(|all| all.len() >= MAX_BEACONS) {
                    return Err(format!("there are {MAX_BEACONS} beacons, and no more may be"));
                }
                own.insert(&name, config);
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
        let text = match own.entries() {
            Some([]) | None => String::new(),
            Some(_) => {
                let dumped = brine_render::Value::from_wire(&map([(BEACONS, own)])).map_err(|e| e.to_string())?;
                let options = DumpOptions { default_flow_style: Some(false), ..DumpOptions::default() };
                dump(&dumped, &options).map_err(|e| e.to_string())?
            }
        };
        let write = move || {
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
