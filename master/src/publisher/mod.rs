//! The publish key, and what is published with it (§5), in the order of the serials: to minions that open sealed publications (§5.5) to
//! each its own, to others one for all.
//!
//! Who publishes also seals and sends, as long as that takes less time than to wake a thread for it. One thread does the rest: RSA
//! signatures, and seals for many minions.

mod line;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use brine_protocol::auth::publish_key_signature;
use brine_protocol::config::settings;
use brine_protocol::crypticle::{AesKey, Crypticle};
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyError, PrivateKey, PrivateOps, SignAlg};
use brine_protocol::options;
use brine_protocol::publication;
use brine_protocol::sealed::{Body, Epoch, SealOffer, SigningKey};
use brine_protocol::value::Value;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::keys::MinionKeys;
use crate::private_ops::PrivatePool;
use crate::sessions::{MinionSession, Sessions};
use line::Line;

/// Bound on the publications that have a serial and were not sent. Beyond it, publishers wait.
const QUEUE: usize = 256;
/// Seals that take together as long as waking a thread, 1 µs each.
const QUICK: usize = 32;

options! {
    /// The settings of publications.
    #[derive(Debug)]
    pub(crate) struct PublisherOpts from c {
        pub(crate) alg: SignAlg = c.get_parsed(settings::PUBLISH_SIGNING_ALGORITHM)?,
        pub(crate) filters: bool = c.get(settings::ZMQ_FILTERING)?,
        /// Minions that can get publications of their own get them (`publications`).
        pub(crate) seals: bool = c.get(settings::PUBLICATIONS)? == "sealed",
    }
}

/// A publish key, its signature, its Crypticle and its epoch.
#[derive(Debug)]
pub(crate) struct PublishKey {
    pub(crate) key: AesKey,
    /// The master's signature of the key, the same for every minion.
    pub(crate) signature: Vec<u8>,
    crypticle: Crypticle,
    /// None if no publication is sealed for one minion.
    pub(crate) epoch: Option<Epoch>,
}

/// The key that signs sealed publications, and what minions are told about it.
#[derive(Debug)]
pub(crate) struct Signer {
    key: SigningKey,
    pub(crate) offer: SealOffer,
}

impl Signer {
    /// Of the master with this RSA key.
    pub(crate) fn new(rsa: &PrivateKey, ops: &dyn PrivateOps) -> Result<Self, KeyError> {
        let key = SigningKey::of(rsa)?;
        Ok(Self { offer: SealOffer::make(&key, ops)?, key })
    }
}

/// The publish key in use.
#[derive(Clone)]
pub(crate) struct CurrentKey {
    current: Arc<RwLock<Arc<PublishKey>>>,
    private: PrivatePool,
    /// None if no publication is sealed for one minion.
    signer: Option<Arc<Signer>>,
}

impl CurrentKey {
    /// Generates a new key, as at every start.
    pub(crate) async fn new(private: PrivatePool, signer: Option<Signer>) -> Result<Self, KeyError> {
        let signer = signer.map(Arc::new);
        let key = make(&private, signer.as_deref()).await?;
        Ok(Self { current: Arc::new(RwLock::new(Arc::new(key))), private, signer })
    }

    /// What minions are told about sealed publications; none if there are none.
    pub(crate) fn offer(&self) -> Option<&SealOffer> {
        self.signer.as_ref().map(|signer| &signer.offer)
    }

    pub(crate) fn current(&self) -> Arc<PublishKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the key. Minions notice at the next publication, and authenticate again.
    pub(crate) async fn rotate(&self) -> Result<(), KeyError> {
        let key = Arc::new(make(&self.private, self.signer.as_deref()).await?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = key;
        Ok(())
    }
}

async fn make(private: &PrivatePool, signer: Option<&Signer>) -> Result<PublishKey, KeyError> {
    let key = AesKey::generate();
    let signed = key.clone();
    let signature = private.run(move |ops| publish_key_signature(ops, &signed)).await?;
    let epoch = signer.map(|signer| Epoch::new(&key, &signer.key));
    Ok(PublishKey { crypticle: Crypticle::new(&key), key, signature, epoch })
}

/// The topics that a publication for all minions is sent with on the ZeroMQ level (§5.4).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Topics {
    /// One message without a topic for all minions (no `zmq_filtering`).
    Everyone,
    /// One message for each of the minions that are meant.
    Minions,
    /// One message for all minions that filter.
    Broadcast,
}

