//! What a module may import: a table of defaults, the owner's grants, and one pure decision over both (DESIGN.md §3.3).
//!
//! The most particular word counts: what the owner says of this module, then what the owner says of all (`"*"`), then what
//! standard modules come with, then the table. A grant bound to a `sha256` does not count for other content; a refusal does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use brine_sandbox_wire::Sha256Hex;

use crate::ModuleName;
use crate::grants::Grants;

/// A thing that the owner grants or refuses by its name in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// This host's grains.
    Grains,
    /// The minion's configuration without its secrets.
    Config,
    /// List, describe and refresh modules.
    Modules,
    /// See and end running jobs.
    Jobs,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Grains, Self::Config, Self::Modules, Self::Jobs];

    /// Its key in the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Grains => "grains",
            Self::Config => "config",
            Self::Modules => "modules",
            Self::Jobs => "jobs",
        }
    }

    /// The host interface it opens.
    pub fn interface(self) -> &'static str {
        match self {
            Self::Grains => "brine:host/grains",
            Self::Config => "brine:host/config",
            Self::Modules => "brine:host/modules",
            Self::Jobs => "brine:host/jobs",
        }
    }

    /// Granted unless the owner says otherwise.
    fn by_default(self) -> bool {
        match self {
            Self::Grains | Self::Config => true,
            Self::Modules | Self::Jobs => false,
        }
    }
}

/// What the standard modules come with; nothing for a module that took the place of one.
const STANDARD: [(&str, Capability); 3] =
    [("sys", Capability::Modules), ("saltutil", Capability::Modules), ("saltutil", Capability::Jobs)];

/// Interfaces that every module may import. `*` stands for the rest of a name.
const ALWAYS: [&str; 11] = [
    "brine:host/log",
    "brine:host/job",
    "wasi:clocks/*",
    "wasi:random/*",
    "wasi:io/*",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-*",
];

/// Grants that DESIGN.md names and this version does not have: the key and the interfaces that need it.
pub(crate) const NOT_YET: [(&str, &str); 9] = [
    ("filesystem", "wasi:filesystem/*"),
    ("network", "wasi:sockets/*"),
    ("network", "wasi:http/*"),
    ("pillar", "brine:host/pillar"),
    ("functions", "brine:host/functions"),
    ("files", "brine:host/files"),
    ("events", "brine:host/events"),
    ("mine", "brine:host/mine"),
    ("process", "brine:host/process"),
];

/// What the owner of the host says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Of one module.
    pub modules: BTreeMap<ModuleName, Entry>,
    /// Of every module: `"*"`.
    pub every: Entry,
    /// Standard modules that an installed one may take the place of.
    pub replace_standard: BTreeSet<ModuleName>,
}

/// What the owner says of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Grants count for this content only.
    pub sha256: Option<Sha256Hex>,
    /// Granted or refused.
    pub says: BTreeMap<Capability, bool>,
}

/// A module that imports what it was not granted. Displays as one line with the exact words that would grant it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The module.
    pub module: ModuleName,
    /// Its content.
    pub sha256: Sha256Hex,
    /// What the owner can grant.
    pub missing: BTreeMap<String, Capability>,
    /// What this version has no grant for.
    pub not_yet: Vec<String>,
    /// What is no interface of Brine.
    pub unknown: Vec<String>,
}

impl Policy {
    /// Decides on a module by what it imports (`brine:host/grains@1.0.0`).
    pub fn decide(
        &self,
        module: &ModuleName,
        standard: bool,
        sha256: Sha256Hex,
        imports: &[String],
    ) -> Result<Grants, Box<Refused>> {
        let mut grants = Grants::default();
        let mut refused = Refused {
            module: module.clone(),
            sha256,
            missing: BTreeMap::new(),
            not_yet: Vec::new(),
            unknown: Vec::new(),
        };
        for import in imports {
            let interface = import.split_once('@').map_or(import.as_str(), |(interface, _)| interface);
            if ALWAYS.iter().any(|pattern| matches(pattern, interface)) {
                continue;
            }
            if let Some(capability) = Capability::ALL.into_iter().find(|c| c.interface() == interface) {
                if self.grants(module, standard, sha256, capability) {
                    grants.interfaces.insert(capability.interface());
                } else {
                    refused.missing.insert(import.clone(), capability);
                }
            } else if NOT_YET.iter().any(|(_, pattern)| matches(pattern, interface)) {
                refused.not_yet.push(import.clone());
            } else {
                refused.unknown.push(import.clone());
            }
        }
        if refused.missing.is_empty() && refused.not_yet.is_empty() && refused.unknown.is_empty() {
            Ok(grants)
        } else {
            Err(Box::new(refused))
        }
    }

