//! Keeps what a file was before a change, as Salt's `backup: minion`: `cachedir/file_backup`, the file's path, and the
//! time in its name.

use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use brine_protocol::value::{Value, map};
use rustix::fs::Mode;
use rustix::io::Errno;

use super::failure::Failure;
use super::place::Place;
use super::put::raw;
use super::{Done, Task, content};

/// Upper bound on the backups of one file in an answer. Older ones stay on the disk.
const MAX_LISTED: usize = 1_000;
/// Upper bound on the names that are read for them.
const MAX_NAMES: usize = 100_000;

pub(super) struct Backups(PathBuf);

impl Backups {
    pub(super) fn new(cachedir: &Path) -> Self {
        Self(cachedir.join("file_backup"))
    }

    fn folder(&self, real: &str) -> (PathBuf, String) {
        let (dir, name) = real.rsplit_once('/').unwrap_or_default();
        (self.0.join(dir.trim_start_matches('/')), name.to_owned())
    }

    /// Copies a file. Returns the path of the copy.
    pub(super) fn keep(&self, place: &Place, over: &AtomicBool) -> Result<String, Failure> {
        let (folder, name) = self.folder(&place.real);
        let from = content::open(place)?;
        DirBuilder::new().mode(0o700).recursive(true).create(&folder)?;
        let path = folder.join(format!("{name}_{}", stamp(&jiff::Zoned::now())));
        let mut to = File::options().write(true).create_new(true).open(&path)?;
        let copied = || -> Result<(), Failure> {
            rustix::fs::fchmod(&to, Mode::RUSR | Mode::WUSR)?;
            content::each(&from, over, |bytes| Ok(to.write_all(bytes)?))?;
            let stat = rustix::fs::fstat(&from)?;
            let (user, group) = raw((Some(stat.st_uid), Some(stat.st_gid)));
            rustix::fs::fchown(&to, user, group)?;
            rustix::fs::fchmod(&to, Mode::from_raw_mode(stat.st_mode & 0o777))?;
            rustix::fs::fsync(&to)?;
            Ok(())
        };
        let mut copied = copied;
        copied().inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// Opens a backup of a file.
    pub(super) fn open(&self, path: &str, name: &str) -> Result<File, Failure> {
        Ok(brine_files::open_regular(&self.path(path, name)?)?)
    }

    /// Returns the path of a backup, whose name has to be one of this file's.
    fn path(&self, path: &str, name: &str) -> Result<PathBuf, Failure> {
        let (folder, file) = self.folder(path);
        let is = name.strip_prefix(&format!("{file}_")).is_some_and(is_stamp);
        if is && !name.contains('/') { Ok(folder.join(name)) } else { Err(Errno::NOENT.into()) }
    }
}

/// The time in a backup's name: `Tue_Nov_24_06:52:23_123456_2026`, in local time as Salt's.
fn stamp(now: &jiff::Zoned) -> String {
    let micros = now.timestamp().as_microsecond().rem_euclid(1_000_000);
    // Salt writes the last six digits of the time without a point, which are these.
    format!("{}_{micros:06}_{}", now.strftime("%a_%b_%d_%H:%M:%S"), now.strftime("%Y"))
}

fn is_stamp(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
    text.split('_').count() == 6 && text.chars().all(plain)
}

impl Task {
    /// Lists the backups of a file, the newest first.
    pub(super) fn backups(&self, path: &str) -> Result<Value, Failure> {
        let Some(place) = self.find_content(path, true)? else { return Ok(Value::Array(Vec::new())) };
        let (folder, name) = self.host.backups.folder(&place.real);
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Value::Array(Vec::new())) };
        let prefix = format!("{name}_");
        let mut found: Vec<(f64, u64, String, String)> = Vec::new();
        for entry in entries.take(MAX_NAMES).filter_map(Result::ok) {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_file() && name.strip_prefix(&prefix).is_some_and(is_stamp) {
                let location = entry.path().to_string_lossy().into_owned();
                #[expect(clippy::cast_precision_loss, reason = "what Python's os.stat does")]
                found.push((meta.mtime() as f64 + meta.mtime_nsec() as f64 / 1e9, meta.len(), name, location));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.2.cmp(&a.2)));
        found.truncate(MAX_LISTED);
        let value = |(mtime, size, name, location): (f64, u64, String, String)| {
            map([
                ("name", Value::from(name)),
                ("location", Value::from(location)),
                ("size", Value::from(size)),
                ("mtime", Value::F64(mtime)),
            ])
        };
        Ok(Value::Array(found.into_iter().map(value).collect()))
    }

    pub(super) fn remove_backup(&self, path: &str, name: &str) -> Result<Done, Failure> {
        let place = self.find_to_change(path, true, false)?;
        let backup = self.host.backups.path(&place.real, name)?;
        // It is a regular file, and no link.
        drop(brine_files::open_regular(&backup)?);
        std::fs::remove_file(backup)?;
        Ok(Done { count: 1, ..Done::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_written_as_salt_does() {
        let at = "2026-11-24T06:52:03.000123+00:00[UTC]".parse::<jiff::Zoned>().unwrap();
        assert_eq!(stamp(&at), "Tue_Nov_24_06:52:03_000123_2026");
        assert!(is_stamp(&stamp(&at)));
        for bad in ["", "a_b", "Tue_Nov_24_06:52:03_000123_2026/..", "x_Tue_Nov_24_06:52:03_000123_2026"] {
            assert!(!is_stamp(bad), "{bad}");
        }
    }
}
