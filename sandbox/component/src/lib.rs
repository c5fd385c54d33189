//! What a module says about itself: functions, types, documentation and imports, read from the component.
//!
//! [`read`] runs in the compiler's cage, because the bytes are anybody's; its [`ModuleInfo`] goes to the minion as JSON
//! beside the compiled code. [`embed_docs`] is for the build: doc comments do not survive componentizing, so it puts
//! those of the WIT back as custom sections, which [`read`] finds.
//!
//! - `read.rs`   the functions and imports of a component
//! - `types.rs`  a type in WIT's words · `version.rs` the component's version
//! - `docs.rs`   the sections that carry doc comments; `embed.rs` writes them
//! - `form.rs`   the description as it is written down

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

/// Functions of one module. More is not a module that somebody wrote for Salt, and `sys.doc` answers with all of them.
pub const MAX_FUNCTIONS: usize = 1_000;
/// Imports of one module; a component that brings a whole language's runtime has about 30.
pub const MAX_IMPORTS: usize = 200;
/// Parameters of one function (the component model's canonical ABI changes at 16).
pub const MAX_PARAMS: usize = 64;
/// Bytes of one name: of a function, a parameter or an import.
pub const MAX_NAME: usize = 200;
/// Bytes of one type in WIT's words.
pub const MAX_TYPE: usize = 1_000;
/// Bytes of one doc comment; a longer one is cut.
pub const MAX_DOC: usize = 16 * 1024;
/// Bytes of all doc comments of a module together; what comes after is left out.
pub const MAX_DOCS: usize = 256 * 1024;
/// Bytes of a whole description as it is written down, the one bound for who makes, keeps and reads one. Names of as many functions as
/// there may be and all docs take up half of it.
pub const MAX_DESCRIPTION: usize = 4 << 20;

/// All that a component says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "form::Written", try_from = "form::Written")]
pub struct ModuleInfo {
    /// Its version, where it says one: of the package it was built from.
    pub version: Option<String>,
    /// The doc comment of its world.
    pub doc: Option<String>,
    /// Its functions, sorted by name.
    pub functions: Vec<Function>,
    /// What it asks for: imported interfaces as in `brine:host/grains@1.0.0`, sorted. Those with types only are left out.
    pub imports: Vec<String>,
    /// What the author should know: exports that cannot be called and why.
    pub notes: Vec<String>,
}

/// One function as jobs call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// As called, in snake_case and without the module: `get_or_default`.
    pub name: String,
    /// Its way in the component: the function's export, after the exported interface where it is in one.
    pub export: Vec<String>,
    /// In order.
    pub params: Vec<Param>,
    /// The result's type in WIT's words; none where it returns nothing.
    pub result: Option<Arc<str>>,
    /// Its doc comment.
    pub doc: Option<String>,
}

/// One parameter. Functions that have the same one share its texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Param {
    /// In snake_case, as the keyword that sets it.
    pub name: Arc<str>,
    /// Its type in WIT's words.
    pub ty: Arc<str>,
    /// May be left out.
    pub optional: bool,
    /// Whether it takes what the others leave.
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
    /// The function that jobs call by this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// Checks the bounds again, for who got this from a process that [`read`] hostile bytes.
    pub fn check(&self) -> Result<(), ReadError> {
        let over = |what: &str, limit| Err(ReadError::TooMuch { what: format!("is described with {what}"), limit });
        if self.functions.is_empty() {
            return Err(ReadError::NoFunctions);
        }
        if self.functions.len() > MAX_FUNCTIONS {
            return over("too many functions", MAX_FUNCTIONS);
        }
        if self.imports.len() > MAX_IMPORTS {
            return over("too many imports", MAX_IMPORTS);
        }
        if self.functions.iter().any(|function| function.params.len() > MAX_PARAMS) {
            return over("too many parameters", MAX_PARAMS);
        }
        let params = || self.functions.iter().flat_map(|function| &function.params);
        let names = self.functions.iter().flat_map(|function| function.export.iter().chain([&function.name]));
        let names = names.chain(&self.version).chain(&self.imports).map(String::as_str);
        let mut names = names.chain(params().map(|param| &*param.name));
        if names.any(|name| name.len() > MAX_NAME || name.contains(char::is_control)) {
            return over("a name that is too long or has control characters", MAX_NAME);
        }
        let results = self.functions.iter().filter_map(|function| function.result.as_ref());
        if results.chain(params().map(|param| &param.ty)).any(|ty| ty.len() > MAX_TYPE || ty.contains(char::is_control))
        {
            return over("a type that is too long or has control characters", MAX_TYPE);
        }
        let docs = self.functions.iter().filter_map(|function| function.doc.as_ref()).chain(&self.doc);
        if docs.map(String::len).sum::<usize>() > MAX_DOCS + MAX_DOC {
            return over("too many docs", MAX_DOCS);
        }
        Ok(())
    }
}

/// A function as an operator reads it: `test.fib(num: u32) -> list<u64>`.
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

/// A WIT name as Salt writes names.
pub fn snake_case(name: &str) -> String {
    name.replace('-', "_")
}
