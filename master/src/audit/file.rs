//! The audit log's file: accessible only to the master's user, append-only, and opened again after it was moved away.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_protocol::trusted_path::{self, LastLink};
use rustix::fs::OFlags;

/// Shortest interval between checks that the path still names the open file.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) struct AuditFile {
    path: PathBuf,
    file: File,
    looked: Instant,
    /// The last write was incomplete, so the next one starts a new line.
    torn: bool,
    /// The path no longer names the open file, and opening the path failed.
    astray: bool,
}

impl AuditFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: open(path)?, looked: Instant::now(), torn: false, astray: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.file = open(&self.path)?;
        (self.looked, self.torn, self.astray) = (Instant::now(), false, false);
        Ok(())
    }

    /// Appends whole lines. They survive the end of the master, but are not synced and may be lost if the host crashes.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.torn || self.astray || self.looked.elapsed() >= LOOK_EVERY {
            let here = self.file.metadata()?;
            let there = std::fs::symlink_metadata(&self.path).ok();
            self.astray = there.is_none_or(|there| (there.dev(), there.ino()) != (here.dev(), here.ino()));
            if self.astray {
                // Nobody reads a file without a name.
                self.reopen()?;
            }
            self.looked = Instant::now();
        }
        if self.torn {
            self.file.write_all(b"\n")?;
        }
        let written = self.file.write_all(lines);
        self.torn = written.is_err();
        written
    }
}

fn open(path: &Path) -> io::Result<File> {
    let user = rustix::process::geteuid().as_raw();
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    if let Some(dir) = path.parent() {
        trusted_path::folder(dir, 0o750, user)?;
    }
    let file = trusted_path::open_file(path, flags, 0o600, user, LastLink::Refused)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.permissions().mode() & 0o7777 != 0o600 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}
