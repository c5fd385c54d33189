//! Files, functions and states, as the compiler and templates see them.

use std::rc::Rc;
use std::sync::Arc;

use brine_render::convert::ConvertLimits;
use brine_render::functions::{self, Surroundings};
use brine_render::jinja::CallError;
use brine_render::{Key, Value};
use brine_states::{Fault, File, Host, Parameters};

use super::in_master;
use super::minions;
use super::patience::Patience;
use super::table::{self, Actor};

/// Upper bound on the bytes of a file: SLS files and templates are text that people write.
const FILE_MAX: u64 = 16 << 20;
/// Upper bound on the jobs and runs that the templates of one compile start.
const CALLS_MAX: usize = 1_000;

/// What a compile and a run see of this master.
pub(super) struct World {
    pub(super) surroundings: Surroundings,
    pub(super) actor: Arc<Actor>,
    pub(super) patience: Patience,
    /// What it is, for the log: `orchestration 2026…`.
    label: String,
    calls: std::cell::Cell<usize>,
}

impl World {
    pub(super) const fn new(surroundings: Surroundings, actor: Arc<Actor>, patience: Patience, label: String) -> Self {
        Self { surroundings, actor, patience, label, calls: std::cell::Cell::new(0) }
    }

    /// Calls a function that starts something, with the rights of the orchestration's caller.
    fn start(
        &self,
        saltenv: &str,
        name: &str,
        positional: &[Value],
        keyword: &[(Rc<str>, Value)],
    ) -> Result<Value, CallError> {
        if self.calls.get() >= CALLS_MAX {
            return Err(CallError::refused(format!("templates start more than {CALLS_MAX} jobs and runs")));
        }
        self.calls.set(self.calls.get() + 1);
        let wire = |value: &Value| value.to_wire(ConvertLimits::default()).map_err(|why| why.to_string());
        let args: Result<Vec<_>, _> = positional.iter().map(wire).collect();
        let named = wire(&Value::dict(keyword.iter().map(|(name, value)| (Key::from(&**name), value.clone()))));
        let (args, named) = args.and_then(|args| Ok((args, named?))).map_err(CallError::refused)?;
        let actor = Arc::clone(&self.actor);
        let done = match name {
            "saltutil.cmd" => self.patience.wait(minions::cmd(actor, args, named)),
            "saltutil.wheel" => self.patience.wait(in_master::call_wheel(actor, saltenv.to_owned(), args, named)),
            _ => self.patience.wait(in_master::call_runner(actor, saltenv.to_owned(), args, named)),
        };
        let answer = done.and_then(|done| done).map_err(|why| CallError::refused(format!("{name}: {why}")))?;
        Value::from_wire(&answer).map_err(|why| CallError::refused(why.to_string()))
    }
}

/// The functions that start something.
const STARTS: [&str; 3] = ["saltutil.cmd", "saltutil.runner", "saltutil.wheel"];

fn starts(name: &str) -> bool {
    STARTS.contains(&name)
}

fn is_missing(name: &str) -> String {
    format!(
        "{name} is not there for orchestrations: their templates compute, and start what their caller may start ({})",
        STARTS.join(", ")
    )
}

impl Host for World {
    fn environments(&self) -> Vec<String> {
        self.actor.runners.parts.files.envs()
    }

    fn states(&self, saltenv: &str) -> Vec<String> {
        let files = self.actor.runners.parts.files.files(saltenv);
        let sls = files.iter().filter_map(|file| file.strip_suffix(".sls"));
        sls.map(|file| file.strip_suffix("/init").unwrap_or(file).replace('/', ".")).collect()
    }

    fn load(&self, saltenv: &str, path: &str) -> Result<Option<File>, String> {
        if let Some(why) = self.patience.is_over() {
            return Err(why);
        }
        let found = self.actor.runners.parts.files.whole(saltenv, path, FILE_MAX)?;
        Ok(found.map(|file| File { path: file.path.to_string_lossy().into_owned(), data: file.data.into() }))
    }

    fn has_function(&self, name: &str) -> bool {
        functions::known(name) || starts(name)
    }

    fn functions(&self) -> Vec<String> {
        functions::names().chain(STARTS.map(str::to_owned)).collect()
    }

    fn why_no_function(&self, name: &str) -> Option<String> {
        Some(is_missing(name))
    }

    fn call(
        &self,
        saltenv: &str,
        name: &str,
        positional: Vec<Value>,
        keyword: Vec<(Rc<str>, Value)>,
    ) -> Result<Value, CallError> {
        if let Some(why) = self.patience.is_over() {
            return Err(CallError::refused(why));
        }
        if starts(name) {
            return self.start(saltenv, name, &positional, &keyword);
        }
        functions::call(&self.surroundings, name, positional, keyword)
            .unwrap_or_else(|| Err(CallError::refused(is_missing(name))))
    }

    fn has_state(&self, name: &str) -> bool {
        table::parameters(name).is_some()
    }

    fn parameters(&self, name: &str) -> Option<Parameters> {
        table::parameters(name)
    }

    fn is_target(&self, expression: &Value, matcher: &str, _: &Value) -> Result<bool, Fault> {
        functions::matches(&self.surroundings, expression, matcher)
            .map_err(|error| Fault::Python { class: "SaltRenderError", message: error.to_string() })
    }

    fn warn(&self, message: &str) {
        tracing::warn!("{}: {}", self.label, brine_protocol::text::short(message, 300));
    }
}
