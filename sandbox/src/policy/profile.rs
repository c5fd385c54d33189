//! Profiles: blocks of grants for standard modules that Brine ships or the owner wrote, and the owner takes over by name.
//!
//! They come after all entries of the owner, and before what standard modules come with. A module of the same name that
//! is not Brine's gets nothing of them. Several profiles add up: a function has what any of them grants to it.

use brine_capabilities::{Access, Names, ProcessGrant};
use brine_component::group;

use super::{Capability, Entry, Grant, Policy, Rules};
use crate::ModuleName;

/// A block of grants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// Its name in the configuration.
    pub name: String,
    /// What is said of it.
    pub words: ProfileWords,
    /// Its entries: of modules, of their states, and of single functions.
    pub rules: Rules,
}

/// What a profile says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileWords {
    /// What it opens: a sentence.
    pub opens: String,
    /// What it cannot be used for: a sentence.
    pub cannot: String,
    /// What of it was checked against its grants.
    pub never: Vec<Never>,
    /// The line of the configuration that takes it over.
    pub line: String,
    /// Where it comes from: Brine's package, or a file of the owner.
    pub from: String,
}

/// What a profile's grants cannot be used for. A profile that says so of itself and grants more is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Never {
    /// Changing a file, a static grain, the schedule, or anything else of the minion.
    Change,
    /// Running a program that does more than look.
    Run,
    /// Running a program with arguments that are not listed.
    RunAny,
    /// Reaching a host of the network.
    Reach,
    /// Acting as another user, or making a file that runs as its owner.
    Become,
    /// Reading the pillar, settings that are not public, or files with passwords.
    Secrets,
    /// Sending events to the master, or values to its mine.
    Send,
    /// Calling functions or states of other modules.
    Call,
}

/// Files with passwords and keys of the host, for [`Never::Secrets`].
const SECRET: [&str; 6] = ["/etc/gshadow", "/etc/shadow", "/etc/ssh", "/etc/ssl/private", "/home", "/root"];

impl Never {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Change, Self::Run, Self::RunAny, Self::Reach, Self::Become, Self::Secrets, Self::Send, Self::Call];

    /// The word for it in a profile's file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Run => "run",
            Self::RunAny => "run-any",
            Self::Reach => "reach",
            Self::Become => "become",
            Self::Secrets => "secrets",
            Self::Send => "send",
            Self::Call => "call",
        }
    }

    /// The words for it in a sentence.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Change => "change a file",
            Self::Run => "run a program that does more than look",
            Self::RunAny => "run a program in another way",
            Self::Reach => "reach another host",
            Self::Become => "act as another user",
            Self::Secrets => "read passwords or the pillar",
            Self::Send => "send an event",
            Self::Call => "call another module",
        }
    }

    /// Checks whether a grant can be used for it all the same. Whatever is not known to be harmless can.
    #[must_use]
    pub fn is_broken_by(self, capability: Capability, grant: &Grant) -> bool {
        let reads = |path: &str| {
            let within = |inner: &str, outer: &str| {
                inner
                    .strip_prefix(outer.trim_end_matches('/'))
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            SECRET.iter().any(|secret| within(secret, path) || within(path, secret))
        };
        match (self, grant) {
            (_, Grant::No) => false,
            (Self::Change, Grant::Changes(trees)) => trees.iter().any(|tree| tree.access != Access::Look),
            (Self::Change, Grant::Directories(directories)) => directories.iter().any(|dir| dir.writable),
            (Self::Change | Self::Run, Grant::Process(process)) => {
                !process.programs.is_none()
                    || !process.looks.is_empty()
                    || process.lines.as_ref().is_some_and(|lines| !lines.is_empty())
            }
            // Reading alone: of the kernel's counters, of the master's files, of settings and of the pillar.
            (Self::Change, _) => !matches!(
                capability,
                Capability::Kernel
                    | Capability::Disks
                    | Capability::Grains
                    | Capability::Config
                    | Capability::Pillar
                    | Capability::Files
                    | Capability::Network
                    | Capability::Progress
            ),
            (Self::Run, _) => matches!(capability, Capability::Functions | Capability::States),
            (Self::RunAny, Grant::Process(process)) => !process.programs.is_none(),
            (Self::RunAny, _) => matches!(capability, Capability::Functions | Capability::States),
            (Self::Reach, Grant::Network(rules)) => !rules.is_empty(),
            (Self::Reach, _) => false,
            (Self::Become, Grant::Process(process)) => !only_own_user(process),
            (Self::Become, Grant::Changes(trees)) => trees.iter().any(|tree| tree.access == Access::ChangeSetId),
            (Self::Become, _) => matches!(capability, Capability::Functions | Capability::States),
            (Self::Secrets, Grant::Changes(trees)) => trees.iter().any(|tree| reads(&tree.path)),
            (Self::Secrets, Grant::Directories(directories)) => directories.iter().any(|dir| reads(&dir.path)),
            // A program reads what its user may read.
            (Self::Secrets, Grant::Process(process)) => !process.programs.is_none(),
            (Self::Secrets, Grant::Names(names)) if capability == Capability::Config => !names.is_none(),
            (Self::Secrets, _) => matches!(capability, Capability::Pillar | Capability::Functions | Capability::States),
            (Self::Send, _) => matches!(capability, Capability::Events | Capability::Mine),
            (Self::Call, _) => matches!(capability, Capability::Functions | Capability::States),
        }
    }
}

