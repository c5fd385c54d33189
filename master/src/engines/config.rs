//! The settings of engines.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::options;
use brine_protocol::value::{Value, ValueExt as _};
use brine_sandbox::{ModuleName, Settings};

use super::tags::Tags;

/// Upper bound on engines: each has a queue of events.
const MAX_ENGINES: usize = 32;
/// The shortest and the longest time between two calls of an engine without events, in seconds.
const INTERVAL: std::ops::RangeInclusive<f64> = 1.0..=31_536_000.0;
/// Upper bound on the characters of an engine's name.
const MAX_NAME: usize = 64;
/// The key of an entry that names its module.
const MODULE: &str = "engine_module";

options! {
    /// The settings of engines.
    #[derive(Debug, Clone)]
    pub(crate) struct EngineOpts from c {
        /// `engines`
        pub(super) entries: Vec<Arc<Entry>> = entries(c)?,
        /// `engines_dirs`: folders of the owner's modules.
        pub(super) dirs: Vec<PathBuf> = dirs(c)?,
        /// `sandbox`: what modules may do on this host.
        pub(super) sandbox: Arc<Settings> = sandbox(c)?.into(),
        /// The same as it is written.
        pub(super) section: Value = c.get(settings::SANDBOX)?,
    }
}

impl EngineOpts {
    /// The modules of the engines.
    pub(super) fn modules(&self) -> BTreeSet<ModuleName> {
        self.entries.iter().map(|entry| entry.module.clone()).collect()
    }

    /// Whether a sandbox made with `other` has the modules and settings that this asks for.
    pub(super) fn has_sandbox_of(&self, other: &Self) -> bool {
        (&self.section, &self.dirs, self.modules()) == (&other.section, &other.dirs, other.modules())
    }
}

/// An entry of `engines`.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    /// The engine's name.
    pub(super) name: Arc<str>,
    pub(super) module: ModuleName,
    /// A dict, the settings of the engine as they are written.
    pub(super) config: Value,
    /// `tags`
    pub(super) tags: Tags,
    /// `interval`
    pub(super) interval: Option<Duration>,
}

impl Entry {
    /// Reads an entry: a name, or a dict of one name to its settings.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence.
    fn new(name: &str, config: &Value) -> Result<Self, String> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_word) {
            return Err(format!("{name:?} is no name of an engine: letters, digits, _, - and ., at most {MAX_NAME}"));
        }
        let config = match config {
            Value::Nil => Value::Map(Vec::new()),
            config if config.entries().is_some() => config.clone(),
            _ => return Err(format!("the settings of {name} are to be a dict")),
        };
        let of = |why: String| format!("{name}: {why}");
        let module = config.get(MODULE).map_or(Ok(name), |module| module.text().ok_or(format!("{MODULE} is a name")));
        let module = module.and_then(|module| module.parse::<ModuleName>().map_err(|e| e.to_string())).map_err(of)?;
        let interval = match config.get("interval") {
            None | Some(Value::Nil) => None,
            Some(seconds) => {
                let seconds = seconds.as_f64().filter(|seconds| INTERVAL.contains(seconds));
                let wrong = || of(format!("interval is {} to {} seconds", INTERVAL.start(), INTERVAL.end()));
                Some(Duration::from_secs_f64(seconds.ok_or_else(wrong)?))
            }
        };
        let tags = tags(&config).and_then(|tags| Tags::new(tags.iter().map(String::as_str))).map_err(of)?;
        if tags.is_empty() && interval.is_none() {
            return Err(of("it has neither tags, the globs of the events that it sees, nor an interval".to_owned()));
        }
        Ok(Self { name: name.into(), module, config, tags, interval })
    }
}

