//! The audit log's file: for the master's user alone, only appended to, and found again under its name when it was moved away.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_protocol::trusted_path::{self, LastLink};
use rustix::fs::OFlags;

/// It is looked for under its name this often, when something is written.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) struct AuditFile {
    path: PathBuf,
    file: File,
    looked: Instant,
    /// The last line was not written whole; what comes next begins one of its own.
    torn: bool,
    /// The open file is not the one under the name any more, and that one could not be opened.
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

    /// Appends whole lines. They are with the system then: what ends the master does not lose them, what ends the host may.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.torn || self.astray || self.looked.elapsed() >= LOOK_EVERY {
            let here = self.file.metadata()?;
            let there = std::fs::symlink_metadata(&self.path).ok();
            self.astray = there.is_none_or(|there| (there.dev(), there.ino()) != (here.dev(), here.ino()));
            if self.astray {
                // Nobody would read what is written to a file that is gone.
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
