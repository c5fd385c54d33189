//! The mount table of this process's namespace, read again when the kernel reports a change.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::makedev;

pub(super) const MOUNTS: &str = "/proc/self/mountinfo";
/// Upper bound on the bytes of the mount table: ten thousand mounts of a host with containers.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Upper bound on the mounts in the table.
const MAX_MOUNTS: usize = 10_000;
/// Age at which the table is read again although the kernel reports no change. The kernel reports mounts and unmounts
/// at once, but not that a file system became read-only after an error; the table shows that too.
const MAX_AGE: Duration = Duration::from_secs(1);

/// File systems that answer `statvfs` from memory, without a disk or a server. Other file systems may block, or may
/// query the file systems below them.
const IN_MEMORY: [&str; 16] = [
    "bpf",
    "cgroup",
    "cgroup2",
    "debugfs",
    "devpts",
    "devtmpfs",
    "ext3",
    "ext4",
    "hugetlbfs",
    "mqueue",
    "proc",
    "ramfs",
    "sysfs",
    "tmpfs",
    "tracefs",
    "xfs",
];

/// A query of an autofs mount point mounts the file system, so such mount points are not queried.
const AUTOFS: &str = "autofs";

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) device: String,
    pub(super) mount_point: String,
    pub(super) fstype: String,
    pub(super) options: Vec<String>,
    pub(super) device_number: u64,
}

/// The mounts in the kernel's order: a mount that hides another comes after it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts {
    all: Vec<Mount>,
    /// The visible mount of each mount point.
    places: HashMap<String, Place>,
}

#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// The index of the visible mount in [`Mounts::all`].
    seen: usize,
    /// Whether every file system ever mounted here answers from memory.
    in_memory: bool,
}

impl Mounts {
    fn new(all: Vec<Mount>) -> Self {
        let mut places: HashMap<String, Place> = HashMap::with_capacity(all.len());
        for (at, mount) in all.iter().enumerate() {
            let in_memory = IN_MEMORY.contains(&mount.fstype.as_str());
            let place = places.entry(mount.mount_point.clone()).or_insert(Place { seen: at, in_memory });
            (place.seen, place.in_memory) = (at, place.in_memory && in_memory);
        }
        Self { all, places }
    }

    /// All mounts, hidden ones included.
    pub(super) fn all(&self) -> &[Mount] {
        &self.all
    }

    /// The mounts to query: visible ones, without autofs.
    pub(super) fn to_ask(&self) -> impl Iterator<Item = &Mount> {
        let is_seen =
            |(at, mount): &(usize, &Mount)| self.places.get(&mount.mount_point).is_some_and(|p| p.seen == *at);
        let seen = self.all.iter().enumerate().filter(is_seen).map(|(_, mount)| mount);
        seen.filter(|mount| mount.fstype != AUTOFS)
    }

    /// The visible mount at a mount point.
    pub(super) fn at(&self, mount_point: &str) -> Option<&Mount> {
        self.all.get(self.places.get(mount_point)?.seen)
    }

    /// Whether the file system at this mount point and those above it answer without blocking. Resolving the path does
    /// not block either: a mount point and the folders above it stay in the kernel's cache.
    pub(super) fn answers_at_once(&self, mount_point: &str) -> bool {
        let above = mount_point.match_indices('/').map(|(at, _)| &mount_point[..at.max(1)]);
        let mut on_the_way = above.chain([mount_point]).filter_map(|place| self.places.get(place)).peekable();
        on_the_way.peek().is_some() && on_the_way.all(|place| place.in_memory)
    }
}

/// The mount table as it was last read.
#[derive(Default)]
pub(super) struct Table(Mutex<Option<Known>>);

struct Known {
    file: File,
    mounts: Arc<Mounts>,
    read: Instant,
    /// Whether the kernel reported a change. The kernel reports each change once.
    changed: bool,
}

impl Table {
    /// Returns the present mounts.
    pub(super) async fn now(self: &Arc<Self>) -> io::Result<Arc<Mounts>> {
        if let Some(known) = self.unchanged() {
            return Ok(known);
        }
        let this = Arc::clone(self);
        // Parsing thousands of mounts takes milliseconds.
        tokio::task::spawn_blocking(move || this.read()).await?
    }

    fn unchanged(&self) -> Option<Arc<Mounts>> {
        let mut known = self.lock();
        let known = known.as_mut()?;
        known.changed |= changed(&known.file);
        (!known.changed && known.read.elapsed() < MAX_AGE).then(|| Arc::clone(&known.mounts))
    }

