//! `brine:host/disks`: the mounted file systems and how full they are.

mod mounts;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_protocol::value::{Value, list, map};
use brine_sandbox::{Caller, DisksOp, HostError};
use rustix::fs::{StatVfs, statvfs};

use super::slow::Slow;
use super::{MinionBroker, Perform};
use mounts::{MOUNTS, Mount, Mounts, Table};

/// Upper bound on the requests that hang in a file system at once.
const MAX_HUNG: usize = 8;
/// The time that one request may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// File systems queried before other tasks get a turn.
const AT_A_TIME: usize = 64;

impl Perform<DisksOp> for MinionBroker {
    async fn perform(&self, _: &Caller, op: DisksOp) -> Result<Value, HostError> {
        self.disks.answer(op).await
    }
}

/// Queries the usage of file systems.
pub(super) struct Disks {
    table: Arc<Table>,
    slow: Slow,
    patience: Duration,
    /// The mount points with a query under way. One query runs at a time for each, so that a file system that hangs
    /// blocks one thread only.
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
            DisksOp::Mounts => Ok(list(mounts.all().iter().map(told))),
            DisksOp::Usage { mount_point } => self.usage(&mounts, seen(&mounts, &mount_point)?).await,
            DisksOp::FileSystemAt { mount_point } => {
                let mount = seen(&mounts, &mount_point)?;
                Ok(file_system(mount, self.usage(&mounts, mount).await?))
            }
            DisksOp::FileSystems => {
                let mut all = Vec::new();
                for (at, mount) in mounts.to_ask().enumerate() {
                    if at % AT_A_TIME == AT_A_TIME - 1 {
                        tokio::task::yield_now().await;
                    }
                    if let Ok(space) = self.usage(&mounts, mount).await {
                        all.push(file_system(mount, space));
                    }
                }
                Ok(Value::Array(all))
            }
        }
    }

    async fn usage(&self, mounts: &Mounts, mount: &Mount) -> Result<Value, HostError> {
        let mount_point = mount.mount_point.as_str();
        let what = || format!("the file system at {mount_point:?}");
        let said = if mounts.answers_at_once(mount_point) {
            statvfs(mount_point)
        } else {
            self.patiently(&what(), mount_point.to_owned()).await?
        };
        let StatVfs { f_frsize, f_blocks, f_bfree, f_bavail, f_files, f_ffree, .. } =
            said.map_err(|e| HostError::Failed(format!("{} cannot be asked: {e}", what())))?;
        Ok(map([
            ("block_size", Value::from(f_frsize)),
            ("blocks", Value::from(f_blocks)),
            ("blocks_free", Value::from(f_bfree)),
            ("blocks_available", Value::from(f_bavail)),
            ("inodes", Value::from(f_files)),
            ("inodes_free", Value::from(f_ffree)),
        ]))
    }

    /// Queries a file system that may never answer.
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
        // Removes the mount points without a query.
        asked.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(asked.entry(mount_point.to_owned()).or_default())
    }
}

fn seen<'a>(mounts: &'a Mounts, mount_point: &str) -> Result<&'a Mount, HostError> {
    mounts.at(mount_point).ok_or_else(|| HostError::Failed(format!("nothing is mounted at {mount_point:?}")))
}

fn told(mount: &Mount) -> Value {
    map([
        ("device", Value::from(mount.device.as_str())),
        ("mount_point", Value::from(mount.mount_point.as_str())),
        ("fstype", Value::from(mount.fstype.as_str())),
        ("options", list(mount.options.iter().map(String::as_str))),
        ("device_number", Value::from(mount.device_number)),
    ])
}

fn file_system(mount: &Mount, space: Value) -> Value {
    map([("mount", told(mount)), ("space", space)])
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
        // Of several file systems at one mount point, the last one is visible.
        let proc = mounts.iter().rev().find(|mount| mount.get("mount_point").unwrap().text() == Some("/proc")).unwrap();
        assert_eq!(proc.get("fstype").unwrap().text(), Some("proc"));
        use std::os::unix::fs::MetadataExt;
        assert_eq!(proc.get("device_number").unwrap().as_u64(), Some(std::fs::metadata("/proc").unwrap().dev()));
        let root = disks.answer(DisksOp::Usage { mount_point: "/".to_owned() }).await.unwrap();
        let number = |key: &str| root.get(key).unwrap().as_u64().unwrap();
        assert!(number("blocks") >= number("blocks_free") && number("block_size") > 0);
        let one = disks.answer(DisksOp::FileSystemAt { mount_point: "/".to_owned() }).await.unwrap();
        let blocks = |space: &Value| space.get("blocks").unwrap().as_u64();
        assert_eq!(blocks(one.get("space").unwrap()), blocks(&root));
        let Value::Array(all) = disks.answer(DisksOp::FileSystems).await.unwrap() else { panic!("no list") };
        let places: Vec<_> = all.iter().map(|one| one.get("mount").unwrap().get_text("mount_point").unwrap()).collect();
        assert!(places.contains(&"/") && places.contains(&"/proc"), "{places:?}");
        assert!(all.contains(&one) || all.iter().any(|other| other.get("mount") == one.get("mount")));
        assert!(places.iter().all(|place| places.iter().filter(|other| *other == place).count() == 1), "{places:?}");
        for elsewhere in ["/etc", "", "/../", "//", "/\0"] {
            let mount_point = elsewhere.to_owned();
            for op in [DisksOp::Usage { mount_point: mount_point.clone() }, DisksOp::FileSystemAt { mount_point }] {
                let error = disks.answer(op).await.unwrap_err();
                assert!(error.to_string().starts_with("nothing is mounted at"), "{error}");
            }
        }
    }

    /// A file system that hangs blocks one thread, whatever the number of queries.
    #[tokio::test]
    async fn a_mount_is_asked_once_at_a_time() {
        let disks = Disks::patient(Duration::from_millis(50));
        let hung = disks.turn("/mnt").lock_owned().await;
        let mount = Mount {
            device: "host:/".to_owned(),
            mount_point: "/mnt".to_owned(),
            fstype: "nfs4".to_owned(),
            options: Vec::new(),
            device_number: 0,
        };
        let error = disks.usage(&Mounts::default(), &mount).await.unwrap_err();
        assert_eq!(error.to_string(), "the file system at \"/mnt\" does not answer");
        drop(hung);
        disks.turn("/other");
        assert_eq!(disks.asked.lock().unwrap().len(), 1);
    }
}
