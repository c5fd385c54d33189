//! Where jobs and returns are kept: the embedded store, and what else an operator names (`ext_job_cache`, `master_job_cache`, `--return`).

use std::fmt;

use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt};
use futures_util::future::BoxFuture;

use super::error::StoreError;
use super::query::{Job, JobFilter, JobReturn};
use super::record::{Record, Saved};

/// Letters, digits, `_` and `-` of the name of an alternative configuration (`--return_config`).
const CONFIG_NAME_MAX: usize = 64;

/// A place for jobs and returns.
pub trait Returner: Send + Sync {
    /// Keeps a batch; when this resolves it is durable. One outcome a record, in their order. An error is for all of them: nothing of the
    /// batch counts as kept, and it may be tried again: what is there already is not kept twice.
    fn save<'a>(&'a self, batch: Vec<Record>) -> BoxFuture<'a, Result<Vec<Saved>, StoreError>>;

    /// The job of that id.
    fn job<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Option<Job>, StoreError>>;

    /// Every return of a job, by minion.
    fn returns<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Vec<JobReturn>, StoreError>>;

    /// Jobs that the filter lets through, newest first.
    fn find(&self, filter: JobFilter) -> BoxFuture<'_, Result<Vec<Job>, StoreError>>;

    /// Forgets what is older; how many jobs went.
    fn clean(&self, before_ms: i64) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Keeps events of the master with that id (`event_return`); why, for each that it will never take. After an error all may be tried again.
    fn save_events<'a>(
        &'a self,
        master: &'a str,
        events: &'a [KeptEvent],
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;
}

/// An event that is kept.
#[derive(Debug, Clone)]
pub struct KeptEvent {
    /// Its tag.
    pub tag: String,
    /// Its data.
    pub data: Value,
    /// When it was on the bus, unix ms.
    pub at_ms: i64,
}

/// A returner that the master writes to through its outbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReturnerName {
    /// Which.
    pub kind: ReturnerKind,
    /// `ret_config`: options are read from `CONFIG.returner.…` before `returner.…`.
    pub config: Option<String>,
}

/// The returners there are besides the embedded store, by Salt's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReturnerKind {
    /// `postgres`: JSON in columns of text.
    Postgres,
    /// `pgjsonb`: JSON in columns of JSONB.
    Pgjsonb,
}

impl ReturnerKind {
    /// Its name in Salt.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Pgjsonb => "pgjsonb",
        }
    }

    /// By its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Postgres, Self::Pgjsonb].into_iter().find(|kind| kind.name() == name)
    }
}

impl ReturnerName {
    /// With the usual configuration.
    pub const fn plain(kind: ReturnerKind) -> Self {
        Self { kind, config: None }
    }

    /// Those that `event_return` names.
    ///
    /// # Errors
    /// When one is none that keeps events here.
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

    /// As [`fmt::Display`] writes it: `postgres`, or `CONFIG.postgres`.
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

/// Where a job or a return goes.
#[derive(Debug, Clone, Default)]
pub struct Destination {
    /// Not into the embedded store itself (`job_cache: False`).
    pub not_kept: bool,
    /// The other returners that are to have it, which its outbox keeps for them.
    pub also: Vec<ReturnerName>,
}

/// Why a returner could not do it now.
#[derive(Debug, thiserror::Error, Clone)]
#[error("the returner {name} failed: {why}")]
pub struct ReturnerError {
    /// Which.
    pub name: String,
    /// What is wrong, and what to do if that is known; no secrets.
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
