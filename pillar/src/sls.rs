//! The files of `pillar_roots` that a top file names, and those that they include.

use std::collections::{HashMap, HashSet};

use brine_render::{Dict, Key, Value};

use crate::failure::Failure;
use crate::opts::PillarOpts;
use crate::problems::{ERRORS_MAX, Problems};
use crate::roots::Files;
use crate::template::Renderer;

/// Bound on files that include each other in a row. Each takes stack.
const DEPTH_MAX: usize = 64;

/// What renders the files of all environments.
pub(crate) struct Sources<'a> {
    pub(crate) opts: &'a PillarOpts,
    pub(crate) files: &'a Files<'a>,
    pub(crate) renderer: &'a Renderer<'a>,
    pub(crate) problems: &'a Problems,
    /// Files that may be missing, by environment.
    pub(crate) ignored: &'a HashMap<String, HashSet<String>>,
}

/// The file that is being rendered.
struct Current<'a> {
    env: &'a str,
    sls: &'a str,
    /// Whether it is `init.sls` of its folder, which names beginning with a dot are relative to.
    is_init: bool,
    depth: usize,
}

/// An entry of `include`.
struct Include {
    name: String,
    key: Option<String>,
    /// `Some` if the entry is a dict, which sets them for the following entries too.
    defaults: Option<Option<Dict>>,
}

