//! What `salt` has of a dict's methods.

use super::super::error::Res;
use super::super::interp::{Interp, Passed};
use super::super::object::{Function, Iter, IterKind};
use crate::value::Value;

pub(super) const NAMES: [&str; 4] = ["get", "items", "keys", "values"];

pub(super) fn call(interp: &mut Interp, name: &'static str, passed: &Passed) -> Res<Value> {
    if name == "get" {
        passed.at_most(&["key", "default"], "get")?;
        let key = passed.need(0, "key", "get")?;
        let known = key.as_str().filter(|name| interp.host.has_function(name));
        return Ok(known.map(Function::value).or_else(|| passed.get(1, "default")).unwrap_or_default());
    }
    passed.at_most(&[], name)?;
    let names = interp.host.functions();
    interp.charge_values(names.len() * 2)?;
    let (kind, item): (_, fn(String) -> Value) = match name {
        "keys" => ("KeysView", |name| Value::str(name)),
        "values" => ("ValuesView", |name| Function::value(name)),
        _ => ("ItemsView", |name| Value::tuple([Value::str(&*name), Function::value(name)])),
    };
    Ok(Iter::of(IterKind::View(kind), names.into_iter().map(item).collect()))
}
