//! A module's description: functions, types, documentation and imports, read from the component.
//!
//! [`read`] runs in the compiler's cage, because the bytes may be hostile. Its [`ModuleInfo`] goes to the minion as
//! JSON beside the compiled code. [`embed_docs`] is for the build: componentizing drops doc comments, so it writes
//! those of the WIT into custom sections, which [`read`] finds.
//!
//! - `read.rs`   the functions and imports of a component
//! - `types.rs`  a type in WIT's syntax · `version.rs` the component's version
//! - `docs.rs`   the sections of doc comments; `embed.rs` writes them
//! - `form.rs`   the stored form of a description

mod docs;
mod embed;
mod error;
mod form;
mod read;
mod types;
mod version;

use std::sync::Arc;

pub use embed::{EmbedError, embed_docs};
pub use error::ReadError;
pub use form::FORM;
pub use read::read;
use serde::{Deserialize, Serialize};
pub use version::version;

/// Upper bound on the functions of one module. No module written for Salt has more, and `sys.doc` returns all of them.
pub const MAX_FUNCTIONS: usize = 1_000;
/// Upper bound on the imports of one module. A component with a language's whole runtime has about 30.
pub const MAX_IMPORTS: usize = 200;
/// Upper bound on the parameters of one function (the component model's canonical ABI changes at 16).
pub const MAX_PARAMS: usize = 64;
/// Upper bound on the bytes of one name: of a function, a parameter or an import.
pub const MAX_NAME: usize = 200;
/// Upper bound on the bytes of one type in WIT's syntax.
pub const MAX_TYPE: usize = 1_000;
/// Upper bound on the bytes of all signatures of a module together. Functions share types and names of parameters, so that a component of some
/// kilobytes can have a hundred megabytes of them, which each list of functions would write out.
pub const MAX_SIGNATURES: usize = 8 << 20;
/// Upper bound on the bytes of one doc comment. A longer one is truncated.
pub const MAX_DOC: usize = 16 * 1024;
/// Upper bound on the bytes of all doc comments of a module. Further ones are left out.
pub const MAX_DOCS: usize = 256 * 1024;
/// Upper bound on the bytes of a stored description, for its writers and readers alike. The longest names of the
/// largest number of functions and all docs take half of it.
pub const MAX_DESCRIPTION: usize = 4 << 20;

/// A component's description.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "form::Written", try_from = "form::Written")]
pub struct ModuleInfo {
    /// The version of the package it was built from, if there is one.
    pub version: Option<String>,
    /// The doc comment of its world.
    pub doc: Option<String>,
    /// Its functions, sorted by name.
    pub functions: Vec<Function>,
    /// The functions of its exported interface `states`, sorted by name: the states that it brings. No job calls them.
    pub states: Vec<Function>,
    /// The functions of its exported interface `beacons`, sorted by name. The minion calls them by itself, and no job does.
    pub beacons: Vec<Function>,
    /// Imported interfaces, as in `brine:host/grains@1.0.0`, sorted. Interfaces with types only are left out.
    pub imports: Vec<String>,
    /// Notes for the author: exports that cannot be called, and why.
    pub notes: Vec<String>,
}

/// A function as jobs call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name in calls, in snake_case and without the module: `get_or_default`.
    pub name: String,
    /// Its path in the component: the function's export, after the exported interface if it is in one.
    pub export: Vec<String>,
    /// Its parameters in order.
    pub params: Vec<Param>,
    /// The result's type in WIT's syntax. None if it returns nothing.
    pub result: Option<Arc<str>>,
    /// Its doc comment.
    pub doc: Option<String>,
}

/// A parameter. Functions with equal parameters share the texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Param {
    /// Its name in snake_case, which is also its keyword.
    pub name: Arc<str>,
    /// Its type in WIT's syntax.
    pub ty: Arc<str>,
    /// Whether a call may leave it out.
    pub optional: bool,
    /// Whether it takes the remaining arguments.
    pub rest: Rest,
}

/// A parameter that takes the rest of the arguments, DESIGN.md §3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// An ordinary parameter.
    #[default]
    No,
    /// `args: list<data>`: the rest of the positional arguments.
    Args,
    /// `kwargs: data`: the rest of the keyword arguments.
    Kwargs,
}

impl ModuleInfo {
    /// Returns the function that jobs call by this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// Returns a state: its function is called [`state_function`] of its name.
    pub fn state(&self, name: &str) -> Option<&Function> {
        self.states.iter().find(|function| function.state() == Some(name))
    }

    /// Returns all functions: those that jobs call, then the states, then those of beacons. A function's number is its
    /// place here.
    pub fn all(&self) -> impl Iterator<Item = &Function> + Clone {
        self.functions.iter().chain(&self.states).chain(&self.beacons)
    }

