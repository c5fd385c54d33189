//! Where jobs and returns are kept: the embedded store, and what else an operator names (`ext_job_cache`, `master_job_cache`, `--return`).

use std::fmt;

use brine_protocol::config::{Config, ConfigError};
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::job::{fun_text, is_success, worst_retcode};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt};
use futures_util::future::BoxFuture;

use super::error::StoreError;
use super::query::{Job, JobFilter, JobReturn};
use super::store::{Added, JobStore, NewReturn};

/// Characters of a target that the job list shows.
const TARGET_TEXT_MAX: usize = 1_024;
/// Characters of a user's name that the job list shows.
const USER_TEXT_MAX: usize = 64;
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

/// What is kept.
#[derive(Debug, Clone)]
pub enum Record {
    /// A published job.
    Job(Job),
    /// What a minion returned.
    Return(NewReturn),
}

/// What became of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// It is there; for a return, whether it was before.
    Kept(Added),
    /// It can never be kept there, and why.
    Refused(String),
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
        let named: Vec<String> = match c.value("event_return") {
            None | Some(Value::Nil) => Vec::new(),
            Some(Value::Array(names)) => names.iter().map(ValueExt::python_str).collect(),
            Some(name) => vec![name.python_str()],
        };
        let mut to = Vec::new();
        for name in named.iter().filter(|name| !name.is_empty()) {
            let name = Self::parse(name).filter(|name| name.config.is_none());
            let name = name.ok_or_else(|| c.wrong("event_return", "postgres, pgjsonb or a list of both"))?;
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

/// Why a returner could not do it now.
#[derive(Debug, thiserror::Error, Clone)]
#[error("the returner {name} failed: {why}")]
pub struct ReturnerError {
    /// Which.
    pub name: String,
    /// What is wrong, and what to do if that is known; no secrets.
    pub why: String,
}

impl Job {
    /// A job that is recorded now, by its load.
    pub(crate) fn to_record(jid: Jid, load: &Value, minions: Vec<MinionId>) -> Self {
        Self {
            jid,
            fun: fun_text(load),
            user: load.get_text("user").unwrap_or("root").chars().take(USER_TEXT_MAX).collect(),
            tgt: load.get("tgt").map(ValueExt::python_str).unwrap_or_default().chars().take(TARGET_TEXT_MAX).collect(),
            tgt_type: load.get_text("tgt_type").unwrap_or("glob").to_owned(),
            started_ms: super::now_ms(),
            minions,
            load: msgpack::encode_disk(load),
        }
    }

    /// A job from its load as returners keep it: the published load, perhaps with `Minions`.
    pub(super) fn from_load(jid: Jid, started_ms: i64, mut load: Value) -> Self {
        let minions = load.remove("Minions").unwrap_or(Value::Nil);
        let minions = minions.list().unwrap_or_default().iter();
        Self {
            fun: fun_text(&load),
            user: load.get_text("user").unwrap_or("root").to_owned(),
            tgt: load.get("tgt").map(ValueExt::python_str).unwrap_or_default(),
            tgt_type: load.get_text("tgt_type").unwrap_or("glob").to_owned(),
            minions: minions.filter_map(|id| MinionId::try_from(id.text()?).ok()).collect(),
            load: msgpack::encode_disk(&load),
            jid,
            started_ms,
        }
    }
}

impl NewReturn {
    /// A return from its load.
    pub(crate) fn from_load(jid: Jid, minion: MinionId, at_ms: i64, load: &Value) -> Self {
        Self {
            fun: fun_text(load),
            retcode: worst_retcode(load),
            success: is_success(load),
            load: msgpack::encode_disk(load),
            jid,
            minion,
            at_ms,
        }
    }
}

impl From<NewReturn> for JobReturn {
    fn from(new: NewReturn) -> Self {
        let NewReturn { minion, at_ms, retcode, success, load, .. } = new;
        Self { minion, at_ms, retcode, success, load }
    }
}

impl Returner for JobStore {
    fn save<'a>(&'a self, batch: Vec<Record>) -> BoxFuture<'a, Result<Vec<Saved>, StoreError>> {
        // All at once: they share commits.
        let each = batch.into_iter().map(|record| async move {
            Ok(Saved::Kept(match record {
                Record::Job(job) => self.add_job(job).await.map(|()| Added::New)?,
                Record::Return(new) => self.add_return(new).await?,
            }))
        });
        Box::pin(futures_util::future::try_join_all(each))
    }

    fn job<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Option<Job>, StoreError>> {
        Box::pin(JobStore::job(self, jid))
    }

    fn returns<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Vec<JobReturn>, StoreError>> {
        Box::pin(JobStore::returns(self, jid))
    }

    fn find(&self, filter: JobFilter) -> BoxFuture<'_, Result<Vec<Job>, StoreError>> {
        Box::pin(JobStore::find(self, filter))
    }

    fn clean(&self, before_ms: i64) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(JobStore::clean(self, before_ms))
    }

    fn save_events<'a>(
        &'a self,
        _master: &'a str,
        events: &'a [KeptEvent],
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        // It has no table of events, and the configuration names it nowhere where one would be needed.
        Box::pin(async { Ok(events.iter().map(|_| "the embedded store keeps no events".to_owned()).collect()) })
    }
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