fn only_own_user(process: &ProcessGrant) -> bool {
    [&process.users, &process.groups].into_iter().all(Names::is_none)
}

impl Profile {
    /// Its entries that apply to a function, the most specific first: of the function, of its group (the module's states,
    /// its beacon), of the module.
    fn entries(&self, module: &ModuleName, function: Option<&str>) -> [Option<&Entry>; 3] {
        let of = |function: &str| self.rules.functions.get(&(module.clone(), function.to_owned()));
        [function.and_then(of), function.and_then(group).and_then(of), self.rules.modules.get(module)]
    }

    /// Returns what it grants of a capability to a function: what its most specific entry says.
    pub(super) fn grants(&self, module: &ModuleName, function: Option<&str>, capability: Capability) -> Option<&Grant> {
        self.entries(module, function).into_iter().flatten().find_map(|entry| entry.says.get(&capability))
    }

    /// Returns all that it grants, each with its place in the file.
    pub fn all_grants(&self) -> impl Iterator<Item = (String, Capability, &Grant)> {
        let modules = self.rules.modules.iter().map(|(module, entry)| (module.to_string(), entry));
        let functions = self.rules.functions.iter().map(|((module, of), entry)| (format!("{module}.{of}"), entry));
        modules.chain(functions).flat_map(|(place, entry)| {
            entry.says.iter().map(move |(capability, grant)| (place.clone(), *capability, grant))
        })
    }

    /// Returns its lines about a module, each as in the configuration: key and entry.
    pub fn lines(&self, module: &ModuleName) -> Vec<String> {
        let of_module = self.rules.modules.get(module).map(|entry| format!("{module}: {entry}"));
        let functions = self.rules.functions.iter().filter(|((name, _), _)| name == module);
        of_module.into_iter().chain(functions.map(|((_, f), entry)| format!("{module}.{f}: {entry}"))).collect()
    }
}

impl Policy {
    /// Returns the profiles' entries that apply to a function of a standard module, the most specific first.
    pub(super) fn profiled(
        &self,
        module: &ModuleName,
        function: Option<&str>,
    ) -> impl DoubleEndedIterator<Item = &Entry> {
        let entries: Vec<_> = self.profiles.iter().map(|profile| profile.entries(module, function)).collect();
        // A more specific entry of any profile comes before a more general one of another.
        (0..3).flat_map(move |level| entries.clone().into_iter().filter_map(move |of| of[level]))
    }

    /// Returns what the profiles together grant of a capability to a function of a standard module, and their names.
    pub(crate) fn granted_by_profiles(
        &self,
        module: &ModuleName,
        function: Option<&str>,
        capability: Capability,
    ) -> Option<(Grant, String)> {
        let mut sum: Option<(Grant, Vec<&str>)> = None;
        for profile in &self.profiles {
            let Some(grant) = profile.grants(module, function, capability) else { continue };
            match &mut sum {
                None => sum = Some((grant.clone(), vec![&profile.name])),
                Some((all, names)) => {
                    all.add(grant);
                    if !names.contains(&profile.name.as_str()) {
                        names.push(&profile.name);
                    }
                }
            }
        }
        sum.map(|(grant, names)| (grant, names.join(" and ")))
    }

    /// Checks whether a profile has an entry of its own for a function, or for its group.
    pub(super) fn profile_names(&self, module: &ModuleName, function: &str) -> bool {
        let key = |function: &str| (module.clone(), function.to_owned());
        let keys = [Some(key(function)), group(function).map(key)];
        let named = |profile: &Profile| keys.iter().flatten().any(|key| profile.rules.functions.contains_key(key));
        self.profiles.iter().any(named)
    }

    /// Checks whether a profile grants this to single functions or states of the module.
    pub(super) fn profile_singles_out(&self, module: &ModuleName, capability: Capability) -> bool {
        let functions = self.profiles.iter().flat_map(|profile| &profile.rules.functions);
        functions.into_iter().any(|((name, _), entry)| name == module && entry.says.contains_key(&capability))
    }
}

#[cfg(test)]
mod tests {
    use brine_sandbox_wire::Limits;

    use super::*;
    use crate::kernel::broker::Remedy;
    use crate::policy::Subject;
    use crate::testing::{name, policy, sha};