    fn grants(&self, module: &ModuleName, standard: bool, sha256: Sha256Hex, capability: Capability) -> bool {
        let own = self.modules.get(module).and_then(|entry| entry.answer(sha256, capability));
        let every = || self.every.answer(sha256, capability);
        let comes_with = || (standard && STANDARD.contains(&(module.as_str(), capability))).then_some(true);
        own.or_else(every).or_else(comes_with).unwrap_or_else(|| capability.by_default())
    }
}

impl Entry {
    fn answer(&self, sha256: Sha256Hex, capability: Capability) -> Option<bool> {
        let says = self.says.get(&capability).copied();
        let other_content = self.sha256.is_some_and(|bound| bound != sha256);
        says.filter(|granted| !(*granted && other_content))
    }
}

fn matches(pattern: &str, interface: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => interface.starts_with(start),
        None => interface == pattern,
    }
}

impl Refused {
    /// The lines of the minion's configuration that would grant what is missing; none where nothing can.
    pub fn lines(&self) -> Option<String> {
        self.entry().map(|entry| format!("sandbox:\n  modules:\n    {entry}\n"))
    }

    fn entry(&self) -> Option<String> {
        if !self.not_yet.is_empty() || !self.unknown.is_empty() {
            return None;
        }
        let keys: BTreeSet<&str> = self.missing.values().map(|capability| capability.key()).collect();
        let keys: Vec<String> = keys.into_iter().map(|key| format!("{key}: true")).collect();
        Some(format!("{}: {{sha256: {}, {}}}", self.module, self.sha256, keys.join(", ")))
    }
}

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "module {} imports ", self.module)?;
        let missing: Vec<&str> = self.missing.keys().map(String::as_str).collect();
        let mut parts = Vec::new();
        if !missing.is_empty() {
            let are = if missing.len() == 1 { "is" } else { "are" };
            parts.push(format!("{}, which {are} not granted to it", few(&missing)));
        }
        if !self.not_yet.is_empty() {
            parts.push(format!("{}, which this version of Brine cannot grant", few(&self.not_yet)));
        }
        if !self.unknown.is_empty() {
            let are = if self.unknown.len() == 1 { "is no interface" } else { "are no interfaces" };
            parts.push(format!("{}, which {are} of Brine", few(&self.unknown)));
        }
        f.write_str(&parts.join("; and "))?;
        match self.entry() {
            Some(entry) => write!(
                f,
                "; the owner of this host grants it by this line under sandbox: modules: in the minion's configuration: \
                 {entry}"
            ),
            None => Ok(()),
        }
    }
}

