//! One file of a profile: what it says of itself, and its entries.

use brine_render::convert::ConvertLimits;
use brine_render::yaml;
use rmpv::Value;

use super::super::{Result, SettingsError, entry, error, values};
use super::Within;
use super::library::Library;
use super::parameters::{Kind, fill};
use crate::policy::{Entry, Grant, Never, Profile, ProfileWords, Rules};

/// Upper bound on the bytes of a sentence.
const MAX_SENTENCE: usize = 600;
/// Upper bounds on a file: bytes, nested dicts and lists, values.
const LIMITS: yaml::Limits = yaml::Limits { text: MAX_FILE, depth: 16, values: 1 << 14 };
/// Upper bound on the bytes of a file.
pub(super) const MAX_FILE: usize = 64 << 10;
/// Upper bound on the entries of a profile, with those that it includes.
const MAX_ENTRIES: usize = 1_000;

/// A profile's file.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The place in errors.
    pub(super) path: String,
    /// Where it comes from, for people.
    pub(super) from: String,
    /// The YAML.
    pub(super) text: String,
}

impl Source {
    /// Reads the file as a profile. `asked` is the place where the owner takes it over, with its parameters. `within`: the
    /// files that are being read, this one among them. None for parameters: as for a list of what there is.
    pub(super) fn read(
        &self,
        name: &str,
        asked: Option<(&str, Option<&Value>)>,
        library: &Library,
        within: &mut Within,
    ) -> Result<Profile> {
        let yaml = yaml::load(&self.text, &LIMITS).map_err(|why| why.to_string());
        let wire = yaml.and_then(|value| value.to_wire(ConvertLimits::default()).map_err(|why| why.to_string()));
        let value = wire.or_else(|why| error(&self.path, why))?;
        self.profile(name, &value, asked, library, within).map_err(|error| self.with_line(error))
    }

    fn profile(
        &self,
        name: &str,
        value: &Value,
        asked: Option<(&str, Option<&Value>)>,
        library: &Library,
        within: &mut Within,
    ) -> Result<Profile> {
        let (mut opens, mut cannot, mut takes, mut modules, mut includes) = (None, None, None, None, None);
        let mut never = Vec::new();
        for (key, value) in values::entries(&self.path, value)? {
            let path = format!("{}:{key}", self.path);
            match key {
                "opens" => opens = Some(sentence(&path, value)?),
                "cannot" => cannot = Some(sentence(&path, value)?),
                "never" => never = list_of(&path, value, &Never::ALL, Never::word)?,
                "takes" => takes = Some(one_of(&path, value, &Kind::ALL, Kind::word)?),
                "includes" => includes = Some((path, value)),
                "modules" => modules = Some((path, value)),
                _ => {
                    let known = "opens, cannot, never, takes, includes and modules";
                    return error(&path, format!("there is no such word; there are {known}"));
                }
            }
        }
        let (Some(opens), Some(cannot)) = (opens, cannot) else {
            return error(
                &self.path,
                "opens and cannot are missing: a sentence on what it opens, and one on what it cannot be used for",
            );
        };
        let parameters = match (asked, takes) {
            (None, _) | (Some((_, None)), None) => Vec::new(),
            (Some((path, Some(value))), Some(kind)) => kind.read(&format!("{path}:{name}"), value)?,
            (Some((path, None)), Some(kind)) => {
                return error(path, format!("{name} takes {0}s, as in {{{name}: [{0}]}}", kind.word()));
            }
            (Some((path, Some(_))), None) => return error(path, format!("the profile {name} takes nothing")),
        };
        let mut rules = Rules::default();
        if let Some((path, value)) = modules {
            let value = match takes {
                Some(kind) => fill(&path, value.clone(), kind, &parameters)?,
                None => value.clone(),
            };
            entry::modules(&path, &value, &mut rules)?;
            only_grants(&path, &rules)?;
        }
        if let Some((path, value)) = includes {
            for included in super::taken(&path, value, library, within)? {
                merge(&mut rules, included.rules);
            }
        }
        let entries = rules.modules.len() + rules.functions.len();
        if entries == 0 {
            return error(&self.path, "it grants nothing: modules or includes are missing");
        }
        if entries > MAX_ENTRIES {
            return error(&self.path, format!("it has more than {MAX_ENTRIES} entries"));
        }
        let line = match takes {
            Some(kind) => format!("profiles: [{{{name}: [{}]}}]", kind.word().to_uppercase()),
            None => format!("profiles: [{name}]"),
        };
        let words = ProfileWords { opens, cannot, never, line, from: self.from.clone() };
        let profile = Profile { name: name.to_owned(), words, rules };
        self.hold(&profile)?;
        Ok(profile)
    }

