//! `cache.*`: what the master remembers of its minions.

use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{Value, ValueExt, empty_map, map};

use super::{Call, Outcome};
use crate::files;
use crate::master::Master;

/// Bytes of one minion's file that are read; what is written has a bound of its own.
const FILE_MAX: u64 = 16 << 20;

/// `{id: data}` of the minions that `tgt` (all) of `tgt_type` (glob) names and of which something is known. `bank` is the folder.
pub(super) async fn of_minions(master: &Arc<Master>, bank: &'static str, call: &Call) -> Outcome {
    let tgt = call.get(0, "tgt").cloned().unwrap_or_else(|| Value::from("*"));
    let tgt_type = call.get(1, "tgt_type").and_then(ValueExt::text).unwrap_or("glob").to_owned();
    let resolved =
        crate::publish::resolve(master, &tgt_type, &map([("tgt", tgt)]), ":").await.map_err(|e| e.to_string())?;
    let dir = master.opts.cachedir.join(bank);
    let read = move || {
        let mut found = empty_map();
        for id in &resolved.matched {
            if let Some(data) = read(&dir, id) {
                found.insert(id.as_str(), data);
            }
        }
        found
    };
    tokio::task::spawn_blocking(read).await.map_err(|_| "the cache could not be read".to_owned())
}

fn read(dir: &std::path::Path, id: &MinionId) -> Option<Value> {
    let path = dir.join(format!("{id}.p"));
    match files::read_regular(&path, FILE_MAX) {
        Ok(packed) => msgpack::decode(&packed?.0, &Limits::REQUEST).ok(),
        Err(error) => {
            tracing::warn!("{} cannot be read: {error}", path.display());
            None
        }
    }
}
