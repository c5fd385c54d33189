//! What is wrong with high data, in Salt's sentences.

use brine_render::value::Key;
use brine_render::{Dict, Value};

use crate::fault::Res;
use crate::keywords;
use crate::limits::Budget;
use crate::python;

/// Checks that high data has its form.
pub(crate) fn verify(high: &Dict, budget: &Budget) -> Res<Vec<String>> {
    let mut errors = Vec::new();
    for (id, body) in python::entries(high) {
        let shown = python::name(&id);
        match id.as_str() {
            None => errors.push(format!(
                "ID '{shown}' in SLS '{}' is not formed as a string, but is type {}. It may need to be quoted.",
                python::name(&python::field(&body, "__sls__")?),
                python::class_name(&id),
            )),
            Some(text) if text.starts_with("__") => continue,
            Some(_) => {}
        }
        let Value::Dict(body) = &body else {
            let body = python::text(&body, budget.limits.text);
            errors.push(format!("The type {shown} in {body} is not formatted as a dictionary"));
            continue;
        };
        let sls = || Res::Ok(python::name(&python::field(&body.clone().into(), "__sls__")?));
        for (module, arguments) in python::entries(body) {
            if python::starts_with(&module, "__")? {
                continue;
            }
            let module = module.as_str().unwrap_or_default();
            match &arguments {
                Value::None => errors.push(format!(
                    "ID '{shown}' in SLS '{}' contains a short declaration ({module}) with a trailing colon. When not \
                     passing any arguments to a state, the colon must be omitted.",
                    sls()?
                )),
                Value::List(list) => {
                    // High data of a caller (`state.high`) has none.
                    let at = Place { id: &shown, sls: sls().unwrap_or_default() };
                    verify_arguments(&at, module, &list.borrow().clone(), budget, &mut errors)?;
                }
                _ => errors.push(format!("State '{shown}' in SLS '{}' is not formed as a list", sls()?)),
            }
        }
    }
    Ok(errors)
}

struct Place<'a> {
    id: &'a str,
    sls: String,
}

fn verify_arguments(
    at: &Place<'_>,
    module: &str,
    arguments: &[Value],
    budget: &Budget,
    errors: &mut Vec<String>,
) -> Res<()> {
    let Place { id, sls } = at;
    let mut functions: Vec<&str> = module.split_once('.').map(|(_, function)| function).into_iter().collect();
    for argument in arguments {
        match argument {
            Value::Str(function) => {
                functions.push(function);
                if function.trim().contains(' ') {
                    errors.push(format!(
                        "The function \"{function}\" in state \"{id}\" in SLS \"{sls}\" has whitespace, a function with \
                         whitespace is not supported, perhaps this is an argument that is missing a \":\""
                    ));
                }
            }
            Value::Dict(dict) => {
                let first = python::first(argument)?;
                let value = python::item(argument, &first)?;
                let Some(name) = first.as_str() else { continue };
                let is_list = matches!(value, Value::List(_));
                if name == "names" && !is_list {
                    errors.push(format!(
                        "The 'names' argument in state '{id}' in SLS '{sls}' needs to be formed as a list"
                    ));
                }
                if !keywords::is_requisite(name) {
                    continue;
                }
                match &value {
                    Value::List(requisites) => {
                        for requisite in requisites.borrow().iter() {
                            verify_requisite(at, requisite, budget, errors)?;
                        }
                    }
                    _ => errors.push(format!(
                        "The {name} statement in state '{id}' in SLS '{sls}' needs to be formed as a list"
                    )),
                }
                if dict.borrow().len() != 1 {
                    errors.push(format!("Multiple dictionaries defined in argument of state '{id}' in SLS '{sls}'"));
                }
            }
            _ => {}
        }
    }
    match functions.len() {
        0 => errors.push(format!("No function declared in state '{id}' in SLS '{sls}'")),
        1 => {}
        _ => errors.push(format!(
            "Too many functions declared in state '{id}' in SLS '{sls}'. Please choose one of the following: {}",
            functions.join(", ")
        )),
    }
    Ok(())
}

/// A requisite is the name of an id, or a dict with one key.
fn verify_requisite(at: &Place<'_>, requisite: &Value, budget: &Budget, errors: &mut Vec<String>) -> Res<()> {
    let Place { id, sls } = at;
    let (key, value) = match requisite {
        Value::Str(_) => return Ok(()),
        Value::Dict(dict) if dict.borrow().len() == 1 => {
            let (key, value) = python::entries(dict).swap_remove(0);
            (key, value)
        }
        other => {
            let shown = python::text(other, budget.limits.text);
            errors.push(format!(
                "Requisite declaration {shown} in state {id} in SLS {sls} is not formed as a single key dictionary"
            ));
            return Ok(());
        }
    };
    if python::contains(&key, &".".into())? {
        let text = key.as_str().unwrap_or_default();
        let module = text.split('.').next().unwrap_or_default();
        errors.push(format!(
            "Invalid requisite type '{text}' in state '{id}', in SLS '{sls}'. Requisite types must not contain dots, did \
             you mean '{module}'?"
        ));
    }
    if Key::new(value.clone()).is_err() {
        let shown = python::text(&value, budget.limits.text);
        errors.push(format!("Illegal requisite \"{shown}\" in SLS \"{sls}\", please check your syntax.\n"));
    }
    Ok(())
}
