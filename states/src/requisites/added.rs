//! `require_in`, `watch_in` and the like, which give a requisite to another state, and `use` and `use_in`, which give
//! arguments. They become extensions of the other states.

use brine_render::value::Key;
use brine_render::{Dict, Value};

use super::{extend, find};
use crate::fault::Res;
use crate::keywords;
use crate::limits::Budget;
use crate::python;

/// The state that has the argument.
struct Giver<'a> {
    id: &'a Value,
    module: &'a Value,
    env: Value,
    sls: Value,
}

/// Extensions that come of the arguments of all states.
struct Additions<'a> {
    high: &'a Dict,
    budget: &'a Budget,
    extensions: Dict,
    errors: Vec<String>,
}

/// Gives states the requisites and arguments that other states have for them. `disabled` are requisites that do not
/// count.
pub(crate) fn add_to_others(high: &Dict, disabled: &[String], budget: &Budget) -> Res<Vec<String>> {
    let mut additions = Additions { high, budget, extensions: Dict::ordered(), errors: Vec::new() };
    for (id, body) in python::entries(high) {
        let Value::Dict(body) = body else { continue };
        for (module, arguments) in python::entries(&body) {
            if python::starts_with(&module, "__")? {
                continue;
            }
            let giver = Giver {
                id: &id,
                module: &module,
                env: body.get("__env__").unwrap_or_default(),
                sls: body.get("__sls__").unwrap_or_default(),
            };
            for argument in python::iterate(&arguments)? {
                let Value::Dict(argument) = argument else { continue };
                let Some((name, items)) = python::entries(&argument).into_iter().next() else { continue };
                let Some(name) = name.as_str().filter(|name| keywords::ADDS_TO_OTHERS.contains(name)) else { continue };
                if disabled.iter().any(|other| other == name) {
                    continue;
                }
                match &items {
                    Value::Dict(items) => additions.one(&giver, name, items)?,
                    Value::List(items) => additions.list(&giver, name, &items.borrow().clone())?,
                    _ => {}
                }
            }
        }
    }
    let Additions { extensions, mut errors, .. } = additions;
    let each = python::entries(&extensions).into_iter();
    let each = each.map(|(id, body)| Ok(Value::dict([(python::key(&id)?, body)]))).collect::<Res<Vec<_>>>()?;
    high.set("__extend__", Value::list(each));
    errors.extend(extend::extend(high, true, budget)?);
    Ok(errors)
}

/// `require_in` gives `require`.
fn kind(name: &str) -> &str {
    name.split('_').next().unwrap_or_default()
}

