//! The publish key, and the one thread that publishes with it (§5), in the order of the serials.

use std::sync::{Arc, PoisonError, RwLock};

use brine_protocol::auth::publish_key_signature;
use brine_protocol::config::settings;
use brine_protocol::crypticle::{AesKey, Crypticle};
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyError, SignAlg};
use brine_protocol::options;
use brine_protocol::publication;
use brine_protocol::value::Value;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::private_ops::PrivatePool;

/// Bound on the publications that wait for their signature. With a full queue, publishers wait.
const QUEUE: usize = 256;

options! {
    /// The settings of publications.
    #[derive(Debug)]
    pub(crate) struct PublisherOpts from c {
        pub(crate) alg: SignAlg = c.get_parsed(settings::PUBLISH_SIGNING_ALGORITHM)?,
        pub(crate) filters: bool = c.get(settings::ZMQ_FILTERING)?,
    }
}

/// A publish key, its signature and its Crypticle.
#[derive(Debug)]
pub(crate) struct PublishKey {
    pub(crate) key: AesKey,
    /// The master's signature of the key, the same for every minion.
    pub(crate) signature: Vec<u8>,
    crypticle: Crypticle,
}

/// The publish key in use.
#[derive(Clone)]
pub(crate) struct CurrentKey {
    current: Arc<RwLock<Arc<PublishKey>>>,
    private: PrivatePool,
}

impl CurrentKey {
    /// Generates a new key, as at every start.
    pub(crate) async fn new(private: PrivatePool) -> Result<Self, KeyError> {
        let key = make(&private).await?;
        Ok(Self { current: Arc::new(RwLock::new(Arc::new(key))), private })
    }

    pub(crate) fn current(&self) -> Arc<PublishKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the key. Minions notice at the next publication, and authenticate again.
    pub(crate) async fn rotate(&self) -> Result<(), KeyError> {
        let key = Arc::new(make(&self.private).await?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = key;
        Ok(())
    }
}

async fn make(private: &PrivatePool) -> Result<PublishKey, KeyError> {
    let key = AesKey::generate();
    let signed = key.clone();
    let signature = private.run(move |ops| publish_key_signature(ops, &signed)).await?;
    Ok(PublishKey { crypticle: Crypticle::new(&key), key, signature })
}

/// The topics that a publication is sent with on the ZeroMQ level (§5.4).
#[derive(Debug, Clone)]
pub(crate) enum Topics {
    /// One message without a topic for all minions (no `zmq_filtering`).
    Everyone,
    /// One message for each of these minions.
    Minions(Vec<MinionId>),
    /// One message for all minions that filter.
    Broadcast,
}

struct Publish {
    load: Value,
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
        private: PrivatePool,
        alg: SignAlg,
    ) -> std::io::Result<Self> {
        let (queue, loads) = mpsc::channel(QUEUE);
        // A thread of its own, because each load needs a signature, which must not wait behind thousands of
        // authentications.
        let work = move || run(&publisher, &key, &private, alg, loads);
        std::thread::Builder::new().name("publisher".to_owned()).spawn(work)?;
        Ok(Self { queue })
    }

    /// Returns the number of waiting loads.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Queues a load for signing. The caller can do other work meanwhile.
    pub(crate) async fn seal(&self, load: Value, topics: Topics) -> Result<Sealing, KeyError> {
        let ((go, may_go), (done, result)) = (oneshot::channel(), oneshot::channel());
        self.queue.send(Publish { load, topics, go: may_go, done }).await.map_err(|_| KeyError::Operation)?;
        Ok(Sealing { go, done: result })
    }
}

fn run(
    publisher: &brine_zmtp::Publisher,
    key: &CurrentKey,
    private: &PrivatePool,
    alg: SignAlg,
    mut loads: mpsc::Receiver<Publish>,
) {
    let mut serial = 0;
    let mut in_use = key.current();
    while let Some(Publish { load, topics, go, done }) = loads.blocking_recv() {
        let current = key.current();
        if !Arc::ptr_eq(&in_use, &current) {
            in_use = current;
            serial = 0;
        }
        serial += 1;
        let sealed = publication::seal(load, serial, &in_use.crypticle, private.ops(), alg);
        if go.blocking_recv().is_ok() {
            let _ = done.send(sealed.map(|payload| send(publisher, &topics, &payload)));
        }
    }
}

fn send(publisher: &brine_zmtp::Publisher, topics: &Topics, payload: &Bytes) {
    match topics {
        Topics::Everyone => publisher.send(vec![payload.clone()]),
        Topics::Broadcast => {
            publisher.send(vec![Bytes::from_static(publication::BROADCAST.as_bytes()), payload.clone()])
        }
        Topics::Minions(ids) => {
            for id in ids {
                publisher.send(vec![Bytes::from(publication::topic(id)), payload.clone()]);
            }
        }
    }
}