    /// Sorts functions into those that jobs call, states, and those of beacons.
    fn sorted(all: Vec<Function>) -> [Vec<Function>; 3] {
        let [mut functions, mut states, mut beacons] = [const { Vec::new() }; 3];
        for function in all {
            match group(&function.name) {
                None => functions.push(function),
                Some(BEACONS) => beacons.push(function),
                Some(_) => states.push(function),
            }
        }
        [functions, states, beacons]
    }

    /// Checks that the signatures of all functions can be written out.
    pub(crate) fn check_signatures(&self) -> Result<(), ReadError> {
        let of_param = |param: &Param| param.name.len() + param.ty.len();
        let of = |function: &Function| {
            let result = function.result.as_ref().map_or(0, |result| result.len());
            function.name.len() + result + function.params.iter().map(of_param).sum::<usize>()
        };
        match self.all().map(of).sum::<usize>() {
            0..=MAX_SIGNATURES => Ok(()),
            size => {
                let what = format!("has functions whose signatures take {size} bytes together");
                Err(ReadError::TooMuch { what, limit: MAX_SIGNATURES })
            }
        }
    }

    /// Checks the bounds again, for a description from a process that [`read`] hostile bytes.
    ///
    /// # Errors
    ///
    /// A bound is exceeded, or there is no function.
    pub fn check(&self) -> Result<(), ReadError> {
        let over = |what: &str, limit| Err(ReadError::TooMuch { what: format!("is described with {what}"), limit });
        if self.all().next().is_none() {
            return Err(ReadError::NoFunctions);
        }
        if self.all().count() > MAX_FUNCTIONS {
            return over("too many functions", MAX_FUNCTIONS);
        }
        if self.imports.len() > MAX_IMPORTS {
            return over("too many imports", MAX_IMPORTS);
        }
        if self.all().any(|function| function.params.len() > MAX_PARAMS) {
            return over("too many parameters", MAX_PARAMS);
        }
        let params = || self.all().flat_map(|function| &function.params);
        let names = self.all().flat_map(|function| function.export.iter().chain([&function.name]));
        let names = names.chain(&self.version).chain(&self.imports).map(String::as_str);
        let mut names = names.chain(params().map(|param| &*param.name));
        if names.any(|name| name.len() > MAX_NAME || name.contains(char::is_control)) {
            return over("a name that is too long or has control characters", MAX_NAME);
        }
        let results = self.all().filter_map(|function| function.result.as_ref());
        if results.chain(params().map(|param| &param.ty)).any(|ty| ty.len() > MAX_TYPE || ty.contains(char::is_control))
        {
            return over("a type that is too long or has control characters", MAX_TYPE);
        }
        let docs = self.all().filter_map(|function| function.doc.as_ref()).chain(&self.doc);
        if docs.map(String::len).sum::<usize>() > MAX_DOCS + MAX_DOC {
            return over("too many docs", MAX_DOCS);
        }
        self.check_signatures()
    }
}

/// Writes a function's signature for an operator: `test.fib(num: u32) -> list<u64>`.
pub fn signature(module: &str, function: &Function) -> String {
    let params: Vec<String> = function
        .params
        .iter()
        .map(|param| match param.rest {
            Rest::No => format!("{}: {}", param.name, param.ty),
            Rest::Args => format!("*{}", param.name),
            Rest::Kwargs => format!("**{}", param.name),
        })
        .collect();
    let result = function.result.as_ref().map(|result| format!(" -> {result}")).unwrap_or_default();
    format!("{module}.{}({}){result}", function.name, params.join(", "))
}

/// The name of the exported interface whose functions are states, and the beginning of their names: `states.managed` is
/// the state `managed`. No function has a dot in its name.
pub const STATES: &str = "states";

/// The name of the exported interface of a beacon, and the beginning of its functions' names: `beacons.validate`.
pub const BEACONS: &str = "beacons";

/// Exported interfaces whose functions no job calls. Their names begin those of their functions.
const GROUPS: [&str; 2] = [STATES, BEACONS];

/// Returns the name by which the state `name` is known among a module's functions.
pub fn state_function(name: &str) -> String {
    format!("{STATES}.{name}")
}

/// Returns the interface that a function which no job calls is in: `states` of `states.managed`. `function` is without its
/// module's name.
pub fn group(function: &str) -> Option<&'static str> {
    let (first, _) = function.split_once('.')?;
    GROUPS.into_iter().find(|group| *group == first)
}

impl Function {
    /// Returns the state's name, if the function is one.
    pub fn state(&self) -> Option<&str> {
        self.name.strip_prefix(STATES)?.strip_prefix('.')
    }
}

/// Returns the group that the functions of an exported interface are in: `states` of `brine:file/states@1.0.0`. None if
/// jobs call them.
pub fn exported_group(export: &str) -> Option<&'static str> {
    let name = export.split('@').next().unwrap_or_default();
    let name = name.rsplit('/').next()?;
    GROUPS.into_iter().find(|group| *group == name)
}

/// Converts a WIT name to Salt's spelling.
pub fn snake_case(name: &str) -> String {
    name.replace('-', "_")
}
