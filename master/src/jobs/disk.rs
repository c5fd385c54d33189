//! Finds the file system of a file and its free space, for the error message about a full disk.

use std::fmt;
use std::path::{Path, PathBuf};

/// A file system and its free space.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// The mount point.
    mount: PathBuf,
    /// The mounted device, such as `/dev/sda1` or `tmpfs`.
    source: String,
    /// Bytes that this process can still use.
    free: u64,
    /// Size in bytes.
    size: u64,
    /// Number of files that can still be made; `None` if the file system has no such limit.
    files_free: Option<u64>,
}

/// Describes the file system of a path; `None` if the system does not report it.
pub(super) fn describe(path: &Path) -> Option<Disk> {
    let path = std::path::absolute(path).ok()?;
    let path = path.canonicalize().unwrap_or(path);
    let room = rustix::fs::statvfs(&path).ok().or_else(|| rustix::fs::statvfs(path.parent()?).ok())?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (mount, source) = mount_of(&mounts, &path)?;
    Some(Disk {
        mount,
        source,
        free: room.f_bavail.saturating_mul(room.f_frsize),
        size: room.f_blocks.saturating_mul(room.f_frsize),
        files_free: (room.f_files > 0).then_some(room.f_favail),
    })
}

/// Returns the longest mount point that contains the path. Of several mounts at one place, the last one counts.
fn mount_of(mountinfo: &str, path: &Path) -> Option<(PathBuf, String)> {
    let mut found: Option<(PathBuf, String)> = None;
    for line in mountinfo.lines() {
        // proc(5): id, parent, device, root, mount point, options, optional fields, "-", type, source, more options
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let (Some(mount), Some(source)) = (before.split(' ').nth(4), after.split(' ').nth(1)) else { continue };
        let mount = PathBuf::from(unescaped(mount));
        if path.starts_with(&mount) && found.as_ref().is_none_or(|(best, _)| mount.starts_with(best)) {
            found = Some((mount, unescaped(source)));
        }
    }
    found
}

/// Decodes blanks, tabs, newlines and backslashes, which the kernel writes as three octal digits.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mount, source, .. } = self;
        write!(f, "{} ({source}) has {} of {} free", mount.display(), bytes(self.free), bytes(self.size))?;
        if self.files_free == Some(0) {
            f.write_str(" and no room for another file")?;
        }
        Ok(())
    }
}

fn bytes(n: u64) -> String {
    let (mut whole, mut unit) = (n, "bytes");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if whole < 10_240 {
            break;
        }
        (whole, unit) = (whole / 1_024, next);
    }
    format!("{whole} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_counts() {
        let mounts = "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n\
                      23 22 0:5 / /var rw - ext4 /dev/sdb rw\n\
                      24 23 0:6 / /var/my\\040cache rw shared:2 master:3 - tmpfs tmpfs rw,size=8k\n";
        for (path, mount, source) in [
            ("/etc/x", "/", "/dev/sda1"),
            ("/var/lib", "/var", "/dev/sdb"),
            ("/variable", "/", "/dev/sda1"),
            ("/var/my cache/jobs.db", "/var/my cache", "tmpfs"),
        ] {
            assert_eq!(mount_of(mounts, Path::new(path)), Some((mount.into(), source.to_owned())), "{path}");
        }
    }

    #[test]
    fn a_real_one_is_described() {
        let dir = tempfile::tempdir().unwrap();
        let disk = describe(&dir.path().join("not made yet")).unwrap();
        assert!(disk.size > 0 && disk.mount.is_absolute());
        let disk = Disk { mount: "/v".into(), source: "tmpfs".into(), free: 0, size: 8 << 20, files_free: Some(0) };
        assert_eq!(disk.to_string(), "/v (tmpfs) has 0 bytes of 8192 KiB free and no room for another file");
    }
}
