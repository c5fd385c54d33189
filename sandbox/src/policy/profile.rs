//! Profiles: blocks of grants that Brine ships for its standard modules and the owner takes over by name.
//!
//! They come after all entries of the owner, and before what standard modules come with. A module of the same name that
//! is not Brine's gets nothing of them.

use brine_component::group;

use super::{Capability, Entry, Policy, Rules};
use crate::ModuleName;

/// A block of grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Its entries: of modules, of their states, and of single functions.
    pub rules: Rules,
}

impl Profile {
    /// Its entries that apply to a function, the most specific first: of the function, of its group (the module's states,
    /// its beacon), of the module.
    fn entries(&self, module: &ModuleName, function: Option<&str>) -> [Option<&Entry>; 3] {
        let of = |function: &str| self.rules.functions.get(&(module.clone(), function.to_owned()));
        [function.and_then(of), function.and_then(group).and_then(of), self.rules.modules.get(module)]
    }

    /// Returns its lines about a module, each as in the configuration: key and entry.
    pub fn lines(&self, module: &ModuleName) -> Vec<String> {
        let of_module = self.rules.modules.get(module).map(|entry| format!("{module}: {entry}"));
        let functions = self.rules.functions.iter().filter(|((name, _), _)| name == module);
        of_module.into_iter().chain(functions.map(|((_, f), entry)| format!("{module}.{f}: {entry}"))).collect()
    }
}

impl Policy {
    /// Returns the profiles' entries that apply to a function of a standard module, each with its profile's name, the
    /// most specific first.
    pub(super) fn profiled(
        &self,
        module: &ModuleName,
        function: Option<&str>,
    ) -> impl DoubleEndedIterator<Item = (&'static str, &Entry)> {
        let entries = self.profiles.iter().map(|profile| (profile.name, profile.entries(module, function)));
        let entries: Vec<_> = entries.collect();
        // A more specific entry of any profile comes before a more general one of another.
        (0..3).flat_map(move |level| entries.clone().into_iter().filter_map(move |(name, of)| Some((name, of[level]?))))
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
        let profiles = vec![Profile { name: "p", rules: policy(PROFILE).general }];
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
