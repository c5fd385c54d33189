//! What is wrong with a top, in Salt's sentences.

use brine_render::{Dict, Value};

use crate::fault::Res;
use crate::python;

/// Checks that a top has its form.
pub(crate) fn verify(top: &Dict) -> Res<Vec<String>> {
    let mut errors = Vec::new();
    for (saltenv, targets) in python::entries(top) {
        match saltenv.as_str() {
            Some("include") => continue,
            Some("") => errors.push("Empty saltenv statement in top file".to_owned()),
            Some(_) => {}
            None => {
                let shown = python::name(&saltenv);
                errors.push(format!("Environment {shown} in top file is not formed as a string"));
            }
        }
        if !matches!(targets, Value::Dict(_)) {
            let shown = python::name(&saltenv);
            errors.push(format!("The top file matches for saltenv {shown} are not formatted as a dict"));
        }
        for (target, names) in python::entries(python::dict_method(&targets, "items")?) {
            let Value::List(names) = &names else {
                errors.push(format!(
                    "Malformed topfile: state declarations for matcher {} in saltenv {} are not formed as a list (got {})",
                    target.short_repr(),
                    saltenv.short_repr(),
                    python::class_name(&names)
                ));
                continue;
            };
            for name in names.borrow().iter() {
                match name {
                    Value::Dict(option) => {
                        for value in option.borrow().values().filter(|value| !value.truthy()) {
                            errors.push(format!(
                                "Improperly formatted top file matcher in saltenv {}: {} file",
                                python::name(name),
                                python::name(value)
                            ));
                        }
                    }
                    Value::Str(text) if text.is_empty() => {
                        let shown = python::name(&saltenv);
                        errors.push(format!("Environment {shown} contains an empty sls index"));
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(errors)
}
