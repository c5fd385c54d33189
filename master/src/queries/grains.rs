//! What the lists show of the grains that the minions sent.

use std::path::Path;
use std::time::SystemTime;

use brine_protocol::ids::MinionId;
use brine_protocol::target::{Keys, read_entries};
use brine_protocol::value::{Value, ValueExt as _};

/// The grains that a list shows.
pub(super) const LISTED: [&str; 6] = ["saltversion", "os", "osrelease", "os_family", "kernel", "cpuarch"];
/// The grains that tell how a minion is connected.
const ADDRESSES: [&str; 2] = ["ipv4", "ipv6"];
/// Further grains that the page of one minion shows.
const FURTHER: [&str; 11] = [
    "fqdn",
    "host",
    "ipv4",
    "ipv6",
    "num_cpus",
    "mem_total",
    "osfinger",
    "kernelrelease",
    "virtual",
    "saltversion",
    "roles",
];
/// Longest text of a grain in a list, in characters. Minions choose them.
const SHOWN_MAX: usize = 128;

/// The keys for a list.
pub(super) fn for_list() -> Keys {
    Keys::These(LISTED.iter().chain(&ADDRESSES).map(|key| (*key).to_owned()).collect())
}

/// The listed grains of one minion; empty texts for those that are not known.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed([String; LISTED.len()]);

impl Listed {
    pub(super) fn of(grains: &Value) -> Self {
        let text = |key: &str| grains.get(key).map(short).unwrap_or_default();
        Self(LISTED.map(text))
    }

    pub(super) fn version(&self) -> &str {
        &self.0[0]
    }

    pub(super) fn os(&self) -> &str {
        &self.0[1]
    }

    /// The texts that a search looks into.
    pub(super) fn searched(&self) -> impl Iterator<Item = &str> {
        self.0.iter().take(3).map(String::as_str)
    }

    /// The entries of a list's item.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        LISTED.iter().zip(&self.0).map(|(key, text)| {
            let name = if *key == "saltversion" { "version" } else { key };
            (name, if text.is_empty() { Value::Nil } else { Value::from(text.as_str()) })
        })
    }
}

fn short(value: &Value) -> String {
    let text = value.text().map_or_else(|| value.python_str(), str::to_owned);
    text.chars().filter(|c| !c.is_control()).take(SHOWN_MAX).collect()
}

/// Returns when a minion last sent its grains, as seconds since 1970.
pub(super) fn reported(cachedir: &Path, id: &MinionId) -> Value {
    let at = std::fs::symlink_metadata(path(cachedir, id)).and_then(|file| file.modified()).ok();
    at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok())
        .map_or(Value::Nil, |since| Value::from(since.as_secs_f64()))
}

/// Reads the grains that the page of one minion shows, and those that a list shows.
pub(super) fn of_one(cachedir: &Path, id: &MinionId) -> Option<Value> {
    let keys = FURTHER.iter().chain(&LISTED).map(|key| (*key).to_owned()).collect();
    read_entries(&path(cachedir, id), &Keys::These(keys))
}

/// The grains that the page of one minion shows.
pub(super) fn further(grains: &Value) -> Value {
    brine_protocol::value::map(FURTHER.into_iter().filter_map(|key| Some((key, grains.get(key)?.clone()))))
}

fn path(cachedir: &Path, id: &MinionId) -> std::path::PathBuf {
    cachedir.join("grains").join(format!("{id}.p"))
}
