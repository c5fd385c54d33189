//! Python's operators.

use std::cmp::Ordering;

use super::ast::{Comparison, Operator};
use super::error::{ErrorKind, JinjaError, Res};
use super::interp::{Interp, check, hashed};
use super::object::{Cycler, Group, Iter, IterKind, Loop, Module, cast};
use crate::value::{Set, Value};

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(b) => Some(f64::from(u8::from(*b))),
        Value::Int(n) => Some(*n as f64),
        Value::Float(n) => Some(*n),
        _ => None,
    }
}

/// The value of an int or bool.
pub(super) fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(b) => Some(i128::from(*b)),
        Value::Int(n) => Some(*n),
        _ => None,
    }
}

fn too_large<T>() -> Res<T> {
    Err(JinjaError::limit("an integer of more than 128 bits"))
}

pub(super) fn negate(value: &Value, negative: bool) -> Res<Value> {
    check(value)?;
    match value {
        Value::Float(n) => Ok(Value::Float(if negative { -n } else { *n })),
        _ => match integer(value) {
            Some(n) => match if negative { n.checked_neg() } else { Some(n) } {
                Some(n) => Ok(Value::Int(n)),
                None => too_large(),
            },
            None => {
                let (sign, name) = (if negative { '-' } else { '+' }, value.type_name());
                Err(JinjaError::python(format!("bad operand type for unary {sign}: '{name}'")))
            }
        },
    }
}

pub(super) fn binary(interp: &mut Interp, operator: Operator, left: &Value, right: &Value) -> Res<Value> {
    check(left)?;
    if let (Operator::Mod, Value::Str(format)) = (operator, left)
        && !format.contains('%')
        && matches!(right, Value::Object(_))
    {
        // an object may be a mapping, of which nothing is taken
        return Ok(left.clone());
    }
    check(right)?;
    if let (Some(a), Some(b)) = (integer(left), integer(right)) {
        return integers(operator, a, b);
    }
    if let (Some(a), Some(b)) = (number(left), number(right)) {
        return floats(operator, a, b).map(Value::Float);
    }
    match (operator, left, right) {
        (Operator::Mod, Value::Str(format), _) => return super::format::percent(interp, format, right).map(Value::str),
        (Operator::Add, Value::Str(a), Value::Str(b)) => {
            interp.charge(a.len() + b.len())?;
            return Ok(Value::str([&**a, b].concat()));
        }
        (Operator::Add, Value::List(a), Value::List(b)) => {
            interp.charge_values(a.borrow().len() + b.borrow().len())?;
            return Ok(Value::list(a.borrow().iter().chain(b.borrow().iter()).cloned()));
        }
        (Operator::Add, Value::Tuple(a), Value::Tuple(b)) => {
            interp.charge_values(a.len() + b.len())?;
            return Ok(Value::tuple(a.iter().chain(b.iter()).cloned()));
        }
        (Operator::Sub, Value::Set(a), Value::Set(b)) => {
            let b = b.borrow();
            return Ok(Value::Set(a.borrow().iter().filter(|key| !b.contains(*key)).cloned().collect()));
        }
        (Operator::Mul, _, _) => {
            let repeated = match (integer(left), integer(right)) {
                (Some(count), _) => repeat(interp, right, count)?,
                (_, Some(count)) => repeat(interp, left, count)?,
                _ => None,
            };
            if let Some(value) = repeated {
                return Ok(value);
            }
            let is_sequence = |value: &Value| matches!(value, Value::Str(_) | Value::List(_) | Value::Tuple(_));
            if is_sequence(left) || is_sequence(right) {
                let name = if is_sequence(left) { right.type_name() } else { left.type_name() };
                return Err(JinjaError::python(format!("can't multiply sequence by non-int of type '{name}'")));
            }
        }
        _ => {}
    }
    let (a, b) = (left.type_name(), right.type_name());
    Err(JinjaError::python(match (operator, left) {
        (Operator::Add, Value::Str(_)) => format!("can only concatenate str (not \"{b}\") to str"),
        (Operator::Add, Value::List(_) | Value::Tuple(_)) => format!("can only concatenate {a} (not \"{b}\") to {a}"),
        _ => format!("unsupported operand type(s) for {}: '{a}' and '{b}'", symbol(operator)),
    }))
}

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Sub => "-",
        Operator::Mul => "*",
        Operator::Div => "/",
        Operator::FloorDiv => "//",
        Operator::Mod => "%",
        Operator::Pow => "** or pow()",
    }
}

