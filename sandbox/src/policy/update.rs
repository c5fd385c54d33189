//! Decides what an update asks for beyond the version before it, and whether an older version may be installed.

use std::collections::{BTreeMap, BTreeSet};

use super::{Capability, Grant, Line, Policy, Subject, always};

impl Policy {
    /// Returns the imports of an update that are new (whatever the interface's version) and that no entry of the owner
    /// grants. The defaults do not count as the owner's grant, so an update that begins to read grains is reported.
    pub(crate) fn newly_asked(
        &self,
        subject: &Subject<'_>,
        before: &[String],
        imports: &[String],
    ) -> BTreeMap<String, Capability> {
        let interface = |import: &str| import.split('@').next().unwrap_or_default().to_owned();
        let before: BTreeSet<String> = before.iter().map(|import| interface(import)).collect();
        let new = imports.iter().filter(|import| {
            let interface = interface(import);
            !always(&interface) && !before.contains(&interface)
        });
        new.filter_map(|import| Some((import.clone(), Capability::of(&interface(import))?.0)))
            .filter(|(_, capability)| !self.is_granted_by_owner(subject, *capability))
            .collect()
    }

    /// Checks whether any entry about this module, one of its functions or all modules grants the capability, in
    /// general or for a master.
    fn is_granted_by_owner(&self, subject: &Subject<'_>, capability: Capability) -> bool {
        std::iter::once(&self.general).chain(self.masters.values()).any(|rules| {
            let functions = rules.functions.iter().filter(|((module, _), _)| module == subject.name);
            let entries =
                functions.map(|(_, entry)| entry).chain(rules.modules.get(subject.name)).chain([&rules.every]);
            entries
                .filter_map(|entry| entry.answer(subject.sha256, subject.signers, capability))
                .any(|grant| *grant != Grant::No)
        })
    }

    /// Checks whether the owner allows an older version than the newest one seen.
    pub(crate) fn may_be_older(&self, subject: &Subject<'_>) -> bool {
        let entries = [self.general.modules.get(subject.name), Some(&self.general.every)];
        let bound = entries.into_iter().flatten().filter(|entry| entry.binds(subject.sha256, subject.signers));
        bound.filter_map(|entry| entry.downgrade).next().unwrap_or(false)
    }

    /// Returns the configuration lines that grant a module the least of each of these capabilities.
    pub(crate) fn granting(&self, subject: &Subject<'_>, capabilities: &BTreeSet<Capability>) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for capability in capabilities {
            let line = self.explain(subject, None, None).lifting(*capability, capability.least());
            match lines.iter_mut().find(|known| known.place() == line.place()) {
                Some(known) => known.and(*capability, capability.least()),
                None => lines.push(line),
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::Subject;
    use crate::testing::{name, policy, sha};

    fn new(config: &str, before: &[&str], imports: &[&str]) -> Vec<String> {
        let mine = name("mine");
        let subject = Subject { name: &mine, standard: false, sha256: sha(2), signers: &[] };
        let texts = |imports: &[&str]| imports.iter().map(|import| (*import).to_owned()).collect::<Vec<_>>();
        policy(config).newly_asked(&subject, &texts(before), &texts(imports)).into_keys().collect()
    }

    #[test]
    fn more_is_what_was_not_asked_and_is_not_granted_by_the_owner() {
        let (jobs, grains, old) = ("brine:host/jobs@1.0.0", "brine:host/grains@1.0.0", "brine:host/grains@0.9.0");
        assert_eq!(new("{}", &[], &[jobs, grains]), [grains, jobs]);
        // Another version of the same interface, and interfaces that every module has.
        assert_eq!(new("{}", &[old], &[grains, "brine:host/log@1.0.0", "wasi:io/streams@0.2.0"]), [""; 0]);
        // Fewer imports.
        assert_eq!(new("{}", &[jobs, grains], &[grains]), [""; 0]);
        for (config, held) in [
            ("modules: {mine: {jobs: true}}", false),
            ("modules: {mine.f: {jobs: true}}", false),
            ("modules: {\"*\": {jobs: true}}", false),
            (&format!("masters: {{\"{}\": {{modules: {{mine: {{jobs: true}}}}}}}}", ["aa"; 32].join(":")), false),
            ("modules: {mine: {jobs: false}}", true),
            ("modules: {other: {jobs: true}}", true),
            ("modules: {other.f: {jobs: true}}", true),
            // An entry bound to another content.
            (&format!("modules: {{mine: {{sha256: \"{}\", jobs: true}}}}", sha(1)), true),
            (&format!("modules: {{mine: {{sha256: \"{}\", jobs: true}}}}", sha(2)), false),
        ] {
            assert_eq!(!new(config, &[], &[jobs]).is_empty(), held, "{config}");
        }
        // A second interface of the same capability counts as new.
        let (types, metadata) = ("wasi:filesystem/types@0.2.0", "brine:host/metadata@1.0.0");
        assert_eq!(new("{}", &[types], &[types, metadata]), [metadata]);
    }

    #[test]
    fn older_versions_are_for_the_owner_to_allow() {
        let mine = name("mine");
        let subject = Subject { name: &mine, standard: false, sha256: sha(1), signers: &[] };
        for (config, may) in [
            ("{}", false),
            ("modules: {mine: {downgrade: true}}", true),
            ("modules: {\"*\": {downgrade: true}}", true),
            ("modules: {\"*\": {downgrade: true}, mine: {downgrade: false}}", false),
            ("modules: {other: {downgrade: true}}", false),
            (&format!("modules: {{mine: {{sha256: \"{}\", downgrade: true}}}}", sha(2)), false),
        ] {
            assert_eq!(policy(config).may_be_older(&subject), may, "{config}");
        }
    }
}
