//! The SLS files that a top has for this minion.

use brine_render::{Dict, Value};

use crate::fault::{Fault, Res};
use crate::high::Renderer;
use crate::python;

/// What `match` can say.
const MATCHERS: [&str; 15] = [
    "cache",
    "compound",
    "compound_pillar_exact",
    "data",
    "glob",
    "grain",
    "grain_pcre",
    "ipcidr",
    "list",
    "nodegroup",
    "pcre",
    "pillar",
    "pillar_exact",
    "pillar_pcre",
    "range",
];

/// Upper bound on subfilters within subfilters.
const MAX_DEPTH: usize = 50;

/// Lists of SLS names (or patterns) by environment.
pub(crate) fn matches(renderer: &Renderer<'_>, top: &Dict) -> Res<Dict> {
    let options = renderer.templates.options;
    let found = Dict::ordered();
    for (saltenv, targets) in python::entries(top) {
        if options.saltenv.as_ref().is_some_and(|only| saltenv.as_str() != Some(only)) {
            continue;
        }
        for (target, names) in python::entries(python::dict_method(&targets, "items")?) {
            target_matches(renderer, &found, &saltenv, &target, &names, 0)?;
        }
    }
    let others = renderer.templates.host.master_tops();
    for (saltenv, names) in python::entries(&others) {
        let env = python::name(&saltenv);
        let own = found.get(&env).map_or(Ok(Vec::new()), |list| python::iterate(&list))?;
        let names = python::iterate(&names)?;
        let (mut first, second) = if options.master_tops_first { (names, own) } else { (own, names) };
        let new: Vec<Value> = second.into_iter().filter(|name| !first.contains(name)).collect();
        first.extend(new);
        found.set(&env, Value::list(first));
    }
    Ok(found)
}

fn target_matches(
    renderer: &Renderer<'_>,
    found: &Dict,
    saltenv: &Value,
    target: &Value,
    names: &Value,
    depth: usize,
) -> Res<()> {
    if depth > MAX_DEPTH {
        return Err(Fault::python("RecursionError", "maximum recursion depth exceeded"));
    }
    let names = match names {
        Value::Str(_) => Value::list([names.clone()]),
        other => other.clone(),
    };
    let items = python::iterate(&names)?;
    let mut matcher = "compound".to_owned();
    for item in &items {
        if let Value::Dict(item) = item
            && let Some(named) = item.get("match")
        {
            matcher = python::name(&named);
        }
    }
    if !MATCHERS.contains(&matcher.as_str()) {
        return Err(Fault::python("KeyError", format!("'{matcher}_match.match'")));
    }
    let templates = &renderer.templates;
    if !templates.host.is_target(target, &matcher, &templates.options.nodegroups)? {
        return Ok(());
    }
    let key = python::key(saltenv)?;
    let list = found.borrow_mut().entry(key).or_insert_with(|| Value::list([])).clone();
    for item in items {
        if python::contains(&item, &"subfilter".into())? {
            let filters = python::pop(python::dict_method(&item, "pop")?, "subfilter").unwrap_or_default();
            for (target, names) in python::entries(python::dict_method(&filters, "items")?) {
                target_matches(renderer, found, saltenv, &target, &names, depth + 1)?;
            }
        }
        match &item {
            Value::Str(_) => python::list_method(&list, "append")?.borrow_mut().push(item),
            Value::Dict(other) => {
                let (env, name) = python::pop_item(other)?;
                let env_name = python::name(&env);
                if renderer.files.has_environment(&env_name) {
                    python::list_method(&python::default_list(found, &env_name), "append")?.borrow_mut().push(name);
                }
            }
            _ => {}
        }
    }
    Ok(())
}
