//! `cache.*`: shows and deletes the master's data of its minions.

pub(super) mod banks;

use std::path::{Path, PathBuf};

use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{Value, ValueExt as _, empty_map, map};

use super::function::{Failure, Function, Outcome, Run, functions};
use crate::files;
use crate::mine::MineRequest;

/// Bound on the bytes read from one minion's file. Writers have their own bounds.
const FILE_MAX: u64 = 16 << 20;

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Forgets the pillar, the grains and the mine of minions. They come again with the minions' next refresh.
    "cache.clear_all(tgt=None, tgt_type='glob')" => |run| clear(run, &["pillar", "grains", "mine"]),
    /// Forgets the grains of minions. They come again when a minion starts or refreshes its pillar.
    "cache.clear_grains(tgt=None, tgt_type='glob')" => |run| clear(run, &["grains"]),
    /// Forgets what minions put into the mine.
    "cache.clear_mine(tgt=None, tgt_type='glob')" => |run| clear(run, &["mine"]),
    /// Forgets one function's entry of minions in the mine.
    "cache.clear_mine_func(tgt=None, tgt_type='glob', clear_mine_func_flag=None)" => clear_mine_func,
    /// Forgets the pillar of minions.
    "cache.clear_pillar(tgt=None, tgt_type='glob')" => |run| clear(run, &["pillar"]),
    /// Returns the cached grains of minions.
    "cache.grains(tgt, tgt_type='glob', **kwargs)" => |run| async move { show(&run, "grains").await },
    /// Returns what minions put into the mine.
    "cache.mine(tgt=None, tgt_type='glob', **kwargs)" => |run| async move { show(&run, "mine").await },
    /// Returns the cached pillar of minions; without a target, of all.
    "cache.pillar(tgt=None, tgt_type='glob', **kwargs)" => |run| async move { show(&run, "pillar").await },
};

/// The banks with data of minions.
const fn known_banks() -> [&'static str; 3] {
    ["grains", "pillar", "mine"]
}

/// Resolves `tgt` of `tgt_type` to minions; `None` without a target.
async fn meant(run: &Run) -> Result<Option<Vec<MinionId>>, Failure> {
    let Some(tgt) = run.get("tgt").filter(|tgt| tgt.truthy()) else { return Ok(None) };
    let kind = run.text("tgt_type");
    let found = run.parts.dispatcher.targets.find(&kind, tgt).await;
    Ok(Some(found.map_err(|fault| fault.to_string())?))
}

/// Returns `{id: data}` from `bank`, which is the folder.
pub(super) async fn show(run: &Run, bank: &'static str) -> Outcome {
    let meant = meant(run).await?;
    if meant.is_none() && bank == "grains" {
        return Ok(empty_map());
    }
    // As in Salt: without a target, the minions with grains; for pillar, only those of them with pillar.
    let accepted = run.parts.keys.list(KeyState::Accepted).map_err(|e| e.to_string())?;
    let all = meant.is_none();
    let ids = meant.unwrap_or_else(|| accepted.to_vec());
    let cachedir = run.parts.opts.cachedir.clone();
    let read = move || {
        let mut found = Vec::new();
        for id in &ids {
            if all && !path(&cachedir, "grains", id).exists() {
                continue;
            }
            let data = read(&path(&cachedir, bank, id)).unwrap_or_else(empty_map);
            if !all || bank != "pillar" || data.truthy() {
                found.push((Value::from(id.as_str()), data));
            }
        }
        Value::Map(found)
    };
    blocking(read).await
}

async fn clear(run: Run, banks: &'static [&'static str]) -> Outcome {
    let Some(ids) = known(&run).await? else { return Ok(Value::from(false)) };
    for id in ids {
        for bank in banks {
            if *bank == "mine" {
                run.parts.mine.change(&id, MineRequest::Flush, &empty_map()).await?;
            } else {
                let path = path(&run.parts.opts.cachedir, bank, &id);
                remove(&path).map_err(|error| format!("{} cannot be removed: {error}", path.display()))?;
            }
        }
    }
    Ok(Value::from(true))
}

/// Returns the targeted minions that have grains, because Salt requires them.
async fn known(run: &Run) -> Result<Option<Vec<MinionId>>, Failure> {
    let Some(mut ids) = meant(run).await? else { return Ok(None) };
    ids.retain(|id| path(&run.parts.opts.cachedir, "grains", id).exists());
    Ok(Some(ids))
}

async fn clear_mine_func(run: Run) -> Outcome {
    let (Some(ids), Some(name)) = (known(&run).await?, run.find_text("clear_mine_func_flag")) else {
        return Ok(Value::from(false));
    };
    for id in ids {
        run.parts.mine.change(&id, MineRequest::Delete, &map([("fun", name.as_str())])).await?;
    }
    Ok(Value::from(true))
}

async fn blocking(work: impl FnOnce() -> Value + Send + 'static) -> Outcome {
    tokio::task::spawn_blocking(work).await.map_err(|_| "the cache could not be read".into())
}

fn path(cachedir: &Path, bank: &str, id: &MinionId) -> PathBuf {
    cachedir.join(bank).join(format!("{id}.p"))
}

fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn read(path: &Path) -> Option<Value> {
    match files::read_regular(path, FILE_MAX) {
        Ok(packed) => msgpack::decode(&packed?.0, &Limits::REQUEST).ok(),
        Err(error) => {
            tracing::warn!("{} cannot be read: {error}", path.display());
            None
        }
    }
}
