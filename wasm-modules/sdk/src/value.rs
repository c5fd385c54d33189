//! A Salt value, with its conversion from and to MessagePack. The code is kept small, because every module that reads a
//! value contains it.

use crate::Result;

/// Upper bound on nested values, because decoding recurses.
const MAX_DEPTH: usize = 128;

/// A Salt value. A dict keeps its order.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Value {
    /// `None`
    #[default]
    None,
    /// `True` and `False`
    Bool(bool),
    /// A whole number
    Int(i64),
    /// A whole number that is too great for [`Value::Int`]
    Big(u64),
    /// A floating point number
    Float(f64),
    /// Text
    Text(String),
    /// Bytes that are not text
    Bytes(Vec<u8>),
    /// A list
    List(Vec<Value>),
    /// A dict
    Dict(Vec<(Value, Value)>),
    /// MessagePack's extension: its kind and content
    Ext(i8, Vec<u8>),
}

impl Value {
    /// The text; none for other values.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The entry of a dict with this key; `None` if there is no such entry or the value is not a dict.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let Value::Dict(entries) = self else { return None };
        entries.iter().find(|(k, _)| k.text() == Some(key)).map(|(_, value)| value)
    }

    /// Makes a dict of these entries.
    pub fn dict<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
        Value::Dict(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// The name of the value's type, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "a truth value",
            Value::Int(_) | Value::Big(_) | Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "a list",
            Value::Dict(_) => "a dict",
            Value::Ext(..) => "an extension",
        }
    }

    /// Python's truth value.
    pub fn truthy(&self) -> bool {
        match self {
            Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Big(_) | Value::Ext(..) => true,
            Value::Float(value) => *value != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::Bytes(bytes) => !bytes.is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::Dict(entries) => !entries.is_empty(),
        }
    }

    /// Python's `str` of the value.
    pub fn to_text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            other => other.repr(),
        }
    }

    /// Python's `repr` of the value.
    fn repr(&self) -> String {
        let joined = |parts: Vec<String>| parts.join(", ");
        match self {
            Value::None => "None".into(),
            Value::Bool(true) => "True".into(),
            Value::Bool(false) => "False".into(),
            Value::Int(value) => value.to_string(),
            Value::Big(value) => value.to_string(),
            Value::Float(value) => format!("{value:?}"),
            Value::Text(text) => quoted(text),
            Value::Bytes(bytes) => format!("b'{}'", bytes.escape_ascii()),
            Value::List(items) => format!("[{}]", joined(items.iter().map(Value::repr).collect())),
            Value::Dict(entries) => {
                let entries = entries.iter().map(|(key, value)| format!("{}: {}", key.repr(), value.repr()));
                format!("{{{}}}", joined(entries.collect()))
            }
            Value::Ext(kind, bytes) => format!("ExtType(code={kind}, data=b'{}')", bytes.escape_ascii()),
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::None => out.push(0xc0),
            Value::Bool(false) => out.push(0xc2),
            Value::Bool(true) => out.push(0xc3),
            Value::Int(n @ -32..128) => out.push(*n as u8),
            Value::Int(n) => number(out, 0xd3, n.to_be_bytes()),
            Value::Big(n) => number(out, 0xcf, n.to_be_bytes()),
            Value::Float(n) => number(out, 0xcb, n.to_be_bytes()),
            Value::Text(text) => {
                head(out, text.len(), Some((0xa0, 32)), [0xd9, 0xda, 0xdb]);
                out.extend(text.as_bytes());
            }
            Value::Bytes(bytes) => {
                head(out, bytes.len(), None, [0xc4, 0xc5, 0xc6]);
                out.extend(bytes);
            }
            Value::List(items) => {
                list_head(out, items.len());
                items.iter().for_each(|item| item.encode(out));
            }
            Value::Dict(entries) => {
                dict_head(out, entries.len());
                for (key, value) in entries {
                    key.encode(out);
                    value.encode(out);
                }
            }
            Value::Ext(kind, bytes) => {
                head(out, bytes.len(), None, [0xc7, 0xc8, 0xc9]);
                out.push(*kind as u8);
                out.extend(bytes);
            }
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Value> {
        let mut reader = Reader { rest: bytes };
        match reader.value(0) {
            Some(value) if reader.rest.is_empty() => Ok(value),
            _ => Err("the bytes are no MessagePack value".into()),
        }
    }
}

macro_rules! from {
    ($($ty:ty => |$value:ident| $to:expr),* $(,)?) => {
        $(impl From<$ty> for Value {
            fn from($value: $ty) -> Value {
                $to
            }
        })*
    };
}
from! {
    bool => |value| Value::Bool(value),
    i64 => |value| Value::Int(value),
    u64 => |value| i64::try_from(value).map_or(Value::Big(value), Value::Int),
    f64 => |value| Value::Float(value),
    &str => |value| Value::Text(value.into()),
    String => |value| Value::Text(value),
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Value {
        Value::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::None, Into::into)
    }
}

