//! `value.name` and `value[key]` as Jinja looks them up, with the sandbox's rules.

use super::error::{ErrorKind, Res};
use super::interp::{Interp, check, hashed, loop_attribute};
use super::object::{
    BlockRef, Blocks, Cycler, Function, Functions, Group, Iter, Loop, Macro, Method, Module, Namespace, Undefined,
    cast, object,
};
use super::{methods, ops};
use crate::value::Value;

/// The name of a type in messages about what is undefined.
pub(super) fn type_repr(value: &Value) -> String {
    let name = value.type_name();
    match value {
        Value::None => "None".to_owned(),
        Value::Dict(dict) if dict.is_ordered() => "collections.OrderedDict object".to_owned(),
        Value::Object(object) => match object.type_name() {
            "Macro" | "TemplateModule" | "LoopContext" | "Namespace" | "Cycler" | "Joiner" => {
                let module = match object.type_name() {
                    "Macro" | "LoopContext" => "runtime",
                    "TemplateModule" => "environment",
                    _ => "utils",
                };
                format!("jinja2.{module}.{name} object")
            }
            "AliasedLoader" => "salt.utils.templates.AliasedLoader object".to_owned(),
            "LoadedMod" | "LoadedFunc" => format!("salt.loader.lazy.{name} object"),
            _ => format!("{name} object"),
        },
        _ => format!("{name} object"),
    }
}

fn undefined(value: &Value, key: &Value) -> Value {
    let of = type_repr(value);
    Undefined::value(match key {
        Value::Str(name) => format!("'{of}' has no attribute {}", Value::Str(name.clone()).short_repr()),
        key => format!("{of} has no element {}", key.short_repr()),
    })
}

fn attribute(interp: &mut Interp, value: &Value, name: &str) -> Option<Value> {
    if let Some(method) = methods::find(value, name) {
        return Some(object(Method { receiver: value.clone(), name: method }));
    }
    if let Some(module) = cast::<Module>(value) {
        return module.values.get(name).cloned();
    }
    if let Some(state) = cast::<Loop>(value) {
        return loop_attribute(state, name);
    }
    if let Some(namespace) = cast::<Namespace>(value) {
        return namespace.0.get(name);
    }
    if let Some(functions) = cast::<Functions>(value) {
        return match &functions.module {
            None if name.contains('.') || !interp.host.has_module(name) => None,
            None => Some(object(Functions { module: Some(name.into()) })),
            Some(module) => function(interp, format!("{module}.{name}")),
        };
    }
    if let Some(blocks) = cast::<Blocks>(value) {
        return Some(object(BlockRef { name: name.into(), depth: 0, scope: blocks.0.clone() }));
    }
    if let Some(block) = cast::<BlockRef>(value).filter(|_| name == "super") {
        let scope = block.scope.clone();
        return Some(object(BlockRef { name: block.name.clone(), depth: block.depth + 1, scope }));
    }
    if let Some(group) = cast::<Group>(value) {
        match name {
            "grouper" => return Some(group.grouper.clone()),
            "list" => return Some(group.list.clone()),
            _ => {}
        }
    }
    if let Some(cycler) = cast::<Cycler>(value).filter(|_| name == "current") {
        return Some(cycler.items[cycler.at.get()].clone());
    }
    if let Some(called) = cast::<Macro>(value) {
        return Some(match name {
            "name" => called.name.as_deref().map_or(Value::None, Value::from),
            "arguments" => Value::tuple(called.def.params.iter().map(|(name, _)| Value::str(name.clone()))),
            "catch_kwargs" => called.def.catch_kwargs.into(),
            "catch_varargs" => called.def.catch_varargs.into(),
            "caller" => called.def.takes_caller.into(),
            _ => return None,
        });
    }
    let _ = interp;
    match (value, name) {
        (Value::Date(d), "year") => Some(i64::from(d.year).into()),
        (Value::Date(d), "month") => Some(i64::from(d.month).into()),
        (Value::Date(d), "day") => Some(i64::from(d.day).into()),
        (Value::Int(_) | Value::Bool(_), "real" | "numerator") => ops::integer(value).map(Value::Int),
        _ => None,
    }
}

