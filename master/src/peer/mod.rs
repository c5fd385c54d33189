//! Peer publication (§6.1): jobs that minions publish to each other (`minion_pub`, `pub_ret`, setting `peer`), and
//! runners that they start on the master (`minion_runner`, setting `peer_run`).
//!
//! Publishing does not wait for minions: the publisher gets the jid and requests the returns, as in Salt's
//! `publish.publish`. Some rules are stricter than Salt's. Each function of a job must be permitted, not only one of
//! them. Arguments are checked in the form that minions will use, and refused if they are ambiguous. A job whose
//! permission or target depends on grains or pillar is published by name to the minions that were checked. Only the
//! publisher of a job learns whether its jid exists.

mod request;
mod rules;
mod started;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use brine_protocol::config::settings;
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::job::PublishRequest;
use brine_protocol::options;
use brine_protocol::value::{Value, ValueExt, empty_map, list, map};
use tokio::sync::Semaphore;

use crate::access::{self, Extent, Principal};
use crate::audit::{Audit, AuditLine};
use crate::dispatch::Dispatcher;
use crate::fault::Fault;
use crate::jobs::JobCache;
use crate::of_one::OfOne;
use crate::refusals::{Refusals, Who};
use crate::runners::Runners;
use crate::targets::Targets;
use request::{PeerRequest, parse_args};
use rules::Rules;
use started::Started;

/// Concurrent publications of minions. Each needs a signature and a write to disk, which operators wait for too.
const PUBLISHING_MAX: usize = 8;
/// Concurrent publications and answers of one minion. Its target alone may take the files of all minions to resolve, and jobs of operators wait
/// for those too.
const OF_ONE: usize = 1;
/// Concurrent answers with returns.
const READING_MAX: usize = 4;
/// Bound on the packed size of such an answer, which is one message.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// Concurrent runners of one minion.
const RUNNERS_OF_ONE: usize = 2;
/// Concurrent runners of all minions.
const RUNNERS_MAX: usize = 32;
/// Time limit of a runner. Its minion waits 60 s for the answer.
const RUNNER_TIME: Duration = Duration::from_secs(50);

options! {
    /// The settings of peers.
    #[derive(Debug)]
    pub(crate) struct PeerOpts from c {
        /// `peer`: which minions may publish which functions; `None`: no publications.
        publish: Option<Value> = c.find(settings::PEER)?,
        /// `peer_run`: which minions may start which runners; `None`: no runners.
        run: Option<Value> = c.find(settings::PEER_RUN)?,
    }
}

/// The rules of both settings.
pub(crate) struct PeerRules {
    publish: Rules,
    run: Rules,
}

impl PeerRules {
    /// Reads `peer` and `peer_run`. The error is a text for the operator.
    pub(crate) fn read(opts: &PeerOpts) -> Result<Self, String> {
        let publish = Rules::read(opts.publish.as_ref()).map_err(|why| format!("peer: {why}"))?;
        let run = Rules::read(opts.run.as_ref()).map_err(|why| format!("peer_run: {why}"))?;
        Ok(Self { publish, run })
    }
}

/// Handles the peer requests of minions.
pub(crate) struct Peer {
    pub(crate) rules: ArcSwap<PeerRules>,
    pub(crate) targets: Arc<Targets>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) runners: Runners,
    pub(crate) jobs: Arc<JobCache>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) refusals: Arc<Refusals>,
    /// `user`: the user of jobs that minions publish.
    pub(crate) user: String,
    pub(crate) turns: Turns,
}

/// The bounds on concurrent requests, and the jobs that minions started.
pub(crate) struct Turns {
    started: Started,
    of_one: OfOne,
    publishing: Semaphore,
    reading: Semaphore,
    running: Semaphore,
    running_by: Mutex<HashMap<MinionId, usize>>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            started: Started::default(),
            of_one: OfOne::new(OF_ONE),
            publishing: Semaphore::new(PUBLISHING_MAX),
            reading: Semaphore::new(READING_MAX),
            running: Semaphore::new(RUNNERS_MAX),
            running_by: Mutex::default(),
        }
    }
}

