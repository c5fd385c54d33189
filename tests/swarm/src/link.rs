//! A simulated minion's traffic with port 4506: authentication and encrypted requests over one persistent connection.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use brine_protocol::auth::{AuthOutcome, Credentials, MinionAuth, resume_request};
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{EncAlg, PublicKey, SignAlg};
use brine_protocol::request::{ReplyError, SealedRequest, Session};
use brine_protocol::sealed::SealKeys;
use brine_protocol::value::Value;
use brine_zmtp::{Backoff, Endpoint, ReqConfig, Requester};

use crate::keys::SwarmKey;
use crate::plan::Plan;
use crate::stats::{Stats, up};

/// Pause before requests to a master that has gone away.
const PAUSE: Duration = Duration::from_millis(500);
/// Upper bound on the wait between two attempts to connect while a request waits.
const RECONNECT_MAX: Duration = Duration::from_secs(2);

/// A minion's session with its master.
pub(crate) struct Live {
    pub(crate) session: Session,
    pub(crate) credentials: Credentials,
    /// What opens publications for this minion alone.
    pub(crate) seal_keys: Option<SealKeys>,
}

/// One minion's link to its master.
pub(crate) struct Link {
    plan: Arc<Plan>,
    stats: Arc<Stats>,
    id: MinionId,
    key: Arc<SwarmKey>,
    requester: Requester,
    /// The key as the first minion of the swarm saw it. It is trusted from then on.
    master: Arc<OnceLock<PublicKey>>,
    live: Option<Box<Live>>,
}

/// How to open a reply.
type Open = fn(&Session, &[u8], &str) -> Result<Value, ReplyError>;

impl Link {
    pub(crate) fn new(
        plan: Arc<Plan>,
        stats: Arc<Stats>,
        master: Arc<OnceLock<PublicKey>>,
        id: MinionId,
        key: Arc<SwarmKey>,
    ) -> Self {
        let requester = requester(&plan);
        Self { plan, stats, id, key, requester, master, live: None }
    }

    /// Replaces the request connection, after the subscription to the master was lost.
    pub(crate) fn reconnect(&mut self) {
        self.requester = requester(&self.plan);
    }

    /// Returns the result of the last authentication.
    pub(crate) fn live(&self) -> Option<&Live> {
        self.live.as_deref()
    }

    /// Authenticates, with as many attempts as necessary.
    pub(crate) async fn sign_in(&mut self) {
        self.forget();
        loop {
            let wait = match self.try_sign_in().await {
                Ok(()) => return,
                Err(wait) => wait,
            };
            tokio::time::sleep(wait.mul_f64(rand::random_range(0.75..1.25))).await;
        }
    }

    /// Gets the present keys, as a minion does that lost the master or cannot open a publication: under its session if the master still
    /// knows it, otherwise by authenticating.
    pub(crate) async fn renew(&mut self) {
        match self.resume().await {
            Ok(()) => up(&self.stats.resumed),
            Err(error) => {
                self.stats.error(&format!("resumption: {error}"));
                self.sign_in().await;
            }
        }
    }

    async fn resume(&mut self) -> Result<(), String> {
        let Some(live) = self.live.as_deref().filter(|live| live.credentials.offer.is_some()) else {
            return Err("there is no session for it".to_owned());
        };
        let sealed = live.session.seal_request(resume_request()).map_err(|error| error.to_string())?;
        let started = Instant::now();
        let reply = self.requester.request(sealed.payload.into(), self.plan.timeout).await;
        let answer = live.session.open_reply(&reply.map_err(|error| error.to_string())?, &sealed.nonce);
        self.stats.auth_time.add(started.elapsed());
        let credentials = live.credentials.resume(&answer.map_err(|error| error.to_string())?);
        let credentials = credentials.map_err(|error| error.to_string())?;
        let session = live.session.resumed(&credentials);
        self.live = Some(Box::new(Live { seal_keys: credentials.seal_keys(&self.id), session, credentials }));
        Ok(())
    }

