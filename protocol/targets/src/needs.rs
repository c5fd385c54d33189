//! The data of a minion that a target needs.

use std::collections::BTreeSet;

/// The data of a minion that a target needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Keys of its grains.
    pub grains: Keys,
    /// Keys of its pillar.
    pub pillar: Keys,
}

/// Top-level keys of a minion's grains or pillar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// These keys.
    These(BTreeSet<String>),
    /// All keys.
    All,
}

impl Default for Keys {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl Keys {
    /// Whether no key is needed.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::These(keys) if keys.is_empty())
    }

    /// Whether this key is among them.
    pub fn has(&self, key: &str) -> bool {
        match self {
            Self::These(keys) => keys.contains(key),
            Self::All => true,
        }
    }

    /// Adds a key; none stands for all.
    pub fn add(&mut self, key: Option<&str>) {
        match (&mut *self, key) {
            (Self::These(keys), Some(key)) => drop(keys.insert(key.to_owned())),
            _ => *self = Self::All,
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::These(keys), Self::These(others)) => keys.extend(others),
            _ => *self = Self::All,
        }
    }
}
