//! `for`

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::super::ast::For;
use super::super::error::{JinjaError, Res};
use super::super::object::{Loop, Undefined, cast};
use super::super::ops;
use super::super::scope::Scope;
use super::exec::Flow;
use super::{Interp, Passed};
use crate::value::Value;

impl Interp<'_> {
    pub(super) fn run_for(&mut self, def: &Rc<For>, scope: &Rc<Scope>, out: &mut String) -> Res<Flow> {
        let items = self.eval(&def.items, scope)?;
        self.loop_over(def, &items, scope, 0, out)
    }

    fn loop_over(
        &mut self,
        def: &Rc<For>,
        items: &Value,
        scope: &Rc<Scope>,
        depth: usize,
        out: &mut String,
    ) -> Res<Flow> {
        let mut items = ops::iterate(self, items)?;
        self.charge_values(items.len())?;
        if let Some(condition) = &def.condition {
            let mut kept = Vec::new();
            for item in items {
                let inner = scope.inner();
                self.assign(&def.target, item.clone(), &inner)?;
                let keep = self.eval(condition, &inner)?;
                if self.truthy(&keep)? {
                    kept.push(item);
                }
            }
            items = kept;
        }
        if items.is_empty() {
            return self.exec_all(&def.otherwise, &scope.inner(), out);
        }
        let recursive = def.recursive.then(|| (def.clone(), scope.clone()));
        let state = Rc::new(Loop { at: Cell::new(0), items, depth, changed: RefCell::default(), recursive });
        let loop_name = Rc::from("loop");
        for at in 0..state.items.len() {
            self.step()?;
            state.at.set(at);
            let inner = scope.inner();
            inner.set(&loop_name, Value::Object(state.clone()));
            self.assign(&def.target, state.items[at].clone(), &inner)?;
            match self.exec_all(&def.body, &inner, out)? {
                Flow::Break => break,
                Flow::Next | Flow::Continue => {}
            }
        }
        Ok(Flow::Next)
    }

    /// `loop(items)` in a recursive loop.
    pub(super) fn call_loop(&mut self, called: &Loop, passed: &Passed) -> Res<Value> {
        let Some((def, scope)) = &called.recursive else {
            return Err(JinjaError::python("The loop must have the 'recursive' marker to be called recursively."));
        };
        let items = passed.need(0, "iterable", "loop")?;
        let mut out = String::new();
        self.loop_over(def, &items, scope, called.depth + 1, &mut out)?;
        Ok(Value::str(out))
    }
}

/// The attributes of `loop`.
pub(in crate::jinja) fn loop_attribute(state: &Loop, name: &str) -> Option<Value> {
    let (at, count) = (state.at.get(), state.items.len());
    let number = |n: usize| Some(Value::from(n as i64));
    match name {
        "index" => number(at + 1),
        "index0" => number(at),
        "revindex" => number(count - at),
        "revindex0" => number(count - at - 1),
        "first" => Some(Value::Bool(at == 0)),
        "last" => Some(Value::Bool(at + 1 == count)),
        "length" => number(count),
        "depth" => number(state.depth + 1),
        "depth0" => number(state.depth),
        "previtem" => Some(match at.checked_sub(1) {
            Some(before) => state.items[before].clone(),
            None => Undefined::value("there is no previous item"),
        }),
        "nextitem" => Some(match state.items.get(at + 1) {
            Some(next) => next.clone(),
            None => Undefined::value("there is no next item"),
        }),
        _ => None,
    }
}

/// `loop.cycle` and `loop.changed`.
pub(in crate::jinja) fn loop_method(receiver: &Value, name: &str, passed: Passed) -> Res<Value> {
    let Some(state) = cast::<Loop>(receiver) else { return Ok(Value::None) };
    let values = passed.positional;
    if name == "cycle" {
        return match values.len() {
            0 => Err(JinjaError::python("no items for cycling given")),
            count => Ok(values[state.at.get() % count].clone()),
        };
    }
    let mut before = state.changed.borrow_mut();
    let is_same = before.as_ref().is_some_and(|before| *before == values);
    *before = Some(values);
    Ok(Value::Bool(!is_same))
}