    /// Attempts an authentication once. The error is the wait before the next attempt.
    async fn try_sign_in(&mut self) -> Result<(), Duration> {
        let (stats, refused) = (Arc::clone(&self.stats), self.plan.refused_wait);
        let failed = |text: String, wait: Duration| {
            stats.error(&text);
            wait
        };
        let auth =
            MinionAuth { master: self.master.get(), seals: self.plan.seals, ..MinionAuth::with(&self.id, &*self.key) };
        let attempt = auth.attempt().map_err(|error| failed(format!("authentication: {error}"), refused))?;
        let started = Instant::now();
        up(&stats.auth_sent);
        let reply = match self.requester.request(attempt.payload().to_vec().into(), self.plan.timeout).await {
            Ok(reply) => reply,
            Err(error) => {
                up(&stats.auth_unanswered);
                return Err(failed(format!("authentication: {error}"), PAUSE));
            }
        };
        stats.auth_time.add(started.elapsed());
        let outcome = attempt.verify_reply(&reply);
        match outcome {
            Ok(AuthOutcome::Accepted(credentials)) => {
                up(&stats.auth_accepted);
                self.adopt(*credentials).map_err(|error| failed(error, refused))
            }
            Ok(AuthOutcome::Pending { .. }) => {
                up(&stats.auth_pending);
                Err(failed("the key waits to be accepted (salt-key -A, or auto_accept: True)".to_owned(), refused))
            }
            Ok(outcome @ (AuthOutcome::Rejected | AuthOutcome::Full)) => {
                up(&stats.auth_rejected);
                Err(failed(format!("the master's answer is {outcome:?}"), refused))
            }
            Err(error @ brine_protocol::auth::AuthError::Refused(_)) => {
                up(&stats.auth_refused);
                Err(failed(format!("authentication: {error}"), refused))
            }
            Err(error) => {
                up(&stats.auth_unanswered);
                Err(failed(format!("authentication: {error}"), refused))
            }
        }
    }

    fn adopt(&mut self, credentials: Credentials) -> Result<(), String> {
        let key = Arc::clone(&self.key);
        let session = Session::new(&self.id, key, &credentials, EncAlg::default(), SignAlg::default());
        let session = session.map_err(|error| format!("the session: {error}"))?;
        self.master.get_or_init(|| credentials.master.clone());
        self.live = Some(Box::new(Live { seal_keys: credentials.seal_keys(&self.id), session, credentials }));
        up(&self.stats.authenticated);
        Ok(())
    }

    fn forget(&mut self) {
        if self.live.take().is_some() {
            self.stats.authenticated.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Sends a load until there is a reply, and returns the opened reply. Authenticates again if the master demands it.
    pub(crate) async fn request(&mut self, load: &Value, open: Open) -> Result<Value, String> {
        // A master that refuses the load after a new authentication refuses it for good.
        let mut again = true;
        loop {
            let Some(live) = self.live() else {
                self.sign_in().await;
                continue;
            };
            let sealed = live.session.seal_request(load.clone()).map_err(|error| error.to_string())?;
            let SealedRequest { payload, nonce, .. } = sealed;
            up(&self.stats.requests_sent);
            let reply = match self.requester.request(payload.into(), self.plan.timeout).await {
                Ok(reply) => reply,
                Err(error) => {
                    up(&self.stats.requests_unanswered);
                    self.stats.error(&format!("request: {error}"));
                    tokio::time::sleep(PAUSE.mul_f64(rand::random_range(0.5..1.5))).await;
                    continue;
                }
            };
            let Some(live) = self.live() else { continue };
            match open(&live.session, &reply, &nonce) {
                Ok(value) => return Ok(value),
                Err(error) if error.wants_reauth() && again => {
                    again = false;
                    self.sign_in().await;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

fn requester(plan: &Plan) -> Requester {
    let config = ReqConfig::default();
    let backoff = Backoff { max: RECONNECT_MAX, randomize: true, ..config.backoff };
    Requester::new(Endpoint::tcp(plan.master.as_str(), plan.port), ReqConfig { backoff, ..config })
}

impl Drop for Link {
    fn drop(&mut self) {
        self.forget();
    }
}
