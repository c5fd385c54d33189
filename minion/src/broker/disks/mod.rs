//! `brine:host/disks`: the file systems that are mounted, and how full they are.

mod mounts;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_protocol::value::{Value, list, map};
use brine_sandbox::{DisksOp, HostError};
use rustix::fs::{StatVfs, statvfs};

use super::slow::Slow;
use mounts::{MOUNTS, Mount, Table, answers_at_once};

/// Bytes of a path.
const MAX_PATH: usize = 4_096;
/// File systems that may hang at once, and how long one is waited for.
const MAX_HUNG: usize = 8;
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks file systems.
pub(super) struct Disks {
    table: Arc<Table>,
    slow: Slow,
    patience: Duration,
    /// Of each mount point that is asked now: one question at a time, so that one that hangs holds one thread.
    asked: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Disks {
    pub(super) fn new() -> Self {
        Self::patient(PATIENCE)
    }

    fn patient(patience: Duration) -> Self {
        Self { table: Arc::default(), slow: Slow::new(MAX_HUNG, patience), patience, asked: Mutex::default() }
    }

    pub(super) async fn answer(&self, op: DisksOp) -> Result<Value, HostError> {
        let mounts = self.table.now().await;
        let mounts = mounts.map_err(|e| HostError::Failed(format!("{MOUNTS} cannot be read: {e}")))?;
        match op {
            DisksOp::Mounts => Ok(list(mounts.iter().map(|mount| {
                map([
                    ("device", Value::from(mount.device.as_str())),
                    ("mount_point", Value::from(mount.mount_point.as_str())),
                    ("fstype", Value::from(mount.fstype.as_str())),
                    ("options", list(mount.options.iter().map(String::as_str))),
                    ("device_number", Value::from(mount.device_number)),
                ])
            }))),
            DisksOp::Usage { mount_point } => {
                if mount_point.len() > MAX_PATH || !mounts.iter().any(|mount| mount.mount_point == mount_point) {
                    return Err(HostError::Failed(format!("nothing is mounted at {mount_point:?}")));
                }
                self.usage(&mounts, mount_point).await
            }
        }
    }

    async fn usage(&self, mounts: &[Mount], mount_point: String) -> Result<Value, HostError> {
        let what = format!("the file system at {mount_point:?}");
        let said = if answers_at_once(mounts, &mount_point) {
            statvfs(mount_point.as_str())
        } else {
            self.patiently(&what, mount_point).await?
        };
        let StatVfs { f_frsize, f_blocks, f_bfree, f_bavail, f_files, f_ffree, .. } =
            said.map_err(|e| HostError::Failed(format!("{what} cannot be asked: {e}")))?;
        Ok(map([
            ("block_size", Value::from(f_frsize)),
            ("blocks", Value::from(f_blocks)),
            ("blocks_free", Value::from(f_bfree)),
            ("blocks_available", Value::from(f_bavail)),
            ("inodes", Value::from(f_files)),
            ("inodes_free", Value::from(f_ffree)),
        ]))
    }

    /// For those that may never answer.
    async fn patiently(&self, what: &str, mount_point: String) -> Result<rustix::io::Result<StatVfs>, HostError> {
        let turn = self.turn(&mount_point);
        let silent = |_| HostError::Failed(format!("{what} does not answer"));
        let turn = tokio::time::timeout(self.patience, turn.lock_owned()).await.map_err(silent)?;
        let answer = self.slow.ask(what, move || {
            let said = statvfs(mount_point.as_str());
            drop(turn);
            said
        });
        answer.await
    }

    fn turn(&self, mount_point: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody asks those.
        asked.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(asked.entry(mount_point.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::ValueExt;

    #[tokio::test]
    async fn mounts_and_their_usage() {
        let disks = Disks::new();
        let mounts = disks.answer(DisksOp::Mounts).await.unwrap();
        let Value::Array(mounts) = mounts else { panic!("{mounts}") };
        let proc = mounts.iter().find(|mount| mount.get("mount_point").unwrap().text() == Some("/proc")).unwrap();
        assert_eq!(proc.get("fstype").unwrap().text(), Some("proc"));
        use std::os::unix::fs::MetadataExt;
        assert_eq!(proc.get("device_number").unwrap().as_u64(), Some(std::fs::metadata("/proc").unwrap().dev()));
        let root = disks.answer(DisksOp::Usage { mount_point: "/".to_owned() }).await.unwrap();
        let number = |key: &str| root.get(key).unwrap().as_u64().unwrap();
        assert!(number("blocks") >= number("blocks_free") && number("block_size") > 0);
        for elsewhere in ["/etc", "", "/../", "//", "/\0"] {
            let error = disks.answer(DisksOp::Usage { mount_point: elsewhere.to_owned() }).await.unwrap_err();
            assert!(error.to_string().starts_with("nothing is mounted at"), "{error}");
        }
    }

    /// One that hangs takes one thread, whoever asks how often.
    #[tokio::test]
    async fn a_mount_is_asked_once_at_a_time() {
        let disks = Disks::patient(Duration::from_millis(50));
        let hung = disks.turn("/mnt").lock_owned().await;
        let error = disks.usage(&[], "/mnt".to_owned()).await.unwrap_err();
        assert_eq!(error.to_string(), "the file system at \"/mnt\" does not answer");
        drop(hung);
        disks.turn("/other");
        assert_eq!(disks.asked.lock().unwrap().len(), 1);
    }
}
