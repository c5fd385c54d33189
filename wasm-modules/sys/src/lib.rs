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
use brine_guest::{Value, fnmatch};

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
        Ok(modules::names().into_iter().filter(selected).collect())
    }

    fn argspec(module: Option<String>) -> Data {
        let name = module.unwrap_or_default();
        let specs: Vec<_> = functions(&BTreeSet::from([name.clone()]))
            .filter(|(function, _)| name.is_empty() || select::functions(&name, function))
            .map(|(function, f)| (function.into(), describe::argspec(&f)))
            .collect();
        Value::Dict(specs).into()
    }

    fn module_info(module: String) -> Data {
        let selected = modules::names().into_iter().filter(|name| fnmatch(&module, name));
        let described = selected.filter_map(|name| modules::describe(&name));
        Value::Dict(described.map(|m| (m.name.as_str().into(), describe::module(&m))).collect()).into()
    }
}

/// The functions of all modules that the names can select, sorted by full name. Without names, all functions.
fn functions(names: &BTreeSet<String>) -> impl Iterator<Item = (String, Function)> {
    let meant = |module: &String| names.is_empty() || names.iter().any(|name| select::module(name, module));
    let described = modules::names().into_iter().filter(meant).filter_map(|name| modules::describe(&name));
    let mut all: Vec<_> = described
        .flat_map(|module| {
            let name = module.name;
            module.functions.into_iter().map(move |function| (format!("{name}.{}", function.name), function))
        })
        .collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all.into_iter()
}

fn names(args: &[Data]) -> Result<BTreeSet<String>, String> {
    args.iter().map(|arg| arg.name("the name of a module or function")).collect()
}

export!(Module);
