//! Publications on 4505: received, checked and opened; what is left is a job for somebody.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::crypticle::Crypticle;
use brine_protocol::crypticle::SerialGuard;
use brine_protocol::publication::{self, BROADCAST, PublicationError};
use brine_protocol::value::Value;
use brine_zmtp::{Frames, SubConfig, SubEvent, Subscriber};
use bytes::Bytes;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::auth::{Patience, SignInError};
use super::channel::{Channel, Live};
use super::serials::SerialFile;

/// Old publications, signed under an earlier publish key, can be replayed by anyone; each leads to an authentication.
/// So many without a new key are answered so ...
const MAX_VAIN_RENEWALS: usize = 3;
/// ... within this time; further ones are dropped.
const VAIN_RENEWALS_WINDOW: Duration = Duration::from_secs(30);

/// What arrived.
#[derive(Debug)]
pub enum Arrival {
    /// Connected and signed in: at first, and again after a connection was lost. The start events are due.
    Ready {
        /// Not the first time.
        again: bool,
    },
    /// A load that the master published, proved and new.
    Load {
        /// Whom it is for is in it.
        load: Value,
        /// The fingerprint of the key that proved it.
        master: Arc<str>,
    },
}

/// The subscription.
pub struct Publications {
    channel: Arc<Channel>,
    subscriber: Subscriber,
    subscribed_port: u16,
    live: Arc<Live>,
    crypticle: Crypticle,
    serials: SerialGuard,
    file: Option<SerialFile>,
    topics: [Bytes; 2],
    connected: bool,
    connected_before: bool,
    vain: VecDeque<Instant>,
    /// Publications that were refused, for tests and reports.
    dropped: u64,
}

/// After a rotation of the publish key, minions come back over so much time. No more: the job that told them of it waits.
const REAUTH_SPREAD: Duration = Duration::from_secs(1);

impl Publications {
    /// Subscribes with what the last authentication gave.
    pub fn subscribe(channel: Arc<Channel>, live: Arc<Live>) -> Self {
        let id = &channel.opts.id;
        let topics = [Bytes::from_static(BROADCAST.as_bytes()), Bytes::from(publication::topic(id))];
        let path = channel.opts.cachedir.join("serial");
        let file = SerialFile::open(&path)
            .inspect_err(|e| warn!("cannot keep the serial of publications in {}: {e}", path.display()))
            .ok();
        let subscribed_port = live.credentials.publish_port;
        let subscriber = connect(&channel, subscribed_port, &topics);
        let crypticle = Crypticle::new(&live.credentials.publish_key);
        let mut this = Self {
            channel,
            subscriber,
            subscribed_port,
            live,
            crypticle,
            serials: SerialGuard::new(),
            file,
            topics,
            connected: false,
            connected_before: false,
            vain: VecDeque::new(),
            dropped: 0,
        };
        this.resume_serials();
        this
    }

    /// The next arrival. Ends only when the minion is to end.
    pub async fn next(&mut self) -> Result<Arrival, SignInError> {
        loop {
            match self.subscriber.recv().await {
                SubEvent::Connected => {
                    self.connected = true;
                    let again = std::mem::replace(&mut self.connected_before, true);
                    if again {
                        info!("connected to the master's publications again");
                        self.channel.drop_idle();
                        let live = self.channel.sign_in_until_accepted(Patience::Running).await?;
                        if self.adopt(live) {
                            self.connected_before = false; // the port moved: not connected there yet
                            continue;
                        }
                    }
                    return Ok(Arrival::Ready { again });
                }
                SubEvent::Disconnected { reason } => {
                    // Once a loss, however many attempts follow.
                    if std::mem::replace(&mut self.connected, false) {
                        warn!("not connected to the master's publications: {reason}");
                    } else {
                        debug!("not connected to the master's publications: {reason}");
                    }
                }
                SubEvent::Message(frames) => {
                    if let Some(load) = self.open(&frames).await? {
                        return Ok(Arrival::Load { load, master: Arc::clone(&self.live.master) });
                    }
                }
            }
        }
    }

