//! Jobs that a runner publishes and whose returns it collects, like Salt's `LocalClient` in runners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::args::condition_input;
use brine_protocol::ids::Jid;
use brine_protocol::job::PublishRequest;
use brine_protocol::value::{Value, ValueExt};
use tokio::time::Instant;

use super::{Failure, Parts};
use crate::access::Principal;
use crate::bus::{Next, Subscription};
use crate::dispatch::Published;

/// The longest wait for minions that a runner's caller can request.
pub(super) const TIMEOUT_MAX_SECONDS: f64 = 3_600.0;
/// Bound on the bytes of all returns that a runner holds.
const RETURNS_BYTES_MAX: usize = 256 << 20;

/// A job for minions.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) tgt: Value,
    pub(super) tgt_type: String,
    pub(super) fun: String,
    pub(super) args: Vec<Value>,
    pub(super) kwargs: Vec<(String, Value)>,
    pub(super) timeout: Option<Duration>,
    pub(super) gather: Option<Duration>,
}

impl Question {
    /// Makes a job without arguments for all minions.
    pub(super) fn all(fun: &str) -> Self {
        Self {
            tgt: Value::from("*"),
            tgt_type: "glob".to_owned(),
            fun: fun.to_owned(),
            args: Vec::new(),
            kwargs: Vec::new(),
            timeout: None,
            gather: None,
        }
    }
}

/// The returns of a job.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The ids of the expected minions.
    pub(super) minions: BTreeSet<String>,
    /// The data of each return, by id.
    pub(super) returns: BTreeMap<String, Value>,
}

impl Answers {
    /// Iterates over `{id: return}`.
    pub(super) fn results(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.returns.iter().map(|(id, data)| (id.as_str(), data.get("return").unwrap_or(&Value::Nil)))
    }
}

/// Publishes a job and collects its returns, until all minions have returned, or the timeout has passed and no minion
/// reports that it still runs the job. Without minions the result is empty.
pub(super) async fn minions(parts: &Arc<Parts>, question: Question) -> Result<Answers, Failure> {
    let events = parts.bus.subscribe().ok_or("the event bus has as many subscribers as it may")?;
    let timeout = question.timeout.unwrap_or(parts.opts.timeout);
    let gather = question.gather.unwrap_or(parts.opts.gather_job_timeout);
    let (tgt, tgt_type) = without_groups(parts, &question.tgt, &question.tgt_type)?;
    let arg = condition_input(question.args, question.kwargs);
    let published = publish(parts, &question.fun, arg, tgt, &tgt_type).await?;
    let Some(published) = published else { return Ok(Answers::default()) };
    let minions: BTreeSet<String> = published.minions.iter().map(ToString::to_string).collect();
    let mut wait =
        Wait { events, prefix: prefix(&published.jid), answers: Answers { minions, ..Answers::default() }, bytes: 0 };
    loop {
        wait.until(Instant::now() + timeout).await?;
        let open = wait.open();
        if open.is_empty() || !still_working(parts, &published.jid, open, gather).await? {
            break;
        }
    }
    whole(parts, &published.jid, &mut wait.answers).await?;
    Ok(wait.answers)
}

/// Publishes a job of the master itself. Returns `None` if it was not published.
async fn publish(
    parts: &Parts,
    fun: &str,
    arg: Vec<Value>,
    tgt: Value,
    tgt_type: &str,
) -> Result<Option<Published>, Failure> {
    let request = PublishRequest::new(Value::from(fun), arg, tgt, tgt_type, &parts.opts.user);
    Ok(parts.dispatcher.publish(&request, &Principal::Master).await.map_err(|fault| fault.to_string())?)
}

