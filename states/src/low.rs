//! From high data to low chunks: a dict for each name of each state, in the order in which they run.

use brine_render::{Dict, Key, Set, Value};

use crate::fault::Res;
use crate::graph::Graph;
use crate::host::Host;
use crate::keywords::Requisite;
use crate::limits::Budget;
use crate::options::Options;
use crate::python;

/// Low chunks in their order, and what they depend on.
pub(crate) struct Lowstate {
    /// A chunk that `prereq` names is there twice: once for its trial.
    pub(crate) chunks: Vec<Dict>,
    pub(crate) graph: Graph,
    /// Chunks that are left out, since the minion has them disabled: they have taken a number of the run.
    pub(crate) disabled: u64,
}

/// Makes chunks of high data; errors if there are any.
pub(crate) fn compile(
    high: &Dict,
    orchestration_jid: Option<&Value>,
    host: &dyn Host,
    options: &Options,
    budget: &Budget,
) -> Res<Result<Lowstate, Vec<String>>> {
    let mut graph = Graph::new();
    let mut chunks = Vec::new();
    let mut disabled = 0;
    for (id, body) in python::entries(high) {
        if python::starts_with(&id, "__")? {
            continue;
        }
        for (module, arguments) in python::entries(python::dict_method(&body, "items")?) {
            if python::starts_with(&module, "__")? {
                continue;
            }
            let chunk = Dict::default();
            chunk.set("state", module);
            chunk.set("name", id.clone());
            if let Some(jid) = orchestration_jid {
                chunk.set("__orchestration_jid__", jid.clone());
            }
            for name in ["__sls__", "__env__", "__sls_included_from__"] {
                if python::contains(&body, &name.into())? {
                    chunk.set(name, python::field(&body, name)?);
                }
            }
            chunk.set("__id__", id.clone());
            let (functions, names) = arguments_of(&chunk, &id, &arguments)?;
            let Some(function) = functions.first() else { continue };
            for live in each_name(&chunk, &names, budget)? {
                budget.chunk()?;
                live.set("fun", function.clone());
                if is_disabled(&live, options)? {
                    disabled += 1;
                    continue;
                }
                graph.add_chunk(&live, may_aggregate(&live, host, options)?)?;
                chunks.push(live);
            }
        }
    }
    let (chunks, errors) = order(&mut graph, &chunks, host, options, budget)?;
    Ok(if errors.is_empty() { Ok(Lowstate { chunks, graph, disabled }) } else { Err(errors) })
}

/// Puts the arguments of a state into its chunk; the functions and the names that are among them.
fn arguments_of(chunk: &Dict, id: &Value, arguments: &Value) -> Res<(Vec<Value>, Vec<Value>)> {
    let mut functions: Vec<Value> = Vec::new();
    let mut names = Vec::new();
    let known = Set::default();
    for argument in python::iterate(arguments)? {
        match &argument {
            Value::Str(_) if !functions.contains(&argument) => functions.push(argument),
            Value::Dict(dict) => {
                for (name, value) in python::entries(dict) {
                    match name.as_str() {
                        Some("names") => {
                            for one in python::iterate(&value)? {
                                let is_new = match Key::new(one.clone()) {
                                    Ok(key) => known.borrow_mut().insert(key),
                                    Err(_) => !names.contains(&one),
                                };
                                if is_new {
                                    names.push(one);
                                }
                            }
                        }
                        Some("state") => {}
                        Some("name") if value.as_str().is_none() => chunk.set("name", id.clone()),
                        _ => python::set_item(&chunk.clone().into(), &name, value)?,
                    }
                }
            }
            _ => {}
        }
    }
    Ok((functions, names))
}

/// A copy of the chunk for each name, or one.
fn each_name(chunk: &Dict, names: &[Value], budget: &Budget) -> Res<Vec<Dict>> {
    let copy = || {
        let copied = python::deep_copy(&chunk.clone().into(), budget)?;
        python::dict_method(&copied, "copy").cloned()
    };
    if names.is_empty() {
        return Ok(vec![copy()?]);
    }
    let mut all = Vec::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        let live = copy()?;
        match name {
            Value::Dict(dict) => {
                let own = python::first(name)?;
                live.set("name", own.clone());
                let overrides = dict.borrow().get(&python::key(&own)?).cloned().unwrap_or_default();
                for arguments in python::iterate(&overrides)? {
                    python::update(&live, &arguments)?;
                }
            }
            other => live.set("name", other.clone()),
        }
        live.set("name_order", (at as u64 + 1).into());
        all.push(live);
    }
    Ok(all)
}

/// Whether the minion has the state function disabled (`state.disable`).
pub(crate) fn is_disabled(low: &Dict, options: &Options) -> Res<bool> {
    let Value::Dict(grains) = &options.grains else { return Ok(false) };
    let Some(patterns) = grains.get("state_runs_disabled") else { return Ok(false) };
    let part = |name: &str| python::name(&low.get(name).unwrap_or_default());
    let function = Value::from(format!("{}.{}", part("state"), part("fun")));
    for pattern in python::iterate(&patterns)? {
        if python::fnmatch(&function, &pattern)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether `state_aggregate` (or the chunk's `aggregate`) lets the chunk run together with others of its module.
pub(crate) fn may_aggregate(low: &Dict, host: &dyn Host, options: &Options) -> Res<bool> {
    let option = low.get("aggregate").unwrap_or_else(|| options.state_aggregate.clone());
    let module = low.get("state").unwrap_or_default();
    let is_wanted = match &option {
        Value::Bool(wanted) => *wanted,
        Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Set(_) => python::contains(&option, &module)?,
        _ => false,
    };
    Ok(is_wanted && host.has_state(&format!("{}.mod_aggregate", python::name(&module))))
}

/// The order of the chunks, or errors.
fn order(
    graph: &mut Graph,
    chunks: &[Dict],
    host: &dyn Host,
    options: &Options,
    budget: &Budget,
) -> Res<(Vec<Dict>, Vec<String>)> {
    let mut cap: i128 = 1;
    let mut errors = Vec::new();
    for chunk in chunks {
        watch_as_require(chunk, host)?;
        if let Some(error) = graph.add_requisites(chunk, &options.disabled_requisites, budget)? {
            errors.push(error);
            continue;
        }
        let order = match chunk.get("order") {
            Some(Value::Int(order)) => order,
            Some(Value::Bool(order)) => i128::from(order),
            _ => continue,
        };
        if order > cap - 1 && order > 0 {
            cap = order.saturating_add(100).min(i128::MAX / 2);
        }
    }
    match graph.order(cap, budget)? {
        Some(sorted) => Ok((sorted, errors)),
        None => {
            errors.push(format!("Recursive requisites were found: {}", graph.cycle_text()?));
            Ok((Vec::new(), errors))
        }
    }
}

/// A module that cannot react to changes requires what it watches.
fn watch_as_require(low: &Dict, host: &dyn Host) -> Res<()> {
    for (watch, require) in [(Requisite::Watch, Requisite::Require), (Requisite::WatchAny, Requisite::RequireAny)] {
        if !python::has(low, watch.name()) {
            continue;
        }
        let module = python::name(&low.get("state").unwrap_or_default());
        if !host.has_state(&format!("{module}.mod_watch")) {
            let required = python::default_list(low, require.name());
            let watched = python::pop(low, watch.name()).unwrap_or_default();
            python::list_method(&required, "extend")?;
            python::extend(&required, &watched)?;
        }
    }
    Ok(())
}
