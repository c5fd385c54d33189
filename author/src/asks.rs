//! A module's imports, described with the sandbox's table of capabilities.

use std::collections::{BTreeMap, BTreeSet};

use brine_sandbox::{Capability, ModuleName, Policy, Sha256Hex, Subject, always_granted};
use serde_json::{Value, json};

/// A module's imports, grouped by what they need.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Asks {
    /// The capabilities that an owner must grant, and their interfaces without versions.
    pub(crate) granted: BTreeMap<Capability, BTreeSet<String>>,
    /// Interfaces that every module may import.
    pub(crate) always: BTreeSet<String>,
    /// Interfaces that no host of Brine has: every minion refuses the module.
    pub(crate) unknown: BTreeSet<String>,
}

impl Asks {
    pub(crate) fn of(imports: &[String]) -> Self {
        let mut asks = Self::default();
        for import in imports {
            let interface = import.split('@').next().unwrap_or(import);
            match Capability::of(interface) {
                Some((capability, _)) => {
                    asks.granted.entry(capability).or_default().insert(interface.to_owned());
                }
                None if always_granted(interface) => {
                    asks.always.insert(interface.to_owned());
                }
                None => {
                    asks.unknown.insert(import.clone());
                }
            }
        }
        asks
    }

    /// Returns what is in `self` and not in `other`, without interfaces that every module may import.
    pub(crate) fn beyond(&self, other: &Self) -> Self {
        let mut more = Self::default();
        for (capability, interfaces) in &self.granted {
            let none = BTreeSet::new();
            let before = other.granted.get(capability).unwrap_or(&none);
            let new: BTreeSet<String> = interfaces.difference(before).cloned().collect();
            if !new.is_empty() {
                more.granted.insert(*capability, new);
            }
        }
        more.unknown = self.unknown.difference(&other.unknown).cloned().collect();
        more
    }

    /// Checks that there is nothing to grant and nothing unknown.
    pub(crate) fn is_nothing(&self) -> bool {
        self.granted.is_empty() && self.unknown.is_empty()
    }

    /// Returns one line for each capability: its key in the configuration, its description, its interfaces.
    pub(crate) fn lines(&self, mark: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for (capability, interfaces) in &self.granted {
            let granted = if capability.is_default() { "; granted unless the owner says otherwise" } else { "" };
            let interfaces: Vec<&str> = interfaces.iter().map(String::as_str).collect();
            lines.push(format!(
                "{mark}{:<11} {} ({}{granted})",
                capability.key(),
                capability.words(),
                interfaces.join(", ")
            ));
        }
        for import in &self.unknown {
            lines.push(format!("{mark}{import}: no host of Brine has this, so every minion refuses the module"));
        }
        lines
    }

    pub(crate) fn json(&self) -> Value {
        let granted: serde_json::Map<String, Value> = self
            .granted
            .iter()
            .map(|(capability, interfaces)| {
                let what = json!({
                    "words": capability.words(),
                    "interfaces": interfaces,
                    "default": capability.is_default(),
                });
                (capability.key().to_owned(), what)
            })
            .collect();
        json!({ "granted": granted, "unknown": self.unknown })
    }
}

/// Returns the lines of a minion's configuration that would admit this module. None if no lines are needed or none
/// suffice.
pub(crate) fn configuration(
    name: &ModuleName,
    sha256: Sha256Hex,
    imports: &[String],
    functions: &[&str],
) -> Option<String> {
    let subject = Subject { name, standard: false, sha256, signers: &[] };
    Policy::default().decide(&subject, imports, functions).err()?.lines()
}