impl Peer {
    /// Replaces the rules.
    pub(crate) fn replace(&self, rules: PeerRules) {
        self.rules.store(rules.into());
    }

    /// Forgets the jobs of minions without an accepted key.
    pub(crate) fn forget(&self, is_accepted: impl Fn(&MinionId) -> bool) {
        self.turns.started.retain(is_accepted);
    }
}

impl Turns {
    fn runner(&self, id: &MinionId) -> Option<Turn<'_>> {
        let permit = self.running.try_acquire().ok()?;
        let mut by = self.running_by.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by.entry(id.clone()).or_default();
        if *count >= RUNNERS_OF_ONE {
            return None;
        }
        *count += 1;
        Some(Turn { by: &self.running_by, id: id.clone(), _permit: permit })
    }
}

/// A runner's place. Dropping it frees the place.
struct Turn<'a> {
    by: &'a Mutex<HashMap<MinionId, usize>>,
    id: MinionId,
    _permit: tokio::sync::SemaphorePermit<'a>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut by = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                by.remove(&self.id);
            }
        }
    }
}

impl Peer {
    /// `minion_pub`: publishes a minion's job. Returns its jid and the expected minions, or an empty map.
    pub(crate) async fn publish(&self, id: &MinionId, load: &Value) -> Result<Value, Fault> {
        let _own = self.turns.of_one.turn(id).await;
        let job = match self.judge(id, load).await? {
            Ok(job) => job,
            Err(why) => {
                self.refuse(id, load, &why);
                return Ok(empty_map());
            }
        };
        // The semaphores are never closed.
        let _turn = self.turns.publishing.acquire().await;
        let Some(published) = self.dispatcher.publish(&job, &Principal::Minion(id.clone())).await? else {
            return Ok(empty_map());
        };
        self.turns.started.add(id, &published.jid);
        let minions = list(published.minions.iter().map(Value::from));
        Ok(map([("jid", Value::from(&published.jid)), ("minions", minions)]))
    }

    /// Returns the job for a minion's request, or the reason of a refusal.
    async fn judge(&self, id: &MinionId, load: &Value) -> Result<Result<PublishRequest, String>, Fault> {
        let rules = self.rules.load_full();
        let rules = rules.publish.of(id);
        if rules.is_empty() {
            return Ok(Err("peer permits nothing to this minion".to_owned()));
        }
        let asked = match PeerRequest::read(load) {
            Ok(asked) => asked,
            Err(why) => return Ok(Err(why)),
        };
        let kind = if asked.tgt_type.starts_with("node") { "nodegroup" } else { &asked.tgt_type };
        if !self.targets.has_data && !matches!(kind, "glob" | "pcre" | "list") {
            // The target would resolve to all minions (§10).
            return Ok(Err("minion_data_cache is off, and its target is not by id".to_owned()));
        }
        let resolved = self.targets.find(kind, &asked.tgt).await?;
        // With patterns a minion could find out the pillar of others letter by letter.
        let exact = match kind {
            "pillar" | "pillar_pcre" => Some("pillar_exact"),
            "compound" => Some("compound_pillar_exact"),
            _ => None,
        };
        if let Some(exact) = exact {
            let exactly = self.targets.find(exact, &asked.tgt).await?;
            if resolved.iter().any(|id| !exactly.contains(id)) {
                return Ok(Err("its target has a pattern for pillar".to_owned()));
            }
        }
        let job = PublishRequest::new(asked.fun(), asked.arg(), asked.tgt.clone(), kind, &self.user);
        let mut job = job.with_returners(&asked.ret).with_option("id", id.as_str());
        let resolve = |target| self.targets.permitted(target);
        let calls = job.calls();
        let extent = access::allowed(rules, &calls, &resolved, resolve).await;
        let Some(extent) = extent.filter(|_| !calls.is_empty()) else {
            return Ok(Err("peer does not permit it there".to_owned()));
        };
        if extent != Extent::Target || !matches!(kind, "glob" | "pcre" | "list") {
            // The job goes to the checked minions by name, because grains, pillar and keys can change.
            job.set_target(list(resolved.iter().map(Value::from)), "list");
        }
        Ok(Ok(job))
    }

