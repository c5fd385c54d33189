//! Which minions a target means, by their keys and by what they said of themselves (§10).
//!
//! It is an expectation: minions decide for themselves. So who has said nothing yet is left out of targets by grains and
//! pillar, as with Salt, and with `minion_data_cache: False` everyone is expected.

use std::path::Path;
use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::target::{Facts, Resolved, Target, TargetType};
use brine_protocol::value::{Value, ValueExt as _};

use crate::keys::KeyState;
use crate::master::Master;
use crate::requests::Fault;

/// Bytes of a minion's grains or pillar that are read; what is written has a bound of its own.
const DATA_BYTES_MAX: u64 = 16 << 20;

/// The accepted minions that are meant. What is no target means nobody; why is in the log.
pub(crate) async fn resolve(
    master: &Arc<Master>,
    tgt_type: &str,
    load: &Value,
    delimiter: &str,
) -> Result<Resolved, Fault> {
    let tgt = load.get("tgt").unwrap_or(&Value::Nil);
    let groups = &master.opts.nodegroups;
    let target = tgt_type.parse::<TargetType>().and_then(|kind| Target::parse_with(kind, tgt, delimiter, groups));
    let target = match target {
        Ok(target) => target,
        Err(error) => {
            tracing::warn!("a target was not resolved: {error}");
            return Ok(Resolved::default());
        }
    };
    let ids = master.keys.list(KeyState::Accepted)?;
    if !target.needs_data() {
        return Ok(target.resolve(ids.iter().map(Facts::of_id)));
    }
    if !master.opts.minion_data_cache {
        return Ok(Resolved { matched: ids.to_vec(), missing: Vec::new() });
    }
    let cachedir = master.opts.cachedir.clone();
    let resolved = tokio::task::spawn_blocking(move || {
        let known: Vec<Known<'_>> = ids.iter().map(|id| Known::read(&cachedir, id)).collect();
        target.resolve(known.iter().map(Known::facts))
    });
    resolved.await.map_err(|_| Fault::new("the target could not be resolved"))
}

/// What is known of a minion.
struct Known<'a> {
    id: &'a MinionId,
    grains: Option<Value>,
    pillar: Option<Value>,
}

impl<'a> Known<'a> {
    fn read(cachedir: &Path, id: &'a MinionId) -> Self {
        let path = |bank: &str| cachedir.join(bank).join(format!("{id}.p"));
        Self { id, grains: read(&path("grains")), pillar: read(&path("pillar")) }
    }

    fn facts(&self) -> Facts<'_> {
        Facts { id: self.id, grains: self.grains.as_ref(), pillar: self.pillar.as_ref() }
    }
}

fn read(path: &Path) -> Option<Value> {
    let size = std::fs::metadata(path).ok()?.len();
    if size > DATA_BYTES_MAX {
        tracing::warn!("{} has {size} bytes and is not read", path.display());
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    match msgpack::decode(&bytes, &Limits::REQUEST) {
        Ok(value @ Value::Map(_)) => Some(value),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!("{} cannot be read: {error}", path.display());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::map;

    #[test]
    fn data_is_read_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.p");
        assert_eq!(read(&path), None);
        let grains = map([("os", "Debian")]);
        std::fs::write(&path, msgpack::encode_disk(&grains)).unwrap();
        assert_eq!(read(&path), Some(grains));
        std::fs::write(&path, b"\xc1").unwrap();
        assert_eq!(read(&path), None);
        std::fs::File::create(&path).unwrap().set_len(DATA_BYTES_MAX + 1).unwrap();
        assert_eq!(read(&path), None);
    }
}