impl Additions<'_> {
    /// The old form: a dict of modules and names.
    fn one(&mut self, giver: &Giver<'_>, name: &str, items: &Dict) -> Res<()> {
        let kind = kind(name);
        for (module, id) in python::entries(items) {
            self.extension(&id)?;
            let mut module = python::name(&module);
            if let Some((before, _)) = module.split_once('.') {
                let before = before.to_owned();
                self.errors.push(format!(
                    "Invalid requisite in {kind}: {module} for {} in SLS '{}'. Requisites must not contain dots, did you \
                     mean '{before}'?",
                    python::name(&id),
                    python::name(&giver.sls),
                ));
                module = before;
            }
            self.requisite(giver, kind, &id, &module.into())?;
        }
        Ok(())
    }

    /// A list of requisites. Salt goes through all that it has found again for each that follows.
    fn list(&mut self, giver: &Giver<'_>, name: &str, items: &[Value]) -> Res<()> {
        let kind = kind(name);
        let mut found: Vec<(Value, Value)> = Vec::new();
        for item in items {
            let Some((module, id)) = self.named(item)? else { continue };
            if module.as_str() == Some("sls") {
                found = find::of_sls(&id, self.high, self.budget)?;
            } else {
                found.push((id.clone(), module.clone()));
            }
            if python::contains(&module, &".".into())? {
                let module = python::name(&module);
                self.errors.push(format!(
                    "Invalid requisite in {kind}: {module} for {}, in SLS '{}'. Requisites must not contain dots, did you \
                     mean '{}'?",
                    python::name(&id),
                    python::name(&giver.sls),
                    module.split('.').next().unwrap_or_default(),
                ));
            }
            self.budget.search(found.len())?;
            for (id, module) in &found {
                match name {
                    "use_in" => {
                        for (id, _) in find::by_name(id, module, self.high, true, self.budget)? {
                            self.arguments((giver.id, giver.module), (&id, module))?;
                        }
                    }
                    "use" => {
                        for (id, module) in find::by_name(id, module, self.high, true, self.budget)? {
                            self.arguments((&id, &module), (giver.id, giver.module))?;
                        }
                    }
                    _ => self.requisite(giver, kind, id, module)?,
                }
            }
        }
        Ok(())
    }

    /// What an item of a list names: a module and an id. One that is no dict is an id, or a name.
    fn named(&self, item: &Value) -> Res<Option<(Value, Value)>> {
        if let Value::Dict(item) = item {
            return Ok(python::entries(item).into_iter().next());
        }
        let there = self.high.borrow().get(&python::key(item)?).cloned();
        if let Some(body) = there {
            for module in python::iterate(&body)? {
                if !python::starts_with(&module, "__")? {
                    return Ok(Some((module, item.clone())));
                }
            }
            return Err(crate::fault::Fault::python("IndexError", "list index out of range"));
        }
        let mut found = None;
        for (id, body) in python::entries(self.high) {
            for module in python::iterate(&body)? {
                if python::starts_with(&module, "__")? {
                    continue;
                }
                let arguments = python::iterate(&python::item(&body, &module)?)?;
                self.budget.search(arguments.len() + 1)?;
                for argument in arguments {
                    if let Value::Dict(argument) = argument
                        && found.is_none()
                        && argument.get("name").as_ref() == Some(item)
                    {
                        found = Some((module.clone(), id.clone()));
                    }
                }
            }
        }
        Ok(found)
    }

    /// The extension of an id, made if it is not there.
    fn extension(&self, id: &Value) -> Res<Dict> {
        let key: Key = python::key(id)?;
        let extension = self.extensions.borrow_mut().entry(key).or_insert_with(|| Dict::ordered().into()).clone();
        python::dict_method(&extension, "get").cloned()
    }

    fn module(extension: &Dict, module: &Value) -> Res<Value> {
        let key = python::key(module)?;
        Ok(extension.borrow_mut().entry(key).or_insert_with(|| Value::list([])).clone())
    }

    /// Gives an id a requisite of a kind.
    fn requisite(&mut self, giver: &Giver<'_>, kind: &str, id: &Value, module: &Value) -> Res<()> {
        let extension = self.extension(id)?;
        let arguments = Self::module(&extension, module)?;
        extension.set("__env__", giver.env.clone());
        extension.set("__sls__", giver.sls.clone());
        let requisite = Value::dict([(python::key(giver.module)?, giver.id.clone())]);
        let mut again = false;
        self.budget.search(1)?;
        for argument in python::iterate(&arguments)? {
            if python::first(&argument)?.as_str() == Some(kind) {
                let list = python::field(&argument, kind)?;
                python::list_method(&list, "append")?.borrow_mut().push(requisite.clone());
                again = true;
            }
        }
        if !again {
            let new = Value::dict([(kind.into(), Value::list([requisite]))]);
            python::list_method(&arguments, "append")?.borrow_mut().push(new);
        }
        Ok(())
    }

    /// Gives a state the arguments of another that it does not have itself. Each is an id and a module.
    fn arguments(&mut self, from: (&Value, &Value), to: (&Value, &Value)) -> Res<()> {
        let own = find::arguments(to.0, to.1, self.high)?;
        let extension = self.extension(to.0)?;
        let more = Self::module(&extension, to.1)?;
        let theirs = python::item(&python::item(&self.high.clone().into(), from.0)?, from.1)?;
        let theirs = python::iterate(&theirs)?;
        self.budget.search(own.len() * theirs.len())?;
        for argument in theirs {
            let Value::Dict(dict) = &argument else { continue };
            if dict.borrow().len() != 1 {
                continue;
            }
            let name = python::first(&argument)?;
            let is_salts =
                name.as_str().is_some_and(|name| keywords::is_never_used(name) || matches!(name, "name" | "names"));
            if !is_salts && !own.contains(&name) {
                python::list_method(&more, "append")?.borrow_mut().push(argument.clone());
            }
        }
        Ok(())
    }
}
