//! Reactions: SLS files of the reactor, to low chunks as Salt's reactor compiles them.
//!
//! They are no states: no includes, no `extend`, no number for their order, and a function may have dots
//! (`local.cmd.run` is the function `cmd.run` of `local`).

use brine_render::{Dict, Value};

use crate::compile::{Compiled, Compiler};
use crate::fault::{Fault, Res};
use crate::host::File;
use crate::template::{RenderError, Templates};
use crate::{high, low, python};

impl Compiler<'_> {
    /// The low chunks of reactions to one event, in their order. `context` is what their templates know of the event.
    ///
    /// A file that does not render is left out, and [`Host::warn`](crate::Host::warn) is told why. What later files say
    /// of an id takes the place of what earlier ones say.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn reactions(&self, files: &[File], context: &Dict) -> Compiled<Vec<Dict>> {
        let all = Dict::default();
        for file in files {
            self.budget.file()?;
            match self.reaction(file, context) {
                Ok(rendered) => {
                    for (id, body) in python::entries(&rendered) {
                        python::set_item(&all.clone().into(), &id, body)?;
                    }
                }
                Err(limit @ Fault::Limit(_)) => return Err(limit),
                Err(why) => self.host.warn(&format!("{} does not render: {why}", file.path)),
            }
        }
        let errors = high::verify(&all, &self.budget)?;
        if !errors.is_empty() {
            return Ok(Err(errors));
        }
        Ok(low::compile(&all, None, self.host, self.options, &self.budget)?.map(|low| low.chunks))
    }

    fn reaction(&self, file: &File, context: &Dict) -> Res<Dict> {
        let templates =
            Templates { host: self.host, options: self.options, budget: &self.budget, context: Some(context) };
        let rendered = templates.render(file, "base", "").map_err(|error| match error {
            RenderError::Salt(message) => Fault::python("SaltRenderError", message),
            RenderError::Python(class, message) => Fault::python(class, message),
            RenderError::Limit(fault) => fault,
        })?;
        let Value::Dict(rendered) = rendered else {
            return match rendered.truthy() {
                false => Ok(Dict::default()),
                true => {
                    Err(Fault::type_error(format!("a dictionary of ids is needed, not a {}", rendered.type_name())))
                }
            };
        };
        for (id, body) in python::entries(&rendered) {
            let body = padded(&body)?;
            body.set("__sls__", file.path.as_str().into());
            python::set_item(&rendered.clone().into(), &id, body.into())?;
        }
        Ok(rendered)
    }
}

/// The body of an id with `local.cmd.run: [arguments]` as `local: [arguments, cmd.run]`.
fn padded(body: &Value) -> Res<Dict> {
    let body = match body {
        Value::Str(short) => {
            let Some((state, function)) = short.split_once('.') else {
                return Err(Fault::type_error(format!("{short:?} names no function, as local.test.ping does")));
            };
            let body = Dict::default();
            body.set(state, Value::list([function.into()]));
            return Ok(body);
        }
        Value::Dict(body) => body.clone(),
        other => {
            let class = other.type_name();
            return Err(Fault::type_error(format!("an id has a {class}, where a dictionary of functions is needed")));
        }
    };
    let mut declared: Vec<String> =
        python::keys(&body).iter().filter_map(|key| key.as_str().map(str::to_owned)).collect();
    declared.sort_unstable();
    let mut states: Vec<String> = Vec::new();
    for declared in declared.iter().filter(|declared| !declared.starts_with('_')) {
        let Some(Value::List(arguments)) = body.get(declared) else { continue };
        let Some((state, function)) = declared.split_once('.') else {
            states.push(declared.clone());
            continue;
        };
        if states.iter().any(|known| known == state) {
            continue;
        }
        python::pop(&body, declared);
        arguments.borrow_mut().push(function.into());
        body.set(state, arguments.clone().into());
        states.push(state.to_owned());
    }
    Ok(body)
}
