//! The results of a chunk's requisites: whether it runs, and why not.

use std::collections::HashSet;

use brine_render::{Dict, Value};
use indexmap::IndexMap;

use super::core::Core;
use super::{given, result};
use crate::fault::Res;
use crate::keywords::Requisite;
use crate::python;

/// What the results of all requisites say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// One has no result yet.
    Unmet,
    /// A parallel one has not finished.
    Pending,
    /// One failed.
    Fail,
    /// A state asked that what reacts to it is not run.
    SkipReq,
    /// A state asked that `mod_watch` is not run.
    SkipWatch,
    /// No `prereq` is going to change anything.
    Pre,
    /// No `onfail` failed.
    OnFail,
    /// No `onchanges` changed anything.
    OnChanges,
    /// A watched one changed something.
    Change,
    /// It runs.
    Met,
}

/// What one result says.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Says {
    Unmet,
    SkipReq,
    OnFail,
    OnChanges,
    OnChangesMet,
    Fail,
    Change,
    PreMet,
    Pre,
    Met,
}

/// The requisites of a chunk by kind.
pub(super) type Requisites = IndexMap<Requisite, Vec<Dict>>;

/// As a dict, for the state functions that ask (`__reqs__`).
pub(super) fn to_dict(requisites: &Requisites) -> Dict {
    let kinds = requisites.iter();
    kinds.map(|(kind, chunks)| (kind.name().into(), Value::list(chunks.iter().cloned().map(Value::Dict)))).collect()
}

impl Core<'_> {
    /// Looks at the results of a chunk's requisites. Waits for parallel ones, unless the chunk is parallel itself.
    pub(super) async fn requisites(&self, low: &Dict, running: &Dict) -> Res<(Status, Requisites)> {
        let mut requisites = Requisites::new();
        for (kind, chunk) in self.graph.borrow().dependencies(low)? {
            requisites.entry(kind).or_default().push(chunk);
        }
        let mut all = HashSet::new();
        let mut is_pending = false;
        for (kind, chunks) in &requisites {
            let results = if kind.base() == Requisite::Prereq { &self.trials } else { running };
            let mut tags = Vec::with_capacity(chunks.len());
            for chunk in chunks {
                tags.push(python::tag(chunk)?);
            }
            let known: Vec<&String> = tags.iter().filter(|tag| given(results, tag).is_some()).collect();
            if given(low, "parallel").is_some() {
                is_pending = !self.reconcile(results, Some(&known)).await?;
            } else {
                while !self.reconcile(results, Some(&known)).await? {
                    self.wait().await?;
                }
            }
            let mut says = HashSet::new();
            for tag in &tags {
                match results.get(tag) {
                    Some(Value::Dict(result)) if !result.borrow().is_empty() => {
                        if !is_pending {
                            one(&mut says, kind.base(), &result);
                        }
                    }
                    _ => {
                        says.insert(Says::Unmet);
                    }
                }
            }
            any_or_all(&mut says, *kind);
            all.extend(says);
        }
        Ok((status(&all, is_pending), requisites))
    }
}

fn one(says: &mut HashSet<Says>, kind: Requisite, result: &Dict) {
    let failed = result::failed(result);
    let changed = result::changed(result);
    if given(result, "skip_req").is_some() {
        says.insert(Says::SkipReq);
    }
    if kind == Requisite::OnFail {
        if matches!(result.get("result"), Some(Value::Bool(true))) {
            says.insert(Says::OnFail);
            return;
        }
    } else if kind == Requisite::OnChanges {
        says.insert(if failed || !changed { Says::OnChanges } else { Says::OnChangesMet });
        return;
    } else if failed {
        says.insert(Says::Fail);
        return;
    }
    if kind == Requisite::Watch && changed {
        says.insert(Says::Change);
        return;
    }
    if kind == Requisite::Prereq {
        let is_none = matches!(result.get("result"), Some(Value::None));
        says.insert(if is_none { Says::PreMet } else { Says::Pre });
    } else if result.get("__state_ran__").is_none_or(|ran| ran.truthy()) {
        says.insert(Says::Met);
    }
}

/// One of several is enough for `_any` and `onfail`; `_all` needs each.
fn any_or_all(says: &mut HashSet<Says>, kind: Requisite) {
    if kind.is_any() || kind == Requisite::OnFail {
        if says.contains(&Says::Met) || says.contains(&Says::Change) {
            says.remove(&Says::Fail);
        }
        if says.contains(&Says::OnChangesMet) {
            says.remove(&Says::OnChanges);
            says.remove(&Says::Fail);
        }
        if says.contains(&Says::Met) {
            says.remove(&Says::OnFail);
        }
    }
    if kind == Requisite::OnFailAll && says.contains(&Says::OnFail) {
        says.remove(&Says::Met);
    }
}

fn status(says: &HashSet<Says>, is_pending: bool) -> Status {
    let has = |what: Says| says.contains(&what);
    if has(Says::Unmet) {
        Status::Unmet
    } else if is_pending {
        Status::Pending
    } else if has(Says::Fail) {
        Status::Fail
    } else if has(Says::SkipReq) && (has(Says::OnChangesMet) || has(Says::PreMet)) {
        Status::SkipReq
    } else if has(Says::SkipReq) && has(Says::Change) {
        Status::SkipWatch
    } else if has(Says::Pre) {
        if has(Says::PreMet) { Status::Met } else { Status::Pre }
    } else if has(Says::OnFail) && !has(Says::OnChangesMet) {
        Status::OnFail
    } else if has(Says::OnChanges) && !has(Says::OnChangesMet) {
        Status::OnChanges
    } else if has(Says::Change) {
        Status::Change
    } else if has(Says::OnFail) {
        Status::OnFail
    } else {
        Status::Met
    }
}
