//! Top files: which SLS files this minion is given.
//!
//! | file | |
//! |---|---|
//! | `mod` | the top files of all environments, with what they include |
//! | `merge` | one of them all: `top_file_merging_strategy` |
//! | `verify` | what is wrong with it |
//! | `matches` | the SLS files for this minion |

mod matches;
mod merge;
mod verify;

use std::collections::HashSet;

use brine_render::{Dict, Value};
use indexmap::IndexMap;

pub(crate) use matches::matches;
pub(crate) use merge::merge;
pub(crate) use verify::verify;

use crate::fault::{Fault, Res};
use crate::high::Renderer;
use crate::python;
use crate::template::RenderError;

/// The top files of each environment: the first and those that it includes.
pub(crate) type Tops = IndexMap<String, Vec<Value>>;

/// Renders the top files.
pub(crate) fn tops(renderer: &Renderer<'_>) -> Res<Tops> {
    let options = renderer.templates.options;
    if options.top_file_merging_strategy == "same" && options.saltenv.is_none() && options.default_top.is_none() {
        return Err(Fault::Render(
            "top_file_merging_strategy set to 'same', but no default_top configuration option was set".to_owned(),
        ));
    }
    let environments = match (&options.saltenv, &options.state_top_saltenv) {
        (Some(only), _) | (None, Some(only)) => vec![only.clone()],
        (None, None) => renderer.files.environments().to_vec(),
    };
    let mut tops = Tops::new();
    for saltenv in environments {
        let file = renderer.templates.host.load(&saltenv, &options.state_top);
        let top = match file.map_err(|why| Fault::python("OSError", why))? {
            Some(file) => render(renderer, &file, &saltenv, "")?,
            None => Value::dict([]),
        };
        tops.entry(saltenv).or_default().push(top);
    }
    include(renderer, &mut tops)?;
    Ok(tops)
}

fn render(renderer: &Renderer<'_>, file: &crate::File, saltenv: &str, sls: &str) -> Res<Value> {
    renderer.templates.budget.file()?;
    renderer.templates.render(file, saltenv, sls).map_err(|error| match error {
        RenderError::Salt(why) => Fault::Render(why),
        RenderError::Python(class, message) => Fault::Python { class, message },
        RenderError::Limit(fault) => fault,
    })
}

/// Adds the top files that top files include. What is included includes nothing.
fn include(renderer: &Renderer<'_>, tops: &mut Tops) -> Res<()> {
    for (saltenv, all) in tops.iter_mut() {
        let mut patterns = Vec::new();
        for top in all.iter() {
            if python::contains(top, &"include".into())? {
                patterns.extend(python::iterate(&python::field(top, "include")?)?);
                python::pop(python::dict_method(top, "pop")?, "include");
            }
        }
        let mut done = HashSet::new();
        for pattern in patterns {
            for sls in renderer.files.matching(saltenv, &python::name(&pattern))? {
                if !done.insert(sls.clone()) {
                    continue;
                }
                let file = renderer.files.sls(&sls, saltenv).map_err(|why| Fault::python("OSError", why))?;
                all.push(match file {
                    Some((file, _)) => render(renderer, &file, saltenv, "")?,
                    None => Value::dict([]),
                });
            }
        }
    }
    Ok(())
}

/// The entries of a top file's environments.
fn sections(top: &Value) -> Res<Vec<(Value, Value)>> {
    Ok(python::entries(python::dict_method(top, "items")?))
}

/// The dict of an environment in a merged top, made if it is not there.
fn section(merged: &Dict, saltenv: &Value) -> Res<Value> {
    let key = python::key(saltenv)?;
    Ok(merged.borrow_mut().entry(key).or_insert_with(|| Dict::ordered().into()).clone())
}
