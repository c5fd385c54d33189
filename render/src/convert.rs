//! Conversion to and from `rmpv::Value`, which is the value of brine-protocol.

use rmpv::Value as Wire;

use crate::value::{Dict, Entries, Key, MAX_DEPTH, Value};

/// Why a value cannot go onto the wire or come from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// More levels than [`MAX_DEPTH`], or a value that contains itself.
    #[error("more than {MAX_DEPTH} levels")]
    Depth,
    /// More values than the caller allows: a shared list counts each time.
    #[error("more than {0} values")]
    Values(usize),
    /// More bytes of text than the caller allows: a shared list counts each time.
    #[error("more than {0} bytes of text")]
    Bytes(usize),
    /// A list or dict as key, which Python cannot have.
    #[error("unhashable type: '{0}'")]
    Key(String),
    /// A macro or the like.
    #[error("a value of type {0} cannot be sent")]
    Type(String),
}

/// What a conversion may make: shared values are repeated, so a small value can stand for a large one.
#[derive(Clone, Copy, Debug)]
pub struct ConvertLimits {
    /// Upper bound on the values.
    pub values: usize,
    /// Upper bound on the bytes of text.
    pub bytes: usize,
}

impl Default for ConvertLimits {
    fn default() -> Self {
        Self { values: 1 << 20, bytes: 64 << 20 }
    }
}

struct Left {
    limits: ConvertLimits,
    values: usize,
    bytes: usize,
}

impl Left {
    fn take(&mut self, bytes: usize, depth: usize) -> Result<(), ConvertError> {
        if depth > MAX_DEPTH {
            return Err(ConvertError::Depth);
        }
        self.values = self.values.checked_sub(1).ok_or(ConvertError::Values(self.limits.values))?;
        self.bytes = self.bytes.checked_sub(bytes).ok_or(ConvertError::Bytes(self.limits.bytes))?;
        Ok(())
    }
}

impl Value {
    /// The value for the wire. Tuples and sets become lists, dates text, as Salt sends them.
    ///
    /// # Errors
    /// The value is out of the bounds, or has no form on the wire.
    pub fn to_wire(&self, limits: ConvertLimits) -> Result<Wire, ConvertError> {
        to_wire(self, 0, &mut Left { limits, values: limits.values, bytes: limits.bytes })
    }

    /// A value from the wire.
    ///
    /// # Errors
    /// The value is too deep, or has a list or dict as key.
    pub fn from_wire(wire: &Wire) -> Result<Self, ConvertError> {
        from_wire(wire, 0)
    }
}

