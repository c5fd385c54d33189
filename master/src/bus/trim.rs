//! Trims events to `max_event_size` (§8.1) by replacing their largest values.

use brine_protocol::msgpack;
use brine_protocol::value::Value;

/// Replaces a value that was too large, as in Salt.
pub(crate) const TRIMMED: &str = "VALUE_TRIMMED";

/// Replaces the largest values in `data` until its encoding fits into `max` bytes, as far as possible.
pub(super) fn to_size(data: &mut Value, max: usize) {
    let Value::Map(entries) = data else { return };
    let mut sizes: Vec<usize> = entries.iter().map(|(k, v)| estimate(k) + estimate(v)).collect();
    let mut total: usize = sizes.iter().sum();
    while total > max {
        let Some(largest) = (0..sizes.len()).max_by_key(|&i| sizes[i]) else { return };
        if entries[largest].1.as_str() == Some(TRIMMED) {
            return;
        }
        // A large map keeps its small values, so that a return stays readable without its one large value.
        let keep = max.saturating_sub(total - sizes[largest]);
        match &mut entries[largest].1 {
            inner @ Value::Map(_) if keep > max / 2 => {
                to_size(inner, keep);
                if estimate(inner) > keep {
                    *inner = Value::from(TRIMMED);
                }
            }
            other => *other = Value::from(TRIMMED),
        }
        total -= sizes[largest];
        sizes[largest] = estimate(&entries[largest].0) + estimate(&entries[largest].1);
        total += sizes[largest];
    }
}

/// Returns the largest difference between the estimated and the real size of a map with this many entries and a stamp.
pub(super) const fn slack(entries: usize) -> usize {
    64 + 16 * entries
}

fn estimate(value: &Value) -> usize {
    match value {
        Value::String(text) => text.as_bytes().len() + 5,
        Value::Binary(bytes) => bytes.len() + 5,
        Value::Array(_) | Value::Map(_) => msgpack::encode_disk(value).len(),
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{ValueExt, map};

    #[test]
    fn only_what_is_too_large_goes() {
        let big = "x".repeat(2_000);
        let mut data =
            map([("id", Value::from("a")), ("return", Value::from(big.as_str())), ("jid", Value::from("j"))]);
        to_size(&mut data, 1_000);
        assert_eq!((data.get_text("id"), data.get_text("return")), (Some("a"), Some(TRIMMED)));
        let mut data = map([("return", map([("a", Value::from(1)), ("b", Value::from(big.as_str()))]))]);
        to_size(&mut data, 1_000);
        assert_eq!(data.get("return").and_then(|r| r.get_text("b")), Some(TRIMMED));
        assert_eq!(data.get("return").and_then(|r| r.get_i64("a")), Some(1));
        let mut small = map([("return", Value::from(big))]);
        let before = small.clone();
        to_size(&mut small, 10_000);
        assert_eq!(small, before);
    }

    #[test]
    fn it_ends_whatever_the_bound() {
        let mut data = map([("a", Value::from("x".repeat(100))), ("b", Value::from("y".repeat(100)))]);
        to_size(&mut data, 0);
        assert_eq!(data.get_text("a"), Some(TRIMMED));
    }
}