    fn read(&self) -> io::Result<Arc<Mounts>> {
        let known = self.lock().take();
        let (mut file, read) = (known.map_or_else(|| File::open(MOUNTS), |known| Ok(known.file))?, Instant::now());
        // Clears the report of past changes. Later changes make the next call read the table again.
        changed(&file);
        file.rewind()?;
        let mut text = Vec::new();
        (&mut file).take(MAX_BYTES).read_to_end(&mut text)?;
        let lines = text.split(|byte| *byte == b'\n');
        let mounts = lines.filter_map(|line| parse(&String::from_utf8_lossy(line))).take(MAX_MOUNTS);
        let mounts = Arc::new(Mounts::new(mounts.collect()));
        *self.lock() = Some(Known { file, mounts: Arc::clone(&mounts), read, changed: false });
        Ok(mounts)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the kernel reports a change since the last call for this file, or since the file was opened
/// (proc_pid_mounts(5)).
fn changed(file: &File) -> bool {
    let mut asked = [PollFd::new(file, PollFlags::PRI)];
    // If `poll` fails, the table is read again.
    poll(&mut asked, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
}

/// Parses one line of proc_pid_mountinfo(5): `36 35 98:0 /root /mnt/point rw,noatime master:1 - ext3 /dev/root
/// rw,errors=continue`.
fn parse(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ');
    let (major, minor) = fields.nth(2)?.split_once(':')?;
    let device_number = makedev(major.parse().ok()?, minor.parse().ok()?);
    let mount_point = plain(fields.nth(1)?);
    let mut options: Vec<String> = fields.next()?.split(',').map(plain).collect();
    fields.find(|field| *field == "-")?;
    let (fstype, device) = (plain(fields.next()?), plain(fields.next()?));
    // The options of the file system itself. Both lists say whether writing is allowed; a mount is writable only if
    // both allow it.
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

/// Decodes a field. The kernel writes blank, tab, newline and backslash as three octal digits.
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

    #[test]
    fn one_that_may_hang_is_not_asked_at_once_nor_what_lies_on_it() {
        let mount = |mount_point: &str, fstype: &str| Mount {
            device: "none".to_owned(),
            mount_point: mount_point.to_owned(),
            fstype: fstype.to_owned(),
            options: Vec::new(),
            device_number: 0,
        };
        let mut mounts = vec![mount("/", "ext4"), mount("/srv", "nfs4"), mount("/srv/own", "ext4")];
        mounts.extend([
            mount("/srvs", "xfs"),
            mount("/mnt", "fuse.sshfs"),
            mount("/tmp", "tmpfs"),
            mount("/tmp", "cifs"),
            mount("/net", "autofs"),
            mount("/home", "autofs"),
            mount("/home", "ext4"),
        ]);
        let mounts = Mounts::new(mounts);
        let at_once = |point| mounts.answers_at_once(point);
        assert!(at_once("/") && at_once("/srvs"));
        for waits in ["/srv", "/srv/own", "/mnt", "/tmp"] {
            assert!(!at_once(waits), "{waits}");
        }
        let of = |mounts: Vec<Mount>| Mounts::new(mounts).answers_at_once("/");
        assert!(!of(vec![mount("/", "overlay")]) && !of(vec![]));
        // The last mount at a mount point hides the others.
        let seen: Vec<_> = mounts.to_ask().map(|mount| (mount.mount_point.as_str(), mount.fstype.as_str())).collect();
        let expected = [
            ("/", "ext4"),
            ("/srv", "nfs4"),
            ("/srv/own", "ext4"),
            ("/srvs", "xfs"),
            ("/mnt", "fuse.sshfs"),
            ("/tmp", "cifs"),
            ("/home", "ext4"),
        ];
        assert_eq!(seen, expected);
        assert_eq!(mounts.at("/tmp").unwrap().fstype, "cifs");
        assert_eq!(mounts.at("/tmp/"), None);
    }

    #[tokio::test]
    async fn a_table_is_read_again_when_it_is_old() {
        let table = Arc::new(Table::default());
        let first = table.now().await.unwrap();
        assert!(first.all().iter().any(|mount| mount.mount_point == "/proc"));
        table.lock().as_mut().unwrap().mounts = Arc::default();
        // Other tests may change the table in the meantime. Then it is read again, which is also correct.
        let again = table.now().await.unwrap();
        assert!(again.all().is_empty() || again == first);
        table.lock().as_mut().unwrap().read -= MAX_AGE;
        assert!(!table.now().await.unwrap().all().is_empty());
    }
}
