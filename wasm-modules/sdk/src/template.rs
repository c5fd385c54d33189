//! Jinja templates as `file.managed` and its like render them: with grains, pillar, settings, functions, and imports from
//! the master's files.
//!
//! Functions that only compute are answered here. Others are called by `brine:host/functions`, with the grants of their
//! own modules.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use brine_render::functions::{self, Surroundings};
use brine_render::jinja::{self, CallError, ErrorKind, JinjaError, Limits, Settings, Source};
use brine_render::{Dict, Key, Value};

use crate::host::{self, files};
use crate::{Data, Result, compute, wire};

/// Bytes of a file that are read at once.
const PIECE: u32 = 1 << 20;
/// Upper bound on the bytes of a template: text that people write.
const MAX_FILE: usize = 16 << 20;

/// What templates of an environment see of this minion.
pub struct Templates {
    surroundings: Surroundings,
    saltenv: String,
    settings: Settings,
    /// The functions of modules that were asked for; none if this host does not say.
    modules: RefCell<HashMap<String, Option<Rc<Vec<String>>>>>,
}

impl Templates {
    /// Reads grains, pillar and settings.
    ///
    /// # Errors
    /// One line, when the pillar cannot be read.
    pub fn new(saltenv: &str) -> Result<Self> {
        let surroundings = compute::surroundings()?;
        let opts = surroundings.opts.clone();
        opts.set("saltenv", saltenv.into());
        let flag = |name: &str| opts.get(name).is_some_and(|value| value.truthy());
        let mut settings = Settings::default();
        if let Some(Value::Dict(env)) = opts.get("jinja_env") {
            for (name, value) in env.borrow().iter() {
                settings.set(name.as_str().unwrap_or_default(), value);
            }
        }
        settings.trim_blocks |= flag("jinja_trim_blocks");
        settings.lstrip_blocks |= flag("jinja_lstrip_blocks");
        Ok(Self { surroundings, saltenv: saltenv.to_owned(), settings, modules: RefCell::default() })
    }

    fn functions_of(&self, module: &str) -> Option<Rc<Vec<String>>> {
        if let Some(known) = self.modules.borrow().get(module) {
            return known.clone();
        }
        let names = listed(&[module.into()]).map(Rc::new);
        self.modules.borrow_mut().insert(module.to_owned(), names.clone());
        names
    }

    /// Renders a template. `names` are further variables, of which later ones count more.
    ///
    /// # Errors
    /// The text of Salt's `SaltRenderError`.
    pub fn render(&self, text: &str, names: &[(String, Data)]) -> Result<String> {
        let context = Dict::default();
        context.set("salt", jinja::functions());
        context.set("grains", Value::Dict(self.surroundings.grains.clone()));
        context.set("pillar", Value::Dict(self.surroundings.pillar.clone()));
        context.set("opts", Value::Dict(self.surroundings.opts.clone()));
        context.set("saltenv", self.saltenv.as_str().into());
        for (name, value) in names {
            context.set(name, wire::value(value)?);
        }
        // As Python reads files of text.
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        jinja::render(&text, &context, self, &self.settings, &Limits::default()).map_err(|error| said(&error))
    }
}

/// Reads a file of the master's, of at most 16 MiB; none if there is no such file.
///
/// # Errors
/// One line, when it is larger, not granted, or cannot be read.
pub fn load(path: &str, saltenv: &str) -> Result<Option<Vec<u8>>> {
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Ok(None);
    }
    let mut data = Vec::new();
    loop {
        let Some(piece) = files::read(path, saltenv, data.len() as u64, PIECE)? else {
            return if data.is_empty() { Ok(None) } else { Err(format!("{path} went while it was read")) };
        };
        data.extend_from_slice(&piece);
        if data.len() > MAX_FILE {
            return Err(format!("{path} has more than {MAX_FILE} bytes"));
        }
        if piece.len() < PIECE as usize {
            return Ok(Some(data));
        }
    }
}

impl jinja::Host for Templates {
    fn load(&self, path: &str) -> core::result::Result<Option<Source>, String> {
        let Some(data) = load(path, &self.saltenv)? else { return Ok(None) };
        let text = String::from_utf8(data).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!("'utf-8' codec can't decode byte 0x{:02x} in position {at}", error.as_bytes()[at])
        })?;
        Ok(Some(Source { path: format!("salt://{path}"), text }))
    }

    fn has_function(&self, name: &str) -> bool {
        if functions::known(name) {
            return true;
        }
        let Some((module, _)) = name.split_once('.') else { return false };
        // What is not said is found out by calling it, whose error has the reason.
        self.functions_of(module).is_none_or(|names| names.iter().any(|known| known == name))
    }

    fn has_module(&self, name: &str) -> bool {
        functions::names().any(|known| known.split('.').next() == Some(name))
            || self.functions_of(name).is_none_or(|names| !names.is_empty())
    }

    fn functions(&self) -> Vec<String> {
        let mut names: BTreeSet<String> = functions::names().collect();
        names.extend(listed(&[]).unwrap_or_default());
        names.into_iter().collect()
    }

    fn call(
        &self,
        name: &str,
        positional: Vec<Value>,
        keyword: Vec<(Rc<str>, Value)>,
    ) -> core::result::Result<Value, CallError> {
        if functions::known(name)
            && let Some(answer) = functions::call(&self.surroundings, name, positional.clone(), keyword.clone())
        {
            return answer;
        }
        let keyword = functions::told(&self.surroundings, name, &positional, keyword);
        call(name, &positional, &keyword).map_err(CallError::refused)
    }

    fn random(&self) -> Option<u64> {
        Some(random())
    }

    fn now(&self) -> Option<i64> {
        Some(now())
    }
}

/// A number that nobody can know, for the templates of SLS files and of files.
pub fn random() -> u64 {
    crate::wasi::random::random::get_random_u64()
}

/// Seconds since 1970, for the same.
pub fn now() -> i64 {
    i64::try_from(crate::wasi::clocks::wall_clock::now().seconds).unwrap_or(i64::MAX)
}

/// The names of functions, as `sys` lists them; none if it may not be asked.
fn listed(modules: &[Value]) -> Option<Vec<String>> {
    let Value::List(names) = call("sys.list_functions", modules, &[]).ok()? else { return None };
    let names = names.borrow();
    Some(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn call(name: &str, positional: &[Value], keyword: &[(Rc<str>, Value)]) -> Result<Value> {
    let args = positional.iter().map(wire::data).collect::<Result<Vec<_>>>()?;
    let keyword = keyword.iter().map(|(name, value)| (Key::from(&**name), value.clone()));
    wire::value(&host::functions::call(name, &args, &wire::data(&Value::dict(keyword))?)?)
}

/// Salt's text of a template's error. Where Python has an exception of its own, Salt adds its traceback, which is not
/// here.
fn said(error: &JinjaError) -> String {
    match error.kind {
        ErrorKind::Limit => format!("{error} (the template takes too much)"),
        _ => error.to_string(),
    }
}
