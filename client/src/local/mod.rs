//! `LocalClient`: runs functions on minions through the master on this host, as root or as the master's user.

mod batch;
mod slots;
mod trimmed;
mod waiter;

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyState, KeyStore};
use brine_protocol::secret::Secret;
use brine_protocol::value::{self, Value, ValueExt};

use crate::bus::BusSubscription;
use crate::local_key::LocalKey;
use crate::presence::Presence;
use crate::request::Requests;
use crate::{ClientError, ClientOpts, LogIn};

pub use batch::{Batch, BatchEvent};
pub use slots::{BadBatchSize, BatchOptions, BatchSize, Slots};
pub use waiter::{News, Step, Waiter};

/// Lower bound on the time for the master's reply to a publish request, however short the wait for minions is.
const PUBLISH_MIN: Duration = Duration::from_secs(5);

/// A job to publish.
#[derive(Debug, Clone)]
pub struct Job {
    /// The target expression: text, or a list of ids.
    pub tgt: Value,
    /// `glob`, `list`, `pcre`, …
    pub tgt_type: String,
    /// The function's name, or a list of them.
    pub fun: Value,
    /// Its arguments, keywords last as the `__kwarg__` map; for several functions a list of such lists.
    pub arg: Vec<Value>,
    /// Returners, separated by commas; mostly empty.
    pub ret: String,
    /// A jid to use; empty to get one from the master.
    pub jid: String,
    /// Further `kwargs` of the request, such as `delimiter` and `metadata`.
    pub kwargs: Vec<(String, Value)>,
    /// Time to wait for returns before the client asks which minions still run the job; none for the configuration's
    /// `timeout`.
    pub timeout: Option<Duration>,
}

impl Job {
    /// A job of one function for a glob.
    pub fn new(tgt: &str, fun: &str, arg: Vec<Value>) -> Self {
        Self {
            tgt: tgt.into(),
            tgt_type: "glob".to_owned(),
            fun: fun.into(),
            arg,
            ret: String::new(),
            jid: String::new(),
            kwargs: Vec::new(),
            timeout: None,
        }
    }
}

impl Job {
    /// The request that publishes the job, with the fields of the log-in.
    pub fn load(&self, log_in: &LogIn) -> Value {
        let mut load = value::map([
            ("cmd", Value::from("publish")),
            ("tgt", self.tgt.clone()),
            ("fun", self.fun.clone()),
            ("arg", Value::Array(self.arg.clone())),
            ("tgt_type", Value::from(self.tgt_type.as_str())),
            ("ret", Value::from(self.ret.as_str())),
            ("jid", Value::from(self.jid.as_str())),
        ]);
        let kwargs: Vec<(&str, Value)> =
            self.kwargs.iter().map(|(name, item)| (name.as_str(), item.clone())).chain(log_in.fields()).collect();
        if !kwargs.is_empty() {
            load.insert("kwargs", value::map(kwargs));
        }
        // Python's client reads the job back from files before it waits for returns; these clients need only the reply.
        load.insert("python_job_files", false);
        load
    }
}

/// The text for a minion that did not return.
pub fn no_response(jid: &str) -> String {
    format!(
        "Minion did not return. [No response]\nThe minions may not have all finished running and any remaining minions will \
         return upon completion. To look up the return data for this job later, run the following command:\n\nsalt-run \
         jobs.lookup_jid {jid}"
    )
}

/// The master's reply to a publish request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The job's id.
    pub jid: String,
    /// The minions that are expected to return.
    pub minions: Vec<String>,
    /// Ids of a list target that no accepted minion has.
    pub missing: Vec<String>,
}

/// A minion's return.
#[derive(Debug, Clone, PartialEq)]
pub struct MinionReturn {
    /// The minion's id.
    pub id: String,
    /// The function's result, or the text of its error.
    pub ret: Value,
    /// 0 for success; for several functions the highest.
    pub retcode: i64,
    /// The outputter that the function requests.
    pub out: Option<String>,
    /// The whole load as on the bus.
    pub load: Value,
}

