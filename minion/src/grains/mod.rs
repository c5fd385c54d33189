//! Grains: facts about this host, collected natively, then what the owner wrote in the grains file and the configuration.
//!
//! Whatever is read here (`/proc`, `/sys`, `os-release`, host names) is data of others: every read is bounded, nothing is
//! interpreted, and a fact that cannot be had is left out.

mod core;
mod custom;
mod network;
mod os_release;

use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt};
use tracing::{error, warn};

pub use custom::GrainsFileError;
pub(crate) use network::host_names;

use crate::config::MinionOpts;

/// The grains travel with every `_pillar` request, so they stay far below what a master accepts as one request.
pub const MAX_GRAINS_BYTES: usize = 1024 * 1024;

/// The Salt line whose behaviour this minion has, as states compare it.
const SALT_LINE: u64 = 3008;

/// What `salt-call --skip-grains` sets.
pub(crate) const SKIP: &str = "skip_grains";

/// Collects all grains: the core ones, then the grains file, then the `grains` setting; the later ones win.
///
/// A broken grains file is reported in the log and left out: a minion without its custom grains is still reachable for
/// the one who has to mend it.
pub fn collect(opts: &MinionOpts) -> Value {
    if opts.config.value(SKIP) == Some(&Value::from(true)) {
        return Value::Map(Vec::new());
    }
    let mut grains = Grains::default();
    core::collect(&mut grains);
    network::collect(&mut grains);
    os_release::collect(&mut grains);
    identity(&mut grains, opts);
    let core = grains.len();

    match custom::load(&opts.grains_file) {
        Ok(Some(entries)) => grains.merge(entries),
        Ok(None) => {}
        Err(e) => error!("{e}; the grains of this file are left out"),
    }
    match &opts.grains {
        Value::Map(entries) => grains.merge(entries.clone()),
        Value::Nil => {}
        _ => warn!("the setting `grains` is not a mapping; it is left out"),
    }

    let size = msgpack::encode_network(&grains.as_value()).len();
    if size > MAX_GRAINS_BYTES {
        error!(
            "the grains take {size} bytes, more than the {MAX_GRAINS_BYTES} there may be; those of the grains file and of \
             the setting `grains` are left out"
        );
        grains.truncate_to_core(core, opts);
    }
    grains.into_value()
}

fn identity(grains: &mut Grains, opts: &MinionOpts) {
    use sha2::{Digest, Sha256};
    grains.text("id", opts.id.as_str());
    grains.text("master", opts.master.host.as_str());
    // int(sha256(id), 16) % 2**31
    let digest = Sha256::digest(opts.id.as_str().as_bytes());
    let low = u32::from_be_bytes([digest[28], digest[29], digest[30], digest[31]]);
    grains.set("server_id", Value::from(low & 0x7fff_ffff));
    grains.text("saltversion", &SALT_LINE.to_string());
    grains.set("saltversioninfo", Value::Array(vec![Value::from(SALT_LINE)]));
    grains.text("brineversion", env!("CARGO_PKG_VERSION"));
}

/// Grains under construction: a map in order, each key once.
#[derive(Default)]
pub(crate) struct Grains(Vec<(Value, Value)>);

impl Grains {
    pub(crate) fn set(&mut self, key: &str, value: Value) {
        self.put(Value::from(key), value);
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.set(key, Value::from(value));
    }

    #[cfg(test)]
    pub(crate) fn get_text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k.as_str() == Some(key)).and_then(|(_, v)| v.text())
    }

    fn put(&mut self, key: Value, value: Value) {
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((key, value)),
        }
    }

    fn merge(&mut self, entries: Vec<(Value, Value)>) {
        for (key, value) in entries {
            self.put(key, value);
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// Back to the core grains, made anew, since a custom one may have replaced one of them.
    fn truncate_to_core(&mut self, core_len: usize, opts: &MinionOpts) {
        self.0.clear();
        self.0.reserve(core_len);
        core::collect(self);
        network::collect(self);
        os_release::collect(self);
        identity(self, opts);
    }

    fn as_value(&self) -> Value {
        Value::Map(self.0.clone())
    }

    fn into_value(self) -> Value {
        Value::Map(self.0)
    }
}

/// Walks `key`, split by `delimiter`, into `grains`; maps by key, lists by index.
pub fn lookup(grains: &Value, key: &str, delimiter: &str) -> Option<Value> {
    if delimiter.is_empty() {
        return grains.get(key).cloned();
    }
    let mut at = grains;
    for part in key.split(delimiter) {
        at = match at {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            _ => at.get(part)?,
        };
    }
    Some(at.clone())
}

/// Reads at most `max` bytes of a text file; `None` where it is absent, unreadable or longer.
pub(crate) fn read_text(path: &str, max: u64) -> Option<String> {
    use std::io::Read;
    let file = std::fs::File::open(path).ok()?;
    let mut text = String::new();
    let read = file.take(max + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= max).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Value {
        let mut inner = Grains::default();
        inner.set("v", Value::Array(vec![Value::from("a"), Value::from("b")]));
        let mut grains = Grains::default();
        grains.text("os", "Debian");
        grains.set("deep", inner.into_value());
        grains.into_value()
    }

    #[test]
    fn lookup_walks_maps_and_lists() {
        for (key, delimiter, expected) in [
            ("os", ":", Some("Debian")),
            ("deep:v:1", ":", Some("b")),
            ("deep|v|0", "|", Some("a")),
            ("deep:v:7", ":", None),
            ("deep:w", ":", None),
            ("os:x", ":", None),
            ("", ":", None),
            ("os", "", Some("Debian")),
        ] {
            let found = lookup(&sample(), key, delimiter);
            assert_eq!(found.as_ref().and_then(|v| v.text()), expected, "{key}");
        }
    }

    #[test]
    fn a_later_grain_replaces_an_earlier_one() {
        let mut grains = Grains::default();
        grains.text("role", "web");
        grains.merge(vec![(Value::from("role"), Value::from("db"))]);
        assert_eq!(grains.len(), 1);
        assert_eq!(grains.get_text("role"), Some("db"));
    }
}