/// An execution function by its whole name. Where the host says why it has none, the use of it says so too.
fn function(interp: &Interp, name: String) -> Option<Value> {
    match interp.host.has_function(&name) {
        true => Some(Function::value(name)),
        false => interp.host.why_missing(&name).map(|why| Undefined::of(ErrorKind::Function, why)),
    }
}

/// `value["name"]`: none if there is no such thing.
fn item(interp: &mut Interp, value: &Value, key: &Value) -> Res<Option<Value>> {
    Ok(match value {
        Value::Dict(dict) => match hashed(key.clone()) {
            Ok(key) => dict.borrow().get(&key).cloned(),
            Err(_) => None,
        },
        Value::List(list) => ops::integer(key).and_then(|n| {
            let list = list.borrow();
            ops::place(n, list.len()).map(|at| list[at].clone())
        }),
        Value::Tuple(items) => ops::integer(key).and_then(|n| ops::place(n, items.len())).map(|at| items[at].clone()),
        Value::Str(text) => {
            let index = ops::integer(key).and_then(|n| ops::place(n, text.chars().count()));
            interp.take_steps(text.len() / 16)?;
            index.and_then(|at| text.chars().nth(at)).map(|c| Value::str(c.to_string()))
        }
        _ => {
            if let (Some(group), Some(n)) = (cast::<Group>(value), ops::integer(key)) {
                return Ok(ops::place(n, 2).map(|at| group.items()[at].clone()));
            }
            if let (Some(functions), Some(name)) = (cast::<Functions>(value), key.as_str()) {
                return Ok(functions.module.is_none().then(|| function(interp, name.to_owned())).flatten());
            }
            if let (Some(iter), Some(n)) = (cast::<Iter>(value).filter(|i| !i.is_generator()), ops::integer(key)) {
                let items = iter.items.borrow();
                let is_range = matches!(iter.kind, super::object::IterKind::Range(..));
                return Ok(ops::place(n, items.len()).filter(|_| is_range).map(|at| items[at].clone()));
            }
            None
        }
    })
}

/// `value.name`
pub(super) fn get_attribute(interp: &mut Interp, value: &Value, name: &str) -> Res<Value> {
    check(value)?;
    if let Some(found) = attribute(interp, value, name) {
        return Ok(found);
    }
    let key = Value::str(name);
    if let Some(found) = item(interp, value, &key)? {
        return Ok(found);
    }
    if name.starts_with("__") {
        let message = format!("access to attribute '{name}' of '{}' object is unsafe.", value.type_name());
        return Ok(Undefined::of(ErrorKind::Template, message));
    }
    Ok(undefined(value, &key))
}

/// `value[key]`
pub(super) fn get_item(interp: &mut Interp, value: &Value, key: &Value) -> Res<Value> {
    check(value)?;
    check(key)?;
    if let Some(found) = item(interp, value, key)? {
        return Ok(found);
    }
    if let Some(name) = key.as_str() {
        if let Some(found) = attribute(interp, value, name) {
            return Ok(found);
        }
        if name.starts_with("__") {
            let message = format!("access to attribute '{name}' of '{}' object is unsafe.", value.type_name());
            return Ok(Undefined::of(ErrorKind::Template, message));
        }
    }
    Ok(undefined(value, key))
}

/// `value[key]`, then the attribute, for names with dots (`map(attribute="a.b.0")`). The default takes the place of what is
/// undefined, after each name.
pub(super) fn get_path(interp: &mut Interp, value: &Value, path: &Value, default: Option<&Value>) -> Res<Value> {
    let or_default = |found: Value| match default {
        Some(default) if cast::<Undefined>(&found).is_some() => default.clone(),
        _ => found,
    };
    let Some(text) = path.as_str() else { return get_item(interp, value, path).map(or_default) };
    let mut value = value.clone();
    for part in text.split('.') {
        let key = part.parse().map_or_else(|_| Value::str(part), Value::Int);
        value = or_default(get_item(interp, &value, &key)?);
    }
    Ok(value)
}