impl MinionReturn {
    fn from_event(id: &str, load: Value) -> Self {
        let retcode = match load.get("retcode") {
            Some(Value::Map(codes)) => codes.iter().filter_map(|(_, code)| code.as_i64()).max().unwrap_or(0),
            Some(Value::Array(codes)) => codes.iter().filter_map(Value::as_i64).max().unwrap_or(0),
            Some(Value::Boolean(false)) => 1,
            Some(code) => code.as_i64().unwrap_or(0),
            None => 0,
        };
        let out = load.get_text("out").map(str::to_owned);
        Self { id: id.to_owned(), ret: load.get("return").cloned().unwrap_or(Value::Nil), retcode, out, load }
    }
}

/// An event of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobEvent {
    /// A minion returned.
    Return(Box<MinionReturn>),
    /// The wait is over and this minion did not return.
    Missing {
        /// The minion's id.
        id: String,
        /// Whether the minion is known to be disconnected from the master.
        disconnected: bool,
    },
}

/// The client. It keeps its connections to the master open.
pub struct LocalClient {
    opts: ClientOpts,
    log_in: LogIn,
    key: Secret<String>,
    key_problem: Option<String>,
    requests: Requests,
}

impl LocalClient {
    /// A client of the master with this configuration. It connects on the first request.
    pub fn new(opts: ClientOpts) -> Self {
        Self::logged_in(opts, LogIn::Key)
    }

    /// A client with this log-in.
    pub fn logged_in(opts: ClientOpts, log_in: LogIn) -> Self {
        let LocalKey { key, problem } = LocalKey::for_log_in(&log_in, &opts);
        Self { opts, log_in, key, key_problem: problem, requests: Requests::default() }
    }

    /// The client's options.
    pub const fn opts(&self) -> &ClientOpts {
        &self.opts
    }

    /// Publishes a job and does not wait for returns.
    ///
    /// # Errors
    /// When the master cannot be reached or refuses, or no minion matches.
    pub async fn cmd_async(&self, job: &Job) -> Result<Published, ClientError> {
        BusSubscription::probe(self.opts.bus_socket()).await?;
        self.publish(job).await
    }

    /// Publishes a job and returns an iterator over its returns.
    ///
    /// # Errors
    /// As [`LocalClient::cmd_async`].
    pub async fn cmd_iter(&self, job: &Job) -> Result<Returns<'_>, ClientError> {
        let bus = BusSubscription::connect(self.opts.bus_socket()).await?;
        let published = self.publish(job).await?;
        let timeout = self.timeout(job);
        let waiter = Waiter::new(&published, timeout, self.opts.gather_job_timeout, Instant::now());
        Ok(Returns { client: self, bus, waiter, published, missing: None, trimmed: None })
    }

    /// Publishes a job and collects the results of the minions in the order of their arrival. Minions that did not
    /// return are left out.
    ///
    /// # Errors
    /// As [`LocalClient::cmd_async`].
    pub async fn cmd(&self, job: &Job) -> Result<Vec<(String, Value)>, ClientError> {
        let mut returns = self.cmd_iter(job).await?;
        let mut out = Vec::new();
        while let Some(event) = returns.next().await? {
            if let JobEvent::Return(ret) = event {
                out.push((ret.id, ret.ret));
            }
        }
        Ok(out)
    }

    fn timeout(&self, job: &Job) -> Duration {
        job.timeout.unwrap_or(self.opts.timeout)
    }

    async fn publish(&self, job: &Job) -> Result<Published, ClientError> {
        let mut load = job.load(&self.log_in);
        load.insert("key", self.key.expose().as_str());
        load.insert("user", self.opts.user.as_str());
        let timeout = self.timeout(job).max(PUBLISH_MIN);
        let reply = self.requests.clear(&self.opts, load, timeout, self.key_problem.as_deref()).await?;
        Published::from_reply(&reply)
    }

    /// Asks the minions whether they run the job. After an error, the wait ends with the returns so far; the operator
    /// does not see the error.
    async fn find_job(&self, jid: &str, ids: Vec<String>) -> Option<String> {
        // an id that is not an accepted minion (a syndic's) cannot be asked
        let accepted = KeyStore::new(&self.opts.pki_dir).list(KeyState::Accepted).unwrap_or_default();
        let accepted: HashSet<MinionId> = accepted.into_iter().collect();
        let ids: Vec<Value> = ids
            .into_iter()
            .filter(|id| accepted.is_empty() || accepted.contains(id.as_str()))
            .map(Value::from)
            .collect();
        if ids.is_empty() {
            return None;
        }
        let job = Job {
            tgt: Value::Array(ids),
            tgt_type: "list".to_owned(),
            timeout: Some(self.opts.gather_job_timeout),
            ..Job::new("", "saltutil.find_job", vec![jid.into()])
        };
        match self.publish(&job).await {
            Ok(published) => Some(published.jid),
            Err(ClientError::NoMatch { .. }) => None,
            Err(error) => {
                tracing::warn!("cannot ask the minions whether they run the job: {error}");
                None
            }
        }
    }
}

