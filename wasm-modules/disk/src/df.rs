//! Reproduces `df`: selects the mounts, and formats their numbers.

use brine_guest::host::disks::{FileSystem, Mount, Space};
use brine_guest::{Data, Value};

/// The options that Salt accepts for `df`.
const ALLOWED: &str = "aBhHiklPtTxv";

/// Whether the options request all mounts.
pub(crate) fn flags(args: Option<&Data>, caller: &str) -> Result<bool, String> {
    let mut all = false;
    let letters: Vec<String> = match args.map(Data::value).transpose()? {
        None | Some(Value::None) => Vec::new(),
        Some(Value::Text(text)) => text.chars().map(String::from).collect(),
        Some(Value::List(items)) => items.iter().map(|item| item.text().unwrap_or_default().to_owned()).collect(),
        Some(other) => return Err(format!("args is to be text or a list of texts, not {}", other.kind())),
    };
    for letter in letters {
        match letter.as_str() {
            "a" => all = true,
            "k" | "P" => {}
            one if one.len() == 1 && ALLOWED.contains(one) => {
                return Err(format!("{caller} does not run df, and has none of what its flag {one} does"));
            }
            _ => return Err(format!("Invalid flag passed to {caller}")),
        }
    }
    Ok(all)
}

/// File systems that represent the kernel's state and hold no files.
const DUMMIES: [&str; 14] = [
    "autofs",
    "proc",
    "subfs",
    "debugfs",
    "devpts",
    "fusectl",
    "fuse.portal",
    "mqueue",
    "rpc_pipefs",
    "sysfs",
    "devfs",
    "kernfs",
    "ignore",
    "none",
];

/// Each file system once, by the mount that df displays.
pub(crate) fn distinct(known: Vec<FileSystem>) -> Vec<FileSystem> {
    let mut shown: Vec<FileSystem> = Vec::new();
    for one in known {
        if DUMMIES.contains(&one.mount.fstype.as_str()) {
            continue;
        }
        match shown.iter_mut().find(|other| other.mount.device_number == one.mount.device_number) {
            None => shown.push(one),
            // A device name that is a path is preferred, then a mount point nearer to the root.
            Some(other) => {
                let better = one.mount.device.contains('/') && !other.mount.device.contains('/');
                let worse = !one.mount.device.contains('/') && other.mount.device.contains('/');
                if better || (!worse && one.mount.mount_point.len() < other.mount.mount_point.len()) {
                    *other = one;
                }
            }
        }
    }
    shown
}

/// A row of `df -P`, for `disk.usage`.
pub(crate) fn blocks(mount: &Mount, space: &Space) -> Value {
    // In units of 1024 bytes, rounded up as df does.
    let kib = |blocks: u64| (u128::from(blocks) * u128::from(space.block_size)).div_ceil(1024).to_string();
    Value::dict([
        ("filesystem", mount.device.as_str().into()),
        ("1K-blocks", kib(space.blocks).into()),
        ("used", kib(space.blocks.saturating_sub(space.blocks_free)).into()),
        ("available", kib(space.blocks_available).into()),
        ("capacity", capacity(space)),
    ])
}

/// A row of `df -iP`, for `disk.inodeusage`.
pub(crate) fn inodes(mount: &Mount, space: &Space) -> Value {
    let used = space.inodes.saturating_sub(space.inodes_free);
    Value::dict([
        ("inodes", space.inodes.to_string().into()),
        ("used", used.to_string().into()),
        ("free", space.inodes_free.to_string().into()),
        ("use", percent(used, space.inodes_free)),
        ("filesystem", mount.device.as_str().into()),
    ])
}

/// `42%` of the space that users other than root can use.
pub(crate) fn capacity(space: &Space) -> Value {
    percent(space.blocks.saturating_sub(space.blocks_free), space.blocks_available)
}

fn percent(used: u64, left: u64) -> Value {
    let (used, total) = (u128::from(used), u128::from(used) + u128::from(left));
    if total == 0 { "-".into() } else { format!("{}%", (used * 100).div_ceil(total)).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(device: &str, mount_point: &str, fstype: &str, device_number: u64) -> Mount {
        Mount {
            device: device.into(),
            mount_point: mount_point.into(),
            fstype: fstype.into(),
            options: vec![],
            device_number,
        }
    }

    const SPACE: Space = Space {
        block_size: 4096,
        blocks: 66_053_064,
        blocks_free: 54_465_000,
        blocks_available: 12_233_716,
        inodes: 16_777_216,
        inodes_free: 16_227_801,
    };

    #[test]
    fn one_mount_of_each_file_system() {
        let known = [
            mount("proc", "/proc", "proc", 21),
            mount("/dev/vda", "/mnt/bind", "ext4", 1),
            mount("/dev/vda", "/", "ext4", 1),
            mount("tmpfs", "/dev/shm", "tmpfs", 27),
            mount("tmpfs", "/run", "tmpfs", 30),
            mount("/dev/vda", "/etc/hosts", "ext4", 1),
            mount("rootfs", "/x", "rootfs", 40),
            mount("/dev/vdb", "/longer", "ext4", 40),
        ];
        let known = known.map(|mount| FileSystem { mount, space: SPACE }).to_vec();
        let shown: Vec<_> = distinct(known).into_iter().map(|one| (one.mount.device, one.mount.mount_point)).collect();
        let expected = [("/dev/vda", "/"), ("tmpfs", "/dev/shm"), ("tmpfs", "/run"), ("/dev/vdb", "/longer")];
        assert_eq!(shown, expected.map(|(device, place)| (device.to_owned(), place.to_owned())));
    }

    #[test]
    fn numbers_are_dfs() {
        let space = SPACE;
        let root = mount("/dev/vda", "/", "ext4", 1);
        let text = |row: &Value, key: &str| row.get(key).and_then(Value::text).map(str::to_owned).unwrap();
        let row = blocks(&root, &space);
        assert_eq!(text(&row, "1K-blocks"), "264212256");
        assert_eq!(text(&row, "available"), "48934864");
        assert_eq!(text(&row, "capacity"), "49%");
        let row = inodes(&root, &space);
        assert_eq!((text(&row, "used"), text(&row, "use")), ("549415".into(), "4%".into()));
        let none = Space { blocks: 0, blocks_free: 0, blocks_available: 0, inodes: 0, inodes_free: 0, block_size: 1 };
        assert_eq!(text(&inodes(&root, &none), "use"), "-");
    }

    #[test]
    fn flags_are_letters() {
        assert_eq!(flags(None, "disk.usage"), Ok(false));
        assert_eq!(flags(Some(&"Pa".into()), "disk.usage"), Ok(true));
        assert_eq!(flags(Some(&vec!["k"].into()), "disk.usage"), Ok(false));
        assert_eq!(flags(Some(&"z".into()), "disk.usage"), Err("Invalid flag passed to disk.usage".into()));
        assert!(flags(Some(&"h".into()), "disk.usage").unwrap_err().contains("flag h"));
    }
}