/// Python's `repr` of a text. Only ASCII's controls count as unprintable: modules carry no tables of Unicode.
fn quoted(text: &str) -> String {
    brine_text::quoted(text, |c| !c.is_ascii_control())
}

pub(crate) fn list_head(out: &mut Vec<u8>, len: usize) {
    head(out, len, Some((0x90, 16)), [0xc1, 0xdc, 0xdd]);
}

pub(crate) fn dict_head(out: &mut Vec<u8>, len: usize) {
    head(out, len, Some((0x80, 16)), [0xc1, 0xde, 0xdf]);
}

/// Writes a marker with a length: in the marker itself if it is below `fix`'s bound, else after one of three markers in
/// 8, 16 or 32 bits. Lists and dicts have no marker for 8 bits; their entry is 0xc1, which MessagePack never uses.
fn head(out: &mut Vec<u8>, len: usize, fix: Option<(u8, u8)>, [short, medium, long]: [u8; 3]) {
    match (u8::try_from(len), u16::try_from(len), fix) {
        (Ok(len), _, Some((marker, bound))) if len < bound => out.push(marker | len),
        (Ok(len), ..) if short != 0xc1 => out.extend([short, len]),
        (_, Ok(len), _) => number(out, medium, len.to_be_bytes()),
        // A guest's memory has 32-bit addresses.
        _ => number(out, long, (len as u32).to_be_bytes()),
    }
}