/// A load to be signed and sealed by the thread.
struct Publish {
    load: Value,
    minions: Vec<MinionId>,
    serial: u64,
    key: Arc<PublishKey>,
    done: oneshot::Sender<Result<Ready, KeyError>>,
}

/// A publication that is ready and may be sent.
struct Outgoing {
    topics: Topics,
    ready: Ready,
    sent: oneshot::Sender<()>,
}

/// A publication, ready to be sent.
struct Ready {
    /// For each topic its header, and the body.
    sealed: Option<(HashMap<Bytes, Bytes>, Bytes)>,
    shared: Option<(Bytes, Vec<MinionId>)>,
}

/// Seals loads and sends them.
#[derive(Clone)]
pub(crate) struct PublisherHandle {
    shared: Arc<Shared>,
}

struct Shared {
    publisher: brine_zmtp::Publisher,
    maker: Arc<Maker>,
    order: Mutex<Order>,
    places: Arc<Semaphore>,
    thread: mpsc::Sender<Publish>,
}

/// The serials, and the publications that have one and were not sent.
struct Order {
    key: Arc<PublishKey>,
    serial: u64,
    line: Line<Outgoing>,
}

/// A load that has its serial, and is sealed or failed to be. [`Sealing::send`] releases it; dropping it discards the load.
pub(crate) struct Sealing {
    place: Place,
    topics: Topics,
    ready: Result<Ready, KeyError>,
}

/// A place in the line, left on drop.
struct Place {
    shared: Arc<Shared>,
    number: u64,
    _permit: OwnedSemaphorePermit,
}

impl Sealing {
    /// Releases the load, and waits until the sockets have it.
    pub(crate) async fn send(self) -> Result<(), KeyError> {
        let Self { place, topics, ready } = self;
        let (sent, is_sent) = oneshot::channel();
        let outgoing = Outgoing { topics, ready: ready?, sent };
        place.shared.send(|line| line.ready(place.number, outgoing));
        // Others may have to go before it.
        is_sent.await.map_err(|_| KeyError::Operation)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.send(|line| line.leave(self.number));
    }
}

impl PublisherHandle {
    /// Starts the thread, which ends when the last handle is dropped.
    ///
    /// # Errors
    /// If the system cannot start another thread.
    pub(crate) fn start(
        publisher: brine_zmtp::Publisher,
        key: CurrentKey,
        (sessions, keys): (Arc<Sessions>, Arc<MinionKeys>),
        alg: SignAlg,
    ) -> std::io::Result<Self> {
        let (thread, loads) = mpsc::channel(QUEUE);
        let order = Mutex::new(Order { key: key.current(), serial: 0, line: Line::default() });
        let maker = Arc::new(Maker { key, sessions, keys, alg });
        // A thread of its own, because RSA signatures must not wait behind thousands of authentications.
        let work = Arc::clone(&maker);
        std::thread::Builder::new().name("publisher".to_owned()).spawn(move || work.run(loads))?;
        let places = Arc::new(Semaphore::new(QUEUE));
        Ok(Self { shared: Arc::new(Shared { publisher, maker, order, places, thread }) })
    }

    /// Returns the number of loads that wait to be sent.
    pub(crate) fn waiting(&self) -> usize {
        QUEUE.saturating_sub(self.shared.places.available_permits())
    }

