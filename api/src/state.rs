//! What all requests share.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{self, Value, ValueExt as _};

use crate::address::ClientAddress;
use crate::call;
use crate::chunk::{self, Client};
use crate::credentials;
use crate::link::{Caller, Link};
use crate::pages::{AppOpts, Paths};
use crate::problem::Problem;
use crate::rules::Rules;
use crate::stats::Stats;
use crate::watchers::Watchers;
use crate::work::Work;

/// The extractor of what all requests share.
pub type Shared = State<Arc<Api>>;

/// What all requests share.
#[derive(Debug)]
pub struct Api {
    /// The way to the master.
    pub link: Arc<dyn Link>,
    /// Whether callers reach it over TLS.
    pub tls: bool,
    /// The streams of events that are open.
    pub watchers: Watchers,
    /// Where its paths are.
    pub paths: Paths,
    /// The pages for browsers.
    pub app: AppOpts,
    /// Counts.
    pub stats: Stats,
    /// The requests that are worked on.
    pub work: Work,
    live: RwLock<Arc<Live>>,
}

/// The settings that SIGHUP changes.
#[derive(Debug, Clone)]
pub struct Live {
    /// The clients that are offered.
    pub clients: Vec<Client>,
    /// Who may speak to salt-api, by address and origin.
    pub rules: Rules,
    /// The groups that targets may name.
    pub groups: Nodegroups,
    /// Longest wait for the result of a runner.
    pub rest_timeout: Duration,
    /// Whether `/stats` answers everybody.
    pub open_stats: bool,
}

impl Api {
    /// With these settings.
    pub fn new(link: Arc<dyn Link>, tls: bool, paths: Paths, app: AppOpts, live: Live) -> Self {
        let (watchers, stats, work) = (Watchers::default(), Stats::default(), Work::default());
        Self { link, tls, watchers, paths, app, stats, work, live: RwLock::new(Arc::new(live)) }
    }

    /// Applies other settings.
    pub fn set(&self, live: Live) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
    }

    /// The settings of now.
    pub fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the caller, whose token the master has confirmed, and the token's data.
    ///
    /// # Errors
    /// When the request has no good token, or another site's page sent it.
    pub async fn caller(&self, headers: &HeaderMap, from: ClientAddress) -> Result<(Caller, Value), Problem> {
        let caller = Caller { token: credentials::token(headers, &self.live().rules, self.tls)?, address: from.0 };
        let data = self.confirm(&caller).await?;
        Ok((caller, data))
    }

    /// Asks the master about a caller's token, and returns the token's data.
    ///
    /// # Errors
    /// When it is none, or its user may not use salt-api from the caller's address.
    pub async fn confirm(&self, caller: &Caller) -> Result<Value, Problem> {
        let data = self.link.token(caller).await?.ok_or_else(Problem::unauthorized)?;
        let user = data.get_text("name").unwrap_or_default();
        self.live().rules.check_user(user, ClientAddress(caller.address))?;
        Ok(data)
    }

    /// Runs a function by one of the clients, with these keys of a chunk. Returns its result.
    ///
    /// # Errors
    /// When the client is not offered, or the master refuses.
    pub async fn run<'a>(
        &self,
        caller: &Caller,
        client: Client,
        fun: &str,
        more: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<Value, Problem> {
        let chunk = [("client", Value::from(client.name())), ("fun", Value::from(fun))].into_iter().chain(more);
        let live = self.live();
        let chunk = chunk::parse(value::map(chunk), &live.clients, &live.groups)?.pop();
        let call = chunk.ok_or_else(|| Problem::bad("There is no chunk"))?.call;
        let results = call::run(&*self.link, caller, call, live.rest_timeout).await?;
        Ok(results.into_iter().next().unwrap_or(Value::Nil))
    }
}