    /// Refuses a profile that grants more than it says of itself.
    fn hold(&self, profile: &Profile) -> Result<()> {
        for (place, capability, grant) in profile.all_grants() {
            let broken = profile.words.never.iter().find(|never| never.is_broken_by(capability, grant));
            if let Some(never) = broken {
                let why = format!(
                    "it grants {grant}, by which modules can {}; the file says that this is never so (never: {})",
                    never.words(),
                    never.word()
                );
                return error(&format!("{}:modules:{place}:{}", self.path, capability.key()), why);
            }
        }
        Ok(())
    }

    /// Adds the line to an error about this file.
    fn with_line(&self, error: SettingsError) -> SettingsError {
        let Some(words) = error.key.strip_prefix(&format!("{}:", self.path)) else { return error };
        let mut at = 0;
        for word in words.split(':') {
            let found = self.text.get(at..).and_then(|rest| rest.find(word));
            at = found.map_or(at, |found| at + found);
        }
        let line = self.text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        SettingsError { why: format!("line {line}: {}", error.why), ..error }
    }
}

/// A profile has entries of modules and functions, with grants and limits.
fn only_grants(path: &str, rules: &Rules) -> Result<()> {
    let mut entries = rules.modules.values().chain(rules.functions.values());
    let is_right = |entry: &Entry| {
        let rest = Entry { says: entry.says.clone(), limits: entry.limits, ..Entry::default() };
        *entry == rest && entry.says.values().all(|grant| *grant != Grant::No)
    };
    if rules.every != Entry::default() || !entries.all(is_right) {
        return error(path, "a profile has entries of modules with grants and limits, and nothing else");
    }
    Ok(())
}

/// Adds the entries of an included profile. An entry's own limits count.
fn merge(rules: &mut Rules, included: Rules) {
    fn add<K: Ord>(to: &mut std::collections::BTreeMap<K, Entry>, from: std::collections::BTreeMap<K, Entry>) {
        for (key, more) in from {
            let entry = to.entry(key).or_default();
            for (capability, grant) in more.says {
                match entry.says.get_mut(&capability) {
                    Some(own) => own.add(&grant),
                    None => drop(entry.says.insert(capability, grant)),
                }
            }
            if entry.limits == crate::policy::LimitChanges::default() {
                entry.limits = more.limits;
            }
        }
    }
    add(&mut rules.modules, included.modules);
    add(&mut rules.functions, included.functions);
}

fn sentence(path: &str, value: &Value) -> Result<String> {
    let text = values::text(path, value)?;
    if text.len() > MAX_SENTENCE {
        return error(path, format!("it has more than {MAX_SENTENCE} bytes"));
    }
    Ok(text.to_owned())
}

fn one_of<T: Copy>(path: &str, value: &Value, all: &[T], word: fn(T) -> &'static str) -> Result<T> {
    let text = values::text(path, value)?;
    match all.iter().find(|one| word(**one) == text) {
        Some(one) => Ok(*one),
        None => {
            let known: Vec<&str> = all.iter().map(|one| word(*one)).collect();
            error(path, format!("there is no {text:?}; there are {}", known.join(", ")))
        }
    }
}

fn list_of<T: Copy>(path: &str, value: &Value, all: &[T], word: fn(T) -> &'static str) -> Result<Vec<T>> {
    let Value::Array(items) = value else { return error(path, format!("a list is expected, not {value}")) };
    items.iter().take(all.len()).map(|item| one_of(path, item, all, word)).collect()
}
