//! The request channel: sealed requests on 4506 over a few connections. It authenticates again when the master asks for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_protocol::auth::Credentials;
use brine_protocol::keys::KeyError;
use brine_protocol::request::{AEAD, AEAD_VERSION, ReplyError, SealedRequest, Session};
use brine_protocol::value::{Value, ValueExt as _};
use brine_zmtp::{Backoff, Endpoint, ReqConfig, RequestError, Requester};
use bytes::Bytes;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tracing::{debug, info};

use super::auth::Attempt;
use super::error::ChannelError;
use crate::config::MinionOpts;
use crate::grains::GrainsStore;
use crate::pki::Pki;

/// Connections to 4506 at once. REQ is lock-step, so this also bounds the requests under way: eight for returns, four for modules, the
/// pillar, an event, and the requests of jobs, which their own code bounds (eight for files, two for events and the mine). So jobs do not
/// delay their own returns. Four more ask for many files at once.
const MAX_CONNECTIONS: usize = 29;

/// Connections kept open between many requests. Opening a connection costs more than a request.
const MAX_IDLE: usize = 10;
/// Connections kept open for long. Each costs the master a connection and heartbeats.
const MAX_IDLE_LONG: usize = 2;
/// Time after which the connections beyond [`MAX_IDLE_LONG`] are closed.
const IDLE_SHORT: Duration = Duration::from_secs(5);
/// The longest wait between attempts to connect while a request waits, so that a master that comes back is noticed soon.
const MAX_RECONNECT_WAIT: Duration = Duration::from_secs(2);

/// The result of one successful authentication; the next one replaces it.
#[derive(Debug)]
pub struct SignedIn {
    /// Counts authentications.
    pub generation: u64,
    /// When the authentication began. A publication that came earlier and that this key does not open was made with an older key.
    pub(super) began: Instant,
    /// Seals requests and opens replies.
    pub session: Session,
    /// The fingerprint of the master's key.
    pub master: Arc<str>,
    /// The keys and the other facts that the master sent.
    pub credentials: Credentials,
}

/// The channel to one master.
pub struct Channel {
    pub(crate) opts: Arc<MinionOpts>,
    pub(crate) pki: Pki,
    pub(super) grains: Arc<GrainsStore>,
    pub(super) endpoint: Endpoint,
    /// Held while authenticating, so that many failed requests lead to one authentication.
    pub(super) signing_in: tokio::sync::Mutex<()>,
    /// The first attempt, if it was begun before its result is wanted.
    pub(super) begun: Mutex<Option<Attempt>>,
    sign_in_state: watch::Sender<Option<Arc<SignedIn>>>,
    generations: AtomicU64,
    idle: Mutex<Vec<Requester>>,
    /// Whether a task will close the idle connections beyond [`MAX_IDLE_LONG`].
    trimming: AtomicBool,
    places: Semaphore,
}

impl Channel {
    /// Makes a channel that is not signed in.
    pub fn new(opts: Arc<MinionOpts>, pki: Pki, grains: Arc<GrainsStore>) -> Arc<Self> {
        Arc::new(Self {
            endpoint: opts.master.request_endpoint(),
            opts,
            pki,
            grains,
            signing_in: tokio::sync::Mutex::new(()),
            begun: Mutex::new(None),
            sign_in_state: watch::Sender::new(None),
            generations: AtomicU64::new(0),
            idle: Mutex::new(Vec::new()),
            trimming: AtomicBool::new(false),
            places: Semaphore::new(MAX_CONNECTIONS),
        })
    }

    /// The result of the last authentication; none before the first one.
    pub fn current_sign_in(&self) -> Option<Arc<SignedIn>> {
        self.sign_in_state.borrow().clone()
    }

    /// Whether the minion is signed in at a master of Brine: one with sealed publications.
    pub fn is_brines(&self) -> bool {
        self.sign_in_state.borrow().as_ref().is_some_and(|live| live.credentials.offer.is_some())
    }

    /// Waits until the minion is signed in.
    pub async fn signed_in(&self) -> Arc<SignedIn> {
        let mut watched = self.sign_in_state.subscribe();
        loop {
            if let Some(live) = watched.borrow_and_update().clone() {
                return live;
            }
            if watched.changed().await.is_err() {
                std::future::pending::<()>().await; // never reached: the sender lives as long as `self`
            }
        }
    }

    /// `resumed` is the sign-in whose session goes on; its token, which costs a private operation, stays too.
    pub(super) fn put_sign_in(
        &self,
        credentials: Credentials,
        began: Instant,
        resumed: Option<&SignedIn>,
    ) -> Result<Arc<SignedIn>, KeyError> {
        let auth = &self.opts.auth;
        let session = match resumed {
            Some(live) => live.session.resumed(&credentials),
            None => {
                Session::new(&self.opts.id, Arc::clone(self.pki.key()), &credentials, auth.enc_algo, auth.sig_algo)?
                    .signing(auth.sign_messages)
            }
        };
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        let master = credentials.master.fingerprint().into();
        let live = Arc::new(SignedIn { generation, began, session, master, credentials });
        self.sign_in_state.send_replace(Some(Arc::clone(&live)));
        Ok(live)
    }

