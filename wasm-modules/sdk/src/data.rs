//! Salt values as modules meet them: one MessagePack value in [`Data`], decoded only by who needs to look inside.

pub use rmpv::Value;

use crate::Result;
pub use crate::host::types::Data;

/// Deeper values are refused rather than recursed into.
const MAX_DEPTH: usize = 128;

impl Data {
    /// Encodes a value.
    pub fn new(value: &Value) -> Data {
        let mut msgpack = Vec::new();
        rmpv::encode::write_value(&mut msgpack, value).expect("a Vec takes every write");
        Data { msgpack }
    }

    /// Decodes the value.
    pub fn value(&self) -> Result<Value> {
        let mut rest = self.msgpack.as_slice();
        let value = rmpv::decode::read_value_with_max_depth(&mut rest, MAX_DEPTH)
            .map_err(|error| format!("not a value: {error}"))?;
        if rest.is_empty() { Ok(value) } else { Err("not a value: there is more behind it".into()) }
    }

    /// The dict `{first: …, second: …}` of values that are encoded already.
    pub fn dict<'a>(entries: impl IntoIterator<Item = (&'a str, Data), IntoIter: ExactSizeIterator>) -> Data {
        let entries = entries.into_iter();
        let mut msgpack = Vec::new();
        head(&mut msgpack, entries.len(), 0x80, 0xde);
        for (key, value) in entries {
            rmpv::encode::write_value(&mut msgpack, &Value::from(key)).expect("a Vec takes every write");
            msgpack.extend(value.msgpack);
        }
        Data { msgpack }
    }

    /// The list of values that are encoded already.
    pub fn list(items: impl IntoIterator<Item = Data, IntoIter: ExactSizeIterator>) -> Data {
        let items = items.into_iter();
        let mut msgpack = Vec::new();
        head(&mut msgpack, items.len(), 0x90, 0xdc);
        for item in items {
            msgpack.extend(item.msgpack);
        }
        Data { msgpack }
    }
}

/// The head of a map or an array: in one byte, or a marker and 16 bits, or the next marker and 32 bits.
fn head(out: &mut Vec<u8>, len: usize, fix: u8, marker: u8) {
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(len @ ..16), _) => out.push(fix | len),
        (_, Ok(len)) => {
            out.push(marker);
            out.extend(len.to_be_bytes());
        }
        _ => {
            out.push(marker + 1);
            out.extend(u32::try_from(len).expect("a guest's memory holds no more").to_be_bytes());
        }
    }
}

impl From<&str> for Data {
    fn from(text: &str) -> Data {
        Data::new(&Value::from(text))
    }
}

/// The text of an argument that is to be a name. A number is taken too: the command line makes one of what looks like one.
pub fn text_of(what: &str, data: &Data) -> Result<String> {
    match data.value()? {
        Value::String(text) if text.is_str() => Ok(text.into_str().expect("just seen to be text")),
        Value::Integer(number) => Ok(number.to_string()),
        other => Err(format!("{what} is to be text, not {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_as_it_went() {
        for value in [Value::Nil, Value::from(-7), Value::from("täxt"), Value::Array(vec![Value::from(1), Value::Nil])] {
            assert_eq!(Data::new(&value).value(), Ok(value));
        }
    }

    #[test]
    fn dicts_and_lists_of_every_size_decode() {
        for len in [0, 1, 15, 16, 255, 256, 65535, 65536] {
            let list = Data::list(vec![Data::from("x"); len]).value().unwrap();
            assert_eq!(list.as_array().map(Vec::len), Some(len));
            let dict = Data::dict(vec![("k", Data::from("x")); len]).value().unwrap();
            assert_eq!(dict.as_map().map(Vec::len), Some(len));
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for bytes in [&b""[..], b"\xc1", b"\xa5abc", b"\xc0\xc0", b"\xdd\xff\xff\xff\xff", &[0x91; 500]] {
            assert!(Data { msgpack: bytes.to_vec() }.value().is_err(), "{bytes:x?}");
        }
    }

    #[test]
    fn names_are_text_or_numbers() {
        assert_eq!(text_of("jid", &Data::from("a")), Ok("a".into()));
        assert_eq!(text_of("jid", &Data::new(&Value::from(20_u64))), Ok("20".into()));
        assert_eq!(text_of("jid", &Data::new(&Value::Nil)), Err("jid is to be text, not nil".into()));
    }
}
