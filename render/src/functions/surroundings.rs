//! What functions see of a minion.

use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

use super::matching::Known;
use crate::data::Budget;
use crate::value::{Dict, Value};

/// The level of a line in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Python's")]
pub enum Level {
    Debug,
    Info,
    Warning,
    Error,
    Critical,
}

/// Takes a line for the log.
pub type Log = Rc<dyn Fn(Level, &str)>;

/// What a template knows of the minion that it is rendered for, as values that it shares with the functions: what
/// the template changes in `grains`, `grains.get` sees changed.
pub struct Surroundings {
    /// The minion's id.
    pub id: Rc<str>,
    /// Its grains.
    pub grains: Dict,
    /// Its pillar.
    pub pillar: Dict,
    /// The configuration as templates see it; `saltenv`, `nodegroups`, `pillar_merge_lists`, `pillar_raise_on_missing`
    /// and all that `config.get` may find.
    pub opts: Dict,
    /// Values of the pillar are masked, unless a caller asks for them. False in templates.
    pub masked: bool,
    /// The pillar is of a master: what `pillar.get` gives is a copy. Of a pillar that was made here (`file_client: local`),
    /// Salt gives the values themselves, and a template that changes them changes the pillar.
    pub is_remote: bool,
    /// How much the functions may still make.
    pub budget: Budget,
    /// Takes what templates write to the log.
    pub log: Option<Log>,
    /// The same for the matcher, made when it is needed.
    pub(super) known: OnceCell<Rc<Known>>,
}

impl Surroundings {
    /// With the default budget, without a log.
    pub fn new(id: impl Into<Rc<str>>, grains: Dict, pillar: Dict, opts: Dict) -> Self {
        Self {
            id: id.into(),
            grains,
            pillar,
            opts,
            masked: false,
            is_remote: true,
            budget: Budget::default(),
            log: None,
            known: OnceCell::new(),
        }
    }

    /// Whether a setting is true.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.opts.get(name).is_some_and(|value| value.truthy())
    }

    /// The master's part of the pillar (`pillar_opts`).
    pub(super) fn master(&self) -> Value {
        self.pillar.get("master").unwrap_or_else(|| Value::dict([]))
    }

    pub(super) fn say(&self, level: Level, text: &str) {
        if let Some(log) = &self.log {
            log(level, text);
        }
    }
}

/// Only the id: the rest may be secret.
impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("id", &self.id).finish_non_exhaustive()
    }
}
