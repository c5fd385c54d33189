//! Calls: arguments, and whatever can be called.

use std::collections::HashSet;
use std::rc::Rc;

use super::super::ast::{Args, Name};
use super::super::error::{JinjaError, Res};
use super::super::object::{BlockRef, Builtin, Cycler, Function, Joiner, Loop, Macro, Method, Undefined, cast};
use super::super::scope::Scope;
use super::super::{globals, methods, ops};
use super::{Interp, Passed, check};
use crate::value::Value;

impl Passed {
    /// The argument at a position or with a name.
    pub(in crate::jinja) fn get(&self, at: usize, name: &str) -> Option<Value> {
        self.positional.get(at).or_else(|| self.named(name)).cloned()
    }

    pub(in crate::jinja) fn named(&self, name: &str) -> Option<&Value> {
        self.keyword.iter().find(|(n, _)| &**n == name).map(|(_, value)| value)
    }

    /// As [`Passed::get`]; an error as Python's without it.
    pub(in crate::jinja) fn need(&self, at: usize, name: &str, function: &str) -> Res<Value> {
        self.get(at, name)
            .ok_or_else(|| JinjaError::python(format!("{function}() missing 1 required positional argument: '{name}'")))
    }

    /// Refuses more arguments than a function has, and names that it does not have.
    pub(in crate::jinja) fn at_most(&self, names: &[&str], function: &str) -> Res<()> {
        if let Some((name, _)) = self.keyword.iter().find(|(name, _)| !names.contains(&&**name)) {
            return Err(JinjaError::python(format!("{function}() got an unexpected keyword argument '{name}'")));
        }
        if self.positional.len() > names.len() {
            let (most, given) = (names.len(), self.positional.len());
            return Err(JinjaError::python(format!(
                "{function}() takes {most} positional arguments but {given} were given"
            )));
        }
        Ok(())
    }
}

impl Interp<'_> {
    pub(in crate::jinja) fn eval_args(&mut self, args: &Args, scope: &Rc<Scope>) -> Res<Passed> {
        let mut passed = Passed::default();
        for arg in &args.positional {
            passed.positional.push(self.eval(arg, scope)?);
        }
        for (name, arg) in &args.keyword {
            passed.keyword.push((name.clone(), self.eval(arg, scope)?));
        }
        if let Some(star) = &args.star {
            let value = self.eval(star, scope)?;
            passed.positional.extend(ops::iterate(self, &value)?);
        }
        if let Some(stars) = &args.stars {
            let value = self.eval(stars, scope)?;
            check(&value)?;
            let Value::Dict(dict) = &value else {
                let name = value.type_name();
                return Err(JinjaError::python(format!("argument after ** must be a mapping, not {name}")));
            };
            for (key, value) in dict.borrow().iter() {
                let Some(name) = key.as_str() else { return Err(JinjaError::python("keywords must be strings")) };
                if passed.named(name).is_some() {
                    return Err(JinjaError::python(format!("got multiple values for keyword argument '{name}'")));
                }
                passed.keyword.push((Name::from(name), value.clone()));
            }
        }
        self.charge_values(passed.positional.len() + passed.keyword.len())?;
        Ok(passed)
    }

    pub(in crate::jinja) fn call(&mut self, callee: &Value, passed: Passed) -> Res<Value> {
        self.call_in(callee, passed, None)
    }

    pub(super) fn call_in(&mut self, callee: &Value, passed: Passed, scope: Option<&Rc<Scope>>) -> Res<Value> {
        self.step()?;
        if let Some(method) = cast::<Method>(callee) {
            return methods::call(self, &method.receiver, method.name, passed);
        }
        if let Some(function) = cast::<Function>(callee) {
            let value = self.host.call(&function.name, passed.positional, passed.keyword)?;
            let made = weight(&value, self.bytes);
            self.charge(made)?;
            return Ok(value);
        }
        if let Some(called) = cast::<Macro>(callee) {
            return self.deeper(|interp| interp.call_macro(called, passed));
        }
        if let Some(builtin) = cast::<Builtin>(callee) {
            return globals::call(self, builtin.0, passed, scope);
        }
        if let Some(called) = cast::<Loop>(callee) {
            return self.deeper(|interp| interp.call_loop(called, &passed));
        }
        if let Some(block) = cast::<BlockRef>(callee) {
            return self.deeper(|interp| interp.call_block(block));
        }
        if let Some(joiner) = cast::<Joiner>(callee) {
            return Ok(if joiner.used.replace(true) { joiner.text.clone() } else { Value::str("") });
        }
        if let Some(undefined) = cast::<Undefined>(callee) {
            return Err(undefined.error());
        }
        let _ = cast::<Cycler>(callee);
        Err(JinjaError::python(format!("'{}' object is not callable", callee.type_name())))
    }
}

/// About the bytes that a value takes, as far as they are not more than a bound. What is shared counts once.
fn weight(value: &Value, most: usize) -> usize {
    const EACH: usize = 48;
    let (mut bytes, mut seen, mut pile) = (0usize, HashSet::new(), vec![value.clone()]);
    while let Some(value) = pile.pop() {
        bytes += EACH;
        if bytes > most {
            break;
        }
        match &value {
            Value::Str(text) => bytes += text.len(),
            Value::Bytes(data) => bytes += data.len(),
            Value::List(_) | Value::Dict(_) | Value::Tuple(_) if !value.address().is_none_or(|at| seen.insert(at)) => {}
            Value::List(list) => pile.extend(list.borrow().iter().cloned()),
            Value::Tuple(items) => pile.extend(items.iter().cloned()),
            Value::Dict(dict) => {
                let dict = dict.borrow();
                bytes += dict.keys().map(|key| EACH + key.as_str().map_or(0, str::len)).sum::<usize>();
                pile.extend(dict.values().cloned());
            }
            _ => {}
        }
    }
    bytes
}
