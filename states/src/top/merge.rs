//! `top_file_merging_strategy`: one top of those of all environments.

use brine_render::{Dict, Value};

use super::{Tops, section, sections};
use crate::fault::{Fault, Res};
use crate::options::Options;
use crate::python;

/// Merges top files, as the setting says; what it does not know is `merge`.
pub(crate) fn merge(tops: &Tops, options: &Options) -> Res<Dict> {
    match options.top_file_merging_strategy.as_str() {
        "same" => same(tops, options),
        "merge_all" => merge_all(tops),
        _ => merge_own(tops),
    }
}

fn no_targets() -> Fault {
    Fault::Render("Unable to render top file. No targets found.".to_owned())
}

/// Adds the targets of an environment; those that are there are replaced.
fn add(merged: &Dict, saltenv: &Value, targets: &Value) -> Res<()> {
    let all = python::iterate(targets).map_err(|_| no_targets())?;
    for target in all {
        let sls = python::item(targets, &target).map_err(|fault| match fault {
            Fault::Python { class: "TypeError", .. } => no_targets(),
            other => other,
        })?;
        python::set_item(&section(merged, saltenv)?, &target, sls)?;
    }
    Ok(())
}

fn is_include(saltenv: &Value) -> bool {
    saltenv.as_str() == Some("include")
}

/// What base says of an environment counts; if it says nothing, the environment's own top does.
fn merge_own(tops: &Tops) -> Res<Dict> {
    let merged = Dict::ordered();
    for top in tops.get("base").into_iter().flatten() {
        for (saltenv, targets) in sections(top)? {
            if !is_include(&saltenv) {
                add(&merged, &saltenv, &targets)?;
            }
        }
    }
    for (own, all) in tops.iter().filter(|(own, _)| *own != "base") {
        for top in all {
            for (saltenv, targets) in sections(top)? {
                if saltenv.as_str() == Some(own) && !merged.borrow().contains_key(&python::key(&saltenv)?) {
                    add(&merged, &saltenv, &targets)?;
                }
            }
        }
    }
    Ok(merged)
}

/// Each environment's own top counts, and that of `default_top` where there is none.
fn same(tops: &Tops, options: &Options) -> Res<Dict> {
    let merged = Dict::ordered();
    let is_empty = |all: &[Value]| all.iter().all(|top| *top == Value::dict([]));
    for (own, all) in tops {
        if !is_empty(all) {
            for top in all {
                for (saltenv, targets) in sections(top)? {
                    if !is_include(&saltenv) && saltenv.as_str() == Some(own) {
                        add(&merged, &saltenv, &targets)?;
                    }
                }
            }
            continue;
        }
        let fallback = options.default_top.as_ref().and_then(|env| tops.get(env)).map_or(&[][..], Vec::as_slice);
        if is_empty(fallback) {
            continue;
        }
        for top in fallback {
            if let Some((saltenv, targets)) = sections(top)?.into_iter().find(|(env, _)| env.as_str() == Some(own)) {
                for target in python::iterate(&targets)? {
                    let sls = python::item(&targets, &target)?;
                    python::set_item(&section(&merged, &saltenv)?, &target, sls)?;
                }
            }
        }
    }
    Ok(merged)
}

/// All tops count; SLS files of a target that is in several are put together.
fn merge_all(tops: &Tops) -> Res<Dict> {
    let merged = Dict::ordered();
    for top in tops.values().flatten() {
        for (saltenv, targets) in sections(top)? {
            if is_include(&saltenv) {
                continue;
            }
            for target in python::iterate(&targets).map_err(|_| no_targets())? {
                let there = section(&merged, &saltenv)?;
                let more = python::item(&targets, &target).map_err(|_| no_targets())?;
                if !python::contains(&there, &target)? {
                    python::set_item(&there, &target, more)?;
                    continue;
                }
                let before = python::item(&there, &target)?;
                python::set_item(&there, &target, together(&before, &more)?)?;
            }
        }
    }
    Ok(merged)
}

/// The matcher, and the SLS files of two lists without those that are there twice.
fn together(before: &Value, more: &Value) -> Res<Value> {
    let read = |list: &Value| -> Res<(Option<Value>, Vec<Value>)> {
        let items = python::iterate(list).map_err(|_| no_targets())?;
        let matcher = items.iter().rfind(|item| matches!(item, Value::Dict(_))).cloned();
        Ok((matcher, items.into_iter().filter(|item| item.as_str().is_some()).collect()))
    };
    let ((matcher1, names1), (matcher2, names2)) = (read(before)?, read(more)?);
    let mut merged: Vec<Value> = matcher2.filter(Value::truthy).or(matcher1).into_iter().collect();
    merged.extend(names1);
    let new: Vec<Value> = names2.into_iter().filter(|name| !merged.contains(name)).collect();
    merged.extend(new);
    Ok(Value::list(merged))
}
