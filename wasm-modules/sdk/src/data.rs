//! Salt values in the form in which host and module exchange them. They stay encoded until a function needs their
//! content.

use crate::Result;
pub use crate::host::types::Data;
use crate::value::{Value, dict_head, list_head};

impl Data {
    /// Decodes the value.
    ///
    /// # Errors
    /// When the value is not valid MessagePack.
    pub fn value(&self) -> Result<Value> {
        Value::decode(&self.msgpack)
    }

    /// The text of an argument that must be a name; `what` names the argument in the error. An integer is accepted too,
    /// because the command line parses names of digits as integers.
    ///
    /// # Errors
    /// When the value is neither text nor an integer.
    pub fn name(&self, what: &str) -> Result<String> {
        match self.value()? {
            Value::Text(text) => Ok(text),
            Value::Int(number) => Ok(number.to_string()),
            Value::Big(number) => Ok(number.to_string()),
            other => Err(format!("{what} is to be text, not {}", other.kind())),
        }
    }

    /// A dict of encoded values.
    pub fn dict<'a>(entries: impl IntoIterator<Item = (&'a str, Data), IntoIter: ExactSizeIterator>) -> Data {
        let entries = entries.into_iter();
        let mut msgpack = Vec::new();
        dict_head(&mut msgpack, entries.len());
        for (key, value) in entries {
            Value::from(key).encode(&mut msgpack);
            msgpack.extend(value.msgpack);
        }
        Data { msgpack }
    }

    /// A list of encoded values.
    pub fn list(items: impl IntoIterator<Item = Data, IntoIter: ExactSizeIterator>) -> Data {
        let items = items.into_iter();
        let mut msgpack = Vec::new();
        list_head(&mut msgpack, items.len());
        items.for_each(|item| msgpack.extend(item.msgpack));
        Data { msgpack }
    }
}

impl<T: Into<Value>> From<T> for Data {
    fn from(value: T) -> Data {
        let mut msgpack = Vec::new();
        value.into().encode(&mut msgpack);
        Data { msgpack }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dicts_and_lists_are_put_together_from_their_parts() {
        for len in [0, 1, 15, 16, 255, 256, 65535, 65536] {
            let list = vec![Value::from("x"); len];
            assert_eq!(Data::list(vec![Data::from("x"); len]), Data::from(list.clone()));
            let dict = vec![(Value::from("k"), Value::from("x")); len];
            assert_eq!(Data::dict(vec![("k", Data::from("x")); len]), Data::from(Value::Dict(dict)));
        }
    }

    #[test]
    fn names_are_text_or_numbers() {
        assert_eq!(Data::from("a").name("jid"), Ok("a".into()));
        assert_eq!(Data::from(18_251_120_162_000_000_000_u64).name("jid"), Ok("18251120162000000000".into()));
        assert_eq!(Data::from(Value::None).name("jid"), Err("jid is to be text, not None".into()));
    }
}
