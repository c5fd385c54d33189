//! `brine:host/disks`: the file systems that are mounted, and how full they are.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_protocol::value::{Value, list, map};
use brine_sandbox::{DisksOp, HostError};
use rustix::fs::{StatVfs, makedev, statvfs};

use super::slow::Slow;

const MOUNTS: &str = "/proc/self/mountinfo";
/// Bytes of that file: ten thousand mounts of a host of containers.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Mounts that are told.
const MAX_MOUNTS: usize = 10_000;
/// Bytes of a path.
const MAX_PATH: usize = 4_096;
/// File systems that may hang at once, and how long one is waited for.
const MAX_HUNG: usize = 8;
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks file systems.
pub(super) struct Disks {
    slow: Slow,
    patience: Duration,
    /// Of each mount point that is asked now: one question at a time, so that one that hangs holds one thread.
    asked: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    device: String,
    mount_point: String,
    fstype: String,
    options: Vec<String>,
    device_number: u64,
}

impl Disks {
    pub(super) fn new() -> Self {
        Self::patient(PATIENCE)
    }

    fn patient(patience: Duration) -> Self {
        Self { slow: Slow::new(MAX_HUNG, patience), patience, asked: Mutex::default() }
    }

    pub(super) async fn answer(&self, op: DisksOp) -> Result<Value, HostError> {
        let mounts = tokio::task::spawn_blocking(read).await;
        let mounts = mounts.map_err(|_| HostError::Failed("the minion failed".to_owned()))?;
        let mounts = mounts.map_err(|e| HostError::Failed(format!("{MOUNTS} cannot be read: {e}")))?;
        match op {
            DisksOp::Mounts => Ok(list(mounts.into_iter().map(|mount| {
                map([
                    ("device", Value::from(mount.device)),
                    ("mount_point", Value::from(mount.mount_point)),
                    ("fstype", Value::from(mount.fstype)),
                    ("options", list(mount.options)),
                    ("device_number", Value::from(mount.device_number)),
                ])
            }))),
            DisksOp::Usage { mount_point } => {
                if mount_point.len() > MAX_PATH || !mounts.iter().any(|mount| mount.mount_point == mount_point) {
                    return Err(HostError::Failed(format!("nothing is mounted at {mount_point:?}")));
                }
                self.usage(mount_point).await
            }
        }
    }

    async fn usage(&self, mount_point: String) -> Result<Value, HostError> {
        let turn = self.turn(&mount_point);
        let path = mount_point.clone();
        let what = format!("the file system at {mount_point:?}");
        let silent = |_| HostError::Failed(format!("{what} does not answer"));
        let turn = tokio::time::timeout(self.patience, turn.lock_owned()).await.map_err(silent)?;
        let answer = self.slow.ask(&what, move || {
            let said = statvfs(path.as_str());
            drop(turn);
            said
        });
        let StatVfs { f_frsize, f_blocks, f_bfree, f_bavail, f_files, f_ffree, .. } =
            answer.await?.map_err(|e| HostError::Failed(format!("{what} cannot be asked: {e}")))?;
        Ok(map([
            ("block_size", Value::from(f_frsize)),
            ("blocks", Value::from(f_blocks)),
            ("blocks_free", Value::from(f_bfree)),
            ("blocks_available", Value::from(f_bavail)),
            ("inodes", Value::from(f_files)),
            ("inodes_free", Value::from(f_ffree)),
        ]))
    }

    fn turn(&self, mount_point: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody asks those.
        asked.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(asked.entry(mount_point.to_owned()).or_default())
    }
}

fn read() -> std::io::Result<Vec<Mount>> {
    let mut text = Vec::new();
    File::open(MOUNTS)?.take(MAX_BYTES).read_to_end(&mut text)?;
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(|line| parse(&String::from_utf8_lossy(line))).take(MAX_MOUNTS).collect())
}

/// One line of proc_pid_mountinfo(5): `36 35 98:0 /root /mnt/point rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ');
    let (major, minor) = fields.nth(2)?.split_once(':')?;
    let device_number = makedev(major.parse().ok()?, minor.parse().ok()?);
    let mount_point = plain(fields.nth(1)?);
    let mut options: Vec<String> = fields.next()?.split(',').map(plain).collect();
    fields.find(|field| *field == "-")?;
    let (fstype, device) = (plain(fields.next()?), plain(fields.next()?));
    // The file system's own; whether it can be written is said by both, and is so where both say it.
    for option in fields.next().unwrap_or_default().split(',').filter(|option| !option.is_empty()).map(plain) {
        match option.as_str() {
            "rw" => {}
            "ro" => options.iter_mut().filter(|known| *known == "rw").for_each(|known| *known = "ro".to_owned()),
            _ if options.contains(&option) => {}
            _ => options.push(option),
        }
    }
    Some(Mount { device, mount_point, fstype, options, device_number })
}

/// The kernel writes blank, tab, newline and backslash as three octal digits.
fn plain(field: &str) -> String {
    let mut out = Vec::with_capacity(field.len());
    let mut left = field.as_bytes();
    while let [first, rest @ ..] = left {
        left = rest;
        match rest {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] if *first == b'\\' => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                left = after;
            }
            _ => out.push(*first),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::ValueExt;

    #[test]
    fn lines_of_mountinfo() {
        let mount =
            parse("36 35 98:1 /root /mnt/a\\040b\\134 rw,noatime master:1 - ext3 /dev/a\\011b rw,errors=continue");
        let expected = Mount {
            device: "/dev/a\tb".to_owned(),
            mount_point: "/mnt/a b\\".to_owned(),
            fstype: "ext3".to_owned(),
            options: vec!["rw".to_owned(), "noatime".to_owned(), "errors=continue".to_owned()],
            device_number: 98 << 8 | 1,
        };
        assert_eq!(mount, Some(expected));
        let read_only = parse("1 0 0:1 / / rw - tmpfs tmpfs ro,size=1k").unwrap();
        assert_eq!(read_only.options, ["ro", "size=1k"]);
        assert_eq!(parse("1 0 0:1 / / rw shared:1 master:2 - proc proc rw").unwrap().fstype, "proc");
        for bad in
            ["", "1 0", "1 0 0:1 / / rw shared:1", "1 0 01 / / rw - a b c", "1 0 x:1 / / rw - a b c", "- - - - - -"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
        for (field, expected) in
            [("\\04", "\\04"), ("\\", "\\"), ("\\400", "\\400"), ("\\0401", " 1"), ("é\\040", "é ")]
        {
            assert_eq!(plain(field), expected);
        }
    }

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
        let error = disks.usage("/mnt".to_owned()).await.unwrap_err();
        assert_eq!(error.to_string(), "the file system at \"/mnt\" does not answer");
        drop(hung);
        disks.turn("/other");
        assert_eq!(disks.asked.lock().unwrap().len(), 1);
    }
}
