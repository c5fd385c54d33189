//! `sandbox:profiles`: blocks of grants that Brine ships, each a data file in the syntax of `sandbox:modules`, which the
//! owner takes over by name. They are read like the owner's own entries, and count for standard modules only.

use brine_render::convert::ConvertLimits;
use brine_render::yaml;
use rmpv::Value;

use super::{Result, entry, error, values};
use crate::policy::{Entry, Profile, Rules};

/// The profiles by name.
const PROFILES: [(&str, &str); 1] = [("states", include_str!("states.yaml"))];

/// Reads the names of profiles that the owner takes over.
pub(super) fn read(path: &str, value: &Value) -> Result<Vec<Profile>> {
    let known = || PROFILES.map(|(name, _)| name).join(", ");
    let Value::Array(names) = value else {
        return error(path, format!("a list of profiles is expected, not {value}; there are: {}", known()));
    };
    let mut profiles: Vec<Profile> = Vec::new();
    for name in names {
        let name = values::text(path, name)?;
        let Some(profile) = PROFILES.iter().find(|(known, _)| *known == name) else {
            return error(path, format!("there is no profile {name}; there are: {}", known()));
        };
        if profiles.iter().all(|known| known.name != name) {
            profiles.push(parse(profile)?);
        }
    }
    Ok(profiles)
}

/// All profiles.
///
/// # Errors
///
/// A file of them is not right, which a test excludes.
pub fn all() -> Result<Vec<Profile>> {
    PROFILES.iter().map(parse).collect()
}

fn parse((name, text): &(&'static str, &str)) -> Result<Profile> {
    let path = format!("the profile {name}");
    let read = yaml::load(text, &yaml::Limits::default()).map_err(|why| why.to_string());
    let wire = read.and_then(|value| value.to_wire(ConvertLimits::default()).map_err(|why| why.to_string()));
    let value = wire.or_else(|why| error(&path, why))?;
    let mut rules = Rules::default();
    entry::modules(&path, &value, &mut rules)?;
    let entries = rules.modules.values().chain(rules.functions.values());
    let only_grants = |entry: &Entry| {
        let rest = Entry { says: entry.says.clone(), limits: entry.limits, ..Entry::default() };
        *entry == rest && entry.says.values().all(|grant| *grant != crate::policy::Grant::No)
    };
    if rules.every != Entry::default() || !entries.into_iter().all(only_grants) {
        return error(&path, "a profile has entries of modules with grants and limits, and nothing else");
    }
    Ok(Profile { name, rules })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::testing::yaml;

    /// Each file is read as the owner's own lines are: an error in one would stop minions that take it over.
    #[test]
    fn every_profile_is_read() {
        let profiles = all().unwrap();
        assert_eq!(profiles.len(), PROFILES.len());
        for (name, text) in PROFILES {
            let indented: String = text.lines().map(|line| format!("  {line}\n")).collect();
            let own = Settings::read(&yaml(&format!("modules:\n{indented}"))).unwrap().policy;
            let profile = profiles.iter().find(|profile| profile.name == name).unwrap();
            assert_eq!(own.general, profile.rules, "{name}");
            assert!(!profile.rules.modules.is_empty() || !profile.rules.functions.is_empty(), "{name}");
        }
    }

    #[test]
    fn the_owner_names_profiles() {
        let names = |config: &str| -> Result<Vec<&str>> {
            Ok(Settings::read(&yaml(config))?.policy.profiles.iter().map(|profile| profile.name).collect())
        };
        assert_eq!(names("{}").unwrap(), [""; 0]);
        assert_eq!(names("profiles: []").unwrap(), [""; 0]);
        assert_eq!(names("profiles: [states]").unwrap(), ["states"]);
        assert_eq!(names("profiles: [states, states]").unwrap(), ["states"]);
        for (config, why) in [
            ("profiles: [state]", "there is no profile state; there are: states"),
            ("profiles: states", "a list of profiles is expected, not \"states\"; there are: states"),
            ("profiles: [1]", "text is expected, not 1"),
            ("profiles: {states: true}", "a list of profiles is expected, not {\"states\": true}; there are: states"),
        ] {
            assert_eq!(names(config).unwrap_err().to_string(), format!("sandbox:profiles: {why}"));
        }
    }

    #[test]
    fn a_profile_has_nothing_but_grants() {
        for text in ["a: {user: root}", "\"*\": {jobs: true}", "a: {jobs: false}", "a: {signed_by: any}", "a: {x: 1}"] {
            assert!(parse(&("p", text)).is_err(), "{text}");
        }
        assert!(parse(&("p", "a: {jobs: true, limits: {wall: 5m}}")).is_ok());
    }
}
