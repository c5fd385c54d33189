//! What a module asks for, in the words of the one table that the sandbox has.

use std::collections::{BTreeMap, BTreeSet};

use brine_sandbox::{Capability, ModuleName, Policy, Sha256Hex, Subject, always_granted};
use serde_json::{Value, json};

/// The imports of a module by what they need.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Asks {
    /// What an owner grants, and the interfaces that it opens, without versions.
    pub(crate) granted: BTreeMap<Capability, BTreeSet<String>>,
    /// What every module may import.
    pub(crate) always: BTreeSet<String>,
    /// What no host of Brine has: the module is refused everywhere.
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

    /// What is here and not there, but for what every module may have.
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

    /// Nothing that anybody has to grant.
    pub(crate) fn is_nothing(&self) -> bool {
        self.granted.is_empty() && self.unknown.is_empty()
    }

    /// A line for each thing: its key in the configuration, what it lets a module do, its interfaces.
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

/// The lines of a minion's configuration with which this module would be loaded; none where none are needed, or help.
pub(crate) fn configuration(
    name: &ModuleName,
    sha256: Sha256Hex,
    imports: &[String],
    functions: &[&str],
) -> Option<String> {
    let subject = Subject { name, standard: false, sha256, signers: &[] };
    Policy::default().decide(&subject, imports, functions).err()?.lines()
}
