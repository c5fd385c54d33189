//! Python's `==`.

use super::key::whole;
use super::{MAX_DEPTH, Value};

/// Upper bound on the pairs of values that one comparison looks at: shared lists can stand for an exponential number.
const MAX_COMPARISONS: usize = 1 << 22;

/// Whether two values are equal; None if they are too deep or too large to be compared.
pub(super) fn equals(a: &Value, b: &Value) -> Option<bool> {
    compare(a, b, 0, &mut { MAX_COMPARISONS })
}

fn compare(a: &Value, b: &Value, depth: usize, left: &mut usize) -> Option<bool> {
    use Value as V;
    *left = left.checked_sub(1)?;
    if depth > MAX_DEPTH {
        return None;
    }
    if a.is_same(b) {
        return Some(true);
    }
    Some(match (a, b) {
        (V::None, V::None) => true,
        (V::Bool(a), V::Bool(b)) => a == b,
        (V::Int(a), V::Int(b)) => a == b,
        (V::Bool(b), V::Int(n)) | (V::Int(n), V::Bool(b)) => *n == i128::from(*b),
        (V::Float(a), V::Float(b)) => a == b,
        (V::Float(f), V::Int(n)) | (V::Int(n), V::Float(f)) => whole(*f) == Some(*n),
        (V::Float(f), V::Bool(b)) | (V::Bool(b), V::Float(f)) => *f == f64::from(*b),
        (V::Str(a), V::Str(b)) => a == b,
        (V::Bytes(a), V::Bytes(b)) => a == b,
        (V::List(a), V::List(b)) => compare_all(&a.borrow(), &b.borrow(), depth, left)?,
        (V::Tuple(a), V::Tuple(b)) => compare_all(a, b, depth, left)?,
        (V::Dict(a), V::Dict(b)) => {
            let (ordered, a, b) = (a.is_ordered() && b.is_ordered(), a.borrow(), b.borrow());
            if a.len() != b.len() {
                return Some(false);
            }
            if ordered && !a.keys().eq(b.keys()) {
                return Some(false);
            }
            for (key, value) in a.iter() {
                match b.get(key) {
                    Some(other) if compare(value, other, depth + 1, left)? => {}
                    _ => return Some(false),
                }
            }
            true
        }
        (V::Set(a), V::Set(b)) => *a.borrow() == *b.borrow(),
        (V::Date(a), V::Date(b)) => a == b,
        (V::DateTime(a), V::DateTime(b)) => a == b,
        _ => false,
    })
}

fn compare_all(a: &[Value], b: &[Value], depth: usize, left: &mut usize) -> Option<bool> {
    if a.len() != b.len() {
        return Some(false);
    }
    for (a, b) in a.iter().zip(b) {
        if !compare(a, b, depth + 1, left)? {
            return Some(false);
        }
    }
    Some(true)
}