/// A list for a sentence: a module may import hundreds, and a line is to be read.
fn few<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 8;
    let mut text: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let more = format!("{} more", names.len().saturating_sub(SHOWN));
    if names.len() > SHOWN {
        text.push(&more);
    }
    match text.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> ModuleName {
        text.parse().unwrap()
    }

    fn sha(byte: u8) -> Sha256Hex {
        Sha256Hex::from([byte; 32])
    }

    fn entry(sha256: Option<Sha256Hex>, says: &[(Capability, bool)]) -> Entry {
        Entry { sha256, says: says.iter().copied().collect() }
    }

    /// `granted` or the refusal's words.
    fn check(policy: &Policy, module: &str, standard: bool, imports: &[&str], expect: &str) {
        let imports: Vec<String> = imports.iter().map(ToString::to_string).collect();
        let got = match policy.decide(&name(module), standard, sha(1), &imports) {
            Ok(grants) => format!("granted {}", grants.interfaces().collect::<Vec<_>>().join(" ")).trim().to_owned(),
            Err(refused) => refused.to_string(),
        };
        assert_eq!(got, expect);
    }

    #[test]
    fn defaults() {
        let policy = Policy::default();
        let always =
            ["brine:host/log@1.0.0", "brine:host/job@1.0.0", "wasi:clocks/wall-clock@0.2.12", "wasi:cli/stdout@0.2.0"];
        check(&policy, "foo", false, &always, "granted");
        check(
            &policy,
            "foo",
            false,
            &["brine:host/grains@1.0.0", "brine:host/config"],
            "granted brine:host/config brine:host/grains",
        );
        check(&policy, "sys", true, &["brine:host/modules@1.0.0"], "granted brine:host/modules");
        check(&policy, "saltutil", true, &["brine:host/jobs@1.0.0"], "granted brine:host/jobs");
        let line =
            "; the owner of this host grants it by this line under sandbox: modules: in the minion's configuration: ";
        let hash = "01".repeat(32);
        check(
            &policy,
            "sys",
            false,
            &["brine:host/modules@1.0.0"],
            &format!(
                "module sys imports brine:host/modules@1.0.0, which is not granted to it{line}sys: {{sha256: {hash}, modules: true}}"
            ),
        );
        check(
            &policy,
            "sys",
            true,
            &["brine:host/modules@1.0.0", "brine:host/jobs@1.0.0"],
            &format!(
                "module sys imports brine:host/jobs@1.0.0, which is not granted to it{line}sys: {{sha256: {hash}, jobs: true}}"
            ),
        );
        check(
            &policy,
            "foo",
            false,
            &["wasi:filesystem/types@0.2.12", "wasi:sockets/tcp@0.2.12"],
            "module foo imports wasi:filesystem/types@0.2.12 and wasi:sockets/tcp@0.2.12, which this version of Brine cannot grant",
        );
        check(
            &policy,
            "foo",
            false,
            &["acme:x/y@1.0.0"],
            "module foo imports acme:x/y@1.0.0, which is no interface of Brine",
        );
    }

    /// A name that only begins like a known one is another.
    #[test]
    fn names_are_compared_whole() {
        for import in [
            "brine:host/logs",
            "brine:host/grains-all",
            "brine:host/job/x",
            "wasi:cli/stdoutx",
            "wasi:clocksx/a",
            "grains",
        ] {
            let refused = Policy::default().decide(&name("foo"), true, sha(1), &[import.into()]).unwrap_err();
            assert_eq!(refused.unknown, [import]);
            assert_eq!(refused.lines(), None);
        }
    }

    #[test]
    fn the_owner_decides() {
        use Capability::*;
        let imports = ["brine:host/grains@1.0.0".to_owned(), "brine:host/jobs@1.0.0".into()];
        let decide = |policy: &Policy, hash| policy.decide(&name("deploy"), false, hash, &imports);
        let mut policy = Policy::default();
        policy.modules.insert(name("deploy"), entry(Some(sha(1)), &[(Jobs, true)]));
        assert!(decide(&policy, sha(1)).is_ok());
        // Bound to the content.
        assert_eq!(decide(&policy, sha(2)).unwrap_err().missing.len(), 1);
        // A refusal is not bound, and the module's own entry wins over "*".
        policy.modules.insert(name("deploy"), entry(Some(sha(1)), &[(Jobs, true), (Grains, false)]));
        policy.every = entry(None, &[(Grains, true), (Jobs, true)]);
        assert_eq!(decide(&policy, sha(2)).unwrap_err().missing.into_values().collect::<Vec<_>>(), [Grains]);
        // "*" takes from standard modules too.
        policy.every = entry(None, &[(Modules, false)]);
        assert!(policy.decide(&name("sys"), true, sha(1), &["brine:host/modules@1.0.0".into()]).is_err());
    }

    #[test]
    fn lines_that_grant() {
        let imports = ["brine:host/jobs@1.0.0".to_owned(), "brine:host/modules@1.0.0".into()];
        let refused = Policy::default().decide(&name("deploy"), false, sha(0xab), &imports).unwrap_err();
        let hash = "ab".repeat(32);
        let lines = refused.lines().unwrap();
        assert_eq!(lines, format!("sandbox:\n  modules:\n    deploy: {{sha256: {hash}, jobs: true, modules: true}}\n"));
    }

    fn imports() -> impl Strategy<Value = Vec<String>> {
        let one = prop_oneof![
            proptest::sample::select(Capability::ALL.map(|c| format!("{}@1.0.0", c.interface())).to_vec()),
            proptest::sample::select(ALWAYS.map(str::to_owned).to_vec()),
            "[a-z]{1,4}:[a-z]{1,4}/[a-z*@]{0,6}",
        ];
        proptest::collection::vec(one, 0..6)
    }

    fn entries() -> impl Strategy<Value = Entry> {
        let says =
            proptest::collection::btree_map(proptest::sample::select(Capability::ALL.to_vec()), any::<bool>(), 0..4);
        (proptest::option::of((0u8..3).prop_map(sha)), says).prop_map(|(sha256, says)| Entry { sha256, says })
    }

    proptest! {
        /// Nothing is granted that was not imported; a refusal's own lines, added, grant exactly what was missing; more
        /// imports never turn a refusal into a grant.
        #[test]
        fn decisions(own in entries(), every in entries(), imports in imports(), more in imports(), standard: bool, hash in 0u8..3) {
            let module = name("saltutil");
            let mut policy = Policy { every, ..Policy::default() };
            policy.modules.insert(module.clone(), own);
            let decision = policy.decide(&module, standard, sha(hash), &imports);
            let all: Vec<String> = imports.iter().chain(&more).cloned().collect();
            match decision {
                Ok(grants) => {
                    for interface in grants.interfaces() {
                        prop_assert!(imports.iter().any(|import| import.split('@').next() == Some(interface)));
                    }
                }
                Err(refused) => {
                    prop_assert!(policy.decide(&module, standard, sha(hash), &all).is_err());
                    prop_assert!(!refused.to_string().contains('\n'));
                    if refused.lines().is_some() {
                        let entry = policy.modules.get_mut(&module).unwrap();
                        entry.sha256 = Some(refused.sha256);
                        for capability in refused.missing.values() {
                            entry.says.insert(*capability, true);
                        }
                        prop_assert!(policy.decide(&module, standard, sha(hash), &imports).is_ok());
                    }
                }
            }
        }
    }
}
