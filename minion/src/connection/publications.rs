//! Publications on 4505, for all minions or for this one alone: receives, checks and opens them.
//!
//! Publications of another publish key are held while the minion authenticates again; publications of the present key go on meanwhile
//! (`held_publications.rs`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::publication::{self, BROADCAST, PublicationError};
use brine_protocol::receiver::{Opened, Received, Receiver};
use brine_protocol::text::LogLimit;
use brine_protocol::value::Value;
use brine_zmtp::{Frames, SubConfig, SubEvent, Subscriber};
use bytes::Bytes;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::auth::Patience;
use super::channel::{Channel, SignedIn};
use super::error::SignInError;
use super::held_publications::{HeldPublications, Taken};
use super::serial_file::SerialFile;
use crate::receipts::SignedPublication;

/// Lines in ten seconds about publications that were dropped.
const DROPPED_LINES: u32 = 10;

/// What [`Publications::next`] returns.
#[derive(Debug)]
pub enum Arrival {
    /// The minion is connected and signed in, for the first time or again. The start events are due.
    Ready {
        /// False the first time.
        again: bool,
    },
    /// A load that the master published; its signature and its serial hold.
    Load {
        /// The load, with the target in it.
        load: Value,
        /// What the master signed.
        asked: Arc<SignedPublication>,
        /// The fingerprint of the key that signed it.
        master: Arc<str>,
    },
}

/// The subscription to one master's publications.
pub struct Publications {
    channel: Arc<Channel>,
    subscriber: Subscriber,
    subscribed_port: u16,
    live: Arc<SignedIn>,
    receiver: Receiver,
    file: Option<SerialFile>,
    topics: [Bytes; 2],
    connected: bool,
    connected_before: bool,
    held: HeldPublications,
    /// The authentication that is to decide on the held publications: at most one.
    renewal: JoinSet<Result<Arc<SignedIn>, SignInError>>,
    /// Loads of publications that were held and have been opened.
    opened: VecDeque<(Value, Arc<SignedPublication>)>,
    log_limit: LogLimit,
    /// Publications that were refused, for tests and reports.
    dropped: u64,
}

/// After a rotation of the publish key, the fleet authenticates again spread over this time. It is short, because the job that revealed
/// the rotation waits.
const REAUTH_SPREAD: Duration = Duration::from_secs(1);

impl Publications {
    /// Subscribes with the result of the last authentication.
    pub fn subscribe(channel: Arc<Channel>, live: Arc<SignedIn>) -> Self {
        let id = &channel.opts.id;
        let topics = [Bytes::from_static(BROADCAST.as_bytes()), Bytes::from(publication::topic(id))];
        let path = channel.opts.cachedir.join("serial");
        let file = SerialFile::open(&path)
            .inspect_err(|e| warn!("cannot keep the serial of publications in {}: {e}", path.display()))
            .ok();
        let subscribed_port = live.credentials.publish_port;
        let subscriber = connect(&channel, subscribed_port, &topics);
        let receiver = Receiver::new(id, &live.credentials, channel.opts.auth.require_sealed);
        let mut this = Self {
            channel,
            subscriber,
            subscribed_port,
            live,
            receiver,
            file,
            topics,
            connected: false,
            connected_before: false,
            held: HeldPublications::new(),
            renewal: JoinSet::new(),
            opened: VecDeque::new(),
            log_limit: LogLimit::new(DROPPED_LINES),
            dropped: 0,
        };
        this.resume_serials();
        this
    }

    /// Waits for the next arrival.
    ///
    /// # Errors
    /// When the minion has to end, see [`SignInError`].
    pub async fn next(&mut self) -> Result<Arrival, SignInError> {
        loop {
            if let Some((load, asked)) = self.opened.pop_front() {
                return Ok(Arrival::Load { load, asked, master: Arc::clone(&self.live.master) });
            }
            let due = self.renew_if_due();
            let renewing = !self.renewal.is_empty();
            let event = tokio::select! {
                Some(renewed) = self.renewal.join_next(), if renewing => {
                    self.finish_renewal(renewed)?;
                    continue;
                }
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => continue,
                event = self.subscriber.recv() => event,
            };
            match event {
                SubEvent::Connected => {
                    self.connected = true;
                    let again = std::mem::replace(&mut self.connected_before, true);
                    if again {
                        info!("connected to the master's publications again");
                        self.channel.drop_idle();
                        let live = self.channel.sign_in_until_accepted(Patience::Running).await?;
                        if self.adopt(live) {
                            self.connected_before = false; // the port moved, so the minion is not connected there yet
                            continue;
                        }
                    }
                    return Ok(Arrival::Ready { again });
                }
                SubEvent::Disconnected { reason } => {
                    // One warning for each loss, however many attempts to connect follow.
                    if std::mem::replace(&mut self.connected, false) {
                        warn!("not connected to the master's publications: {reason}");
                    } else {
                        debug!("not connected to the master's publications: {reason}");
                    }
                }
                SubEvent::Message(frames) => {
                    if let Some((load, asked)) = self.open(&frames) {
                        return Ok(Arrival::Load { load, asked, master: Arc::clone(&self.live.master) });
                    }
                }
            }
        }
    }