    /// Seals a load for these minions.
    pub(crate) async fn seal(&self, load: Value, minions: Vec<MinionId>, topics: Topics) -> Result<Sealing, KeyError> {
        let shared = &self.shared;
        let permit = Arc::clone(&shared.places).acquire_owned().await.map_err(|_| KeyError::Operation)?;
        let (number, serial, key) = shared.enter();
        let place = Place { shared: Arc::clone(shared), number, _permit: permit };
        let ready = if shared.maker.is_quick(&minions) {
            shared.maker.make(load, minions, serial, &key)
        } else {
            let (done, made) = oneshot::channel();
            shared.thread.send(Publish { load, minions, serial, key, done }).await.map_err(|_| KeyError::Operation)?;
            made.await.map_err(|_| KeyError::Operation)?
        };
        Ok(Sealing { place, topics, ready })
    }
}

impl Shared {
    /// Gives the next serial and its place.
    fn enter(&self) -> (u64, u64, Arc<PublishKey>) {
        let mut order = self.order();
        let current = self.maker.key.current();
        if !Arc::ptr_eq(&order.key, &current) {
            (order.key, order.serial) = (current, 0);
        }
        order.serial += 1;
        (order.line.enter(), order.serial, Arc::clone(&order.key))
    }

    /// Changes the line, and sends what is first in it and ready.
    fn send(&self, change: impl FnOnce(&mut Line<Outgoing>)) {
        let line = &mut self.order().line;
        change(line);
        while let Some(Outgoing { topics, ready, sent }) = line.next() {
            self.put(topics, ready);
            // The publisher may have been dropped meanwhile.
            let _ = sent.send(());
        }
    }

    fn put(&self, topics: Topics, Ready { sealed, shared }: Ready) {
        // First the sealed ones: a minion that also gets the other form then knows that it is the same job.
        if let Some((heads, body)) = sealed {
            self.publisher.send_each(heads, body);
        }
        let Some((payload, minions)) = shared else { return };
        match topics {
            Topics::Everyone => self.publisher.send(vec![payload]),
            Topics::Broadcast => {
                self.publisher.send(vec![Bytes::from_static(publication::BROADCAST.as_bytes()), payload]);
            }
            Topics::Minions => {
                for id in minions {
                    self.publisher.send(vec![Bytes::from(publication::topic(&id)), payload.clone()]);
                }
            }
        }
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        // No panic leaves the line half changed.
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Signs and seals.
struct Maker {
    key: CurrentKey,
    sessions: Arc<Sessions>,
    keys: Arc<MinionKeys>,
    alg: SignAlg,
}

impl Maker {
    fn run(&self, mut loads: mpsc::Receiver<Publish>) {
        while let Some(Publish { load, minions, serial, key, done }) = loads.blocking_recv() {
            let _ = done.send(self.make(load, minions, serial, &key));
        }
    }

    /// Whether sealing takes less time than waking the thread: few minions, and no RSA signature.
    fn is_quick(&self, minions: &[MinionId]) -> bool {
        minions.len() <= QUICK && self.key.signer.is_some() && self.divide(minions).1.is_empty()
    }

    /// Divides minions into those that get it sealed and the others.
    fn divide(&self, minions: &[MinionId]) -> (Vec<(MinionId, Arc<MinionSession>)>, Vec<MinionId>) {
        self.sessions.divide(minions, |id| self.keys.stored_at(id))
    }

    fn make(&self, load: Value, minions: Vec<MinionId>, serial: u64, key: &PublishKey) -> Result<Ready, KeyError> {
        let signer = self.key.signer.as_ref().zip(key.epoch.as_ref());
        let (own, others) = match signer {
            Some(_) => self.divide(&minions),
            None => (Vec::new(), minions),
        };
        let sealed = signer.filter(|_| !own.is_empty()).map(|(signer, epoch)| {
            let body = Body::seal(&load, serial, epoch, &signer.key);
            let heads = own.iter().map(|(id, session)| (id.topic().into(), body.header(id, &session.key, epoch)));
            (heads.collect(), body.bytes().clone())
        });
        let shared = if others.is_empty() {
            None
        } else {
            let payload = publication::seal(load, serial, &key.crypticle, self.key.private.ops(), self.alg)?;
            Some((payload, others))
        };
        Ok(Ready { sealed, shared })
    }
}
