//! The way to the master. The requests carry the caller's own credentials, and the master decides.
//!
//! - `master.rs`      requests, as a master takes them
//! - `connection.rs`  the connection, made again whenever it ends
//! - `route.rs`       where it goes: a socket on this host, or `remote.rs`, TLS to another one
//! - `streams.rs`     the streams of events over it
//! - `watch.rs`       what a caller may see · `follow.rs`  the events of a caller's own request

mod connection;
mod follow;
mod master;
mod remote;
mod route;
mod streams;
mod watch;

use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use brine_client::runner::Started;
use brine_client::{ClientError, Job, LogIn, Published};
use brine_protocol::value::Value;
use futures_util::future::BoxFuture;

pub use brine_protocol::nodes::Cursor;
pub use follow::Follow;
pub use master::MasterLink;
pub use remote::Remote;
pub use watch::{Shown, Watch, Watched};

use crate::credentials::Token;

/// The result of a request to the master.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, LinkError>>;

/// Who asks: by the token's rights, from this address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The token.
    pub token: Token,
    /// Where the HTTP request comes from.
    pub address: IpAddr,
}

/// Why the master did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The caller is nobody, or may not do this: the master's words.
    #[error("{0}")]
    Denied(String),
    /// Too many log-ins failed; another one is not looked at before this time is over.
    #[error("too many log-ins failed")]
    TooMany(Duration),
    /// The request makes no sense to the master.
    #[error("{0}")]
    Refused(String),
    /// No minion matches the target.
    #[error("no minion matches the target")]
    NoMatch,
    /// The master cannot be reached.
    #[error("the master is away")]
    Away,
    /// The result did not come in time.
    #[error("the result did not come in time")]
    Late,
    /// The reply makes no sense.
    #[error("{0}")]
    Reply(String),
}

impl From<ClientError> for LinkError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Authentication { message, .. } | ClientError::Authorization(message) => Self::Denied(message),
            ClientError::Refused(why) => Self::Refused(why),
            ClientError::NoMatch { why: Some(why) } => Self::Refused(why),
            ClientError::NoMatch { why: None } => Self::NoMatch,
            ClientError::NoResult(..) => Self::Late,
            ClientError::Reply(_) | ClientError::Address { .. } => Self::Reply(error.to_string()),
            ClientError::MasterDown { .. }
            | ClientError::NotPermitted(_)
            | ClientError::Timeout(_)
            | ClientError::BusClosed => Self::Away,
        }
    }
}

/// A master, as salt-api reaches it.
pub trait Link: Debug + Send + Sync {
    /// Whether the master can be reached now.
    fn is_up(&self) -> bool;

    /// Makes a token for a name and a password, and returns its data (`mk_token`).
    fn log_in<'a>(&'a self, log_in: &'a LogIn, from: IpAddr) -> Answer<'a, Value>;

    /// Returns the data of a token; none if it is none.
    fn token<'a>(&'a self, caller: &'a Caller) -> Answer<'a, Option<Value>>;

    /// Returns the permissions of a token's user, as `external_auth` lists them.
    fn perms<'a>(&'a self, caller: &'a Caller) -> Answer<'a, Vec<Value>>;

    /// Ends a token.
    fn end_token<'a>(&'a self, caller: &'a Caller) -> Answer<'a, ()>;

    /// Publishes a job.
    fn publish<'a>(&'a self, caller: &'a Caller, job: &'a Job) -> Answer<'a, Published>;

    /// Starts a runner.
    fn runner<'a>(
        &'a self,
        caller: &'a Caller,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> Answer<'a, Started>;

    /// Calls a wheel function. Returns its tag and its data.
    fn wheel<'a>(
        &'a self,
        caller: &'a Caller,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> Answer<'a, Value>;

    /// Asks the master for data that it has (`api_query`), which the reply has.
    fn query<'a>(&'a self, caller: &'a Caller, name: &'a str, args: Value) -> Answer<'a, Value>;

    /// Fires the event `salt/netapi/hook/TAG` with this map: for a caller, or for nobody in particular, where the
    /// master's configuration has `webhook_disable_auth`.
    fn fire_hook<'a>(&'a self, caller: Option<&'a Caller>, from: IpAddr, tag: &'a str, data: Value) -> Answer<'a, ()>;

    /// Watches the events that the caller may see, from now on or after a place. It survives the master's absence, and
    /// ends within a second after the token.
    fn watch<'a>(&'a self, caller: &'a Caller, after: Option<Cursor>) -> Answer<'a, Watch>;

    /// Follows the events of the caller's own request, from before it until its result.
    fn follow(&self) -> Follow;

    /// Time to wait for returns before the minions are asked whether they run the job, and for the answers.
    fn timeouts(&self) -> (Duration, Duration);
}
