//! Nodes on other hosts: TLS on a port of its own (`api_port`), in which a node proves the key that an operator has accepted for it
//! (`salt-key --nodes`). Without such a key, a connection gets one message, the reason, and no more.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::ids::MinionId;
use brine_protocol::keys::PublicKey;
use brine_protocol::nodes::{self, FrameReader, JOIN_MAX, Refusal, TO_MASTER_MAX, ToMaster, ToNode};
use brine_protocol::value::{Value, map};
use brine_tls::{Acceptor, MasterStream};
use tokio::io::{AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::connection::{self, Guest};
use super::door::{Door, Visit};
use super::{ACCEPT_PAUSE, NODES_MAX, Nodes};
use crate::access::Address;
use crate::audit::AuditLine;
use crate::keys::{NodeKeys, NodeStanding};
use crate::refusals::{Stranger, Who};

/// Time for the handshake and the first message together, from accept.
const JOIN_TIME: Duration = Duration::from_secs(5);
/// Time for telling a node why it is refused.
const GOODBYE: Duration = Duration::from_secs(1);
/// Upper bound on the connections of one node. One is in use; others are of a node that was restarted, or whose network broke.
const OF_ONE: usize = 4;
/// How often the keys of connected nodes are looked at: a node has a second at most after its key.
const LOOK: Duration = Duration::from_millis(300);

/// The port.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) listener: TcpListener,
    pub(crate) acceptor: Acceptor,
    pub(crate) keys: NodeKeys,
}

/// The nodes that are connected, by name: how many times.
#[derive(Debug, Default)]
struct Connected(Mutex<HashMap<MinionId, usize>>);

/// A connected node's place.
struct Place<'a> {
    connected: &'a Connected,
    name: MinionId,
}

impl Connected {
    fn lock(&self) -> MutexGuard<'_, HashMap<MinionId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, name: &MinionId) -> Option<Place<'_>> {
        let mut connected = self.lock();
        let all: usize = connected.values().sum();
        let own = connected.get(name).copied().unwrap_or_default();
        if all >= NODES_MAX || own >= OF_ONE {
            return None;
        }
        connected.insert(name.clone(), own + 1);
        drop(connected);
        Some(Place { connected: self, name: name.clone() })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut connected = self.connected.lock();
        match connected.get_mut(&self.name) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(connected.remove(&self.name)),
        }
    }
}

/// A connection that has proved a key.
struct Joined {
    name: MinionId,
    key: PublicKey,
    version: u64,
    reader: FrameReader<ReadHalf<MasterStream<TcpStream>>>,
    writer: WriteHalf<MasterStream<TcpStream>>,
}

/// Accepts connections until the master stops.
pub(super) async fn accept(nodes: Arc<Nodes>, remote: Remote) {
    let Remote { listener, acceptor, keys } = remote;
    let door = Door::new(Instant::now());
    let shared = Arc::new((acceptor, keys, Connected::default()));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = nodes.stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                let origin = Address::Network(peer.ip().to_canonical()).origin().unwrap_or_default();
                let Some(visit) = door.enter(origin, Instant::now()) else {
                    refuse(&nodes, peer, "there are too many of them");
                    continue;
                };
                let (of_task, shared) = (Arc::clone(&nodes), Arc::clone(&shared));
                nodes.tasks.spawn(async move {
                    let (acceptor, keys, connected) = &*shared;
                    receive(of_task, (acceptor, keys, connected), stream, peer, visit).await;
                });
            }
            Err(error) => {
                tracing::error!("the port for salt-api (api_port) cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn refuse(nodes: &Nodes, peer: SocketAddr, why: &str) {
    let text = format!("a connection of {} to the port for salt-api was refused: {why}", peer.ip().to_canonical());
    nodes.handlers.refusals.log(Who::Stranger(Stranger::Node), &text);
}

/// Takes a connection in, or refuses it.
async fn receive(
    nodes: Arc<Nodes>,
    (acceptor, keys, connected): (&Acceptor, &NodeKeys, &Connected),
    stream: TcpStream,
    peer: SocketAddr,
    visit: Visit,
) {
    let _ = stream.set_nodelay(true);
    let joining = tokio::time::timeout(JOIN_TIME, join(acceptor, stream));
    let joined = tokio::select! {
        joined = joining => joined.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "it takes too long"))),
        () = visit.over() => Err(io::Error::other("it takes too long, and others wait")),
        () = nodes.stop.cancelled() => return,
    };
    let mut joined = match joined {
        Ok(joined) => joined,
        Err(error) => return refuse(&nodes, peer, &error.to_string()),
    };
    let place = match admit(&nodes, keys, connected, &joined, peer) {
        Ok(place) => place,
        Err(why) => {
            let goodbye = async {
                joined.writer.write_all(&nodes::frame(&ToNode::Refused(why).encode())).await?;
                joined.writer.shutdown().await
            };
            let _ = tokio::time::timeout(GOODBYE, goodbye).await;
            return;
        }
    };
    visit.prove(Instant::now());
    let Joined { name, key, mut reader, writer, .. } = joined;
    reader.accept(TO_MASTER_MAX);
    let guest = Guest { name: format!("salt-api on {name}"), address: Some(peer.ip().to_canonical()) };
    tokio::select! {
        () = connection::serve(nodes, reader, writer, guest) => {}
        () = expelled(keys, &name, &key) => {
            tracing::warn!("salt-api on {name} has been disconnected: its key is not accepted any more");
        }
    }
    drop(place);
}

