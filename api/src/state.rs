//! What all requests share.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::Value;

use crate::address::ClientAddress;
use crate::chunk::Client;
use crate::credentials;
use crate::link::{Caller, Link};
use crate::problem::Problem;
use crate::watchers::Watchers;

/// The extractor of what all requests share.
pub type Shared = State<Arc<Api>>;

/// What all requests share.
#[derive(Debug)]
pub struct Api {
    /// The way to the master.
    pub link: Arc<dyn Link>,
    /// Whether callers reach it over TLS.
    pub tls: bool,
    /// The watchers for streams of events.
    pub watchers: Watchers,
    live: RwLock<Arc<Live>>,
}

/// The settings that SIGHUP changes.
#[derive(Debug, Clone)]
pub struct Live {
    /// The clients that are offered.
    pub clients: Vec<Client>,
    /// The groups that targets may name.
    pub groups: Nodegroups,
    /// Longest wait for the result of a runner.
    pub rest_timeout: Duration,
}

impl Api {
    /// With these settings.
    pub fn new(link: Arc<dyn Link>, tls: bool, live: Live) -> Self {
        Self { link, tls, watchers: Watchers::default(), live: RwLock::new(Arc::new(live)) }
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
        let caller = Caller { token: credentials::token(headers)?, address: from.0 };
        let data = self.link.token(&caller).await?.ok_or_else(Problem::unauthorized)?;
        Ok((caller, data))
    }
}
