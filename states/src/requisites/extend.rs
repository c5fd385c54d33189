//! `extend`: adds to the arguments of states of other files, or replaces them.

use brine_render::{Dict, Value};

use super::exclude::excluded_sls;
use super::find;
use crate::fault::{Fault, Res};
use crate::keywords;
use crate::limits::Budget;
use crate::python;

/// Applies `__extend__`. `strict`: an id that does not have the module is not meant.
pub(crate) fn extend(high: &Dict, strict: bool, budget: &Budget) -> Res<Vec<String>> {
    let mut errors = Vec::new();
    let Some(extensions) = python::pop(high, "__extend__") else { return Ok(errors) };
    let excluded = excluded_sls(high)?;
    for extension in python::iterate(&extensions)? {
        for (id, body) in python::entries(python::dict_method(&extension, "items")?) {
            let body = python::dict_method(&body, "get")?.clone();
            let module = first_module(&body)?;
            let Some(id) = target(&id, &module, high, strict, budget)? else {
                let id = python::name(&id);
                let of = |name: &str| body.get(name).map_or("base".to_owned(), |value| python::name(&value));
                let (env, sls) = (of("__env__"), of("__sls__"));
                errors.push(format!(
                    "Cannot extend ID '{id}' in '{env}:{sls}'. It is not part of the high state.\nThis is likely due to a \
                     missing include statement or an incorrectly typed ID.\nEnsure that a state with an ID of '{id}' is \
                     available\nin environment '{env}' and to SLS '{sls}'"
                ));
                continue;
            };
            if excluded.contains(&body.get("__sls__").unwrap_or_default()) {
                continue;
            }
            let there = python::item(&high.clone().into(), &id)?;
            for (module, arguments) in python::entries(&body) {
                if python::starts_with(&module, "__")? {
                    continue;
                }
                if !python::contains(&there, &module)? {
                    python::set_item(&there, &module, arguments)?;
                    continue;
                }
                let now = python::item(&there, &module)?;
                for argument in python::iterate(&arguments)? {
                    apply(&now, &argument, budget)?;
                }
            }
        }
    }
    Ok(errors)
}

fn first_module(body: &Dict) -> Res<Value> {
    for name in python::keys(body) {
        if !python::starts_with(&name, "__")? {
            return Ok(name);
        }
    }
    Err(Fault::Python { class: "StopIteration", message: String::new() })
}

/// The id that an extension means.
fn target(id: &Value, module: &Value, high: &Dict, strict: bool, budget: &Budget) -> Res<Option<Value>> {
    let there = high.borrow().get(&python::key(id)?).cloned();
    if let Some(body) = there
        && python::contains(&body, module)?
    {
        return Ok(Some(id.clone()));
    }
    let mut found = find::by_name(id, module, high, strict, budget)?;
    Ok(if found.len() == 1 { found.pop().map(|(id, _)| id) } else { None })
}

/// Applies one argument to those that are there: a function replaces the function, a requisite is added to those of its
/// kind, another argument replaces the one of its name. What is not there yet is added.
fn apply(arguments: &Value, argument: &Value, budget: &Budget) -> Res<()> {
    let list = python::list_method(arguments, "append")?;
    let mut there = false;
    budget.search(list.borrow().len())?;
    let count = list.borrow().len();
    for at in 0..count {
        let now = list.borrow().get(at).cloned().unwrap_or_default();
        match (argument, &now) {
            (Value::Str(_), Value::Str(_)) => {
                list.borrow_mut()[at] = argument.clone();
                there = true;
            }
            (Value::Dict(_), Value::Dict(_)) => {
                let name = python::first(argument)?;
                let name_now = python::first(&now)?;
                if name == name_now {
                    if name.as_str().is_some_and(keywords::is_requisite) {
                        let requisites = python::item(&now, &name)?;
                        let more = python::item(argument, &name)?;
                        python::list_method(&requisites, "extend")?;
                        python::extend(&requisites, &more)?;
                    } else {
                        list.borrow_mut()[at] = argument.clone();
                    }
                    there = true;
                }
                if name.as_str() == Some("name") && name_now.as_str() == Some("names") {
                    list.borrow_mut()[at] = argument.clone();
                }
            }
            _ => {}
        }
    }
    if !there {
        list.borrow_mut().push(argument.clone());
    }
    Ok(())
}