fn to_wire(value: &Value, depth: usize, left: &mut Left) -> Result<Wire, ConvertError> {
    left.take(
        match value {
            Value::Str(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        },
        depth,
    )?;
    let mut all = |items: &[Value]| items.iter().map(|item| to_wire(item, depth + 1, left)).collect::<Result<_, _>>();
    Ok(match value {
        Value::None => Wire::Nil,
        Value::Bool(b) => Wire::Boolean(*b),
        Value::Int(n) => match (u64::try_from(*n), i64::try_from(*n)) {
            (Ok(n), _) => Wire::from(n),
            (_, Ok(n)) => Wire::from(n),
            // As Salt's serializer has it.
            _ => Wire::from(n.to_string()),
        },
        Value::Float(n) => Wire::F64(*n),
        Value::Str(text) => Wire::from(&**text),
        Value::Bytes(bytes) => Wire::Binary(bytes.to_vec()),
        Value::List(list) => Wire::Array(all(&list.borrow())?),
        Value::Tuple(items) => Wire::Array(all(items)?),
        Value::Dict(dict) => {
            let mut entries = Vec::with_capacity(dict.borrow().len());
            for (key, item) in dict.borrow().iter() {
                entries.push((to_wire(key.value(), depth + 1, left)?, to_wire(item, depth + 1, left)?));
            }
            Wire::Map(entries)
        }
        Value::Set(set) => {
            Wire::Array(set.borrow().iter().map(|key| to_wire(key.value(), depth + 1, left)).collect::<Result<_, _>>()?)
        }
        Value::Date(date) => Wire::from(date.to_string()),
        Value::DateTime(time) => Wire::from(time.to_string()),
        Value::Object(object) => return Err(ConvertError::Type(object.type_name().to_owned())),
    })
}

fn from_wire(wire: &Wire, depth: usize) -> Result<Value, ConvertError> {
    if depth > MAX_DEPTH {
        return Err(ConvertError::Depth);
    }
    Ok(match wire {
        Wire::Nil => Value::None,
        Wire::Boolean(b) => Value::Bool(*b),
        Wire::Integer(n) => {
            Value::Int(n.as_i64().map(i128::from).or_else(|| n.as_u64().map(i128::from)).unwrap_or_default())
        }
        Wire::F32(n) => Value::Float(f64::from(*n)),
        Wire::F64(n) => Value::Float(*n),
        Wire::String(text) => match text.as_str() {
            Some(text) => Value::str(text),
            None => Value::Bytes(text.as_bytes().into()),
        },
        Wire::Binary(bytes) | Wire::Ext(_, bytes) => Value::Bytes(bytes.as_slice().into()),
        Wire::Array(items) => {
            Value::List(items.iter().map(|item| from_wire(item, depth + 1)).collect::<Result<Vec<_>, _>>()?.into())
        }
        Wire::Map(wire) => {
            let mut entries = Entries::with_capacity(wire.len());
            for (key, item) in wire {
                let key = Key::new(from_wire(key, depth + 1)?).map_err(|why| ConvertError::Key(why.0))?;
                entries.insert(key, from_wire(item, depth + 1)?);
            }
            Value::Dict(Dict::from_entries(entries, false))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_there_and_back() {
        let value = Value::dict([
            ("a".into(), Value::list([Value::None, true.into(), (-5).into(), u64::MAX.into(), 1.5.into()])),
            (Key::new(7.into()).unwrap(), Value::Bytes((*b"\xff").into())),
        ]);
        let wire = value.to_wire(ConvertLimits::default()).unwrap();
        assert_eq!(Value::from_wire(&wire).unwrap(), value);
    }

    #[test]
    fn what_stands_for_a_billion_is_refused() {
        let bomb = (0..40).fold(Value::str("lol"), |inner, _| Value::list([inner.clone(), inner]));
        let limits = ConvertLimits { values: 1000, bytes: 1 << 20 };
        assert_eq!(bomb.to_wire(limits), Err(ConvertError::Values(1000)));
        let text = Value::str("x".repeat(1 << 19));
        let list = Value::list([text.clone(), text.clone(), text]);
        assert_eq!(list.to_wire(limits), Err(ConvertError::Bytes(1 << 20)));
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_text_on_the_wire() {
        for (number, wire) in [
            (i128::from(u64::MAX), Wire::from(u64::MAX)),
            (i128::from(i64::MIN), Wire::from(i64::MIN)),
            (i128::from(u64::MAX) + 1, Wire::from("18446744073709551616")),
            (i128::from(i64::MIN) - 1, Wire::from("-9223372036854775809")),
        ] {
            assert_eq!(Value::Int(number).to_wire(ConvertLimits::default()), Ok(wire));
        }
    }

    #[test]
    fn what_has_no_form_on_the_wire_is_refused() {
        let limits = ConvertLimits::default();
        let deep = (0..300).fold(Value::None, |inner, _| Value::list([inner]));
        assert_eq!(deep.to_wire(limits), Err(ConvertError::Depth));
        let key = Wire::Map(vec![(Wire::Array(vec![]), Wire::Nil)]);
        assert_eq!(Value::from_wire(&key), Err(ConvertError::Key("list".into())));
    }
}
