//! The publish key and the one task that publishes with it (§5): serials leave in the order they were given.

use std::sync::{Arc, PoisonError, RwLock};

use brine_protocol::auth::publish_key_signature;
use brine_protocol::crypticle::{AesKey, Crypticle};
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyError, SignAlg};
use brine_protocol::publication;
use brine_protocol::value::Value;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::private_ops::PrivatePool;

/// Publications that wait to be signed. Who publishes faster than the key signs waits.
const QUEUE: usize = 256;

/// A publish key with what belongs to it.
#[derive(Debug)]
pub(crate) struct PublishKey {
    pub(crate) key: AesKey,
    /// The master's signature of it, the same for every minion.
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
    /// With a new key, as at every start.
    pub(crate) async fn new(private: PrivatePool) -> Result<Self, KeyError> {
        let key = make(&private).await?;
        Ok(Self { current: Arc::new(RwLock::new(Arc::new(key))), private })
    }

    pub(crate) fn current(&self) -> Arc<PublishKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the key. Minions notice with the next publication, and authenticate again.
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

/// To whom a publication is sent at the ZeroMQ level (§5.4).
#[derive(Debug, Clone)]
pub(crate) enum Topics {
    /// One message to everyone (no `zmq_filtering`).
    Everyone,
    /// One message to each of these.
    Minions(Vec<MinionId>),
    /// To everyone that filters.
    Broadcast,
}

struct Publish {
    load: Value,
    topics: Topics,
    done: oneshot::Sender<Result<(), KeyError>>,
}

/// Hands loads to the publishing task.
#[derive(Clone)]
pub(crate) struct PublisherHandle {
    queue: mpsc::Sender<Publish>,
}

impl PublisherHandle {
    /// Starts the task, which ends when the last handle is dropped.
    pub(crate) fn start(
        publisher: brine_zmtp::Publisher,
        key: CurrentKey,
        private: PrivatePool,
        alg: SignAlg,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (queue, loads) = mpsc::channel(QUEUE);
        (Self { queue }, tokio::spawn(run(publisher, key, private, alg, loads)))
    }

    /// Loads that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Publishes a load; resolves when it has been handed to the sockets.
    pub(crate) async fn publish(&self, load: Value, topics: Topics) -> Result<(), KeyError> {
        let (done, result) = oneshot::channel();
        self.queue.send(Publish { load, topics, done }).await.map_err(|_| KeyError::Operation)?;
        result.await.map_err(|_| KeyError::Operation)?
    }
}

async fn run(
    publisher: brine_zmtp::Publisher,
    key: CurrentKey,
    private: PrivatePool,
    alg: SignAlg,
    mut loads: mpsc::Receiver<Publish>,
) {
    let mut serial = 0;
    let mut in_use = key.current();
    while let Some(Publish { load, topics, done }) = loads.recv().await {
        let current = key.current();
        if !Arc::ptr_eq(&in_use, &current) {
            in_use = Arc::clone(&current);
            serial = 0;
        }
        serial += 1;
        let sealed = private.run(move |ops| publication::seal(load, serial, &current.crypticle, ops, alg)).await;
        let _ = done.send(sealed.map(|payload| send(&publisher, &topics, &payload)));
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
