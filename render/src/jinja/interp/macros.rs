//! Macros and call blocks.

use std::rc::Rc;

use super::super::ast::{MacroDef, Name};
use super::super::error::{JinjaError, Res};
use super::super::object::{Macro, Undefined, object};
use super::super::scope::Scope;
use super::{Interp, Passed};
use crate::value::{Dict, Key, Value};

impl Interp<'_> {
    pub(super) fn make_macro(&mut self, def: &Rc<MacroDef>, scope: &Rc<Scope>) -> Res<Value> {
        // the scope stays until the end of the render
        self.charge(1000)?;
        if !self.closures.iter().rev().take(8).any(|known| Rc::ptr_eq(known, scope)) {
            self.closures.push(scope.clone());
        }
        Ok(object(Macro {
            name: def.name.clone(),
            def: def.clone(),
            scope: scope.clone(),
            template: self.template.clone(),
        }))
    }

    pub(super) fn call_macro(&mut self, called: &Macro, mut passed: Passed) -> Res<Value> {
        let def = &called.def;
        let name = || called.name.as_ref().map_or("None".to_owned(), |name| format!("'{name}'"));
        let scope = called.scope.inner();
        let given = passed.positional.len();
        let rest = passed.positional.split_off(given.min(def.params.len()));
        let mut values = passed.positional.into_iter();
        let mut keyword = passed.keyword;
        let mut take = |name: &str| keyword.iter().position(|(n, _)| &**n == name).map(|at| keyword.remove(at).1);
        let mut explicit_caller = false;
        let mut chosen = Vec::with_capacity(def.params.len());
        for (param, _) in &def.params {
            explicit_caller |= &**param == "caller";
            chosen.push(match values.next() {
                Some(value) => Some(value),
                None => take(param),
            });
        }
        if def.takes_caller && !explicit_caller {
            let caller = take("caller").unwrap_or_else(|| Undefined::value("No caller defined"));
            scope.set(&Name::from("caller"), caller);
        }
        if def.catch_kwargs {
            let kwargs: Dict = keyword.drain(..).map(|(name, value)| (Key::from(&*name), value)).collect();
            scope.set(&Name::from("kwargs"), kwargs.into());
        } else if let Some((unknown, _)) = keyword.first() {
            if &**unknown == "caller" {
                return Err(JinjaError::python(format!(
                    "macro {} was invoked with two values for the special caller argument. This is most likely a bug.",
                    name()
                )));
            }
            return Err(JinjaError::python(format!("macro {} takes no keyword argument '{unknown}'", name())));
        }
        if def.catch_varargs {
            scope.set(&Name::from("varargs"), Value::tuple(rest));
        } else if !rest.is_empty() {
            let most = def.params.len();
            return Err(JinjaError::python(format!("macro {} takes not more than {most} argument(s)", name())));
        }
        let before = std::mem::replace(&mut self.template, called.template.clone());
        let mut out = String::new();
        let run = || {
            for ((param, default), value) in def.params.iter().zip(chosen) {
                let value = match (value, default) {
                    (Some(value), _) => value,
                    (None, Some(default)) => self.eval(default, &scope)?,
                    (None, None) => Undefined::value(format!("parameter '{param}' was not provided")),
                };
                scope.set(param, value);
            }
            self.exec_all(&def.body, &scope, &mut out)
        };
        let done = run();
        self.template = before;
        done?;
        Ok(Value::str(out))
    }
}
