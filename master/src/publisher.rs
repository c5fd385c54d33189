//! The publish key, and the one thread that publishes with it (§5), in the order of the serials: to minions that open sealed publications
//! (§5.5) to each its own, to others one for all.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

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
use tokio::sync::{mpsc, oneshot};

use crate::private_ops::PrivatePool;
use crate::sessions::Sessions;

/// Bound on the publications that wait for their signature. With a full queue, publishers wait.
const QUEUE: usize = 256;

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

struct Publish {
    load: Value,
    minions: Vec<MinionId>,
    topics: Topics,
    go: oneshot::Receiver<()>,
    done: oneshot::Sender<Result<(), KeyError>>,
}

/// A load that is being signed. [`Sealing::send`] releases it; dropping it discards the load.
pub(crate) struct Sealing {
    go: oneshot::Sender<()>,
    done: oneshot::Receiver<Result<(), KeyError>>,
}

impl Sealing {
    /// Releases the load, and waits until the sockets have it.
    pub(crate) async fn send(self) -> Result<(), KeyError> {
        let _ = self.go.send(());
        self.done.await.map_err(|_| KeyError::Operation)?
    }
}

/// Sends loads to the publishing thread.
#[derive(Clone)]
pub(crate) struct PublisherHandle {
    queue: mpsc::Sender<Publish>,
}

impl PublisherHandle {
    /// Starts the thread, which ends when the last handle is dropped.
    ///
    /// # Errors
    /// If the system cannot start another thread.
    pub(crate) fn start(
        publisher: brine_zmtp::Publisher,
        key: CurrentKey,
        sessions: Arc<Sessions>,
        alg: SignAlg,
    ) -> std::io::Result<Self> {
        let (queue, loads) = mpsc::channel(QUEUE);
        // A thread of its own, because each load needs a signature, which must not wait behind thousands of
        // authentications.
        let work = move || Worker { publisher, key, sessions, alg }.run(loads);
        std::thread::Builder::new().name("publisher".to_owned()).spawn(work)?;
        Ok(Self { queue })
    }

    /// Returns the number of waiting loads.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Queues a load for these minions for signing. The caller can do other work meanwhile.
    pub(crate) async fn seal(&self, load: Value, minions: Vec<MinionId>, topics: Topics) -> Result<Sealing, KeyError> {
        let ((go, may_go), (done, result)) = (oneshot::channel(), oneshot::channel());
        let publish = Publish { load, minions, topics, go: may_go, done };
        self.queue.send(publish).await.map_err(|_| KeyError::Operation)?;
        Ok(Sealing { go, done: result })
    }
}

/// The thread's own.
struct Worker {
    publisher: brine_zmtp::Publisher,
    key: CurrentKey,
    sessions: Arc<Sessions>,
    alg: SignAlg,
}

/// A publication, ready to be sent.
struct Ready {
    /// For each topic its header, and the body.
    sealed: Option<(HashMap<Bytes, Bytes>, Bytes)>,
    shared: Option<(Bytes, Vec<MinionId>)>,
}

impl Worker {
    fn run(&self, mut loads: mpsc::Receiver<Publish>) {
        let mut serial = 0;
        let mut in_use = self.key.current();
        while let Some(Publish { load, minions, topics, go, done }) = loads.blocking_recv() {
            let current = self.key.current();
            if !Arc::ptr_eq(&in_use, &current) {
                in_use = current;
                serial = 0;
            }
            serial += 1;
            let ready = self.make(load, minions, serial, &in_use);
            if go.blocking_recv().is_ok() {
                let _ = done.send(ready.map(|ready| self.send(topics, ready)));
            }
        }
    }

    fn make(&self, load: Value, minions: Vec<MinionId>, serial: u64, key: &PublishKey) -> Result<Ready, KeyError> {
        let signer = self.key.signer.as_ref().zip(key.epoch.as_ref());
        let (own, others) = match signer {
            Some(_) => self.sessions.divide(&minions),
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

    fn send(&self, topics: Topics, Ready { sealed, shared }: Ready) {
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
}
