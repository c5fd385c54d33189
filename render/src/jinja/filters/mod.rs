//! The filters of Jinja and Salt.

mod items;
mod salt;
mod serialize;
mod text;

use std::rc::Rc;

use super::error::{JinjaError, Res};
use super::interp::{Interp, Passed, check};
use super::scope::Scope;
use crate::value::Value;

pub(super) fn exists(name: &str) -> bool {
    items::NAMES.contains(&name)
        || text::NAMES.contains(&name)
        || salt::NAMES.contains(&name)
        || serialize::NAMES.contains(&name)
}

pub(super) fn apply(
    interp: &mut Interp,
    name: &str,
    value: &Value,
    passed: Passed,
    _scope: Option<&Rc<Scope>>,
) -> Res<Value> {
    interp.step()?;
    if items::NAMES.contains(&name) {
        return items::apply(interp, name, value, passed);
    }
    if text::NAMES.contains(&name) {
        return text::apply(interp, name, value, &passed);
    }
    if serialize::NAMES.contains(&name) {
        return serialize::apply(interp, name, value, &passed);
    }
    if salt::NAMES.contains(&name) {
        return salt::apply(interp, name, value, &passed);
    }
    Err(JinjaError::template(format!("No filter named '{name}' found.")))
}

/// The text of a value, or Python's `TypeError` of the module `re`.
pub(super) fn text_arg(value: &Value) -> Res<&str> {
    check(value)?;
    value.as_str().ok_or_else(|| {
        JinjaError::python("expected string or bytes-like object, got '".to_owned() + value.type_name() + "'")
    })
}
