//! Which SLS files an entry of `include` names.

use std::rc::Rc;

use brine_render::{Dict, Value};

use super::sls::Renderer;
use crate::fault::Res;
use crate::python;

/// The environment that stands for all that take part in the run.
const ANY: &str = "_xenv";

/// The SLS in which an include is.
pub(super) struct Includer<'a> {
    pub(super) sls: &'a str,
    pub(super) saltenv: &'a str,
    /// The file is the folder's `init.sls`.
    pub(super) is_init: bool,
}

/// An SLS to be included, and its environment.
pub(super) type Target = (Rc<str>, String);

/// The SLS files that an entry names. `matches` are the environments of the run.
pub(super) fn targets(
    renderer: &Renderer<'_>,
    entry: &Value,
    at: &Includer<'_>,
    matches: &Dict,
    errors: &mut Vec<String>,
) -> Res<Vec<Target>> {
    let Includer { sls, saltenv, is_init } = *at;
    let (env, entry) = match entry {
        Value::Dict(dict) => python::pop_item(dict)?,
        name => (saltenv.into(), name.clone()),
    };
    let env = python::name(&env);
    let files = &renderer.files;
    if !files.has_environment(&env) && !files.has_environment("__env__") {
        let entry = python::name(&entry);
        errors.push(format!("Nonexistent saltenv '{env}' found in include of '{entry}' within SLS '{saltenv}:{sls}'"));
        return Ok(Vec::new());
    }
    let mut name = python::text_method(&entry, "startswith")?.to_owned();
    if name.starts_with('.') {
        let levels = name.len() - name.trim_start_matches('.').len();
        let mut parts: Vec<&str> = sls.split('.').collect();
        if is_init {
            parts.push("init");
        }
        // Python's `.` takes no line break
        let rest = &name[levels..];
        let rest_is_line = !rest.strip_suffix('\n').unwrap_or(rest).contains('\n');
        if !rest_is_line {
            errors.push(format!("Badly formatted include {name} found in include in SLS '{saltenv}:{sls}'"));
            return Ok(Vec::new());
        }
        if levels > parts.len() {
            errors.push(format!(
                "Attempted relative include of '{name}' within SLS '{saltenv}:{sls}' goes beyond top level package "
            ));
            return Ok(Vec::new());
        }
        parts.truncate(parts.len() - levels);
        parts.push(rest.strip_suffix('\n').unwrap_or(rest));
        name = parts.join(".");
    }
    let environments: Vec<String> = matches.borrow().keys().map(|key| python::name(key.value())).collect();
    let mut resolved = Vec::new();
    if env == ANY {
        for other in &environments {
            if !files.matching(other, &name)?.is_empty() {
                resolved.push(other.clone());
            }
        }
    } else if environments.contains(&env) || !files.matching(&env, &name)?.is_empty() {
        resolved.push(env.clone());
    }
    if resolved.len() != 1 && !resolved.iter().any(|other| other == saltenv) {
        errors.push(if resolved.is_empty() {
            let asked = if env == ANY { environments.join(", ") } else { env.clone() };
            format!(
                "Unknown include: Specified SLS {env}: {name} is not available on the salt master in saltenv(s): {asked} "
            )
        } else {
            format!(
                "Ambiguous include: Specified SLS {env}: {name} is available on the salt master in multiple available \
                 saltenvs: {}",
                resolved.join(", ")
            )
        });
        return Ok(Vec::new());
    }
    let found = match resolved.as_slice() {
        [only] => only.clone(),
        _ => saltenv.to_owned(),
    };
    let mut targets = files.matching(saltenv, &name)?;
    if targets.is_empty() {
        targets.push(name.into());
    }
    Ok(targets.into_iter().map(|target| (target, found.clone())).collect())
}
