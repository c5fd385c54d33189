//! `grains_cache`: the collected grains in a file, so that a minion that starts again need not collect them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_protocol::files::write_atomic;
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::Value;
use tracing::{debug, warn};

use super::layers::MAX_GRAINS_BYTES;

/// The file is the minion's own, but may be old or cut off.
const LIMITS: Limits = Limits { max_bytes: MAX_GRAINS_BYTES, max_depth: 64, max_items: 100_000 };
/// Salt's name of the file.
const FILE: &str = "grains.cache.p";

/// The file and the age up to which it counts.
#[derive(Debug)]
pub(super) struct Cache {
    path: PathBuf,
    expires: Duration,
}

impl Cache {
    pub(super) fn new(cachedir: &Path, expires: Duration) -> Self {
        Self { path: cachedir.join(FILE), expires }
    }

    /// The grains of the file; none if it is too old or cannot be used.
    pub(super) fn read(&self) -> Option<Value> {
        let file = brine_files::open_own(&self.path).ok()?;
        let age = file.metadata().ok()?.modified().ok()?.elapsed().ok()?;
        if age > self.expires {
            return None;
        }
        let content = brine_files::read(&file, MAX_GRAINS_BYTES as u64).ok()?;
        match msgpack::decode_disk(&content, &LIMITS) {
            Ok(Value::Map(entries)) if !entries.is_empty() => Some(Value::Map(entries)),
            _ => {
                debug!("{} cannot be used; the grains are collected", self.path.display());
                None
            }
        }
    }

    pub(super) fn write(&self, grains: &Value) {
        if let Err(e) = write_atomic(&self.path, &msgpack::encode_disk(grains), 0o600) {
            warn!("the grains cannot be kept in {}: {e}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::map;

    use super::*;

    #[test]
    fn young_grains_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let cache = |expires| Cache::new(folder.path(), Duration::from_secs(expires));
        assert_eq!(cache(300).read(), None);
        cache(300).write(&map([("os", "Debian")]));
        assert_eq!(cache(300).read(), Some(map([("os", "Debian")])));
        let old = std::time::SystemTime::now() - Duration::from_secs(400);
        let file = std::fs::File::options().write(true).open(folder.path().join(FILE)).unwrap();
        file.set_modified(old).unwrap();
        assert_eq!(cache(300).read(), None);
        for broken in [&b"\xc1"[..], b"", b"\x80", b"\x91\x01"] {
            std::fs::write(folder.path().join(FILE), broken).unwrap();
            assert_eq!(cache(300).read(), None, "{broken:?}");
        }
    }
}
