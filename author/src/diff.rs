//! `salt-module diff`

use std::collections::BTreeMap;
use std::process::ExitCode;

use brine_component::{Function, signature};
use serde_json::{Value, json};

use crate::asks::Asks;
use crate::cage::Module;
use crate::cli::Diff;
use crate::failure::{self, Failure};

/// The differences between two versions of a module.
struct Difference<'a> {
    added: Vec<&'a Function>,
    removed: Vec<&'a Function>,
    /// Functions with another signature: before, after.
    changed: Vec<(&'a Function, &'a Function)>,
    more: Asks,
    less: Asks,
}

pub(crate) fn run(options: &Diff) -> Result<ExitCode, Failure> {
    let old = Module::read(&options.old, false)?;
    let mut new = Module::read(&options.new, false)?;
    // The files have two names, but the module is the same.
    new.name.clone_from(&old.name);
    let difference = compare(&old, &new);
    if options.json {
        say!("{}", brine_protocol::text::json(&format!("{:#}", difference.json(&old, &new))));
    } else {
        difference.print(&old, &new);
    }
    Ok(if difference.more.is_nothing() { ExitCode::SUCCESS } else { ExitCode::from(failure::FAILED) })
}

fn compare<'a>(old: &'a Module, new: &'a Module) -> Difference<'a> {
    let by_name = |module: &'a Module| -> BTreeMap<&'a str, &'a Function> {
        module.info.all().map(|function| (function.name.as_str(), function)).collect()
    };
    let (before, after) = (by_name(old), by_name(new));
    let only = |these: &BTreeMap<&'a str, &'a Function>, those: &BTreeMap<&'a str, &'a Function>| {
        these.iter().filter(|(name, _)| !those.contains_key(*name)).map(|(_, function)| *function).collect()
    };
    let changed = after.iter().filter_map(|(name, now)| Some((*before.get(name)?, *now)));
    let changed = changed.filter(|(was, now)| signature("", was) != signature("", now));
    Difference {
        added: only(&after, &before),
        removed: only(&before, &after),
        changed: changed.collect(),
        more: new.asks.beyond(&old.asks),
        less: old.asks.beyond(&new.asks),
    }
}

impl Difference<'_> {
    fn print(&self, old: &Module, new: &Module) {
        let (was, is) = (old.wasm.len(), new.wasm.len());
        say!("{} {} -> {}", old.name, old.version(), new.version());
        say!("  {:<7} {was} -> {is} bytes", "size");
        say!("  {:<7} {} -> {}", "sha256", old.sha256, new.sha256);
        if old.sha256 == new.sha256 {
            say!("\nthey are the same, byte for byte");
            return;
        }
        say!("\nfunctions");
        let shown = |function| signature(&old.name, function);
        for function in &self.removed {
            say!("  - {}", shown(function));
        }
        for (was, now) in &self.changed {
            say!("  - {}\n  + {}", shown(was), shown(now));
        }
        for function in &self.added {
            say!("  + {}", shown(function));
        }
        if self.removed.is_empty() && self.changed.is_empty() && self.added.is_empty() {
            say!("  the same");
        }
        say!("\nasks for");
        for line in self.less.lines("  - ").into_iter().chain(self.more.lines("  + ")) {
            say!("{line}");
        }
        match (self.more.is_nothing(), self.less.is_nothing()) {
            (true, true) => say!("  the same: minions take it by themselves"),
            (true, false) => say!("  less: minions take it by themselves"),
            (false, _) => say!("  more: a minion keeps the old one until its owner grants that"),
        }
    }

    fn json(&self, old: &Module, new: &Module) -> Value {
        let one = |module: &Module| {
            json!({
                "file": module.path,
                "version": module.info.version,
                "size": module.wasm.len(),
                "sha256": module.sha256.to_string(),
            })
        };
        let signatures = |functions: &[&Function]| -> Vec<String> {
            functions.iter().map(|function| signature(&old.name, function)).collect()
        };
        let changed: Vec<Value> = self
            .changed
            .iter()
            .map(|(was, now)| json!({ "old": signature(&old.name, was), "new": signature(&old.name, now) }))
            .collect();
        json!({
            "name": old.name,
            "old": one(old),
            "new": one(new),
            "functions": {
                "added": signatures(&self.added), "removed": signatures(&self.removed), "changed": changed,
            },
            "asks": { "more": self.more.json(), "less": self.less.json() },
        })
    }
}
