//! What a compile and a run see of this minion: the master's files, functions, states, and the targets of top files.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use brine_guest::Data;
use brine_guest::host::files::{self, Kind};
use brine_guest::host::{log, modules, states};
use brine_guest::template;
use brine_render::functions::{self, Surroundings};
use brine_render::jinja::CallError;
use brine_render::{Dict, Key, Value};
use brine_states::{Fault, File, Host, Parameters};

use crate::wire;

/// Bytes that are read at once.
const PIECE: u32 = 1 << 20;
/// Upper bound on the bytes of a file: SLS files and templates are text that people write.
const MAX_FILE: usize = 16 << 20;

/// Names of what a module has, or none if there is no such module.
type Known<T> = RefCell<HashMap<String, Option<Rc<T>>>>;

/// The minion.
pub(crate) struct World {
    surroundings: Surroundings,
    functions: Known<Vec<String>>,
    states: Known<HashMap<String, Parameters>>,
    /// Why this host can have no states and functions of a module; none if it can.
    unavailable: RefCell<HashMap<String, Option<String>>>,
}

/// What a state module is asked before its first state: whether this host has what it needs. It is no state.
const AVAILABLE: &str = "mod_available";

impl World {
    pub(crate) fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            functions: RefCell::default(),
            states: RefCell::default(),
            unavailable: RefCell::default(),
        }
    }

    /// Forgets what modules have, because they may have changed.
    pub(crate) fn forget(&self) {
        self.functions.borrow_mut().clear();
        self.states.borrow_mut().clear();
        self.unavailable.borrow_mut().clear();
    }

    /// Why this host can have nothing of a module, as the module itself says.
    fn why_unavailable(&self, module: &str) -> Option<String> {
        if let Some(known) = self.unavailable.borrow().get(module) {
            return known.clone();
        }
        let asks = modules::states(module).iter().any(|state| state.name == AVAILABLE);
        let no_arguments = || wire::data(&Dict::default().into());
        let why = match asks {
            true => no_arguments()
                .and_then(|none| states::ask(&format!("{module}.{AVAILABLE}"), &none, true))
                .err()
                // A module that was stopped for want of a grant did not say so: its states will, with the line that grants it.
                .filter(|why| !why.contains(" was refused: "))
                .map(|why| format!("'{module}' __virtual__ returned False: {why}")),
            false => None,
        };
        self.unavailable.borrow_mut().insert(module.to_owned(), why.clone());
        why
    }

    fn functions_of(&self, module: &str) -> Option<Rc<Vec<String>>> {
        if let Some(known) = self.functions.borrow().get(module) {
            return known.clone();
        }
        let described = modules::describe(module).or_else(|| {
            // The host fetches a module that is missing here.
            states::exists(&format!("{module}.any"));
            modules::describe(module)
        });
        let names: Option<Vec<_>> =
            described.map(|module| module.functions.into_iter().map(|function| function.name).collect());
        // A module of states alone has no functions, and none of its names is there for templates.
        let names = names.filter(|names| !names.is_empty() && self.why_unavailable(module).is_none()).map(Rc::new);
        self.functions.borrow_mut().insert(module.to_owned(), names.clone());
        names
    }

    /// Whether a module of this host has a function of this name.
    pub(crate) fn has_own(&self, name: &str) -> bool {
        let Some((module, function)) = name.split_once('.') else { return false };
        self.functions_of(module).is_some_and(|names| names.iter().any(|name| name == function))
    }

    fn states_of(&self, module: &str) -> Option<Rc<HashMap<String, Parameters>>> {
        if let Some(known) = self.states.borrow().get(module) {
            return known.clone();
        }
        // The host fetches a module that is missing here.
        states::exists(&format!("{module}.any"));
        let found: HashMap<String, Parameters> =
            modules::states(module).iter().map(|state| (state.name.clone(), parameters(state))).collect();
        let is_there = found.keys().any(|name| name != AVAILABLE) && self.why_unavailable(module).is_none();
        let found = is_there.then(|| Rc::new(found));
        self.states.borrow_mut().insert(module.to_owned(), found.clone());
        found
    }
}

