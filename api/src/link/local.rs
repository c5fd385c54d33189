//! A master on this host: its port of requests on loopback, and the socket of its event bus.

use std::net::IpAddr;
use std::time::Duration;

use brine_client::request::Requests;
use brine_client::runner::{self, Started};
use brine_client::{ClientError, ClientOpts, Job, LogIn, Published, wheel};
use brine_protocol::value::{Value, ValueExt as _, map};

use super::{Answer, Caller, Cursor, Events, Follow, Link, LinkError, Watch};

/// Connections to the master that stay open between requests.
const IDLE_MAX: usize = 64;
/// Time for a reply that the master gives at once.
const SOON: Duration = Duration::from_secs(15);
/// Time for a reply that needs a password checked, which is slow on purpose, or many keys read.
const SLOW: Duration = Duration::from_secs(60);

/// The link.
#[derive(Debug)]
pub struct LocalLink {
    opts: ClientOpts,
    requests: Requests,
    events: Events,
}

impl LocalLink {
    /// Subscribes to the bus. The master may come later.
    pub fn new(opts: ClientOpts) -> Self {
        let events = Events::subscribe(opts.bus_socket());
        Self { opts, requests: Requests::keeping(IDLE_MAX), events }
    }

    async fn ask(&self, load: Value, timeout: Duration) -> Result<Value, LinkError> {
        if !self.is_up() {
            return Err(LinkError::Away);
        }
        self.requests.clear(&self.opts, load, timeout, None).await.map_err(|error| match error {
            // The master is there but slow.
            ClientError::Timeout(_) if self.is_up() => LinkError::Late,
            error => error.into(),
        })
    }
}

fn by_token(caller: &Caller) -> LogIn {
    LogIn::Token(caller.token.secret().clone())
}

fn with_token(cmd: &str, caller: &Caller) -> Value {
    map([("cmd", cmd), ("token", caller.token.secret().expose())])
}

impl Link for LocalLink {
    fn is_up(&self) -> bool {
        self.events.is_up()
    }

    fn log_in<'a>(&'a self, log_in: &'a LogIn, _from: IpAddr) -> Answer<'a, Value> {
        Box::pin(async move {
            let load = map(std::iter::once(("cmd", Value::from("mk_token"))).chain(log_in.fields()));
            let data = self.ask(load, SLOW).await?;
            if data.get_text("token").is_none_or(str::is_empty) {
                return Err(LinkError::Reply("a new token is missing".to_owned()));
            }
            Ok(data)
        })
    }

    fn token<'a>(&'a self, caller: &'a Caller) -> Answer<'a, Option<Value>> {
        Box::pin(async move {
            let data = self.ask(with_token("get_token", caller), SOON).await?;
            Ok(data.has("name").then_some(data))
        })
    }

    fn perms<'a>(&'a self, caller: &'a Caller) -> Answer<'a, Vec<Value>> {
        Box::pin(async move {
            let answer = self.ask(with_token("token_perms", caller), SOON).await?;
            Ok(answer.get_list("perms").unwrap_or_default().to_vec())
        })
    }

    fn end_token<'a>(&'a self, caller: &'a Caller) -> Answer<'a, ()> {
        Box::pin(async move {
            let done = self.ask(with_token("end_token", caller), SOON).await?;
            match done.get_bool("ended") {
                Some(true) => Ok(()),
                _ => Err(LinkError::Refused(
                    "This token is the configuration's, and ends with its line there".to_owned(),
                )),
            }
        })
    }

    fn publish<'a>(&'a self, caller: &'a Caller, job: &'a Job) -> Answer<'a, Published> {
        Box::pin(async move {
            let reply = self.ask(job.load(&by_token(caller)), SOON).await?;
            Ok(Published::from_reply(&reply)?)
        })
    }

    fn runner<'a>(
        &'a self,
        caller: &'a Caller,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> Answer<'a, Started> {
        Box::pin(async move {
            let reply = self.ask(runner::load(fun, args, kwargs, &by_token(caller)), SOON).await?;
            Ok(Started::from_reply(&reply)?)
        })
    }

    fn wheel<'a>(
        &'a self,
        caller: &'a Caller,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> Answer<'a, Value> {
        Box::pin(async move { self.ask(wheel::load(fun, args, kwargs, &by_token(caller)), SLOW).await })
    }

    fn query<'a>(&'a self, caller: &'a Caller, name: &'a str, args: Value) -> Answer<'a, Value> {
        Box::pin(async move {
            let mut load = with_token("api_query", caller);
            load.insert("query", name);
            load.insert("args", args);
            self.ask(load, SOON).await
        })
    }

    fn fire_hook<'a>(&'a self, _: Option<&'a Caller>, _: IpAddr, _: &'a str, _: Value) -> Answer<'a, ()> {
        Box::pin(async { Err(LinkError::Refused("Hooks are not there yet".to_owned())) })
    }

    fn watch<'a>(&'a self, _: &'a Caller, _: Option<Cursor>) -> Answer<'a, Watch> {
        Box::pin(async { Err(LinkError::Refused("Events are not there yet".to_owned())) })
    }

    fn follow(&self) -> Follow {
        self.events.follow()
    }

    fn timeouts(&self) -> (Duration, Duration) {
        (self.opts.timeout, self.opts.gather_job_timeout)
    }
}
