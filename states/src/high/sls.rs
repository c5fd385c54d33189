//! Renders SLS files with what they include.

use std::collections::HashSet;
use std::rc::Rc;

use brine_render::{Dict, Value};

use super::include::{self, Includer};
use super::{declarations, merge};
use crate::fault::{Fault, Res};
use crate::files::Files;
use crate::host::{File, Host};
use crate::limits::Budget;
use crate::options::Options;
use crate::python;
use crate::template::{RenderError, Templates};

/// Renders the SLS files of one run.
pub(crate) struct Renderer<'a> {
    pub(crate) files: Files<'a>,
    pub(crate) templates: Templates<'a>,
    /// The next number for a state without an order.
    order: i128,
    /// `environment:sls` of what has been rendered.
    done: HashSet<String>,
    /// The SLS that have been rendered: one without states meets a requisite too.
    pub(crate) seen: HashSet<String>,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(host: &'a dyn Host, options: &'a Options, budget: &'a Budget) -> Self {
        Self {
            files: Files::new(host, options, budget),
            templates: Templates { host, options, budget, context: None },
            order: 10_000,
            done: HashSet::new(),
            seen: HashSet::new(),
        }
    }

    /// Renders the SLS files that `matches` names (patterns by environment), to high data and errors.
    pub(crate) fn highstate(&mut self, matches: &Dict) -> Res<(Dict, Vec<String>)> {
        let high = Dict::ordered();
        let mut all_errors = Vec::new();
        for (saltenv, names) in python::entries(matches) {
            let saltenv = python::name(&saltenv);
            for pattern in python::iterate(&names)? {
                let pattern = match &pattern {
                    Value::Str(text) => text.clone(),
                    other => Rc::from(python::name(other)),
                };
                let mut found = if self.files.has_environment(&saltenv) {
                    self.files.matching(&saltenv, &pattern)?
                } else if self.files.has_environment("__env__") {
                    self.files.matching("__env__", &pattern)?
                } else {
                    all_errors.push(format!("No matching salt environment for environment '{saltenv}' found"));
                    Vec::new()
                };
                if found.is_empty() {
                    found.push(pattern.clone());
                }
                for sls in found {
                    if self.done.contains(&format!("{saltenv}:{sls}")) {
                        continue;
                    }
                    let (state, mut errors) = self.sls(&sls, &saltenv, matches, 0)?;
                    if state.truthy() {
                        merge::merge(&high, &state, &mut errors, self.templates.budget)?;
                    }
                    for error in &mut errors {
                        if error.contains("is not available") && error.contains(&format!("SLS {pattern} in saltenv")) {
                            *error = format!("No matching sls found for '{pattern}' in env '{saltenv}'");
                        }
                    }
                    all_errors.append(&mut errors);
                }
            }
        }
        merge::unique_extensions(&high, self.templates.budget)?;
        Ok((high, all_errors))
    }

    /// Renders an SLS and what it includes.
    fn sls(&mut self, sls: &str, saltenv: &str, matches: &Dict, depth: usize) -> Res<(Value, Vec<String>)> {
        self.templates.budget.depth(depth)?;
        self.templates.budget.file()?;
        let found = self.files.sls(sls, saltenv).map_err(|why| Fault::python("OSError", why))?;
        let Some((file, is_init)) = found else {
            let error = format!(
                "Specified SLS {sls} in saltenv {saltenv} is not available on the salt master or through a configured \
                 fileserver"
            );
            return Ok((Value::None, vec![error]));
        };
        self.file(&file, is_init, sls, saltenv, matches, depth)
    }

    /// Renders a file that is an SLS, and what it includes.
    pub(crate) fn file(
        &mut self,
        file: &File,
        is_init: bool,
        sls: &str,
        saltenv: &str,
        matches: &Dict,
        depth: usize,
    ) -> Res<(Value, Vec<String>)> {
        let mut errors = Vec::new();
        let state = match self.templates.render(file, saltenv, sls) {
            Ok(state) => state,
            Err(RenderError::Salt(why)) => {
                errors.push(format!("Rendering SLS '{saltenv}:{sls}' failed: {why}"));
                Value::None
            }
            Err(RenderError::Python(class, why)) => {
                errors.push(format!(
                    "Rendering SLS {sls} failed, render error: {why}\nTraceback (most recent call last):\n{class}: \
                     {why}\n"
                ));
                Value::None
            }
            Err(RenderError::Limit(fault)) => return Err(fault),
        };
        self.done.insert(format!("{saltenv}:{sls}"));
        self.seen.insert(sls.to_owned());
        if !state.truthy() {
            return Ok((Value::None, errors));
        }
        let Value::Dict(state) = state else {
            errors.push(format!("SLS {sls} does not render to a dictionary"));
            return Ok((state, errors));
        };
        let included = match state.get("include") {
            None => Vec::new(),
            Some(Value::List(names)) => {
                python::pop(&state, "include");
                let names = names.borrow();
                names.clone()
            }
            Some(_) => {
                errors.push(format!("Include Declaration in SLS {sls} is not formed as a list"));
                Vec::new()
            }
        };
        declarations::extend(&state, sls, saltenv, &mut errors)?;
        declarations::exclude(&state, sls, &mut errors)?;
        declarations::states(&state, sls, saltenv, &mut errors)?;
        let at = Includer { sls, saltenv, is_init };
        for entry in included {
            for (target, env) in include::targets(self, &entry, &at, matches, &mut errors)? {
                if self.done.contains(&format!("{env}:{target}")) {
                    continue;
                }
                let (included, mut their_errors) = self.sls(&target, &env, matches, depth + 1)?;
                if included.truthy() {
                    note_includer(&included, sls)?;
                    merge::merge(&state, &included, &mut errors, self.templates.budget)?;
                }
                errors.append(&mut their_errors);
            }
        }
        if self.templates.options.state_auto_order {
            declarations::number(&state, &mut self.order);
        }
        Ok((state.into(), errors))
    }
}

/// Notes in each id that an SLS included it: a requisite of that SLS is one of the id too.
fn note_includer(included: &Value, sls: &str) -> Res<()> {
    for id in python::iterate(included)? {
        if python::starts_with(&id, "__")? {
            continue;
        }
        let body = python::item(included, &id)?;
        if !python::contains(&body, &"__sls_included_from__".into())? {
            python::set_item(&body, &"__sls_included_from__".into(), Value::list([]))?;
        }
        let by = python::field(&body, "__sls_included_from__")?;
        python::list_method(&by, "append")?.borrow_mut().push(sls.into());
    }
    Ok(())
}
