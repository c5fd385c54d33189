//! What of an answer is the module's to see: lists that have more in them than was granted.

use brine_sandbox_wire::{FilesOp, HostOp, ListKind, PillarOp};
use rmpv::Value;

use crate::grants::{Grants, Names};

/// What an answer is cut down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// All of it.
    All,
    /// Of a dict, the granted keys of the pillar and what is below them.
    Pillar,
    /// Of a list, the granted paths.
    Files,
    /// Of a list of folders, those that may have granted paths in them.
    Folders,
}

impl Shown {
    /// By what was asked.
    pub(crate) fn of(op: &HostOp) -> Self {
        match op {
            HostOp::Pillar(PillarOp::Items | PillarOp::Fetch) => Self::Pillar,
            HostOp::Files(FilesOp::List { kind: ListKind::Files | ListKind::Symlinks, .. }) => Self::Files,
            HostOp::Files(FilesOp::List { kind: ListKind::Dirs | ListKind::EmptyDirs, .. }) => Self::Folders,
            _ => Self::All,
        }
    }

    /// Takes away what was not granted.
    pub(crate) fn of_answer(self, grants: &Grants, answer: Value) -> Value {
        match (self, answer) {
            (Self::Pillar, answer) => match &grants.pillar {
                Names::Any => answer,
                Names::Only(keys) => {
                    let keys: Vec<Vec<&str>> = keys.iter().map(|key| key.split(':').collect()).collect();
                    granted(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>(), answer)
                }
            },
            (Self::Files, Value::Array(items)) => keep(items, |path| grants.files.matches(path)),
            (Self::Folders, Value::Array(items)) => keep(items, |path| grants.files.matches_below(path)),
            (_, answer) => answer,
        }
    }
}

/// What of a dict is at or below one of the keys.
fn granted(keys: &[&[&str]], value: Value) -> Value {
    let Value::Map(entries) = value else { return Value::Map(Vec::new()) };
    let kept = entries.into_iter().filter_map(|(name, value)| {
        let below: Vec<&[&str]> = keys
            .iter()
            .filter_map(|key| key.split_first())
            .filter_map(|(first, rest)| (name.as_str() == Some(*first)).then_some(rest))
            .collect();
        if below.is_empty() {
            return None;
        }
        if below.iter().any(|rest| rest.is_empty()) {
            return Some((name, value));
        }
        // Only something below it: what has nothing below is not shown.
        match granted(&below, value) {
            Value::Map(entries) if entries.is_empty() => None,
            value => Some((name, value)),
        }
    });
    Value::Map(kept.collect())
}

fn keep(items: Vec<Value>, may: impl Fn(&str) -> bool) -> Value {
    Value::Array(items.into_iter().filter(|item| item.as_str().is_some_and(&may)).collect())
}
