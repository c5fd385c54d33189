//! `_file_recv` (§6.6): a minion pushes a file into a folder of its own under the master's cache. Off unless `file_recv` is set.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::PathBuf;

use brine_protocol::ids::{MinionId, SafePath};
use brine_protocol::value::{Value, ValueExt};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

#[derive(Debug)]
pub(super) struct Receiver {
    minions: PathBuf,
    on: bool,
    bytes_max: u64,
}

impl Receiver {
    pub(super) const fn new(minions: PathBuf, on: bool, bytes_max: u64) -> Self {
        Self { minions, on, bytes_max }
    }

    /// Stores one chunk: the first makes the file anew, the others are added to it.
    pub(super) fn store(&self, id: &MinionId, load: &Value) -> Result<(), String> {
        if !self.on {
            return Err("file_recv is off".to_owned());
        }
        let parts = load.get_list("path").ok_or("its path is not a list")?;
        let parts =
            parts.iter().map(ValueExt::text).collect::<Option<Vec<_>>>().ok_or("its path is not a list of texts")?;
        let path = SafePath::try_from(parts.join("/")).map_err(|e| e.to_string())?;
        let at = load.get_u64("loc").ok_or("its loc is not a position")?;
        let data = load.get_bytes("data").ok_or("it has no data")?;
        if at.checked_add(data.len() as u64).is_none_or(|end| end > self.bytes_max) {
            return Err(format!("it is larger than file_recv_max_size ({} MiB)", self.bytes_max >> 20));
        }
        self.write(id, &path, at, data).map_err(|e| e.to_string())
    }

    fn write(&self, id: &MinionId, path: &SafePath, at: u64, data: &[u8]) -> io::Result<()> {
        let root = self.minions.join(id.as_str()).join("files");
        DirBuilder::new().recursive(true).mode(0o700).create(&root)?;
        let mut dir = rustix::fs::open(&root, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let (folders, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
            match rustix::fs::mkdirat(&dir, folder, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
            dir = beneath(&dir, folder, OFlags::DIRECTORY | OFlags::PATH)?;
        }
        let mut flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK;
        if at == 0 {
            flags |= OFlags::TRUNC;
        }
        let file = File::from(beneath(&dir, name, flags)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("there is something else with this name"));
        }
        // A gap would be a hole of zeroes that nobody sent.
        if metadata.len() < at {
            return Err(io::Error::other("the chunk before it is missing"));
        }
        file.write_all_at(data, at)
    }
}

/// One step down, never through a symlink.
fn beneath(dir: &OwnedFd, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let mode = if flags.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    rustix::fs::openat2(dir.as_fd(), name, flags | OFlags::CLOEXEC, mode, resolve)
}
