//! The configuration line that would grant what was refused: the owner's own entry with the missing grant added.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use brine_capabilities::{Capability, Grant, yaml_list, yaml_text};
use brine_component::group;
use brine_sandbox_wire::Sha256Hex;

use super::entry::{Entry, LimitChanges, Quorum, Signers};
use super::{FUNCTION, GROUP, MODULE, Policy, Subject, is_state};
use crate::ModuleName;
use crate::kernel::broker::Remedy;
use crate::signature::KeyId;

/// What is needed to explain how the owner would grant something: the recipient and the owner's existing entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explain {
    module: ModuleName,
    sha256: Sha256Hex,
    standard: bool,
    signers: Vec<KeyId>,
    function: Option<String>,
    master: Option<String>,
    /// The entries of the function, of its group and of the module, each for the master and in general.
    levels: [Option<Entry>; MODULE + 1],
    /// The profiles' part in it.
    profiles: Profiles,
}

/// What profiles say of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Profiles {
    /// Capabilities that one grants to it, each with the profile's name.
    grants: BTreeMap<Capability, String>,
    /// Capabilities that one grants to single functions or states of the module: a line for the whole module would take
    /// them away from these.
    singled_out: BTreeSet<Capability>,
    /// Whether it is a state of a standard module and the owner took over no profile.
    would_help: bool,
}

impl Explain {
    pub(super) fn new(policy: &Policy, subject: &Subject<'_>, function: Option<&str>, master: Option<&str>) -> Self {
        let [a, b, c, d, e, f, ..] = policy.entries(subject.name, function, master);
        Self {
            module: subject.name.clone(),
            sha256: subject.sha256,
            standard: subject.standard,
            signers: subject.signers.to_vec(),
            function: function.map(str::to_owned),
            master: master.filter(|master| policy.masters.contains_key(*master)).map(str::to_owned),
            levels: [a, b, c, d, e, f].map(Option::<&Entry>::cloned),
            profiles: Profiles::new(policy, subject, function, master),
        }
    }

    /// Returns the line that would grant this: the whole entry, to take the place of the one that is there.
    pub(crate) fn lifting(&self, capability: Capability, grant: Grant) -> Line {
        let level = self.level(capability);
        let mut entry = self.own(level);
        entry.says.insert(capability, grant);
        self.at(level, entry)
    }

    /// Returns the line that would grant this beside what the entry that is there says already.
    fn adding(&self, capability: Capability, grant: &Grant) -> Line {
        let level = self.level(capability);
        let own = self.own(level);
        let grant = match own.says.get(&capability) {
            Some(said) => grant.without(said),
            None => grant.clone(),
        };
        let mut entry = Entry { sha256: own.sha256, ..Entry::default() };
        entry.says.insert(capability, grant);
        self.at(level, entry)
    }

    /// Returns the level of the entry that is to grant this.
    fn level(&self, capability: Capability) -> usize {
        let speaks = |entry: &&Option<Entry>| {
            entry.as_ref().is_some_and(|entry| entry.answer(self.sha256, &self.signers, capability).is_some())
        };
        let group = self.function.as_deref().and_then(group);
        // A new grant goes to the module if nothing prevents it. What a state or a beacon lacks goes to the module's
        // states or its beacon, so that its functions do not get it.
        let broadest = if group.is_some() { GROUP } else { MODULE };
        // No entry above this level says anything about the capability.
        let counts = self.levels.iter().position(|entry| speaks(&entry)).unwrap_or(MODULE).min(broadest);
        let counts = if self.profiles.singled_out.contains(&capability) && self.function.is_some() && group.is_none() {
            counts.min(FUNCTION)
        } else {
            counts
        };
        // An entry that requires keys which did not sign this content cannot grant anything to it.
        let usable = |level: &usize| {
            let exists = match level {
                0 => self.function.is_some() && self.master.is_some(),
                1 => self.function.is_some(),
                2 => group.is_some() && self.master.is_some(),
                3 => group.is_some(),
                4 => self.master.is_some(),
                _ => true,
            };
            exists && self.levels[*level].as_ref().is_none_or(|entry| entry.signed(&self.signers))
        };
        (0..=counts).rev().find(usable).unwrap_or(counts)
    }

    /// Returns the entry that is there, for this content, or a new one. What the owner granted to another content is not in it: nobody
    /// has said that this one may have it.
    fn own(&self, level: usize) -> Entry {
        match &self.levels[level] {
            Some(entry) if entry.sha256.is_some_and(|bound| bound != self.sha256) => entry.for_content(self.sha256),
            Some(entry) => entry.clone(),
            None => Entry { sha256: (!self.standard).then_some(self.sha256), ..Entry::default() },
        }
    }

    fn at(&self, level: usize, entry: Entry) -> Line {
        let group = self.function.as_deref().and_then(group);
        let key = match &self.function {
            Some(function) if level < 2 => format!("{}.{function}", self.module),
            _ => match group.filter(|_| level <= GROUP) {
                Some(group) => format!("{}.{group}", self.module),
                None => self.module.to_string(),
            },
        };
        let master = if level.is_multiple_of(2) { self.master.clone() } else { None };
        Line { master, key, entry }
    }
}

impl Remedy for Explain {
    fn sentence(&self, capability: Capability, grant: Grant) -> String {
        let mut sentence = Line::sentence(&[self.lifting(capability, grant)]);
        if let Some(profile) = self.profiles.grants.get(&capability) {
            sentence.push_str(&format!("; it takes the place of what the profile {profile} grants"));
        } else if self.profiles.would_help {
            sentence
                .push_str("; what all states of Brine's own modules need is granted by sandbox: profiles: [states]");
        }
        sentence
    }

    fn line(&self, capability: Capability, grant: Grant) -> Option<String> {
        Some(self.adding(capability, &grant).text())
    }
}

