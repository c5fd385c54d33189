//! The module `sys`: lists the modules and functions of the minion. The functions and their documentation are in
//! `wit/world.wit`.

wit_bindgen::generate!({
    world: "sys",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/modules@1.0.0": brine_guest::host::modules,
    },
});

mod describe;
mod select;

use std::collections::BTreeSet;

use brine_guest::host::modules::{self, Function};
use brine_guest::{Value, docstring, fnmatch};

struct Module;

impl Guest for Module {
    fn doc(args: Vec<Data>) -> Result<Vec<(String, String)>, String> {
        let names = names(&args)?;
        let selected = |function: &str| names.is_empty() || names.iter().any(|name| select::doc(name, function));
        let docs = functions(&names).filter(|(name, _)| selected(name)).map(|(name, function)| {
            let doc = describe::doc(&name, &function);
            (name, doc)
        });
        Ok(docs.collect())
    }

    fn list_functions(args: Vec<Data>) -> Result<Vec<String>, String> {
        let names = names(&args)?;
        let selected = |function: &str| names.is_empty() || names.iter().any(|name| select::functions(name, function));
        Ok(functions(&names).map(|(name, _)| name).filter(|name| selected(name)).collect())
    }

    fn list_modules(args: Vec<Data>) -> Result<Vec<String>, String> {
        let names = names(&args)?;
        let selected = |module: &String| names.is_empty() || names.iter().any(|name| fnmatch(name, module));
        // As in Salt, a module of states alone is none of them.
        let has_functions = |module: &String| modules::describe(module).is_none_or(|all| !all.functions.is_empty());
        Ok(modules::names().into_iter().filter(selected).filter(has_functions).collect())
    }

    fn argspec(module: Option<String>) -> Data {
        let name = module.unwrap_or_default();
        let specs: Vec<_> = functions(&BTreeSet::from([name.clone()]))
            .filter(|(function, _)| name.is_empty() || select::functions(&name, function))
            .map(|(function, f)| (function.into(), describe::argspec(&f)))
            .collect();
        Value::Dict(specs).into()
    }

    fn state_doc(args: Vec<Data>) -> Result<Vec<(String, String)>, String> {
        let names = names(&args)?;
        let selected = |state: &str| names.is_empty() || names.iter().any(|name| select::doc(name, state));
        let mut docs: Vec<(String, String)> = Vec::new();
        for (name, state) in states(&names).into_iter().filter(|(name, _)| selected(name)) {
            let module = name.split('.').next().unwrap_or_default();
            if docs.last().is_none_or(|(last, _)| !last.starts_with(&format!("{module}."))) {
                let doc = modules::describe(module).and_then(|module| module.doc).unwrap_or_default();
                docs.push((module.to_owned(), docstring(doc.trim_end())));
            }
            let doc = describe::doc(&name, &state);
            docs.push((name, doc));
        }
        Ok(docs)
    }

    fn list_state_functions(args: Vec<Data>) -> Result<Vec<String>, String> {
        let names = names(&args)?;
        let selected = |state: &str| names.is_empty() || names.iter().any(|name| select::functions(name, state));
        Ok(states(&names).into_iter().map(|(name, _)| name).filter(|name| selected(name)).collect())
    }

    fn list_state_modules(args: Vec<Data>) -> Result<Vec<String>, String> {
        let names = names(&args)?;
        // Salt compares a glob with the names of states.
        let selected = |module: &str, state: &str| {
            let meant = |name: &String| if name.contains('*') { fnmatch(name, state) } else { name == module };
            names.is_empty() || names.iter().any(meant)
        };
        let all = states(&BTreeSet::new());
        let found = all.iter().filter_map(|(state, _)| Some((state.split('.').next()?, state)));
        let found: BTreeSet<&str> = found.filter(|(module, state)| selected(module, state)).map(|(m, _)| m).collect();
        Ok(found.into_iter().map(str::to_owned).collect())
    }

    fn state_argspec(module: Option<String>) -> Data {
        let name = module.unwrap_or_default();
        let specs: Vec<_> = states(&BTreeSet::from([name.clone()]))
            .into_iter()
            .filter(|(state, _)| name.is_empty() || select::functions(&name, state))
            .map(|(state, f)| (state.into(), describe::argspec(&f)))
            .collect();
        Value::Dict(specs).into()
    }

    fn module_info(module: String) -> Data {
        let selected = modules::names().into_iter().filter(|name| fnmatch(&module, name));
        let described = selected.filter_map(|name| modules::describe(&name));
        Value::Dict(described.map(|m| (m.name.as_str().into(), describe::module(&m))).collect()).into()
    }
}

/// The modules that the names can select. Where each name says its module, no list of all is asked for, which would wait for each
/// of them.
fn meant(names: &BTreeSet<String>) -> Vec<String> {
    match select::modules(names) {
        Some(modules) => modules,
        None => modules::names()
            .into_iter()
            .filter(|module| names.is_empty() || names.iter().any(|name| select::module(name, module)))
            .collect(),
    }
}

/// The functions of all modules that the names can select, sorted by full name. Without names, all functions.
fn functions(names: &BTreeSet<String>) -> impl Iterator<Item = (String, Function)> {
    let described = meant(names).into_iter().filter_map(|name| modules::describe(&name));
    let mut all: Vec<_> = described
        .flat_map(|module| {
            let name = module.name;
            module.functions.into_iter().map(move |function| (format!("{name}.{}", function.name), function))
        })
        .collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all.into_iter()
}

/// The states of all modules that the names can select, sorted by full name. Without names, all states.
fn states(names: &BTreeSet<String>) -> Vec<(String, Function)> {
    let mut all: Vec<_> = meant(names)
        .into_iter()
        .flat_map(|name| {
            let states = modules::states(&name);
            states.into_iter().map(move |state| (format!("{name}.{}", state.name), state))
        })
        .collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all
}

fn names(args: &[Data]) -> Result<BTreeSet<String>, String> {
    args.iter().map(|arg| arg.name("the name of a module or function")).collect()
}

export!(Module);