    /// How many publications were refused.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn open(&mut self, frames: &Frames) -> Option<(Value, Arc<SignedPublication>)> {
        let received = match Received::parse(frames, &self.topics[1]) {
            Ok(received) => received?,
            Err(e) => {
                self.drop_with(&e.to_string());
                return None;
            }
        };
        match self.open_received(&received) {
            Ok(opened) => Some(opened),
            Err(e) if e.wants_reauth() => {
                self.hold(received);
                None
            }
            Err(e) => {
                self.refuse(&e);
                None
            }
        }
    }

    fn open_received(&mut self, received: &Received) -> Result<(Value, Arc<SignedPublication>), PublicationError> {
        let Opened { load, signed } = self.receiver.open(received)?;
        if let Some(file) = &self.file
            && let Err(e) = file.keep(self.receiver.publish_key(), self.receiver.last_serial())
        {
            warn!("cannot keep the serial of publications: {e}");
        }
        Ok((load, Arc::new(SignedPublication::of(signed))))
    }

    fn refuse(&mut self, error: &PublicationError) {
        if error.is_ordinary() {
            return debug!("{error}");
        }
        self.drop_with(&error.to_string());
    }

    /// Holds a publication that the master signed and that another key sealed.
    fn hold(&mut self, received: Received) {
        match self.held.take(received, Instant::now()) {
            Taken::Held => debug!("a publication was made with another publish key; it is held"),
            Taken::HeldInsteadOf(n) => {
                self.drop_with("there are too many of another publish key to hold all; the oldest goes");
                self.dropped += n as u64 - 1;
            }
            Taken::Old => self.drop_with("it was made with an earlier publish key: somebody plays a recording back"),
            Taken::Twice => self.drop_with("it is held already"),
        }
    }

    /// Starts the authentication that decides on the held publications, if it is due. Returns when it will be due.
    fn renew_if_due(&mut self) -> Option<Instant> {
        if !self.renewal.is_empty() {
            return None;
        }
        let at = self.held.next_question_at()?;
        // A request may have led to an authentication meanwhile.
        if let Some(live) = self.channel.current_sign_in().filter(|live| live.generation != self.live.generation) {
            self.adopt(live);
            return Some(Instant::now());
        }
        if at > Instant::now() {
            return Some(at);
        }
        info!("a publication was made with another publish key; authenticating again");
        let (channel, seen) = (Arc::clone(&self.channel), self.live.generation);
        self.renewal.spawn(async move {
            // The whole fleet got this publication, and none of it can read it.
            let spread = channel.opts.auth.reauth_delay.min(REAUTH_SPREAD);
            tokio::time::sleep(spread.mul_f64(rand::random())).await;
            match channel.renew(seen).await {
                Err(e) if !e.is_permanent() => {
                    warn!("authenticating again failed: {e}");
                    channel.sign_in_until_accepted(Patience::Running).await
                }
                renewed => renewed,
            }
        });
        None
    }

    /// Takes the result of [`Publications::renew_if_due`].
    fn finish_renewal(
        &mut self,
        renewed: Result<Result<Arc<SignedIn>, SignInError>, JoinError>,
    ) -> Result<(), SignInError> {
        match renewed {
            Ok(Ok(live)) => {
                if live.credentials.publish_key == self.live.credentials.publish_key {
                    self.held.count_vain_question(Instant::now());
                }
                self.adopt(live);
                Ok(())
            }
            Ok(Err(e)) if e.is_permanent() => {
                self.held.count_vain_question(Instant::now());
                self.drop_with(&e.to_string());
                self.dropped += self.held.take_all().len().saturating_sub(1) as u64;
                Ok(())
            }
            Ok(Err(e)) => Err(e),
            Err(e) => {
                self.held.count_vain_question(Instant::now());
                warn!("authenticating again failed: {e}");
                Ok(())
            }
        }
    }

    /// Takes over a new authentication and opens the held publications with it. Returns true if the subscription moved to another port.
    fn adopt(&mut self, live: Arc<SignedIn>) -> bool {
        if live.generation <= self.live.generation {
            return false; // an earlier authentication that arrives late
        }
        self.live = live;
        if let Some(earlier) = self.receiver.rekey(&self.live.credentials) {
            self.held.add_earlier_key(earlier);
            self.held.set_current_key(self.receiver.publish_key());
            self.resume_serials();
        }
        for held in self.held.take_all() {
            match self.open_received(&held.received) {
                Ok(opened) => self.opened.push_back(opened),
                Err(e) if e.wants_reauth() => {
                    if self.held.put_back(held, self.live.began) {
                        self.drop_with(&e.to_string());
                    }
                }
                Err(e) => self.refuse(&e),
            }
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
        if let Some(file) = &self.file {
            self.receiver.resume(file.last(self.receiver.publish_key()));
        }
    }

    fn drop_with(&mut self, why: &str) {
        self.dropped += 1;
        let turn = self.log_limit.count_line(Instant::now().into_std());
        if turn.unsaid > 0 {
            warn!("{} more publications were dropped", turn.unsaid);
        }
        if turn.say {
            warn!("a publication was dropped: {why}");
        }
    }
}

fn connect(channel: &Channel, port: u16, topics: &[Bytes; 2]) -> Subscriber {
    let (opts, net) = (&channel.opts, &channel.opts.net);
    let config = SubConfig {
        // A publication for this minion alone comes only to who subscribed to exactly its topic.
        subscriptions: if net.filtering { topics.to_vec() } else { vec![Bytes::new(), topics[1].clone()] },
        identity: Some(Bytes::from(opts.id.to_string())),
        backoff: net.backoff,
        keepalive: net.keepalive,
        heartbeat: net.heartbeat,
        ..SubConfig::default()
    };
    Subscriber::connect(opts.master.publish_endpoint(port), config)
}