/// Has a peer prove its key and say its name.
async fn join(acceptor: &Acceptor, stream: TcpStream) -> io::Result<Joined> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let (stream, key) = acceptor.accept(stream).await?;
    let (reader, writer) = tokio::io::split(stream);
    let mut reader = FrameReader::new(reader, JOIN_MAX);
    let first = reader.next().await?.ok_or_else(|| wrong("it says nothing"))?;
    let Ok(ToMaster::Join { version, name }) = ToMaster::decode(&first) else {
        return Err(wrong("it does not say who it is"));
    };
    let name = nodes::node_name(&name).ok_or_else(|| wrong("its name is none"))?;
    Ok(Joined { name, key, version, reader, writer })
}

/// Decides whether a node may speak for callers, and tells the operator.
fn admit<'a>(
    nodes: &Nodes,
    keys: &NodeKeys,
    connected: &'a Connected,
    joined: &Joined,
    peer: SocketAddr,
) -> Result<Place<'a>, Refusal> {
    let Joined { name, key, version, .. } = joined;
    let address = peer.ip().to_canonical();
    let handlers = &nodes.handlers;
    let standing = keys.judge(name, key, Address::Network(address).origin());
    let line = |outcome| AuditLine::new("node", outcome).put("id", name.as_str()).put("address", address.to_string());
    let mut is_news = true;
    let why = match standing {
        Ok(NodeStanding::Accepted) if *version != nodes::VERSION => Refusal::Version,
        Ok(NodeStanding::Accepted) => match connected.enter(name) {
            Some(place) => {
                handlers.admission.audit.note(line("allowed"));
                return Ok(place);
            }
            None => Refusal::Many,
        },
        Ok(NodeStanding::Pending { is_new }) => {
            // It tries again every few seconds.
            is_news = is_new;
            if is_new {
                let finger = key.fingerprint();
                let text = format!(
                    "salt-api on {name}, at {address}, waits for its key to be accepted: compare {finger} with what it logs, then \
                     salt-key --nodes -a {name}"
                );
                let data: [(&str, Value); 3] =
                    [("id", name.as_str().into()), ("address", address.to_string().into()), ("finger", finger.into())];
                handlers.refusals.tell(Who::Stranger(Stranger::Node), &text, "brine/node/pending", map(data));
            }
            Refusal::Pending
        }
        Ok(NodeStanding::Rejected) => Refusal::Rejected,
        Ok(NodeStanding::OtherKey) => Refusal::OtherKey,
        Err(error) => {
            tracing::error!("{error}");
            Refusal::Pending
        }
    };
    if is_news {
        handlers.admission.audit.stranger(line("refused").put("why", why.to_string()));
    }
    if why != Refusal::Pending {
        refuse(nodes, peer, &format!("{name}: {why}"));
    }
    Err(why)
}

/// Waits until the key is not accepted any more.
async fn expelled(keys: &NodeKeys, name: &MinionId, key: &PublicKey) {
    loop {
        tokio::time::sleep(LOOK).await;
        if !keys.is_accepted(name, key) {
            return;
        }
    }
}