impl Profiles {
    fn new(policy: &Policy, subject: &Subject<'_>, function: Option<&str>, master: Option<&str>) -> Self {
        if !subject.standard {
            return Self::default();
        }
        let all = || Capability::ALL.into_iter();
        let granted = |capability| Some((capability, policy.profile_of(subject, function, master, capability)?));
        Self {
            grants: all().filter_map(granted).collect(),
            singled_out: all().filter(|capability| policy.profile_singles_out(subject.name, *capability)).collect(),
            would_help: policy.profiles.is_empty() && function.is_some_and(is_state),
        }
    }
}

/// One entry of the configuration in the owner's syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    master: Option<String>,
    key: String,
    entry: Entry,
}

impl Line {
    /// Returns the master and the key under which the line is written.
    pub(super) fn place(&self) -> (Option<&str>, &str) {
        (self.master.as_deref(), &self.key)
    }

    /// Adds a grant to the line.
    pub(super) fn and(&mut self, capability: Capability, grant: Grant) {
        self.entry.says.insert(capability, grant);
    }

    /// Returns the lines in the form of a configuration file.
    pub(crate) fn file(lines: &[Self]) -> String {
        let mut general = String::new();
        let mut masters: BTreeMap<&str, String> = BTreeMap::new();
        for line in lines {
            match &line.master {
                None => general.push_str(&format!("    {line}\n")),
                Some(master) => masters.entry(master).or_default().push_str(&format!("        {line}\n")),
            }
        }
        let mut file = "sandbox:\n".to_owned();
        if !general.is_empty() {
            file.push_str(&format!("  modules:\n{general}"));
        }
        if !masters.is_empty() {
            file.push_str("  masters:\n");
        }
        for (master, lines) in masters {
            file.push_str(&format!("    {}:\n      modules:\n{lines}", yaml_text(master)));
        }
        file
    }

    /// Returns the line alone: `cmd: {process: [/usr/bin/uptime]}`, for one master `masters: {"aa:bb": {modules: {…}}}`.
    pub(crate) fn text(&self) -> String {
        match &self.master {
            None => self.to_string(),
            Some(master) => format!("masters: {{{}: {{modules: {{{self}}}}}}}", yaml_text(master)),
        }
    }

    /// Returns the end of a refusal's message.
    pub(crate) fn sentence(lines: &[Self]) -> String {
        let by = if lines.len() == 1 { "this line" } else { "these lines" };
        let mut sentence = format!("; the owner of this host grants it by {by}");
        let mut before: Option<&Self> = None;
        for line in lines {
            if before.is_none_or(|before| before.master != line.master) {
                let master =
                    line.master.as_ref().map(|master| format!("masters: {}: ", yaml_text(master))).unwrap_or_default();
                let and = if before.is_some() { " and" } else { "" };
                sentence
                    .push_str(&format!("{and} under sandbox: {master}modules: in the minion's configuration: {line}"));
            } else {
                sentence.push_str(&format!(" and {line}"));
            }
            before = Some(line);
        }
        sentence
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", yaml_text(&self.key), self.entry)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(sha256) = self.sha256 {
            parts.push(format!("sha256: {}", hash_text(&sha256.to_string())));
        }
        match &self.signed_by {
            None => {}
            Some(Signers::NotNeeded) => parts.push("signed_by: false".to_owned()),
            Some(Signers::Needed(quorum)) => parts.push(format!("signed_by: {quorum}")),
        }
        parts.extend(self.downgrade.map(|may| format!("downgrade: {may}")));
        parts.extend(self.says.iter().map(|(capability, grant)| format!("{}: {grant}", capability.key())));
        if let Some(user) = &self.user {
            parts.push(format!("user: {}", yaml_text(user)));
        }
        if self.limits != LimitChanges::default() {
            parts.push(format!("limits: {}", self.limits));
        }
        let counts = [("max_running", self.max_running), ("max_queued", self.max_queued)];
        parts.extend(counts.iter().filter_map(|(key, count)| Some(format!("{key}: {}", (*count)?))));
        parts.extend(self.record.map(|when| format!("record: {}", when.word())));
        write!(f, "{{{}}}", parts.join(", "))
    }
}

impl fmt::Display for Quorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match self.any {
            true => "any".to_owned(),
            false => yaml_list(self.of.iter().map(|signer| signer.written.as_str())),
        };
        if self.at_least > 1 { write!(f, "{{at_least: {}, of: {of}}}", self.at_least) } else { f.write_str(&of) }
    }
}

impl fmt::Display for LimitChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |key: &str, value: Option<u64>| Some(format!("{key}: {}", value?));
        let time = |key: &str, ms: Option<u64>| Some(format!("{key}: {}ms", ms?));
        let parts: Vec<String> = [
            number("memory", self.memory),
            time("wall", self.wall_ms),
            time("cpu", self.cpu_ms),
            time("calls_cpu", self.calls_cpu_ms),
            number("output", self.output),
            number("log", self.log),
            number("log_lines", self.log_lines.map(u64::from)),
            number("host_bytes", self.host_bytes),
            number("host_calls", self.host_calls.map(u64::from)),
            number("written", self.written),
            number("new_files", self.new_files),
        ]
        .into_iter()
        .flatten()
        .collect();
        write!(f, "{{{}}}", parts.join(", "))
    }
}

/// Quotes a hash that a YAML reader could parse as a number.
fn hash_text(hex: &str) -> String {
    let number = hex.bytes().all(|c| c.is_ascii_digit() || c == b'e')
        || hex.strip_prefix("0b").is_some_and(|rest| rest.bytes().all(|c| matches!(c, b'0' | b'1')));
    if number { yaml_text(hex) } else { hex.to_owned() }
}