fn repeat(interp: &mut Interp, sequence: &Value, count: i128) -> Res<Option<Value>> {
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    Ok(Some(match sequence {
        Value::Str(text) => {
            interp.charge(text.len().saturating_mul(count))?;
            Value::str(text.repeat(count))
        }
        Value::List(items) => {
            interp.charge_values(items.borrow().len().saturating_mul(count))?;
            let items = items.borrow();
            Value::list((0..count).flat_map(|_| items.iter().cloned()))
        }
        Value::Tuple(items) => {
            interp.charge_values(items.len().saturating_mul(count))?;
            Value::tuple((0..count).flat_map(|_| items.iter().cloned()))
        }
        _ => return Ok(None),
    }))
}

fn integers(operator: Operator, a: i128, b: i128) -> Res<Value> {
    let zero = |message: &str| Err(JinjaError::python(message));
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Sub => a.checked_sub(b),
        Operator::Mul => a.checked_mul(b),
        Operator::Div if b == 0 => return zero("division by zero"),
        Operator::Div => return Ok(Value::Float(a as f64 / b as f64)),
        Operator::FloorDiv if b == 0 => return zero("integer division or modulo by zero"),
        Operator::FloorDiv => a.checked_div(b).map(|q| if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q }),
        Operator::Mod if b == 0 => return zero("integer modulo by zero"),
        Operator::Mod => a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
        Operator::Pow if b < 0 && a == 0 => return zero("0.0 cannot be raised to a negative power"),
        Operator::Pow if b < 0 => return Ok(Value::Float((a as f64).powf(b as f64))),
        Operator::Pow => match (a, u32::try_from(b)) {
            (_, Ok(exponent)) => a.checked_pow(exponent),
            (0 | 1, Err(_)) => Some(a),
            (-1, Err(_)) => Some(if b % 2 == 0 { 1 } else { -1 }),
            _ => None,
        },
    };
    result.map_or_else(too_large, |n| Ok(Value::Int(n)))
}

fn floats(operator: Operator, a: f64, b: f64) -> Res<f64> {
    if b == 0.0 {
        let message = match operator {
            Operator::Div => Some("float division by zero"),
            Operator::FloorDiv => Some("float floor division by zero"),
            Operator::Mod => Some("float modulo"),
            _ => None,
        };
        if let Some(message) = message {
            return Err(JinjaError::python(message));
        }
    }
    if operator == Operator::Pow && a < 0.0 && b.fract() != 0.0 {
        return Err(JinjaError::python("complex numbers are not offered"));
    }
    let modulo = || {
        let rest = a % b;
        if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
    };
    Ok(match operator {
        Operator::Add => a + b,
        Operator::Sub => a - b,
        Operator::Mul => a * b,
        Operator::Div => a / b,
        Operator::FloorDiv => ((a - modulo()) / b).round(),
        Operator::Mod => modulo(),
        Operator::Pow => a.powf(b),
    })
}

pub(super) fn equal(interp: &mut Interp, left: &Value, right: &Value) -> Res<bool> {
    check(left)?;
    check(right)?;
    interp.step()?;
    left.equals(right).ok_or_else(|| JinjaError::limit("the values are too large to be compared"))
}