    pub(super) fn new_requester(&self) -> Requester {
        let default = ReqConfig::default();
        let config = ReqConfig {
            backoff: Backoff { max: MAX_RECONNECT_WAIT, ..default.backoff },
            keepalive: self.opts.net.keepalive,
            heartbeat: self.opts.net.heartbeat,
            ..default
        };
        Requester::new(self.endpoint.clone(), config)
    }

    /// Sends a load (a map with `cmd`) and returns the master's reply.
    ///
    /// # Errors
    /// When the minion is not signed in, or the master does not reply, refuses the request or sends a reply that cannot be used.
    pub async fn request(self: &Arc<Self>, load: Value) -> Result<Value, ChannelError> {
        self.call(load, |session, reply, asked| session.open_reply(&reply, &asked.nonce)).await
    }

    /// Sends `_serve_file`, whose answer may come under an AEAD (§6.5.2). The bytes of the reply stay bytes.
    ///
    /// # Errors
    /// As [`Channel::request`].
    pub async fn request_content(self: &Arc<Self>, mut load: Value) -> Result<Value, ChannelError> {
        load.insert(AEAD, AEAD_VERSION);
        self.call(load, |session, reply, asked| session.open_content(reply, &asked.nonce, &asked.mac)).await
    }

    /// Sends `_pillar` and returns the pillar.
    ///
    /// # Errors
    /// As [`Channel::request`].
    pub async fn request_pillar(self: &Arc<Self>, load: Value) -> Result<Value, ChannelError> {
        self.call(load, |session, reply, asked| session.open_pillar_reply(&reply, &asked.nonce)).await
    }

    /// Sends a load and opens the reply. If the reply does not open or says `bad load`, the minion authenticates and tries once more
    /// (PROTOCOL §3.5).
    async fn call(
        self: &Arc<Self>,
        load: Value,
        open: fn(&Session, Bytes, &SealedRequest) -> Result<Value, ReplyError>,
    ) -> Result<Value, ChannelError> {
        let mut live = self.current_sign_in().ok_or(ChannelError::NotSignedIn)?;
        let mut load = Some(load);
        for last in [false, true] {
            let this = if last { load.take() } else { load.clone() };
            let mut asked = live.session.seal_request(this.unwrap_or(Value::Nil))?;
            let payload = std::mem::take(&mut asked.payload).into();
            let reply = self.exchange(payload, self.opts.net.request_timeout).await?;
            match open(&live.session, reply, &asked) {
                Ok(value) => return Ok(value),
                Err(e) if e.wants_reauth() && !last => {
                    info!("the master did not take a request ({e}); authenticating again");
                    // A master that was restarted knows the session and tells its run.
                    live = self.renew(live.generation).await?;
                }
                Err(ReplyError::Text(text)) => return Err(ChannelError::Refused(text)),
                Err(e) => return Err(ChannelError::Reply(e)),
            }
        }
        unreachable!("the second pass returns")
    }

    /// Sends one request and receives its reply on a connection that nothing else uses meanwhile.
    async fn exchange(self: &Arc<Self>, payload: Bytes, timeout: Duration) -> Result<Bytes, RequestError> {
        let _place = self.places.acquire().await.expect("the semaphore is never closed");
        let idle = self.idle().pop();
        let reused = idle.is_some();
        let mut requester = idle.unwrap_or_else(|| self.new_requester());
        let reply = requester.request(payload.clone(), timeout).await;
        let reply = match reply {
            // An idle connection may have been dead already. A master tolerates a repeated request.
            Err(RequestError::Closed { reason, .. }) if reused => {
                debug!("an idle connection was closed ({reason}); asking on a new one");
                requester = self.new_requester();
                requester.request(payload, timeout).await
            }
            reply => reply,
        };
        if reply.is_ok() {
            self.keep(requester);
        }
        reply
    }

    /// Keeps a connection for the next request.
    fn keep(self: &Arc<Self>, requester: Requester) {
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(requester);
        }
        if idle.len() > MAX_IDLE_LONG && !self.trimming.swap(true, Ordering::Relaxed) {
            let this = Arc::downgrade(self);
            tokio::spawn(async move {
                tokio::time::sleep(IDLE_SHORT).await;
                if let Some(this) = this.upgrade() {
                    this.trimming.store(false, Ordering::Relaxed);
                    this.idle().truncate(MAX_IDLE_LONG);
                }
            });
        }
    }

    /// Closes idle connections after the network or the master behind them has changed.
    pub(crate) fn drop_idle(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Requester>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Channel {
    /// A channel that has signed in at a master with this key, which none listens for.
    pub(crate) fn signed_in_at(opts: MinionOpts, master: &brine_protocol::keys::PrivateKey) -> Arc<Self> {
        use brine_protocol::crypticle::AesKey;

        let opts = Arc::new(opts);
        let pki = Pki::open(&opts.pki_dir, opts.auth.keysize).unwrap();
        let channel = Self::new(Arc::clone(&opts), pki, GrainsStore::new(opts));
        let credentials = Credentials {
            publish_key: AesKey::generate(),
            session_key: AesKey::generate(),
            publish_port: 4505,
            master: master.public().clone(),
            master_is_new: false,
            offer: None,
            run: None,
        };
        channel.put_sign_in(credentials, Instant::now(), None).unwrap();
        channel
    }
}
