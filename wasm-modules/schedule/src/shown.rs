//! Jobs as they are listed.

use brine_guest::host::schedule::{self, Place};
use brine_guest::{Data, Value, wire};
use brine_render::yaml::{self, DumpOptions};

/// The keys of a job that are listed.
const SHOWN: [&str; 28] = [
    "name",
    "maxrunning",
    "function",
    "splay",
    "range",
    "when",
    "once",
    "once_fmt",
    "returner",
    "jid_include",
    "args",
    "kwargs",
    "_seconds",
    "seconds",
    "minutes",
    "hours",
    "days",
    "enabled",
    "return_job",
    "metadata",
    "cron",
    "until",
    "after",
    "return_config",
    "return_kwargs",
    "run_on_start",
    "skip_during_range",
    "run_after_skip_range",
];
/// What is no job.
const GLOBAL: [&str; 3] = ["enabled", "skip_function", "skip_during_range"];

/// Jobs by name.
pub struct Listed {
    entries: Vec<(Value, Value)>,
}

impl Listed {
    fn new(data: &Data) -> Result<Self, String> {
        match data.value()? {
            Value::Dict(entries) => Ok(Self { entries }),
            _ => Ok(Self { entries: Vec::new() }),
        }
    }

    /// The jobs from a place: `opts`, `pillar`, or both.
    pub fn at(place: Option<&str>) -> Result<Self, String> {
        Self::new(&schedule::jobs(match place {
            Some("opts") => Place::Opts,
            Some("pillar") => Place::Pillar,
            _ => Place::All,
        })?)
    }

    /// The jobs of the file that keeps the schedule.
    pub fn saved() -> Result<Self, String> {
        Self::new(&schedule::saved()?)
    }

    /// All jobs from a place or the file, as they are listed.
    pub fn all(place: Option<&str>, offline: bool) -> Result<Self, String> {
        let mut listed = if offline { Self::saved()? } else { Self::at(place)? };
        listed.tidy(true, true);
        Ok(listed)
    }

    /// Leaves what is shown of jobs.
    pub fn tidy(&mut self, show_all: bool, show_disabled: bool) {
        let is_job = |name: &str| !GLOBAL.contains(&name);
        self.entries
            .retain(|(name, _)| name.text().is_none_or(|name| show_all || !is_job(name) || !name.starts_with("__")));
        for (name, job) in &mut self.entries {
            let Value::Dict(items) = job else { continue };
            if !name.text().is_some_and(is_job) {
                continue;
            }
            items.retain(|(key, value)| key.text().is_some_and(|key| SHOWN.contains(&key)) && *value != Value::None);
            for (_, value) in items.iter_mut() {
                match value.text() {
                    Some("true") => *value = Value::Bool(true),
                    Some("false") => *value = Value::Bool(false),
                    _ => {}
                }
            }
            if !items.iter().any(|(key, _)| key.text() == Some("enabled")) {
                items.push(("enabled".into(), Value::Bool(true)));
            }
            items.retain(|(key, _)| key.text() != Some("_seconds"));
        }
        if !show_disabled {
            let disabled = |job: &Value| job.get("enabled").is_some_and(|enabled| !enabled.truthy());
            self.entries.retain(|(name, job)| !name.text().is_some_and(is_job) || !disabled(job));
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.iter().find(|(known, _)| known.text() == Some(name)).map(|(_, job)| job)
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Replaces or adds a job.
    pub fn put(&mut self, name: &str, job: Value) {
        match self.entries.iter_mut().find(|(known, _)| known.text() == Some(name)) {
            Some((_, known)) => *known = job,
            None => self.entries.push((name.into(), job)),
        }
    }

    /// Removes a job; false if there was none.
    pub fn take(&mut self, name: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(known, _)| known.text() != Some(name));
        self.entries.len() < before
    }

    pub fn names(&self) -> Vec<String> {
        self.entries.iter().map(|(name, _)| name.to_text()).collect()
    }

    pub fn into_value(self) -> Value {
        Value::Dict(self.entries)
    }

    /// The jobs as YAML, each with whether the file has it.
    pub fn yaml(mut self) -> Result<String, String> {
        let saved = Self::saved()?;
        for (name, job) in &mut self.entries {
            let is_saved = name.text().is_some_and(|name| saved.has(name));
            if let Value::Dict(items) = job {
                items.retain(|(key, _)| key.text() != Some("saved"));
                items.push(("saved".into(), Value::Bool(is_saved)));
            }
        }
        let whole: Data = Value::dict([("schedule", self.into_value())]).into();
        let options = DumpOptions { default_flow_style: Some(false), ..DumpOptions::default() };
        yaml::dump(&wire::value(&whole)?, &options).map_err(|error| error.to_string())
    }
}

/// Whether two values are equal to Python, which does not look at the order of a dict.
pub fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Dict(one), Value::Dict(other)) => {
            let has = |key: &Value, value: &Value| other.iter().any(|(k, v)| k == key && equal(v, value));
            one.len() == other.len() && one.iter().all(|(key, value)| has(key, value))
        }
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (one, other) => one == other,
    }
}
