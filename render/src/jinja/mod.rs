//! Jinja2 3.1 as Salt sets it up: Python's values and printing, Salt's tags, filters and errors.
//!
//! A template is foreign code, also on the master: steps, bytes, depth and the number of files are bounded.
//!
//! | file | content |
//! |---|---|
//! | `lexer`, `token`, `number` | from text to tokens |
//! | `parser` | from tokens to the tree of `ast` |
//! | `interp`, `scope`, `object` | runs the tree |
//! | `ops`, `attribute`, `print`, `format`, `methods` | Python: operators, lookups, text, methods |
//! | `filters`, `tests`, `globals` | what Jinja and Salt add |

mod ast;
mod attribute;
mod error;
mod filters;
mod format;
mod globals;
mod interp;
pub(crate) mod json;
mod lexer;
mod methods;
mod number;
mod object;
mod ops;
mod parser;
mod print;
mod regex;
mod scope;
mod settings;
mod tests;
mod token;

use std::rc::Rc;

pub use crate::data::CallError;
pub use error::{ErrorKind, JinjaError};
pub use settings::{Limits, Settings};

use crate::value::{Dict, Value};

/// A file that a template asks for.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it is, for messages.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// What a template may ask of its surroundings.
pub trait Host {
    /// The file of a path below the roots (`a/b.jinja`); none if there is none.
    ///
    /// # Errors
    /// The file cannot be read, or is not UTF-8.
    fn load(&self, path: &str) -> Result<Option<Source>, String>;

    /// Whether there is an execution function of this name.
    fn has_function(&self, name: &str) -> bool;

    /// Whether there is an execution module of this name (`salt.test`).
    fn has_module(&self, name: &str) -> bool {
        let _ = name;
        true
    }

    /// The names of all execution functions, for templates that go through them (`salt.keys()`).
    fn functions(&self) -> Vec<String> {
        Vec::new()
    }

    /// What a template is told that uses a function which is not here; without it, that there is none.
    fn why_missing(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Calls an execution function.
    ///
    /// # Errors
    /// The function failed, or is not allowed here.
    fn call(&self, name: &str, positional: Vec<Value>, keyword: Vec<(Rc<str>, Value)>) -> Result<Value, CallError>;

    /// A number that nobody can know, for the filters that make random values; none if there is no source of them.
    fn random(&self) -> Option<u64> {
        None
    }

    /// Seconds since 1970, for `strftime` of now; none if there is no clock.
    fn now(&self) -> Option<i64> {
        None
    }
}

/// The value of `salt`: the execution functions of the host.
pub fn functions() -> Value {
    object::object(object::Functions { module: None })
}

/// Checks a template's syntax.
///
/// # Errors
/// The template is no Jinja.
pub fn check(text: &str, settings: &Settings) -> Result<(), Box<JinjaError>> {
    let (text, settings) = settings.for_file(text);
    parser::parse(&text, None, &settings).map(|_| ())
}

/// Renders a template. `context` has the names that it sees, with `salt` from [`functions`].
///
/// # Errors
/// The template is no Jinja, does not run, or goes out of the bounds.
pub fn render(
    text: &str,
    context: &Dict,
    host: &dyn Host,
    settings: &Settings,
    limits: &Limits,
) -> Result<String, Box<JinjaError>> {
    if text.len() > limits.text {
        return Err(JinjaError::limit(format!("the template has more than {} bytes", limits.text)));
    }
    let ends_line = text.ends_with('\n');
    let (text, settings) = settings.for_file(text);
    let template = parser::parse(&text, None, &settings)?;
    let names = context.borrow().iter().filter_map(|(k, v)| Some((Rc::from(k.as_str()?), v.clone()))).collect();
    let mut out = interp::Interp::new(host, &settings, limits, template, names).render()?;
    if ends_line {
        out.push('\n');
    }
    Ok(out)
}
