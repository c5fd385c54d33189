//! A master, over its socket on this host or its port on another one.

use std::net::IpAddr;
use std::time::Duration;

use brine_client::runner::{self, Started};
use brine_client::{ClientOpts, Job, LogIn, Published, request, wheel};
use brine_protocol::envelope::Envelope;
use brine_protocol::nodes::Cursor;
use brine_protocol::value::{Value, ValueExt as _, map};

use super::connection::Connection;
use super::remote::Remote;
use super::route::Route;
use super::{Answer, Caller, Follow, Link, LinkError, Watch};

/// Time for a reply that the master gives at once.
const SOON: Duration = Duration::from_secs(15);
/// Time for a reply that needs a password checked, which is slow on purpose, or many keys read.
const SLOW: Duration = Duration::from_secs(60);
/// Time for a wheel function, whose callers bound it by themselves: the longest that a setting or a chunk can name.
const LONG: Duration = Duration::from_secs(86_400);
/// Where the tags of hooks are.
const HOOKS: &str = "salt/netapi/hook";

/// The link.
#[derive(Debug)]
pub struct MasterLink {
    opts: ClientOpts,
    connection: Connection,
}

impl MasterLink {
    /// Connects to the master on this host. It may come later.
    pub fn local(opts: ClientOpts) -> Self {
        let connection = Connection::keep(Route::Local(opts.api_socket()));
        Self { opts, connection }
    }

    /// Connects to a master on another host. It may come later.
    pub fn remote(opts: ClientOpts, remote: Remote) -> Self {
        let connection = Connection::keep(Route::Remote(Box::new(remote)));
        Self { opts, connection }
    }

    async fn ask(&self, load: Value, from: IpAddr, timeout: Duration) -> Result<Value, LinkError> {
        self.ask_and_place(load, from, timeout).await.map(|(reply, _)| reply)
    }

    /// Returns also a place before the events of what was asked.
    async fn ask_and_place(&self, load: Value, from: IpAddr, timeout: Duration) -> Result<(Value, Cursor), LinkError> {
        let (reply, before) = self.connection.request(Envelope::clear(load).encode(), from, timeout).await?;
        let reply = request::decode(&reply)?;
        if let Some(seconds) = reply.get("error").and_then(|error| error.get("retry_after")?.as_f64()) {
            return Err(LinkError::TooMany(Duration::try_from_secs_f64(seconds).unwrap_or(SLOW)));
        }
        match request::error(&reply) {
            Some(error) => Err(error.into()),
            None => Ok((reply, before)),
        }
    }
}

fn by_token(caller: &Caller) -> LogIn {
    LogIn::Token(caller.token.secret().clone())
}

fn with_token(cmd: &str, caller: &Caller) -> Value {
    map([("cmd", cmd), ("token", caller.token.secret().expose())])
}

impl Link for MasterLink {
    fn is_up(&self) -> bool {
        self.connection.is_up()
    }

    fn log_in<'a>(&'a self, log_in: &'a LogIn, from: IpAddr) -> Answer<'a, Value> {
        Box::pin(async move {
            let load = map(std::iter::once(("cmd", Value::from("mk_token"))).chain(log_in.fields()));
            let data = self.ask(load, from, SLOW).await?;
            if data.get_text("token").is_none_or(str::is_empty) {
                return Err(LinkError::Reply("a new token is missing".to_owned()));
            }
            Ok(data)
        })
    }

    fn token<'a>(&'a self, caller: &'a Caller) -> Answer<'a, Option<Value>> {
        Box::pin(async move {
            let data = self.ask(with_token("get_token", caller), caller.address, SOON).await?;
            Ok(data.has("name").then_some(data))
        })
    }

    fn perms<'a>(&'a self, caller: &'a Caller) -> Answer<'a, Vec<Value>> {
        Box::pin(async move {
            let answer = self.ask(with_token("token_perms", caller), caller.address, SOON).await?;
            Ok(answer.get_list("perms").unwrap_or_default().to_vec())
        })
    }

    fn end_token<'a>(&'a self, caller: &'a Caller) -> Answer<'a, ()> {
        Box::pin(async move {
            let done = self.ask(with_token("end_token", caller), caller.address, SOON).await?;
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
            let load = job.load(&by_token(caller));
            let (reply, before) = self.ask_and_place(load, caller.address, SOON).await?;
            let published = Published::from_reply(&reply)?;
            self.connection.started(&published.jid, caller, before);
            Ok(published)
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
            let mut load = runner::load(fun, args, kwargs, &by_token(caller));
            // What a chunk has beside the function's arguments is no error, as in Salt.
            load.insert("ignore_invalid", true);
            let (reply, before) = self.ask_and_place(load, caller.address, SOON).await?;
            let started = Started::from_reply(&reply)?;
            self.connection.started(&started.jid, caller, before);
            Ok(started)
        })
    }

    fn wheel<'a>(
        &'a self,
        caller: &'a Caller,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> Answer<'a, Value> {
        Box::pin(async move { self.ask(wheel::load(fun, args, kwargs, &by_token(caller)), caller.address, LONG).await })
    }

    fn query<'a>(&'a self, caller: &'a Caller, name: &'a str, args: Value) -> Answer<'a, Value> {
        Box::pin(async move {
            let mut load = with_token("api_query", caller);
            load.insert("query", name);
            load.insert("args", args);
            self.ask(load, caller.address, SOON).await
        })
    }

    fn fire_hook<'a>(&'a self, caller: Option<&'a Caller>, from: IpAddr, tag: &'a str, data: Value) -> Answer<'a, ()> {
        Box::pin(async move {
            let tag = if tag.is_empty() { HOOKS.to_owned() } else { format!("{HOOKS}/{tag}") };
            let mut load = map([("cmd", "fire_hook"), ("tag", &tag)]);
            load.insert("data", data);
            if let Some(caller) = caller {
                load.insert("token", caller.token.secret().expose().as_str());
            }
            self.ask(load, from, SOON).await.map(drop)
        })
    }

    fn watch<'a>(&'a self, caller: &'a Caller, after: Option<Cursor>) -> Answer<'a, Watch> {
        Box::pin(async move { self.connection.watch(caller, after, SOON).await })
    }

    fn follow(&self) -> Follow {
        self.connection.follow()
    }

    fn timeouts(&self) -> (Duration, Duration) {
        (self.opts.timeout, self.opts.gather_job_timeout)
    }
}
