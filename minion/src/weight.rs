//! What values take in memory, by which queues of them are bounded.

use brine_protocol::value::{Value, ValueExt as _};

/// Roughly how many bytes a value takes in memory.
pub(crate) fn weight(value: &Value) -> usize {
    const OWN: usize = size_of::<Value>();
    OWN + match value {
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Map(entries) => entries.iter().map(|(k, v)| weight(k) + weight(v)).sum(),
        other => other.bytes().map_or(0, <[u8]>::len),
    }
}