fn tags(config: &Value) -> Result<Vec<String>, String> {
    let wrong = || "tags is a glob or a list of globs".to_owned();
    match config.get("tags") {
        None | Some(Value::Nil) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().map(|item| item.text().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(one) => Ok(vec![one.text().ok_or_else(wrong)?.to_owned()]),
    }
}

fn entries(c: &Config) -> Result<Vec<Arc<Entry>>, ConfigError> {
    let wrong =
        |why: String| c.wrong(settings::ENGINES.row.name, format!("a list of engines with their settings; {why}"));
    let given = c.get(settings::ENGINES)?;
    let nothing = Value::Nil;
    let mut all: Vec<(String, &Value)> = Vec::new();
    let items = match &given {
        Value::Nil => return Ok(Vec::new()),
        // Salt's older form.
        Value::Map(_) => std::slice::from_ref(&given),
        Value::Array(items) => items.as_slice(),
        _ => return Err(wrong("it is no list".to_owned())),
    };
    for item in items {
        match item {
            Value::Map(entries) => all.extend(entries.iter().map(|(name, config)| (name.python_str(), config))),
            other => {
                let name = other.text().ok_or_else(|| wrong("an entry is neither a name nor a dict".to_owned()))?;
                all.push((name.to_owned(), &nothing));
            }
        }
    }
    if all.len() > MAX_ENGINES {
        return Err(wrong(format!("there are more than {MAX_ENGINES}")));
    }
    let mut entries: Vec<Arc<Entry>> = Vec::new();
    for (name, config) in all {
        let entry = Entry::new(&name, config).map_err(wrong)?;
        if entries.iter().any(|other| other.name == entry.name) {
            return Err(wrong(format!("{name} is there twice; {MODULE} names the module of one with another name")));
        }
        entries.push(Arc::new(entry));
    }
    Ok(entries)
}

fn dirs(c: &Config) -> Result<Vec<PathBuf>, ConfigError> {
    let dirs = c.get(settings::ENGINES_DIRS)?;
    let relative = dirs.iter().find(|dir| !dir.starts_with('/'));
    match relative {
        Some(dir) => Err(c.wrong(settings::ENGINES_DIRS.row.name, format!("absolute paths of folders, not {dir:?}"))),
        None => Ok(dirs.into_iter().map(PathBuf::from).collect()),
    }
}

fn sandbox(c: &Config) -> Result<Settings, ConfigError> {
    let section = c.get(settings::SANDBOX)?;
    let read = Settings::load(&section, c.dir());
    read.map_err(|error| c.wrong(settings::SANDBOX.row.name, format!("a section as docs/sandbox.md has it; {error}")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use brine_protocol::config::Role;

    use super::*;

    fn opts(yaml: &str) -> Result<EngineOpts, String> {
        let config = Config::from_yaml(yaml, Path::new("/x/master"), Role::Master).unwrap();
        EngineOpts::from_config(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn entries_are_salts() {
        let yaml = "
engines:
  - webhook: {url: 'https://a.example/', tags: 'salt/job/*/ret/*'}
  - other-1: {engine_module: webhook, tags: [deploy/*, build/*]}
  - poll: {interval: 30}
engines_dirs: [/srv/engines]
sandbox: {modules: {webhook: {network: ['a.example:443']}}}
";
        let opts = opts(yaml).unwrap();
        let shown: Vec<_> = opts
            .entries
            .iter()
            .map(|entry| (&*entry.name, entry.module.as_str(), entry.tags.texts().count(), entry.interval.is_some()))
            .collect();
        assert_eq!(
            shown,
            [("webhook", "webhook", 1, false), ("other-1", "webhook", 2, false), ("poll", "poll", 0, true)]
        );
        assert_eq!(opts.entries[0].config.get_text("url"), Some("https://a.example/"));
        assert_eq!(opts.dirs, [Path::new("/srv/engines")]);
        let older = super::tests::opts("engines: {a: {tags: x}, b: {interval: 1.5}}").unwrap();
        assert_eq!(older.entries.len(), 2);
        assert!(super::tests::opts("{}").unwrap().entries.is_empty());
    }

    #[test]
    fn mistakes_are_named() {
        for (yaml, said) in [
            ("engines: 5", "engines"),
            ("engines: webhook", "it is no list"),
            ("engines: [5]", "neither a name nor a dict"),
            ("engines: [webhook]", "neither tags"),
            ("engines: [{webhook: [a]}]", "to be a dict"),
            ("engines: [{'../x': {tags: a}}]", "no name of an engine"),
            ("engines: [{x: {engine_module: ../x, tags: a}}]", "cannot be a module's name"),
            ("engines: [{x: {tags: a}}, {x: {tags: b}}]", "x is there twice"),
            ("engines: [{x: {tags: 5}}]", "tags is a glob or a list of globs"),
            ("engines: [{x: {tags: ['']}}]", "1 to 4096 bytes"),
            ("engines: [{x: {interval: 0}}]", "interval is 1 to"),
            ("engines: [{x: {interval: 1e20}}]", "interval is 1 to"),
            ("engines: [{x: {interval: soon}}]", "interval is 1 to"),
            ("engines_dirs: [engines]", "absolute paths"),
            ("sandbox: {module: {}}", "there is no such setting"),
            ("sandbox: {modules: {webhook: {network: [5]}}}", "sandbox:modules:webhook:network"),
        ] {
            let error = opts(yaml).unwrap_err();
            assert!(error.contains(said) && !error.contains('\n'), "{yaml}: {error}");
        }
        let many = (0..40).map(|n| format!("  - e{n}: {{tags: a}}\n")).collect::<String>();
        assert!(opts(&format!("engines:\n{many}")).unwrap_err().contains("more than 32"));
    }
}
