//! Values that are not shown. What is empty, zero, false or None is shown as it is, as in Salt.

use brine_guest::Value;

const MASK: &str = "**********";

/// The value, with a mask in place of each scalar unless it may be seen. Keys stay.
pub(crate) fn shown(value: Value, unmask: bool) -> Value {
    if unmask {
        return value;
    }
    match value {
        Value::Dict(entries) => Value::Dict(entries.into_iter().map(|(key, item)| (key, shown(item, false))).collect()),
        Value::List(items) => Value::List(items.into_iter().map(|item| shown(item, false)).collect()),
        Value::Bytes(bytes) if !bytes.is_empty() => Value::Bytes(MASK.into()),
        Value::Ext(..) => value,
        value if value.truthy() => MASK.into(),
        value => value,
    }
}

/// The value, with the name of Python's type in place of each scalar.
pub(crate) fn types(value: Value) -> Value {
    let name = match value {
        Value::Dict(entries) => {
            return Value::Dict(entries.into_iter().map(|(key, item)| (key, types(item))).collect());
        }
        Value::List(items) => return Value::List(items.into_iter().map(types).collect()),
        Value::None => "<NoneType>",
        Value::Bool(_) => "<bool>",
        Value::Int(_) | Value::Big(_) => "<int>",
        Value::Float(_) => "<float>",
        Value::Text(_) => "<str>",
        Value::Bytes(_) => "<bytes>",
        Value::Ext(..) => "<ExtType>",
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Value {
        Value::dict([
            ("text", "secret".into()),
            ("empty", "".into()),
            ("number", 5_i64.into()),
            ("zero", 0_i64.into()),
            ("yes", true.into()),
            ("no", false.into()),
            ("none", Value::None),
            ("list", vec!["a", ""].into()),
            ("bytes", Value::Bytes(vec![1])),
        ])
    }

    /// Recorded from 3008.3: `salt.utils.secret.serial` and `pillar._obfuscate_inner`.
    #[test]
    fn what_is_shown_and_what_is_not() {
        assert_eq!(shown(sample(), true), sample());
        assert_eq!(
            shown(sample(), false).to_text(),
            "{'text': '**********', 'empty': '', 'number': '**********', 'zero': 0, 'yes': '**********', 'no': False, \
             'none': None, 'list': ['**********', ''], 'bytes': b'**********'}"
        );
        assert_eq!(
            types(shown(sample(), false)).to_text(),
            "{'text': '<str>', 'empty': '<str>', 'number': '<str>', 'zero': '<int>', 'yes': '<str>', 'no': '<bool>', \
             'none': '<NoneType>', 'list': ['<str>', '<str>'], 'bytes': '<bytes>'}"
        );
    }
}