fn parameters(state: &modules::Function) -> Parameters {
    let named = |optional: bool| {
        let named = state.parameters.iter().filter(move |p| !p.rest && p.optional == optional);
        named.map(|p| p.name.clone()).collect()
    };
    Parameters { required: named(false), optional: named(true), open: state.parameters.iter().any(|p| p.rest) }
}

/// A function's dict of keywords for the host.
pub(crate) fn keywords(keyword: &[(Rc<str>, Value)]) -> Result<Data, String> {
    let entries = keyword.iter().map(|(name, value)| (Key::from(&**name), value.clone()));
    wire::data(&Value::dict(entries))
}

/// Calls a function by the host.
pub(crate) fn call(name: &str, positional: &[Value], keyword: &[(Rc<str>, Value)]) -> Result<Value, String> {
    let args = positional.iter().map(wire::data).collect::<Result<Vec<_>, _>>()?;
    wire::value(&states::call(name, &args, &keywords(keyword)?)?)
}

impl Host for World {
    fn environments(&self) -> Vec<String> {
        files::envs().unwrap_or_default()
    }

    fn states(&self, saltenv: &str) -> Vec<String> {
        let files = files::list(saltenv, None, Kind::Files).unwrap_or_default();
        let sls = files.iter().filter_map(|file| file.strip_suffix(".sls"));
        sls.map(|file| file.strip_suffix("/init").unwrap_or(file).replace('/', ".")).collect()
    }

    fn load(&self, saltenv: &str, path: &str) -> Result<Option<File>, String> {
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
                return Ok(Some(File { path: format!("salt://{path}"), data: data.into() }));
            }
        }
    }

    fn has_function(&self, name: &str) -> bool {
        if functions::known(name) {
            return true;
        }
        self.has_own(name)
    }

    fn has_module(&self, name: &str) -> bool {
        functions::names().any(|known| known.split('.').next() == Some(name)) || self.functions_of(name).is_some()
    }

    fn functions(&self) -> Vec<String> {
        let of_modules = modules::names().into_iter().flat_map(|module| {
            let names = self.functions_of(&module).unwrap_or_default();
            names.iter().map(|name| format!("{module}.{name}")).collect::<Vec<_>>()
        });
        of_modules.chain(functions::names()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn call(
        &self,
        _: &str,
        name: &str,
        positional: Vec<Value>,
        keyword: Vec<(Rc<str>, Value)>,
    ) -> Result<Value, CallError> {
        if functions::known(name)
            && let Some(answer) = functions::call(&self.surroundings, name, positional.clone(), keyword.clone())
        {
            return answer;
        }
        let keyword = functions::told(&self.surroundings, name, &positional, keyword);
        call(name, &positional, &keyword).map_err(CallError::refused)
    }

    fn random(&self) -> Option<u64> {
        Some(template::random())
    }

    fn now(&self) -> Option<i64> {
        Some(template::now())
    }

    fn has_state(&self, name: &str) -> bool {
        self.parameters(name).is_some()
    }

    fn parameters(&self, name: &str) -> Option<Parameters> {
        let (module, state) = name.split_once('.')?;
        self.states_of(module)?.get(state).cloned()
    }

    fn why_missing(&self, name: &str) -> Option<String> {
        let module = name.split_once('.')?.0;
        if let Some(why) = self.why_unavailable(module) {
            return Some(why);
        }
        let file = format!("_states/{module}.py");
        let is_there = files::list("base", Some("_states"), Kind::Files).is_ok_and(|files| files.contains(&file));
        Some(match is_there {
            true => format!(
                "'{module}' is a state module in Python ({file}), and Python runs in no sandbox. See docs/modules.md for one that does."
            ),
            false => format!("'{name}' is not available."),
        })
    }

    fn is_target(&self, expression: &Value, matcher: &str, _: &Value) -> Result<bool, Fault> {
        functions::matches(&self.surroundings, expression, matcher)
            .map_err(|error| Fault::Python { class: "SaltRenderError", message: error.to_string() })
    }

    fn master_tops(&self) -> Dict {
        Dict::default()
    }

    fn warn(&self, message: &str) {
        log::write(log::Level::Warning, message);
    }
}
