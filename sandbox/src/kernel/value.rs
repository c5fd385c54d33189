//! MessagePack to and from an executor. A guest may have written the bytes, so they are checked against bounds before
//! any value is built: a value tree takes many times the memory of its bytes.

use rmpv::Value;

/// Levels of nesting. The executor has the same bound.
const MAX_DEPTH: usize = 64;
/// Number of all values, containers and keys included. At 40 bytes each they take at most 20 MB.
const MAX_ITEMS: usize = 500_000;

/// An error: the bytes are not one MessagePack value within the bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadValue {
    #[error("it ends too early")]
    Short,
    #[error("there are bytes behind its end")]
    Long,
    #[error("it nests deeper than {MAX_DEPTH} levels")]
    Deep,
    #[error("it has more than {MAX_ITEMS} items")]
    Large,
    #[error("it is not MessagePack")]
    Malformed,
}

/// Decodes exactly one value.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, BadValue> {
    check(bytes)?;
    // `rmpv` counts levels differently; `check` has already applied the bound.
    rmpv::decode::read_value_with_max_depth(&mut &bytes[..], 4 * MAX_DEPTH).map_err(|_| BadValue::Malformed)
}

/// Encodes one value.
pub(crate) fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value).expect("writing to memory cannot fail");
    bytes
}

/// Encodes positional arguments as an array and keyword arguments as a map.
pub(crate) fn encode_arguments(args: Vec<Value>, kwargs: Vec<(String, Value)>) -> (Vec<u8>, Vec<u8>) {
    let kwargs = kwargs.into_iter().map(|(name, value)| (Value::from(name), value)).collect();
    (encode(&Value::Array(args)), encode(&Value::Map(kwargs)))
}

/// Checks one value without building it.
fn check(bytes: &[u8]) -> Result<(), BadValue> {
    let mut rest = bytes;
    let mut items = 0usize;
    // For each open container, the number of values still to come.
    let mut open: Vec<u64> = vec![1];
    while let Some(wanted) = open.last_mut() {
        if *wanted == 0 {
            open.pop();
            continue;
        }
        *wanted -= 1;
        items += 1;
        if items > MAX_ITEMS {
            return Err(BadValue::Large);
        }
        let marker = take(&mut rest, 1)?[0];
        let children = match marker {
            0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => 0,
            0x80..=0x8f => 2 * u64::from(marker & 0x0f),
            0x90..=0x9f => u64::from(marker & 0x0f),
            0xa0..=0xbf => skip(&mut rest, u64::from(marker & 0x1f))?,
            0xc1 => return Err(BadValue::Malformed),
            0xc4 | 0xd9 => length(&mut rest, 1).and_then(|length| skip(&mut rest, length))?,
            0xc5 | 0xda => length(&mut rest, 2).and_then(|length| skip(&mut rest, length))?,
            0xc6 | 0xdb => length(&mut rest, 4).and_then(|length| skip(&mut rest, length))?,
            // An extension has one more byte, for its type.
            0xc7 => length(&mut rest, 1).and_then(|length| skip(&mut rest, length + 1))?,
            0xc8 => length(&mut rest, 2).and_then(|length| skip(&mut rest, length + 1))?,
            0xc9 => length(&mut rest, 4).and_then(|length| skip(&mut rest, length + 1))?,
            0xd4..=0xd8 => skip(&mut rest, (1 << (marker - 0xd4)) + 1)?,
            0xcc | 0xd0 => skip(&mut rest, 1)?,
            0xcd | 0xd1 => skip(&mut rest, 2)?,
            0xca | 0xce | 0xd2 => skip(&mut rest, 4)?,
            0xcb | 0xcf | 0xd3 => skip(&mut rest, 8)?,
            0xdc => length(&mut rest, 2)?,
            0xdd => length(&mut rest, 4)?,
            0xde => 2 * length(&mut rest, 2)?,
            0xdf => 2 * length(&mut rest, 4)?,
        };
        if children > 0 {
            if open.len() > MAX_DEPTH {
                return Err(BadValue::Deep);
            }
            open.push(children);
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(BadValue::Long) }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], BadValue> {
    let (taken, after) = rest.split_at_checked(count).ok_or(BadValue::Short)?;
    *rest = after;
    Ok(taken)
}

/// Skips the bytes of a value without children.
fn skip(rest: &mut &[u8], count: u64) -> Result<u64, BadValue> {
    take(rest, usize::try_from(count).map_err(|_| BadValue::Short)?)?;
    Ok(0)
}

fn length(rest: &mut &[u8], bytes: usize) -> Result<u64, BadValue> {
    Ok(take(rest, bytes)?.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bombs_are_refused_before_they_are_built() {
        let nested = |depth: usize| [vec![0x91; depth], vec![0xc0]].concat();
        for (bytes, expect) in [
            (vec![], BadValue::Short),
            (vec![0xc1], BadValue::Malformed),
            (vec![0xc0, 0xc0], BadValue::Long),
            (vec![0xdd, 0xff, 0xff, 0xff, 0xff], BadValue::Short),
            (vec![0xdf, 0xff, 0xff, 0xff, 0xff], BadValue::Short),
            (vec![0xdb, 0xff, 0xff, 0xff, 0xff, 0], BadValue::Short),
            (vec![0xc9, 0xff, 0xff, 0xff, 0xff, 0], BadValue::Short),
            (nested(MAX_DEPTH + 1), BadValue::Deep),
            (nested(1_000_000), BadValue::Deep),
            ([vec![0xdd, 0, 0x10, 0, 0], vec![0xc0; 1 << 20]].concat(), BadValue::Large),
        ] {
            assert_eq!(decode(&bytes), Err(expect), "{:02x?}", &bytes[..bytes.len().min(8)]);
        }
        assert!(decode(&nested(MAX_DEPTH)).is_ok());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,40}".prop_map(Value::from),
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(Value::Binary),
            (any::<i8>(), proptest::collection::vec(any::<u8>(), 0..20)).prop_map(|(ty, data)| Value::Ext(ty, data)),
        ];
        leaf.prop_recursive(4, 100, 20, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..20).prop_map(Value::Array),
                proptest::collection::vec((inner.clone(), inner), 0..20).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn round_trip(value in values()) {
            let bytes = encode(&value);
            prop_assert_eq!(encode(&decode(&bytes).unwrap()), bytes);
        }

        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
