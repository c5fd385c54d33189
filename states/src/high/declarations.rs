//! One form for the ids of a file: `ID: {module: [arguments, function]}`, with the file and its environment.

use std::collections::HashSet;

use brine_render::{Dict, Value};

use crate::fault::Res;
use crate::python;

/// Brings the ids of a file into one form.
pub(super) fn states(state: &Dict, sls: &str, saltenv: &str, errors: &mut Vec<String>) -> Res<()> {
    for id in python::keys(state) {
        let body = python::item(&state.clone().into(), &id)?;
        let Value::Dict(body) = &body else {
            if matches!(id.as_str(), Some("__extend__" | "__exclude__")) {
                continue;
            }
            match body.as_str().filter(|text| text.contains('.')) {
                Some(text) => {
                    let mut parts = text.split('.');
                    let (module, function) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                    let body = Dict::default();
                    body.set("__sls__", sls.into());
                    body.set("__env__", saltenv.into());
                    body.set(module, Value::list([function.into()]));
                    python::set_item(&state.clone().into(), &id, body.into())?;
                }
                None => errors.push(format!("ID {} in SLS {sls} is not a dictionary", python::name(&id))),
            }
            continue;
        };
        split_functions(body, |_| errors.push(twice(&id, sls)))?;
        if !python::has(body, "__sls__") {
            body.set("__sls__", sls.into());
        }
        if !python::has(body, "__env__") {
            body.set("__env__", saltenv.into());
        }
    }
    Ok(())
}

fn twice(id: &Value, sls: &str) -> String {
    format!("ID '{}' in SLS '{sls}' contains multiple state declarations of the same type", python::name(id))
}

/// `pkg.installed: [arguments]` becomes `pkg: [arguments, installed]`. A second function of a module stays as it is,
/// and is told.
fn split_functions(body: &Dict, mut second: impl FnMut(&str)) -> Res<()> {
    let mut modules = HashSet::new();
    for declared in python::keys(body) {
        if python::starts_with(&declared, "_")? {
            continue;
        }
        let declared = declared.as_str().unwrap_or_default();
        let Some(Value::List(arguments)) = body.get(declared) else { continue };
        let mut parts = declared.split('.');
        let module = parts.next().unwrap_or_default().to_owned();
        let Some(function) = parts.next() else {
            modules.insert(module);
            continue;
        };
        if modules.contains(&module) {
            second(&module);
            continue;
        }
        python::pop(body, declared);
        body.set(&module, arguments.clone().into());
        arguments.borrow_mut().push(function.into());
        modules.insert(module);
    }
    Ok(())
}

/// Takes `extend` out of a file.
pub(super) fn extend(state: &Dict, sls: &str, saltenv: &str, errors: &mut Vec<String>) -> Res<()> {
    let Some(extend) = python::pop(state, "extend") else { return Ok(()) };
    let Value::Dict(extend) = extend else {
        errors.push(format!("Extension value in SLS '{sls}' is not a dictionary"));
        return Ok(());
    };
    for (id, body) in python::entries(&extend) {
        let Value::Dict(body) = body else {
            errors.push(format!("Extension name '{}' in SLS '{sls}' is not a dictionary", python::name(&id)));
            continue;
        };
        if !python::has(&body, "__sls__") {
            body.set("__sls__", sls.into());
        }
        if !python::has(&body, "__env__") {
            body.set("__env__", saltenv.into());
        }
        for declared in python::keys(&body) {
            if python::starts_with(&declared, "_")? {
                continue;
            }
            let declared = declared.as_str().unwrap_or_default();
            let Some(Value::List(arguments)) = body.get(declared) else { continue };
            let mut parts = declared.split('.');
            if let (Some(module), Some(function)) = (parts.next(), parts.next()) {
                python::pop(&body, declared);
                body.set(module, arguments.clone().into());
                arguments.borrow_mut().push(function.into());
            }
        }
    }
    let all = python::default_list(state, "__extend__");
    python::list_method(&all, "append")?.borrow_mut().push(extend.into());
    Ok(())
}

/// Takes `exclude` out of a file.
pub(super) fn exclude(state: &Dict, sls: &str, errors: &mut Vec<String>) -> Res<()> {
    let Some(exclude) = python::pop(state, "exclude") else { return Ok(()) };
    if !matches!(exclude, Value::List(_)) {
        errors.push(format!("Exclude Declaration in SLS {sls} is not formed as a list"));
    }
    python::extend(&python::default_list(state, "__exclude__"), &exclude)
}

/// Numbers the states that say nothing about their order. An id that has no states ends it, as in Salt: what is wrong
/// is said later.
pub(super) fn number(state: &Dict, next: &mut i128) {
    for body in state.borrow().values() {
        let Value::Dict(body) = body else {
            if python::iterate(body).is_err() {
                return;
            }
            continue;
        };
        for (declared, arguments) in body.borrow().iter() {
            let (Some(declared), Value::List(arguments)) = (declared.as_str(), arguments) else { continue };
            if declared.starts_with('_') {
                continue;
            }
            let says_order = |argument: &Value| match argument {
                Value::Dict(argument) => {
                    argument.borrow().keys().next().is_some_and(|key| key.as_str() == Some("order"))
                }
                _ => false,
            };
            if arguments.borrow().iter().any(says_order) {
                continue;
            }
            arguments.borrow_mut().push(Value::dict([("order".into(), (*next).into())]));
            *next += 1;
        }
    }
}