pub(super) fn compare(interp: &mut Interp, comparison: Comparison, left: &Value, right: &Value) -> Res<bool> {
    let symbol = match comparison {
        Comparison::Eq => return equal(interp, left, right),
        Comparison::Ne => return equal(interp, left, right).map(|is| !is),
        Comparison::In => return contains(interp, right, left),
        Comparison::NotIn => return contains(interp, right, left).map(|is| !is),
        Comparison::Lt => "<",
        Comparison::Le => "<=",
        Comparison::Gt => ">",
        Comparison::Ge => ">=",
    };
    let order = order(interp, left, right, symbol, 0)?;
    Ok(match comparison {
        Comparison::Lt => order == Some(Ordering::Less),
        Comparison::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Gt => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    })
}

/// Python's order of two values; none for what is not a number.
pub(super) fn order(
    interp: &mut Interp,
    left: &Value,
    right: &Value,
    symbol: &str,
    depth: usize,
) -> Res<Option<Ordering>> {
    check(left)?;
    check(right)?;
    interp.step()?;
    if let (Some(a), Some(b)) = (integer(left), integer(right)) {
        return Ok(Some(a.cmp(&b)));
    }
    if let (Some(a), Some(b)) = (number(left), number(right)) {
        return Ok(a.partial_cmp(&b));
    }
    let (a, b): (Vec<Value>, Vec<Value>) = match (left, right) {
        (Value::Str(a), Value::Str(b)) => return Ok(Some(a.cmp(b))),
        (Value::Date(a), Value::Date(b)) => return Ok(Some(a.cmp(b))),
        (Value::List(a), Value::List(b)) => (a.borrow().clone(), b.borrow().clone()),
        (Value::Tuple(a), Value::Tuple(b)) => (a.to_vec(), b.to_vec()),
        _ => {
            let (a, b) = (left.type_name(), right.type_name());
            let message = format!("'{symbol}' not supported between instances of '{a}' and '{b}'");
            return Err(JinjaError::python(message));
        }
    };
    if depth > 50 {
        return Err(JinjaError::limit("the values are too deep to be compared"));
    }
    interp.charge_values(a.len() + b.len())?;
    for (a, b) in a.iter().zip(&b) {
        if !equal(interp, a, b)? {
            return order(interp, a, b, symbol, depth + 1);
        }
    }
    Ok(Some(a.len().cmp(&b.len())))
}

