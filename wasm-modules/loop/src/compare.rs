//! Python's comparisons of values, as its module `operator` has them.

use std::cmp::Ordering;

use brine_guest::Value;

/// A function of two values from Python's `operator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Contains,
    Is,
    IsNot,
}

impl Comparator {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Equal,
            "ne" => Self::NotEqual,
            "lt" => Self::Less,
            "le" => Self::AtMost,
            "gt" => Self::Greater,
            "ge" => Self::AtLeast,
            "contains" => Self::Contains,
            "is_" => Self::Is,
            "is_not" => Self::IsNot,
            _ => return None,
        })
    }

    /// # Errors
    /// Python's sentence for values that cannot be compared.
    pub(crate) fn compare(self, left: &Value, right: &Value) -> Result<bool, String> {
        Ok(match self {
            Self::Equal => left.same(right),
            Self::NotEqual => !left.same(right),
            Self::Less => order(left, right, "<")? == Some(Ordering::Less),
            Self::AtMost => matches!(order(left, right, "<=")?, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order(left, right, ">")? == Some(Ordering::Greater),
            Self::AtLeast => matches!(order(left, right, ">=")?, Some(Ordering::Greater | Ordering::Equal)),
            Self::Contains => contains(left, right)?,
            Self::Is => is(left, right),
            Self::IsNot => !is(left, right),
        })
    }
}

/// Python's `is`, of what there is one of; other values are another object each time.
fn is(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::None, Value::None) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        _ => false,
    }
}

/// Which is greater; none if a number is no number.
fn order(left: &Value, right: &Value, sign: &str) -> Result<Option<Ordering>, String> {
    if let (Some(left), Some(right)) = (left.whole(), right.whole()) {
        return Ok(Some(left.cmp(&right)));
    }
    if let (Some(left), Some(right)) = (left.number(), right.number()) {
        return Ok(left.partial_cmp(&right));
    }
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Ok(Some(left.cmp(right))),
        (Value::List(left), Value::List(right)) => {
            match left.iter().zip(right).find(|(left, right)| !left.same(right)) {
                Some((left, right)) => order(left, right, sign),
                None => Ok(Some(left.len().cmp(&right.len()))),
            }
        }
        _ => Err(format!("'{sign}' not supported between instances of '{}' and '{}'", kind(left), kind(right))),
    }
}

/// # Errors
/// Python's sentence for what nothing can be in.
pub(crate) fn contains(whole: &Value, part: &Value) -> Result<bool, String> {
    match (whole, part) {
        (Value::Text(whole), Value::Text(part)) => Ok(whole.contains(part.as_str())),
        (Value::Text(_), _) => Err(format!("'in <string>' requires string as left operand, not {}", kind(part))),
        (Value::List(items), _) => Ok(items.iter().any(|item| item.same(part))),
        (Value::Dict(entries), _) => Ok(entries.iter().any(|(key, _)| key.same(part))),
        _ => Err(format!("argument of type '{}' is not iterable", kind(whole))),
    }
}

/// Python's name of a value's type.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::None => "NoneType",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Big(_) => "int",
        Value::Float(_) => "float",
        Value::Text(_) => "str",
        Value::Bytes(_) | Value::Ext(..) => "bytes",
        Value::List(_) => "list",
        Value::Dict(_) => "dict",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_as_in_python() {
        let list = |items: &[i64]| Value::List(items.iter().map(|item| Value::Int(*item)).collect());
        for (name, left, right, is_so) in [
            ("eq", Value::Int(1), Value::Float(1.0), true),
            ("eq", Value::Bool(true), Value::Int(1), true),
            ("eq", Value::Int(i64::MAX), Value::Int(i64::MAX - 1), false),
            ("ne", "a".into(), "b".into(), true),
            ("lt", list(&[1, 2]), list(&[1, 3]), true),
            ("ge", list(&[1, 2]), list(&[1]), true),
            ("gt", Value::Float(2.5), Value::Int(2), true),
            ("contains", "abc".into(), "b".into(), true),
            ("contains", list(&[1, 2]), Value::Int(3), false),
            ("is_", Value::Bool(true), Value::Int(1), false),
            ("is_not", Value::None, Value::None, false),
        ] {
            assert_eq!(Comparator::named(name).unwrap().compare(&left, &right), Ok(is_so), "{name} {left:?} {right:?}");
        }
        let less = Comparator::Less.compare(&"a".into(), &Value::Int(1));
        assert_eq!(less, Err("'<' not supported between instances of 'str' and 'int'".into()));
        assert_eq!(Comparator::named("add"), None);
    }
}