/// Expands node groups into a compound target, because only the master knows them.
pub(super) fn without_groups(parts: &Parts, tgt: &Value, tgt_type: &str) -> Result<(Value, String), Failure> {
    let words: Vec<String> = match tgt_type {
        "nodegroup" => vec![format!("N@{}", tgt.python_str())],
        "compound" => tgt.python_str().split_whitespace().map(str::to_owned).collect(),
        _ => return Ok((tgt.clone(), tgt_type.to_owned())),
    };
    let live = parts.live.load();
    let groups = &live.nodegroups;
    let mut expanded = Vec::with_capacity(words.len());
    for word in words {
        match word.strip_prefix("N@").filter(|name| !name.is_empty()) {
            Some(name) if groups.has(name) => expanded.extend(groups.expand(name)),
            Some(name) => return Err(format!("Node group {name} unavailable in the master's configuration").into()),
            None => expanded.push(word),
        }
    }
    Ok((Value::from(expanded.join(" ")), "compound".to_owned()))
}

fn prefix(jid: &Jid) -> String {
    format!("salt/job/{jid}/ret/")
}

/// Asks whether one of these minions still runs the job.
async fn still_working(
    parts: &Arc<Parts>,
    jid: &Jid,
    open: BTreeSet<String>,
    gather: Duration,
) -> Result<bool, Failure> {
    let events = parts.bus.subscribe().ok_or("the event bus has as many subscribers as it may")?;
    let tgt = Value::Array(open.iter().map(|id| Value::from(id.as_str())).collect());
    let published = publish(parts, "saltutil.find_job", vec![Value::from(jid)], tgt, "list").await?;
    let Some(published) = published else { return Ok(false) };
    let mut wait = Wait {
        events,
        prefix: prefix(&published.jid),
        answers: Answers { minions: open, ..Answers::default() },
        bytes: 0,
    };
    wait.until(Instant::now() + gather).await?;
    let working = wait.answers.results().any(|(_, job)| job.entries().is_some_and(|job| !job.is_empty()));
    Ok(working)
}

/// Collects returns.
struct Wait {
    events: Subscription,
    prefix: String,
    answers: Answers,
    bytes: usize,
}

impl Wait {
    fn open(&self) -> BTreeSet<String> {
        self.answers.minions.iter().filter(|id| !self.answers.returns.contains_key(*id)).cloned().collect()
    }

    async fn until(&mut self, end: Instant) -> Result<(), Failure> {
        while self.answers.minions.iter().any(|id| !self.answers.returns.contains_key(id)) {
            let Ok(next) = tokio::time::timeout_at(end, self.events.next()).await else { return Ok(()) };
            match next {
                Some(Next::Event(event)) => {
                    let Some(id) = event.event.tag.strip_prefix(&self.prefix) else { continue };
                    self.bytes += event.size();
                    if self.bytes > RETURNS_BYTES_MAX {
                        return Err(format!(
                            "the minions returned more than {} MiB: ask fewer at once",
                            RETURNS_BYTES_MAX >> 20
                        )
                        .into());
                    }
                    self.answers.returns.insert(id.to_owned(), event.event.data.clone());
                }
                // `saltutil.find_job` or the store finds the lost returns.
                Some(Next::Lost(_)) => {}
                None => return Err("the master is stopping".into()),
            }
        }
        Ok(())
    }
}

/// Completes the returns from the store: those that were lost, or too large for the bus.
async fn whole(parts: &Arc<Parts>, jid: &Jid, answers: &mut Answers) -> Result<(), Failure> {
    let cut = |data: &Value| data.get("return").is_some_and(is_cut);
    let missing = answers.returns.len() < answers.minions.len();
    if !parts.jobs.keeps() || !(missing || answers.returns.values().any(cut)) {
        return Ok(());
    }
    for stored in parts.jobs.returns(jid).await.map_err(|e| e.to_string())? {
        let id = stored.minion.as_str();
        if answers.minions.contains(id) && answers.returns.get(id).is_none_or(cut) {
            answers.returns.insert(id.to_owned(), stored.load());
        }
    }
    Ok(())
}

/// Returns whether the bus has left out a part of a value.
pub(super) fn is_cut(value: &Value) -> bool {
    match value {
        Value::Map(entries) => entries.iter().any(|(_, value)| is_cut(value)),
        other => other.text() == Some(crate::bus::TRIMMED),
    }
}