    /// `pub_ret`: returns the returns so far of a job that this minion started.
    pub(crate) async fn returns(&self, id: &MinionId, load: &Value) -> Result<Value, Fault> {
        let jid = load.get("jid").and_then(|jid| Jid::try_from(jid.python_str().as_str()).ok());
        let Some(jid) = jid.filter(|jid| self.turns.started.has(id, jid)) else {
            self.refuse(id, load, "it did not start a job of that jid");
            return Ok(empty_map());
        };
        let _own = self.turns.of_one.turn(id).await;
        let _turn = self.turns.reading.acquire().await;
        // Each minion once.
        let mut answer = Vec::new();
        let mut bytes = 0;
        for one in self.jobs.local().returns(&jid).await? {
            bytes += one.load.len();
            if bytes > ANSWER_BYTES_MAX {
                tracing::warn!(
                    "not all returns of {jid} are told to {id}: they have more than {ANSWER_BYTES_MAX} bytes"
                );
                break;
            }
            let load = one.load();
            let mut told = map([("ret", load.get("return").cloned().unwrap_or(Value::Nil))]);
            if let Some(out) = load.get_text("out") {
                told.insert("out", out);
            }
            answer.push((Value::from(one.minion.as_str()), told));
        }
        Ok(Value::Map(answer))
    }

    /// `minion_runner`: runs a runner for a minion. Returns the runner's result.
    pub(crate) async fn runner(&self, id: &MinionId, load: &Value) -> Result<Value, Fault> {
        let (Some(fun), Some(arg)) = (load.get_text("fun"), load.get_list("arg")) else {
            self.refuse(id, load, "it names no runner or has no list of arguments");
            return Ok(empty_map());
        };
        if !self.rules.load().run.allow_runner(id, fun) {
            self.refuse(id, load, "peer_run does not permit this runner");
            return Ok(empty_map());
        }
        let Some(_turn) = self.turns.runner(id) else {
            self.refuse(id, load, "too many runners of minions are running");
            return Ok(empty_map());
        };
        let arg = parse_args(arg);
        let by = Principal::Minion(id.clone());
        let record = AuditLine::new("runner", "allowed").by(&by).call(fun, &arg);
        if let Err(why) = self.audit.write(record) {
            self.refuse(id, load, why);
            return Ok(empty_map());
        }
        let call = map([("arg", Value::Array(arg))]);
        let work = self.runners.run_for(&by, fun, &call);
        Ok(match tokio::time::timeout(RUNNER_TIME, work).await {
            Ok(outcome) => outcome.unwrap_or_else(|failure| failure.0),
            Err(_) => Value::from(format!("'{fun}' took longer than {} s", RUNNER_TIME.as_secs())),
        })
    }

    fn refuse(&self, id: &MinionId, load: &Value, why: &str) {
        let short = |key: &str| -> String {
            load.get(key).map(ValueExt::python_str).unwrap_or_default().chars().take(128).collect()
        };
        let (fun, jid): (String, String) = (short("fun"), short("jid"));
        let record = AuditLine::new("peer", "refused").by(&Principal::Minion(id.clone()));
        self.audit.stranger(
            record.put("fun", fun.as_str()).put("tgt", short("tgt")).put("jid", jid.as_str()).put("why", why),
        );
        let said = format!("a request of {id} to its peers was refused: {why}");
        let data = map([("id", id.as_str()), ("fun", &fun), ("jid", &jid), ("error", why)]);
        self.refusals.tell(Who::Minion(id), &said, format!("brine/refused/peer/{id}"), data);
    }
}
