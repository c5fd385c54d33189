//! Queries (`api_query`): what the master knows, for the pages of salt-api's console. A query reads, answers in its reply,
//! and is bounded; it starts no job and fires no event.
//!
//! - `args.rs`  the checked arguments · `page.rs`  one page of a list · `sight.rs`, `started.rs`  which minions and jobs a caller may see
//! - `grains.rs`, `sandboxes.rs`  what is shown of the minions' grains, and of what they report of their modules
//! - one file for each query
//!
//! Each query states the right that it needs. docs/api-v1.md has arguments and answers.

mod args;
mod fleet;
mod grains;
mod held;
mod job;
mod jobs;
mod keys;
mod me;
mod minion;
mod modules;
mod page;
mod plan;
mod sandboxes;
mod sight;
mod started;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use brine_protocol::value::{Value, ValueExt as _, map};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::access::{Access, Principal};
use crate::fault::Fault;
use crate::fileserver::FileServer;
use crate::jobs::JobCache;
use crate::keys::MinionKeys;
use crate::presence::Presence;
use crate::sandbox_reports::SandboxReports;
use crate::targets::Targets;
use args::Args;
use brine_fileserver::HashType;
use sight::Sight;

/// Bound on concurrent queries: each may hold a list of all minions. Others wait.
const AT_A_TIME: usize = 8;

/// The parts of the master that queries read.
pub(crate) struct Queries {
    pub(crate) cachedir: PathBuf,
    pub(crate) hash_type: HashType,
    pub(crate) access: Arc<Access>,
    pub(crate) targets: Arc<Targets>,
    pub(crate) keys: Arc<MinionKeys>,
    /// The master's public key.
    pub(crate) master_key: String,
    pub(crate) presence: Arc<Presence>,
    pub(crate) jobs: Arc<JobCache>,
    pub(crate) files: Arc<FileServer>,
    pub(crate) reports: Arc<SandboxReports>,
    /// Each query holds one of these.
    pub(crate) turns: Arc<Semaphore>,
}

/// Why a query has no answer.
#[derive(Debug)]
enum Refusal {
    /// An argument is wrong.
    Wrong(String),
    /// The caller has not the right that the query needs, as this says.
    NotPermitted(String),
    Failed(Fault),
}

impl<E: Into<Fault>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// An answer; nil if the thing asked for does not exist, or the caller may not see it.
type Answer = Result<Value, Refusal>;

/// A query on its way: who asks for what.
struct Asked {
    parts: Arc<Queries>,
    caller: Principal,
    args: Args,
}

/// A query.
struct Query {
    name: &'static str,
    /// The arguments that it takes.
    takes: &'static [&'static str],
    run: fn(Asked) -> BoxFuture<'static, Answer>,
}

/// All queries.
const QUERIES: &[Query] = &[
    Query { name: "me", takes: &[], run: |asked| Box::pin(me::answer(asked)) },
    Query {
        name: "fleet",
        takes: &["q", "state", "sort", "limit", "cursor"],
        run: |asked| Box::pin(fleet::answer(asked)),
    },
    Query { name: "minion", takes: &["id"], run: |asked| Box::pin(minion::answer(asked)) },
    Query {
        name: "jobs",
        takes: &["fun", "target", "minion", "user", "state", "find_job", "limit", "cursor"],
        run: |asked| Box::pin(jobs::answer(asked)),
    },
    Query {
        name: "job",
        takes: &["jid", "state", "minion", "limit", "cursor"],
        run: |asked| Box::pin(job::answer(asked)),
    },
    Query { name: "keys", takes: &["q", "state", "limit", "cursor"], run: |asked| Box::pin(keys::answer(asked)) },
    Query { name: "modules", takes: &["q", "limit", "cursor"], run: |asked| Box::pin(modules::answer(asked)) },
    Query { name: "held", takes: &["limit", "cursor"], run: |asked| Box::pin(held::answer(asked)) },
    Query { name: "plan", takes: &["tgt", "tgt_type", "fun", "arg"], run: |asked| Box::pin(plan::answer(asked)) },
];

impl Queries {
    pub(crate) fn turns() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(AT_A_TIME))
    }

    /// Answers `api_query`: a map with `answer`, or with `error`.
    pub(crate) async fn answer(self: &Arc<Self>, mut load: Value, caller: Principal) -> Result<Value, Fault> {
        let name = load.get_text("query").unwrap_or_default().to_owned();
        let args = load.remove("args").unwrap_or(Value::Nil);
        let error = |name: &str, why: String| Ok(map([("error", map([("name", name), ("message", why.as_str())]))]));
        match self.run(&name, args, caller).await {
            Ok(answer) => Ok(map([("answer", answer)])),
            Err(Refusal::Wrong(why)) => error("SaltInvocationError", why),
            Err(Refusal::NotPermitted(why)) => error("AuthorizationError", why),
            Err(Refusal::Failed(fault)) => Err(fault),
        }
    }

    async fn run(self: &Arc<Self>, name: &str, args: Value, caller: Principal) -> Answer {
        let query = QUERIES.iter().find(|query| query.name == name);
        let query = query.ok_or_else(|| Refusal::Wrong("there is no such query".to_owned()))?;
        let args = Args::new(args, query.takes)?;
        if self.access.is_blocked(&caller, None, &[]) {
            return Err(Refusal::NotPermitted("publisher_acl_blacklist names this user".to_owned()));
        }
        let _turn = self.turns.acquire().await;
        (query.run)(Asked { parts: Arc::clone(self), caller, args }).await
    }
}

impl Asked {
    /// Returns the minions that the caller may see.
    ///
    /// # Errors
    /// If it has no permission for jobs at all.
    async fn sight(&self) -> Result<Sight, Refusal> {
        let why = "this needs a permission for jobs";
        Sight::of(&self.parts, self.caller.reach()).await.ok_or_else(|| Refusal::NotPermitted(why.to_owned()))
    }

    /// Whether the caller may call this function of the master without arguments (`form`: runner or wheel).
    fn may_call(&self, form: &'static str, fun: &str) -> bool {
        self.caller.may_call(form, fun, &[], &[]).is_ok()
    }
}

/// Reads the disk, on a thread for that.
async fn blocking(work: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    tokio::task::spawn_blocking(work).await.map_err(|_| Fault::new("a query failed"))?
}
