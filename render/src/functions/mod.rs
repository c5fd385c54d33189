//! Execution functions that only compute: `grains.get`, `pillar.get`, `config.get`, `slsutil.merge`, `match.compound` and
//! so on. They are answered here, without a host, from what a template knows of its minion.
//!
//! | file | content |
//! |---|---|
//! | `call` | the arguments of a call, bound to Python's signature |
//! | `surroundings` | what the functions see |
//! | `grains`, `pillar`, `config` | reading the three |
//! | `filter` | `filter_by` |
//! | `matching` | `match`, by the same code as the master's targets |
//! | `sls`, `banner` | `defaults` and `slsutil` |
//! | `release` | `salt_version` |
//! | `names`, `hashes`, `network`, `tests`, `log` | names of files, `hashutil`, `network`, `test`, `log` |

mod banner;
mod call;
mod config;
mod filter;
mod grains;
mod hashes;
mod log;
mod matching;
mod names;
mod network;
mod pillar;
mod release;
mod sls;
mod surroundings;
mod tests;

use std::rc::Rc;

use call::{Call, Row};
pub use matching::matches;
pub use surroundings::{Level, Log, Surroundings};

use crate::data::CallError;
use crate::value::Value;

/// What a function gives.
pub type Answer = Result<Value, CallError>;

const UNMASK: &str = "unmask";
/// The place of `unmask` among the arguments of `pillar.get` and `pillar.fetch`, of which there are then this many. That of the others
/// has none: it comes after any number of keys.
const UNMASK_AT: usize = 8;

const MODULES: &[(&str, &[Row])] = &[
    ("config", config::ROWS),
    ("defaults", sls::DEFAULTS),
    ("file", names::ROWS),
    ("grains", grains::ROWS),
    ("hashutil", hashes::ROWS),
    ("log", log::ROWS),
    ("match", matching::ROWS),
    ("network", network::ROWS),
    ("pillar", pillar::ROWS),
    ("salt_version", release::ROWS),
    ("slsutil", sls::SLSUTIL),
    ("test", tests::ROWS),
];

fn row(name: &str) -> Option<&'static Row> {
    let (module, function) = name.split_once('.')?;
    let (_, rows) = MODULES.iter().find(|(known, _)| *known == module)?;
    rows.iter().find(|row| row.name == function)
}

/// Whether a function is one of these.
pub fn known(name: &str) -> bool {
    row(name).is_some()
}

/// The names of all these functions.
pub fn names() -> impl Iterator<Item = String> {
    MODULES.iter().flat_map(|(module, rows)| rows.iter().map(move |row| format!("{module}.{}", row.name)))
}

/// Calls a function; none if it is not one of these, or if the arguments ask for what only a host has, as another
/// environment's pillar.
pub fn call(
    surroundings: &Surroundings,
    name: &str,
    positional: Vec<Value>,
    keyword: Vec<(Rc<str>, Value)>,
) -> Option<Answer> {
    run(row(name)?, surroundings, positional, keyword)
}

/// The keywords of a call that is left to a host. Templates see the pillar as it is, and a host masks it unless it is told.
pub fn told(
    surroundings: &Surroundings,
    name: &str,
    positional: &[Value],
    mut keyword: Vec<(Rc<str>, Value)>,
) -> Vec<(Rc<str>, Value)> {
    let asks_anew = name.starts_with("pillar.") && row(name).is_some_and(|row| !row.host_if.is_empty());
    let is_given = keyword.iter().any(|(name, _)| &**name == UNMASK) || positional.len() >= UNMASK_AT;
    if asks_anew && !surroundings.masked && !is_given {
        keyword.push((UNMASK.into(), true.into()));
    }
    keyword
}

fn run(
    row: &Row,
    surroundings: &Surroundings,
    positional: Vec<Value>,
    keyword: Vec<(Rc<str>, Value)>,
) -> Option<Answer> {
    let call = match Call::bind(row, surroundings, positional, keyword) {
        Ok(call) => call,
        Err(error) => return Some(Err(error)),
    };
    if row.host_if.iter().any(|name| call.given(name).is_some()) {
        return None;
    }
    Some((row.run)(&call))
}

/// The functions of one module, for a component that answers them alone: it holds no code of the others.
#[derive(Clone, Copy)]
pub struct Module(&'static [Row]);

impl Module {
    /// `config`.
    pub const CONFIG: Self = Self(config::ROWS);
    /// `defaults`, without `get`, which reads the master's files.
    pub const DEFAULTS: Self = Self(sls::DEFAULTS);
    /// `hashutil`.
    pub const HASHUTIL: Self = Self(hashes::ROWS);
    /// `match`.
    pub const MATCH: Self = Self(matching::ROWS);
    /// `salt_version`.
    pub const SALT_VERSION: Self = Self(release::ROWS);
    /// `slsutil`.
    pub const SLSUTIL: Self = Self(sls::SLSUTIL);

    /// Calls a function by its name in the module; none as in [`call`].
    pub fn call(
        self,
        surroundings: &Surroundings,
        name: &str,
        positional: Vec<Value>,
        keyword: Vec<(Rc<str>, Value)>,
    ) -> Option<Answer> {
        run(self.0.iter().find(|row| row.name == name)?, surroundings, positional, keyword)
    }
}