    const PROFILE: &str = "modules: {app: {process: [/bin/dpkg]}, app.states: {process: [/bin/apt], changes: {/etc: rw}, limits: {wall: 5m}}, \
                           app.states.held: {process: [/bin/held]}, app.list: {process: [/bin/list]}}";

    fn with_profile(config: &str) -> Policy {
        let profiles = vec![Profile { name: "p".to_owned(), rules: policy(PROFILE).general, ..Profile::default() }];
        Policy { profiles, ..policy(config) }
    }

    /// What a function may run and change, or the refusal.
    fn may(policy: &Policy, standard: bool, function: &str) -> String {
        let module = name("app");
        let subject = Subject { name: &module, standard, sha256: sha(1), signers: &[] };
        let imports = ["brine:host/process@1.0.0".to_owned(), "brine:host/changes@1.0.0".to_owned()];
        let functions = ["states.installed", "states.held", "list", "other"];
        // Each alone: what is refused is not linked, which would refuse the other one too.
        let of = |import: &String| {
            let decided = policy.decide(&subject, std::slice::from_ref(import), &functions).ok()?;
            let grants = decided.of(function, None).ok()?.grants;
            let interface = import.split('@').next().unwrap_or_default();
            grants.allows(interface).then_some(grants)
        };
        let programs = of(&imports[0]).map_or("-".to_owned(), |grants| match &grants.process.programs {
            brine_capabilities::Names::Only(names) => names.join(" "),
            brine_capabilities::Names::Any => "any".to_owned(),
        });
        let trees = of(&imports[1])
            .map_or("-".to_owned(), |g| g.changes.iter().map(|t| t.path.clone()).collect::<Vec<_>>().join(" "));
        format!("{programs}; {trees}")
    }

    #[test]
    fn a_profile_is_below_the_owners_entries_and_above_the_standard_ones() {
        for (config, function, expect) in [
            ("{}", "states.installed", "/bin/apt; /etc"),
            ("{}", "states.held", "/bin/held; /etc"),
            ("{}", "list", "/bin/list; -"),
            ("{}", "other", "/bin/dpkg; -"),
            // The owner's entry counts at each level, also where the profile's is about less.
            ("modules: {\"*\": {process: [/bin/mine]}}", "states.installed", "/bin/mine; /etc"),
            ("modules: {app: {process: [/bin/mine]}}", "states.held", "/bin/mine; /etc"),
            ("modules: {app.states.held: {process: [/bin/mine]}}", "states.held", "/bin/mine; /etc"),
            ("modules: {app.states.held: {process: [/bin/mine]}}", "states.installed", "/bin/apt; /etc"),
            // A refusal takes away.
            ("modules: {app.states: {changes: false}}", "states.installed", "/bin/apt; -"),
            ("modules: {\"*\": {process: false, changes: false}}", "states.installed", "-; -"),
        ] {
            assert_eq!(may(&with_profile(config), true, function), expect, "{config} {function}");
        }
        assert_eq!(may(&policy("{}"), true, "states.installed"), "-; -");
    }

    /// Without this, a master could serve a module of a standard one's name and have what the owner granted to Brine's.
    #[test]
    fn a_module_that_is_not_brines_gets_nothing_of_a_profile() {
        for function in ["states.installed", "states.held", "list", "other"] {
            assert_eq!(may(&with_profile("{}"), false, function), "-; -");
        }
        let limits = |standard| {
            with_profile("{}").limits(&Limits::default(), &name("app"), standard, "states.held", None).wall_ms
        };
        assert_eq!((limits(true), limits(false)), (300_000, 3_600_000));
    }

    #[test]
    fn refusals_say_what_a_profile_grants() {
        let line = |policy: &Policy, function: &str| {
            let module = name("app");
            let subject = Subject { name: &module, standard: true, sha256: sha(1), signers: &[] };
            let grant = brine_capabilities::Grant::Changes(Vec::new());
            let said = policy.explain(&subject, Some(function), None).sentence(Capability::Changes, grant);
            said.rsplit_once("configuration: ").unwrap().1.to_owned()
        };
        let p = with_profile("{}");
        let instead = "; it takes the place of what the profile p grants";
        assert_eq!(line(&p, "states.installed"), format!("app.states: {{changes: {{}}}}{instead}"));
        // A line for the whole module would take away what the profile grants to its states.
        assert_eq!(line(&p, "other"), "app.other: {changes: {}}");
        let help = "; what all states of Brine's own modules need is granted by sandbox: profiles: [states]";
        assert_eq!(line(&policy("{}"), "states.installed"), format!("app.states: {{changes: {{}}}}{help}"));
        assert_eq!(line(&policy("{}"), "other"), "app: {changes: {}}");
    }

    #[test]
    fn a_profile_tells_its_lines() {
        let lines = with_profile("{}").profiles[0].lines(&name("app"));
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0], "app: {process: [/bin/dpkg]}");
        assert!(with_profile("{}").profiles[0].lines(&name("other")).is_empty());
    }
}