impl Sources<'_> {
    /// Renders and merges the files, after `given`. Adds what the minion is told of errors.
    pub(crate) fn render(&self, names: &[(String, Vec<String>)], given: &Value, errors: &mut Vec<String>) -> Value {
        let mut pillar = match given {
            Value::Dict(given) => Value::Dict(Dict::from_entries(given.borrow().clone(), false)),
            _ => Value::dict([]),
        };
        for (env, globs) in names {
            let mut files = Vec::new();
            for glob in globs {
                match self.files.matching(env, glob) {
                    Some(matched) if !matched.is_empty() => files.extend(matched),
                    Some(_) => files.push(glob.clone()),
                    None => {
                        errors.push(format!("No matching pillar environment for environment '{env}' found"));
                        files.push(glob.clone());
                    }
                }
            }
            let mut done = Rendered::new();
            for sls in &files {
                let (state, more) = self.render_sls(env, sls, &mut done, None, 0);
                errors.extend(more);
                errors.truncate(ERRORS_MAX);
                let Some(state) = state.filter(|state| matches!(state, Value::Dict(_))) else { continue };
                match self.merge(&pillar, &state) {
                    Ok(merged) => pillar = merged,
                    Err(why) => errors.push(self.fail(env, sls, &why)),
                }
            }
        }
        pillar
    }

    fn merge(&self, a: &Value, b: &Value) -> Result<Value, Failure> {
        self.files.check_time().map_err(|why| Failure::plain(why.to_string()))?;
        self.opts.merging.merge(a, b).map_err(Failure::plain)
    }

    /// Notes why a file does not count. Returns what the minion is told.
    fn fail(&self, env: &str, sls: &str, failure: &Failure) -> String {
        self.problems.cause(format!("Rendering SLS '{sls}' of {env} failed: {}", failure.cause));
        if self.opts.safe_errors {
            format!("Rendering SLS '{sls}' failed. Please see master log for details.")
        } else {
            format!("Rendering SLS '{sls}' failed, render error:\n{}", failure.full)
        }
    }

    /// Notes an error whose text has no values.
    fn say(&self, message: String) -> String {
        self.problems.cause(message.clone());
        message
    }

    /// Renders a file and what it includes. `None` if it does not count.
    fn render_sls(
        &self,
        env: &str,
        sls: &str,
        done: &mut Rendered,
        defaults: Option<&Dict>,
        depth: usize,
    ) -> (Option<Value>, Vec<String>) {
        let mut errors = Vec::new();
        let rendered =
            match self.files.sls(env, sls) {
                Err(why) => Err(Failure::plain(why.to_string())),
                Ok(Some(file)) => {
                    let is_init = file.rel.ends_with("/init.sls") || file.rel == "init.sls";
                    self.renderer.render(env, &file, sls, defaults).map(|state| (state, is_init))
                }
                Ok(None) => {
                    if self.ignored.get(env).is_some_and(|names| names.contains(sls)) || !self.files.has_roots(env) {
                        return (None, errors);
                    }
                    errors.push(self.say(format!(
                        "Specified SLS '{sls}' in environment '{env}' is not available on the salt master"
                    )));
                    Ok((Value::dict([]), false))
                }
            };
        let (state, is_init) = match rendered {
            Ok(rendered) => rendered,
            Err(failure) => {
                errors.push(self.fail(env, sls, &failure));
                done.insert(sls.to_owned(), None);
                return (None, errors);
            }
        };
        done.insert(sls.to_owned(), Some(state.clone()));
        if !state.truthy() {
            return (Some(state), errors);
        }
        let Value::Dict(dict) = &state else {
            errors.push(self.say(format!("SLS '{sls}' does not render to a dictionary")));
            return (Some(state), errors);
        };
        match dict.get("include") {
            None => (Some(state), errors),
            Some(Value::List(includes)) => {
                dict.borrow_mut().shift_remove(&Key::from("include"));
                let current = Current { env, sls, is_init, depth };
                let includes = includes.borrow().clone();
                let merged = self.with_includes(&current, state, &includes, done, defaults, &mut errors);
                (Some(merged), errors)
            }
            Some(_) => {
                errors.push(self.say(format!("Include Declaration in SLS '{sls}' is not formed as a list")));
                (Some(state), errors)
            }
        }
    }

    /// Merges a file with those that it includes.
    fn with_includes(
        &self,
        current: &Current<'_>,
        state: Value,
        includes: &[Value],
        done: &mut Rendered,
        defaults: Option<&Dict>,
        errors: &mut Vec<String>,
    ) -> Value {
        let Current { env, sls, depth, .. } = *current;
        let mut defaults = defaults.cloned();
        let overriding = self.opts.merging.includes_override;
        let mut merged = overriding.then(|| state.clone());
        // As in Salt, the errors of the last rendered file are told again with each further one.
        let mut last_errors: Vec<String> = Vec::new();
        let add = |merged: &mut Option<Value>, more: Value, errors: &mut Vec<String>| match merged {
            None => *merged = Some(more),
            Some(so_far) => match self.merge(so_far, &more) {
                Ok(both) => *merged = Some(both),
                Err(failure) => errors.push(self.fail(env, sls, &failure)),
            },
        };
        for include in includes {
            let Some(include) = Include::read(include) else {
                errors.push(self.fail(env, sls, &Failure::plain("an entry of include is neither a name nor a dict")));
                continue;
            };
            if let Some(given) = include.defaults {
                defaults = given;
            }
            for name in self.names(current, &include.name) {
                let nested = match done.get(&name) {
                    Some(known) => known.clone(),
                    None if depth >= DEPTH_MAX => {
                        let why = format!("more than {DEPTH_MAX} files include each other in a row");
                        errors.push(self.fail(env, sls, &Failure::plain(why)));
                        continue;
                    }
                    None => {
                        let (nested, more) = self.render_sls(env, &name, done, defaults.as_ref(), depth + 1);
                        last_errors = more;
                        nested
                    }
                };
                if let Some(nested) = nested.filter(Value::truthy) {
                    add(&mut merged, under(include.key.as_deref(), nested), errors);
                }
                // In Salt they double with each level.
                let room = ERRORS_MAX.saturating_sub(errors.len());
                errors.extend(last_errors.iter().take(room).cloned());
            }
        }
        if !overriding {
            // Its own values count most.
            add(&mut merged, state.clone(), errors);
        }
        merged.unwrap_or(state)
    }

    /// The files that an entry of `include` means: a name, a glob, or a name relative to the file's folder.
    fn names(&self, current: &Current<'_>, include: &str) -> Vec<String> {
        let Current { env, sls, is_init, .. } = *current;
        let absolute = include.trim_start_matches('.').replace('/', ".");
        let Some(mut names) = self.files.matching(env, &absolute) else { return vec![include.to_owned()] };
        let include = match include.strip_prefix('.') {
            None => include.to_owned(),
            Some(rest) => {
                let folder = if is_init { sls } else { sls.rsplit_once('.').map_or("", |(folder, _)| folder) };
                if folder.is_empty() && !is_init { rest.to_owned() } else { format!("{folder}.{rest}") }
            }
        };
        names.extend(self.files.matching(env, &include).unwrap_or_default());
        if names.is_empty() { vec![include] } else { names }
    }
}

impl Include {
    fn read(entry: &Value) -> Option<Self> {
        match entry {
            Value::Str(name) => Some(Self { name: name.to_string(), key: None, defaults: None }),
            Value::Dict(dict) => {
                let dict = dict.borrow();
                let (name, options) = dict.first()?;
                let Value::Dict(options) = options else { return None };
                let key = match options.get("key") {
                    None | Some(Value::None) => None,
                    Some(Value::Str(key)) => Some(key.to_string()).filter(|key| !key.is_empty()),
                    Some(_) => return None,
                };
                let defaults = match options.get("defaults") {
                    None | Some(Value::None) => None,
                    Some(Value::Dict(defaults)) => Some(defaults),
                    Some(_) => return None,
                };
                Some(Self { name: name.as_str()?.to_owned(), key, defaults: Some(defaults) })
            }
            _ => None,
        }
    }
}

/// Puts values under a key; `a:b` is a key within a key.
fn under(key: Option<&str>, value: Value) -> Value {
    let Some(key) = key else { return value };
    key.rsplit(':').fold(value, |inner, part| Value::dict([(Key::from(part), inner)]))
}

/// Names of files by name, in one environment.
type Rendered = HashMap<String, Option<Value>>;