/// `item in container`
pub(super) fn contains(interp: &mut Interp, container: &Value, item: &Value) -> Res<bool> {
    check(container)?;
    match (container, item) {
        (Value::Str(text), Value::Str(part)) => return Ok(text.contains(&**part)),
        (Value::Str(_), _) => {
            let name = item.type_name();
            return Err(JinjaError::python(format!("'in <string>' requires string as left operand, not {name}")));
        }
        (Value::Dict(dict), _) => return Ok(dict.borrow().contains_key(&hashed(item.clone())?)),
        (Value::Set(set), _) => return Ok(set.borrow().contains(&hashed(item.clone())?)),
        _ => {}
    }
    if let Some(functions) = cast::<super::object::Functions>(container) {
        let name = item.as_str().unwrap_or_default();
        return Ok(functions.module.is_none() && interp.host.has_function(name));
    }
    if let (Some(Iter { kind: IterKind::Range(..), items }), Some(n)) = (cast::<Iter>(container), integer(item)) {
        return Ok(items.borrow().contains(&Value::Int(n)));
    }
    let items = iterate(interp, container).map_err(|error| match error.message.ends_with("is not iterable") {
        true => JinjaError::python(format!("argument of type '{}' is not iterable", container.type_name())),
        false => error,
    })?;
    for other in &items {
        if other.is_same(item) || equal(interp, other, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The items of something to go through.
pub(super) fn iterate(interp: &mut Interp, value: &Value) -> Res<Vec<Value>> {
    check(value)?;
    let items = match value {
        Value::List(list) => list.borrow().clone(),
        Value::Tuple(items) => items.to_vec(),
        Value::Dict(dict) => dict.borrow().keys().map(|key| key.value().clone()).collect(),
        Value::Set(set) => set.borrow().iter().map(|key| key.value().clone()).collect(),
        Value::Str(text) => {
            interp.charge_values(text.len())?;
            text.chars().map(|c| Value::str(c.to_string())).collect()
        }
        Value::Bytes(bytes) => bytes.iter().map(|b| Value::Int(i128::from(*b))).collect(),
        _ => match (cast::<Iter>(value), cast::<Group>(value)) {
            (Some(iter), _) if iter.is_generator() => iter.items.take(),
            (Some(iter), _) => iter.items.borrow().clone(),
            (_, Some(group)) => group.items().to_vec(),
            (None, None) => {
                let name = value.type_name();
                return Err(JinjaError::python(format!("'{name}' object is not iterable")));
            }
        },
    };
    interp.take_steps(items.len())?;
    interp.charge(items.len() * 8)?;
    Ok(items)
}

/// Python's `len`.
pub(super) fn length(value: &Value) -> Res<usize> {
    check(value)?;
    Ok(match value {
        Value::Str(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.borrow().len(),
        Value::Tuple(items) => items.len(),
        Value::Dict(dict) => dict.borrow().len(),
        Value::Set(set) => set.borrow().len(),
        _ => match (cast::<Iter>(value), cast::<Loop>(value)) {
            (Some(iter), _) if !iter.is_generator() => iter.items.borrow().len(),
            (_, Some(state)) => state.items.len(),
            _ if cast::<Group>(value).is_some() => 2,
            _ => {
                let _ = (cast::<Module>(value), cast::<Cycler>(value));
                let name = value.type_name();
                return Err(JinjaError::python(format!("object of type '{name}' has no len()")));
            }
        },
    })
}

/// The place of an index in a sequence of a length.
pub(super) fn place(index: i128, length: usize) -> Option<usize> {
    let index = if index < 0 { index + length as i128 } else { index };
    usize::try_from(index).ok().filter(|at| *at < length)
}

/// `value[start:stop:step]`
pub(super) fn slice(interp: &mut Interp, value: &Value, bounds: &[Option<Value>; 3]) -> Res<Value> {
    check(value)?;
    let bound = |value: &Option<Value>| match value {
        None | Some(Value::None) => Ok(None),
        Some(value) => {
            check(value)?;
            integer(value)
                .map(Some)
                .ok_or_else(|| JinjaError::python("slice indices must be integers or None or have an __index__ method"))
        }
    };
    if !matches!(value, Value::Str(_) | Value::List(_) | Value::Tuple(_)) && cast::<Iter>(value).is_none() {
        if let Value::Dict(_) = value {
            return Err(JinjaError::new(ErrorKind::Python, "unhashable type: 'slice'"));
        }
        let name = value.type_name();
        return Err(JinjaError::python(format!("'{name}' object is not subscriptable")));
    }
    let items = iterate(interp, value)?;
    let (start, stop, step) = (bound(&bounds[0])?, bound(&bounds[1])?, bound(&bounds[2])?.unwrap_or(1));
    if step == 0 {
        return Err(JinjaError::python("slice step cannot be zero"));
    }
    let count = items.len() as i128;
    let (low, high) = if step > 0 { (0, count) } else { (-1, count - 1) };
    let clamp = |n: i128| (if n < 0 { n + count } else { n }).clamp(low, high);
    let mut at = start.map_or(if step > 0 { low } else { high }, clamp);
    let stop = stop.map_or(if step > 0 { high } else { low }, clamp);
    let mut chosen = Vec::new();
    while if step > 0 { at < stop } else { at > stop } {
        chosen.push(items[at as usize].clone());
        at = at.saturating_add(step);
    }
    interp.charge_values(chosen.len())?;
    Ok(match value {
        Value::Str(_) => Value::str(chosen.iter().filter_map(Value::as_str).collect::<String>()),
        Value::Tuple(_) => Value::tuple(chosen),
        _ => Value::list(chosen),
    })
}

/// A set of values.
pub(super) fn set_of(items: Vec<Value>) -> Res<Set> {
    items.into_iter().map(hashed).collect()
}
