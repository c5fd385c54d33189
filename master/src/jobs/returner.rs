//! Returners: the embedded store, and the ones that an operator names (`ext_job_cache`, `master_job_cache`,
//! `--return`).

use std::fmt;

use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt};
use futures_util::future::BoxFuture;

use super::error::StoreError;
use super::query::{JobFilter, JobReturn, StoredJob};
use super::record::{Record, Saved};

/// Longest name of an alternative configuration (`--return_config`): letters, digits, `_` and `-`.
const CONFIG_NAME_MAX: usize = 64;

/// A place for jobs and returns.
pub trait Returner: Send + Sync {
    /// Stores a batch durably. Returns one result for each record, in order.
    ///
    /// # Errors
    /// If the whole batch failed. Nothing of it counts as stored, and it may be sent again: records that exist already
    /// are not duplicated.
    fn save<'a>(&'a self, batch: Vec<Record>) -> BoxFuture<'a, Result<Vec<Saved>, StoreError>>;

    /// Returns the job with that id.
    ///
    /// # Errors
    /// If the lookup failed.
    fn job<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Option<StoredJob>, StoreError>>;

    /// Returns every return of a job, by minion.
    ///
    /// # Errors
    /// If the lookup failed.
    fn returns<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Vec<JobReturn>, StoreError>>;

    /// Returns the jobs that match the filter, newest first.
    ///
    /// # Errors
    /// If the lookup failed.
    fn find(&self, filter: JobFilter) -> BoxFuture<'_, Result<Vec<StoredJob>, StoreError>>;

    /// Deletes older jobs and returns. Returns the number of deleted jobs.
    ///
    /// # Errors
    /// If the clean-up failed; a part of it may be done.
    fn clean(&self, before_ms: i64) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Stores events of the master with that id (`event_return`). Returns the reason for each event that is refused for
    /// ever.
    ///
    /// # Errors
    /// If nothing was stored. All events may be sent again.
    fn save_events<'a>(
        &'a self,
        master: &'a str,
        events: &'a [KeptEvent],
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;
}

/// An event for `event_return`.
#[derive(Debug, Clone)]
pub struct KeptEvent {
    /// Its tag.
    pub tag: String,
    /// Its data.
    pub data: Value,
    /// When it was fired, unix ms.
    pub at_ms: i64,
}

/// The name of a returner that the master writes to through its outbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReturnerName {
    /// The kind of returner.
    pub kind: ReturnerKind,
    /// `ret_config`: options are read from `CONFIG.returner.…` before `returner.…`.
    pub config: Option<String>,
}

/// The kinds of returners besides the embedded store, by Salt's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReturnerKind {
    /// `postgres`: JSON in columns of text.
    Postgres,
    /// `pgjsonb`: JSON in columns of JSONB.
    Pgjsonb,
}

impl ReturnerKind {
    /// Returns its name in Salt.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Pgjsonb => "pgjsonb",
        }
    }

    /// Finds a kind by its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Postgres, Self::Pgjsonb].into_iter().find(|kind| kind.name() == name)
    }
}

impl ReturnerName {
    /// Makes the name for the usual configuration.
    pub const fn plain(kind: ReturnerKind) -> Self {
        Self { kind, config: None }
    }

    /// Reads the returners that `event_return` names.
    ///
    /// # Errors
    /// If one of them does not exist or cannot keep events.
    pub(crate) fn of_events(c: &Config) -> Result<Vec<Self>, ConfigError> {
        let setting = settings::EVENT_RETURN;
        let named: Vec<String> = match c.find(setting)? {
            None => Vec::new(),
            Some(Value::Array(names)) => names.iter().map(ValueExt::python_str).collect(),
            Some(name) => vec![name.python_str()],
        };
        let mut to = Vec::new();
        for name in named.iter().filter(|name| !name.is_empty()) {
            let name = Self::parse(name).filter(|name| name.config.is_none());
            let name = name.ok_or_else(|| c.wrong(setting.row.name, "postgres, pgjsonb or a list of both"))?;
            if !to.contains(&name) {
                to.push(name);
            }
        }
        Ok(to)
    }

    /// Parses the form of [`fmt::Display`]: `postgres`, or `CONFIG.postgres`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.rsplit_once('.') {
            None => ReturnerKind::parse(text).map(Self::plain),
            Some((config, kind)) => {
                let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                let config = Some(config.to_owned()).filter(|config| {
                    !config.is_empty() && config.len() <= CONFIG_NAME_MAX && config.chars().all(fine)
                })?;
                Some(Self { kind: ReturnerKind::parse(kind)?, config: Some(config) })
            }
        }
    }
}

impl fmt::Display for ReturnerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.config {
            None => f.write_str(self.kind.name()),
            Some(config) => write!(f, "{config}.{}", self.kind.name()),
        }
    }
}

/// The destination of a job or a return.
#[derive(Debug, Clone, Default)]
pub struct Destination {
    /// The embedded store does not keep it (`job_cache: False`).
    pub not_kept: bool,
    /// The other returners, which get it through the outbox.
    pub also: Vec<ReturnerName>,
}

/// The error of a returner that may work later.
#[derive(Debug, thiserror::Error, Clone)]
#[error("the returner {name} failed: {why}")]
pub struct ReturnerError {
    /// The returner's name.
    pub name: String,
    /// The error, with advice if possible and without secrets.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for text in ["postgres", "pgjsonb", "alternative.postgres", "my-other_1.pgjsonb"] {
            assert_eq!(ReturnerName::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "mysql", ".postgres", "a b.postgres", "a.b.postgres", "postgres.", "Postgres"] {
            assert_eq!(ReturnerName::parse(text), None, "{text}");
        }
    }
}