    /// How many publications were refused.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    async fn open(&mut self, frames: &Frames) -> Result<Option<Value>, SignInError> {
        let payload = match frames.as_slice() {
            [payload] => payload,
            [topic, payload] if self.topics.contains(topic) => payload,
            [_, _] => return Ok(None), // for another minion: a subscription is a prefix, this is the check
            _ => {
                self.drop_with("it has another number of parts");
                return Ok(None);
            }
        };
        match self.open_payload(payload) {
            Ok(load) => return Ok(Some(load)),
            Err(e) if e.wants_reauth() && self.may_renew() => {
                info!("{e}; authenticating again");
            }
            Err(e) => {
                self.drop_with(&e.to_string());
                return Ok(None);
            }
        }
        // The whole fleet got this publication, and none of it can read it.
        let spread = self.channel.opts.auth.reauth_delay.min(REAUTH_SPREAD);
        tokio::time::sleep(spread.mul_f64(rand::random())).await;
        let live = match self.channel.renew(self.live.generation).await {
            Ok(live) => live,
            Err(e) if e.is_permanent() => {
                self.drop_with(&e.to_string());
                return Ok(None);
            }
            Err(e) => {
                warn!("authenticating again failed: {e}");
                self.channel.sign_in_until_accepted(Patience::Running).await?
            }
        };
        let same_key = live.credentials.publish_key == self.live.credentials.publish_key;
        if same_key {
            self.vain.push_back(Instant::now());
        }
        self.adopt(live);
        match self.open_payload(payload) {
            Ok(load) => Ok(Some(load)),
            Err(e) => {
                self.drop_with(&e.to_string());
                Ok(None)
            }
        }
    }

    fn open_payload(&mut self, payload: &[u8]) -> Result<Value, PublicationError> {
        let credentials = &self.live.credentials;
        let load = publication::open(payload, &credentials.master, &self.crypticle, &mut self.serials)?;
        if let Some(file) = &self.file
            && let Err(e) = file.keep(&credentials.publish_key, self.serials.last())
        {
            warn!("cannot keep the serial of publications: {e}");
        }
        Ok(load)
    }

    /// Takes over a new authentication. True where the subscription had to move to another port.
    fn adopt(&mut self, live: Arc<Live>) -> bool {
        let same_key = live.credentials.publish_key == self.live.credentials.publish_key;
        self.live = live;
        if !same_key {
            self.crypticle = Crypticle::new(&self.live.credentials.publish_key);
            self.resume_serials();
        }
        let port = self.live.credentials.publish_port;
        if port == self.subscribed_port {
            return false;
        }
        info!("the master publishes on port {port} now");
        self.subscribed_port = port;
        self.subscriber = connect(&self.channel, port, &self.topics);
        true
    }

    fn resume_serials(&mut self) {
        self.serials = SerialGuard::new();
        if let Some(file) = &self.file {
            self.serials.accept(file.last(&self.live.credentials.publish_key));
        }
    }

    fn may_renew(&mut self) -> bool {
        while self.vain.front().is_some_and(|at| at.elapsed() > VAIN_RENEWALS_WINDOW) {
            self.vain.pop_front();
        }
        self.vain.len() < MAX_VAIN_RENEWALS
    }

    fn drop_with(&mut self, why: &str) {
        self.dropped += 1;
        warn!("a publication was dropped: {why}");
    }
}

fn connect(channel: &Channel, port: u16, topics: &[Bytes; 2]) -> Subscriber {
    let (opts, net) = (&channel.opts, &channel.opts.net);
    let config = SubConfig {
        subscriptions: if net.filtering { topics.to_vec() } else { vec![Bytes::new()] },
        identity: Some(Bytes::from(opts.id.to_string())),
        backoff: net.backoff,
        keepalive: net.keepalive,
        heartbeat: net.heartbeat,
        ..SubConfig::default()
    };
    Subscriber::connect(opts.master.publish_endpoint(port), config)
}