fn number<const N: usize>(out: &mut Vec<u8>, marker: u8, bytes: [u8; N]) {
    out.push(marker);
    out.extend(bytes);
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        let [marker] = self.take()?;
        Some(match marker {
            0x00..=0x7f => Value::Int(marker.into()),
            0x80..=0x8f => self.dict((marker & 15).into(), depth)?,
            0x90..=0x9f => self.list((marker & 15).into(), depth)?,
            0xa0..=0xbf => self.text((marker & 31).into())?,
            0xc0 => Value::None,
            0xc1 => return None,
            0xc2 => Value::Bool(false),
            0xc3 => Value::Bool(true),
            0xc4..=0xc6 => {
                let len = self.len(marker - 0xc4)?;
                Value::Bytes(self.bytes(len)?.into())
            }
            0xc7..=0xc9 => {
                let len = self.len(marker - 0xc7)?;
                self.ext(len)?
            }
            0xca => Value::Float(f32::from_be_bytes(self.take()?).into()),
            0xcb => Value::Float(f64::from_be_bytes(self.take()?)),
            0xcc => Value::Int(u8::from_be_bytes(self.take()?).into()),
            0xcd => Value::Int(u16::from_be_bytes(self.take()?).into()),
            0xce => Value::Int(u32::from_be_bytes(self.take()?).into()),
            0xcf => Value::from(u64::from_be_bytes(self.take()?)),
            0xd0 => Value::Int(i8::from_be_bytes(self.take()?).into()),
            0xd1 => Value::Int(i16::from_be_bytes(self.take()?).into()),
            0xd2 => Value::Int(i32::from_be_bytes(self.take()?).into()),
            0xd3 => Value::Int(i64::from_be_bytes(self.take()?)),
            0xd4..=0xd8 => self.ext(1 << (marker - 0xd4))?,
            0xd9..=0xdb => {
                let len = self.len(marker - 0xd9)?;
                self.text(len)?
            }
            0xdc..=0xdd => {
                let len = self.len(marker - 0xdc + 1)?;
                self.list(len, depth)?
            }
            0xde..=0xdf => {
                let len = self.len(marker - 0xde + 1)?;
                self.dict(len, depth)?
            }
            0xe0..=0xff => Value::Int((marker as i8).into()),
        })
    }

    fn list(&mut self, len: usize, depth: usize) -> Option<Value> {
        // Each item takes at least one byte, so a false length allocates nothing.
        let mut items = Vec::with_capacity(len.min(self.rest.len()).min(1024));
        for _ in 0..len {
            items.push(self.value(depth + 1)?);
        }
        Some(Value::List(items))
    }

    fn dict(&mut self, len: usize, depth: usize) -> Option<Value> {
        let mut entries = Vec::with_capacity(len.min(self.rest.len() / 2).min(1024));
        for _ in 0..len {
            entries.push((self.value(depth + 1)?, self.value(depth + 1)?));
        }
        Some(Value::Dict(entries))
    }

    fn text(&mut self, len: usize) -> Option<Value> {
        let bytes = self.bytes(len)?;
        Some(core::str::from_utf8(bytes).map_or_else(|_| Value::Bytes(bytes.into()), Value::from))
    }

    fn ext(&mut self, len: usize) -> Option<Value> {
        let [kind] = self.take()?;
        Some(Value::Ext(kind as i8, self.bytes(len)?.into()))
    }

    /// Reads a length of 8, 16 or 32 bits.
    fn len(&mut self, size: u8) -> Option<usize> {
        Some(match size {
            0 => u8::from_be_bytes(self.take()?).into(),
            1 => u16::from_be_bytes(self.take()?).into(),
            _ => u32::from_be_bytes(self.take()?) as usize,
        })
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        value.encode(&mut out);
        out
    }

    fn samples() -> Vec<Value> {
        let mut values: Vec<Value> =
            vec![Value::None, true.into(), false.into(), 1.5.into(), Value::Ext(-1, vec![7; 3])];
        let bounds = [0, 1, 32, 33, 127, 128, 255, 256, 32767, 32768, 65535, 65536, i64::from(i32::MAX), i64::MAX];
        values.extend(bounds.iter().flat_map(|&n| [Value::Int(n), Value::Int(-n)]));
        values.extend([Value::Int(i64::MIN), Value::Big(u64::MAX)]);
        for len in [0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536] {
            values.push("x".repeat(len).into());
            values.push(Value::Bytes(vec![0xff; len]));
            values.push(Value::List(vec![Value::None; len]));
            values.push(Value::Dict(vec![(Value::Int(1), Value::None); len]));
            values.push(Value::Ext(5, vec![1; len]));
        }
        values.push(Value::dict([("a", vec![1_i64, 2].into()), ("b", Value::dict([("c", Value::None)]))]));
        values
    }

    #[test]
    fn a_value_comes_back_as_it_went() {
        for value in samples() {
            assert_eq!(Value::decode(&encoded(&value)), Ok(value));
        }
    }

    #[test]
    fn text_of_values_is_pythons() {
        let list = Value::List(vec![
            "a".into(),
            "it's".into(),
            "\"'\n\\".into(),
            Value::Int(-1),
            Value::Float(1.0),
            true.into(),
        ]);
        assert_eq!(list.to_text(), r#"['a', "it's", '"\'\n\\', -1, 1.0, True]"#);
        assert_eq!(Value::dict([("k", Value::None)]).to_text(), "{'k': None}");
        assert_eq!(Value::from("as it is").to_text(), "as it is");
        assert!(!Value::from("").truthy() && !Value::Int(0).truthy() && Value::from("0").truthy());
    }

    /// Another implementation reads the output of this one, and the reverse.
    #[test]
    fn agrees_with_rmpv() {
        for value in samples() {
            let ours = encoded(&value);
            let theirs = rmpv::decode::read_value(&mut ours.as_slice()).unwrap();
            let mut out = Vec::new();
            rmpv::encode::write_value(&mut out, &theirs).unwrap();
            assert_eq!(Value::decode(&out), Ok(value));
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for bytes in
            [&b""[..], b"\xc1", b"\xa5abc", b"\xc0\xc0", b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", &[0x91; 500]]
        {
            assert!(Value::decode(bytes).is_err(), "{bytes:x?}");
        }
        for value in samples() {
            let bytes = encoded(&value);
            assert!(
                Value::decode(&bytes[..bytes.len() - 1]).is_err(),
                "{:x?} cut short",
                &bytes[..bytes.len().min(16)]
            );
        }
    }

    #[test]
    fn text_that_is_not_utf_8_is_bytes() {
        assert_eq!(Value::decode(b"\xa2\xff\xfe"), Ok(Value::Bytes(vec![0xff, 0xfe])));
    }
}
