//! The filters of Jinja and Salt.

mod combine;
mod data;
mod hash;
mod items;
mod network;
mod pformat;
mod quoted;
mod salt;
mod serialize;
mod text;
mod time;
mod words;
mod wrap;

use std::rc::Rc;

use super::error::{JinjaError, Res};
use super::interp::{Interp, Passed, check};
use super::scope::Scope;
use crate::value::Value;

/// The files of filters: a name is in one of them.
#[derive(Clone, Copy)]
enum Family {
    Combine(&'static str),
    Data,
    Hash,
    Items,
    Network,
    Salt,
    Serialize,
    Text,
    Time,
    Words,
    Wrap,
}

fn family(name: &str) -> Option<Family> {
    let families: [(&[&str], Family); 10] = [
        (&serialize::NAMES, Family::Serialize),
        (&text::NAMES, Family::Text),
        (&items::NAMES, Family::Items),
        (&salt::NAMES, Family::Salt),
        (&data::NAMES, Family::Data),
        (&network::NAMES, Family::Network),
        (&hash::NAMES, Family::Hash),
        (&time::NAMES, Family::Time),
        (&words::NAMES, Family::Words),
        (&wrap::NAMES, Family::Wrap),
    ];
    let found = families.into_iter().find(|(names, _)| names.contains(&name)).map(|(_, family)| family);
    found.or_else(|| combine::NAMES.into_iter().find(|known| *known == name).map(Family::Combine))
}

pub(super) fn exists(name: &str) -> bool {
    family(name).is_some() || absent(name).is_some()
}

/// Why a filter that Salt has is not here.
fn absent(name: &str) -> Option<&'static str> {
    words::ABSENT.iter().find(|(known, _)| *known == name).map(|(_, why)| *why)
}

pub(super) fn apply(
    interp: &mut Interp,
    name: &str,
    value: &Value,
    passed: Passed,
    _scope: Option<&Rc<Scope>>,
) -> Res<Value> {
    interp.step()?;
    match family(name) {
        Some(Family::Combine(name)) => combine::apply(interp, name, value, &passed),
        Some(Family::Data) => data::apply(interp, name, value, &passed),
        Some(Family::Hash) => hash::apply(interp, name, value, &passed),
        Some(Family::Items) => items::apply(interp, name, value, passed),
        Some(Family::Network) => network::apply(interp, name, value, &passed),
        Some(Family::Salt) => salt::apply(interp, name, value, &passed),
        Some(Family::Serialize) => serialize::apply(interp, name, value, &passed),
        Some(Family::Text) => text::apply(interp, name, value, &passed),
        Some(Family::Time) => time::apply(interp, value, &passed),
        Some(Family::Words) => words::apply(interp, name, value, &passed),
        Some(Family::Wrap) => wrap::apply(interp, value, &passed),
        None => Err(match absent(name) {
            Some(why) => JinjaError::template(format!("the filter '{name}' is not offered: {why}")),
            None => JinjaError::template(format!("No filter named '{name}' found.")),
        }),
    }
}

/// The text of a value, or Python's `TypeError` of the module `re`.
pub(super) fn text_arg(value: &Value) -> Res<&str> {
    check(value)?;
    value.as_str().ok_or_else(|| {
        JinjaError::python("expected string or bytes-like object, got '".to_owned() + value.type_name() + "'")
    })
}