impl Published {
    /// Reads the reply to a publish (§7.2).
    ///
    /// # Errors
    /// When no minion matches, or the reply is malformed.
    pub fn from_reply(reply: &Value) -> Result<Self, ClientError> {
        let load = reply.get("load").ok_or_else(|| ClientError::Reply("it has no load".to_owned()))?;
        let minions = load.get_list("minions").unwrap_or_default();
        let Some(jid) = load.get("jid").filter(|jid| jid.truthy() && !minions.is_empty()) else {
            return Err(ClientError::NoMatch { why: load.get_text("why").map(str::to_owned) });
        };
        let texts = |ids: &[Value]| ids.iter().filter_map(|id| id.text().map(str::to_owned)).collect();
        let missing = texts(load.get_list("missing").unwrap_or_default());
        Ok(Self { jid: jid.python_str(), minions: texts(minions), missing })
    }
}

/// The returns of a published job.
pub struct Returns<'a> {
    client: &'a LocalClient,
    bus: BusSubscription,
    waiter: Waiter,
    published: Published,
    missing: Option<VecDeque<JobEvent>>,
    /// A return that was too large for the bus and is being fetched.
    trimmed: Option<MinionReturn>,
}

impl Returns<'_> {
    /// The job's id and its minions.
    pub const fn published(&self) -> &Published {
        &self.published
    }

    /// Waits for the next return. After the last one follow the minions that did not return, then none. Cancel-safe.
    ///
    /// # Errors
    /// When the master refuses the job after all.
    pub async fn next(&mut self) -> Result<Option<JobEvent>, ClientError> {
        loop {
            if let Some(ret) = &self.trimmed {
                let whole = trimmed::fetch(self.client, &self.published.jid, &ret.id).await;
                if let Some(mut ret) = self.trimmed.take() {
                    if let Some(whole) = whole {
                        ret.ret = whole;
                    }
                    return Ok(Some(JobEvent::Return(Box::new(ret))));
                }
            }
            if let Some(missing) = &mut self.missing {
                return Ok(missing.pop_front());
            }
            let mut step = self.waiter.step(Instant::now());
            let until = match &step {
                Step::Until(until) => *until,
                // an event that has already arrived counts, even if this process runs late
                Step::Probe(_) | Step::Done => Instant::now(),
            };
            let waiter = &self.waiter;
            let event = tokio::select! {
                biased;
                event = self.bus.next(|tag| waiter.wants(tag)) => Some(event),
                () = tokio::time::sleep_until(until.into()) => None,
            };
            if let Some(event) = event {
                match event.and_then(|event| self.waiter.event(event, Instant::now())) {
                    Some(News::Return(ret)) if trimmed::is_trimmed(&ret.ret) => {
                        self.trimmed = Some(ret);
                        continue;
                    }
                    Some(News::Return(ret)) => return Ok(Some(JobEvent::Return(Box::new(ret)))),
                    Some(News::Refused(text)) => return Err(ClientError::Authorization(text)),
                    None => continue,
                }
            }
            if let Step::Until(_) = step {
                step = self.waiter.step(Instant::now());
            }
            match step {
                Step::Until(_) => {}
                Step::Probe(ids) => {
                    let jid = self.client.find_job(&self.published.jid, ids).await;
                    self.waiter.probed(jid.as_deref(), Instant::now());
                }
                Step::Done => self.missing = Some(self.report_missing()),
            }
        }
    }

    fn report_missing(&self) -> VecDeque<JobEvent> {
        let pending = self.waiter.missing();
        let presence = if pending.is_empty() { Presence::default() } else { Presence::read(&self.client.opts) };
        let event = |id: String| JobEvent::Missing { disconnected: presence.is_disconnected(&id), id };
        pending.into_iter().map(event).collect()
    }
}
