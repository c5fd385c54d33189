//! `RunnerClient`: runs a runner in the master and waits for its result on the event bus (§7.3).

use std::time::Duration;

use brine_protocol::secret::Secret;
use brine_protocol::value::{self, Value, ValueExt};

use crate::bus::BusSubscription;
use crate::local_key::LocalKey;
use crate::{ClientError, ClientOpts, LogIn, request};

/// The time for the master's start of a runner, to which it replies at once.
const START: Duration = Duration::from_secs(15);

/// A runner that the master has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The tag of its events, `salt/run/<jid>`.
    pub tag: String,
    /// Its jid.
    pub jid: String,
}

impl Started {
    /// Reads the master's reply.
    ///
    /// # Errors
    /// When it names no run.
    pub fn from_reply(reply: &Value) -> Result<Self, ClientError> {
        match (reply.get_text("tag"), reply.get("jid")) {
            (Some(tag), Some(jid)) => Ok(Self { tag: tag.to_owned(), jid: jid.python_str() }),
            _ => Err(ClientError::Reply("it has no tag and jid".to_owned())),
        }
    }
}

/// The request for a runner, with the fields of the log-in.
pub fn load(fun: &str, args: Vec<Value>, kwargs: Vec<(String, Value)>, log_in: &LogIn) -> Value {
    // as Python's own RunnerClient packs them
    let packed = value::map([("arg", Value::Array(args)), ("kwarg", value::map(kwargs))]);
    let mut load = value::map([("cmd", Value::from("runner")), ("fun", Value::from(fun)), ("kwarg", packed)]);
    for (name, item) in log_in.fields() {
        load.insert(name, item);
    }
    load
}

/// An event of a running runner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunnerEvent<'a> {
    /// An event of the runner itself: the end of its tag, and its data.
    Progress(&'a str, &'a Value),
    /// Lines that Salt's runner of this name prints.
    Print(&'a str),
}

/// The return of a runner.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerReturn {
    /// The result, or the text of the error.
    pub ret: Value,
    /// Whether the runner succeeded.
    pub success: bool,
    /// The exit code that the runner requests.
    pub retcode: Option<i64>,
    /// The outputter that the runner requests.
    pub out: Option<String>,
}

impl RunnerReturn {
    /// Reads the data of `salt/run/<jid>/ret`. A runner that chooses its outputter returns `{"outputter", "data"}`.
    pub fn from_event(data: &Value) -> Self {
        let ret = data.get("return").cloned().unwrap_or(Value::Nil);
        let success = data.get_bool("success").unwrap_or(true);
        let inner = || ret.get("data").and_then(|data| data.get_i64("retcode"));
        let retcode = data.get_i64("retcode").or_else(|| ret.get_i64("retcode")).or_else(inner);
        match (ret.entries().map(<[_]>::len), ret.get_text("outputter"), ret.get("data")) {
            (Some(2), Some(out), Some(data)) => Self { out: Some(out.to_owned()), ret: data.clone(), success, retcode },
            // One with more, as an orchestration with its code, is shown as a whole.
            (Some(_), Some(out), Some(_)) => Self { out: Some(out.to_owned()), ret, success, retcode },
            _ => Self { out: data.get_text("outputter").map(str::to_owned), ret, success, retcode },
        }
    }
}

/// The client.
pub struct RunnerClient {
    opts: ClientOpts,
    log_in: LogIn,
    key: Secret<String>,
    key_problem: Option<String>,
}

impl RunnerClient {
    /// A client of the master with this configuration. It connects on the first request.
    pub fn new(opts: ClientOpts) -> Self {
        Self::logged_in(opts, LogIn::Key)
    }

    /// A client with this log-in.
    pub fn logged_in(opts: ClientOpts, log_in: LogIn) -> Self {
        let LocalKey { key, problem } = LocalKey::for_log_in(&log_in, &opts);
        Self { opts, log_in, key, key_problem: problem }
    }

    /// Starts a runner and does not wait for it.
    ///
    /// # Errors
    /// When the master cannot be reached or refuses.
    pub async fn cmd_async(
        &self,
        fun: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> Result<Started, ClientError> {
        BusSubscription::probe(self.opts.bus_socket()).await?;
        self.start(fun, args, kwargs).await
    }

    /// Runs a runner. Without a timeout, this waits as long as the runner runs and the master lives.
    ///
    /// # Errors
    /// As [`RunnerClient::cmd_async`], and when no result arrives.
    pub async fn cmd(
        &self,
        fun: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
        timeout: Option<Duration>,
    ) -> Result<RunnerReturn, ClientError> {
        self.follow(fun, args, kwargs, timeout, |_| ()).await
    }

    /// As [`RunnerClient::cmd`], and passes the runner's events to `tell`.
    ///
    /// # Errors
    /// As [`RunnerClient::cmd`].
    pub async fn follow(
        &self,
        fun: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
        timeout: Option<Duration>,
        mut tell: impl FnMut(RunnerEvent<'_>),
    ) -> Result<RunnerReturn, ClientError> {
        let mut bus = BusSubscription::connect(self.opts.bus_socket()).await?;
        let started = self.start(fun, args, kwargs).await?;
        let prefix = format!("{}/", started.tag);
        let run = async {
            loop {
                let event = bus.next(|tag| tag.starts_with(&prefix)).await.ok_or(ClientError::BusClosed)?;
                match &event.tag[prefix.len()..] {
                    "ret" => return Ok(RunnerReturn::from_event(&event.data)),
                    // What an orchestration starts: Salt's command prints only what its runner tells.
                    "new" | "args" => {}
                    "print" => tell(RunnerEvent::Print(event.data.get_text("data").unwrap_or_default())),
                    suffix => tell(RunnerEvent::Progress(suffix, &event.data)),
                }
            }
        };
        match timeout {
            None => run.await,
            Some(timeout) => tokio::time::timeout(timeout, run)
                .await
                .map_err(|_| ClientError::NoResult(timeout.as_secs(), started.jid.clone()))?,
        }
    }

    async fn start(&self, fun: &str, args: Vec<Value>, kwargs: Vec<(String, Value)>) -> Result<Started, ClientError> {
        let mut load = load(fun, args, kwargs, &self.log_in);
        load.insert("user", self.opts.user.as_str());
        load.insert("key", self.key.expose().as_str());
        Started::from_reply(&request::clear(&self.opts, load, START, self.key_problem.as_deref()).await?)
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::{empty_map, map};

    use super::*;

    #[test]
    fn returns_with_and_without_an_outputter() {
        let plain = RunnerReturn::from_event(&map([("return", Value::from(1)), ("success", Value::from(true))]));
        assert_eq!(plain, RunnerReturn { ret: Value::from(1), success: true, retcode: None, out: None });
        let own = map([("outputter", Value::from("yaml")), ("data", Value::from(2))]);
        let own = RunnerReturn::from_event(&map([("return", own), ("success", Value::from(false))]));
        assert_eq!(
            own,
            RunnerReturn { ret: Value::from(2), success: false, retcode: None, out: Some("yaml".to_owned()) }
        );
        let orchestrated =
            map([("outputter", Value::from("highstate")), ("data", empty_map()), ("retcode", Value::from(1))]);
        let whole = RunnerReturn::from_event(&map([("return", orchestrated.clone()), ("success", Value::from(false))]));
        let out = Some("highstate".to_owned());
        assert_eq!(whole, RunnerReturn { ret: orchestrated, success: false, retcode: Some(1), out });
        let empty = RunnerReturn::from_event(&map([("x", 1)]));
        assert_eq!(empty.ret, Value::Nil);
    }
}
