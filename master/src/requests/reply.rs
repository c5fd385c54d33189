//! Where a request came from, and where its answer goes: a connection on 4506, or a node (salt-api) that asks for a
//! caller.

use brine_protocol::nodes::ToNode;
use brine_zmtp::Reply;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

use crate::access::Address;

/// The way of the answer.
pub(crate) enum ReplyTo {
    /// To a connection on 4506.
    Port(Reply),
    /// To a node.
    Node(NodeReply),
}

/// The way of an answer to a node.
pub(crate) struct NodeReply {
    /// The request's number.
    pub(crate) id: u64,
    /// The last event before the request.
    pub(crate) before: u64,
    /// The caller's address, as the node says.
    pub(crate) address: Address,
    /// The connection's replies.
    pub(crate) replies: mpsc::Sender<ToNode>,
    /// Cancelled when the caller or the node has left.
    pub(crate) gone: CancellationToken,
    /// The request's place among those of its connection, and that of its bytes.
    pub(crate) place: [OwnedSemaphorePermit; 2],
}

impl ReplyTo {
    /// Returns the caller's network address, or [`Address::Here`] for this host.
    pub(crate) fn address(&self) -> Address {
        match self {
            Self::Node(node) => node.address,
            Self::Port(reply) => match reply.peer().address.map(|address| address.ip().to_canonical()) {
                Some(address) if !address.is_loopback() => Address::Network(address),
                _ => Address::Here,
            },
        }
    }

    /// Returns whether a node asks, for which neither keys nor passwords count except to make a token.
    pub(crate) const fn is_node(&self) -> bool {
        matches!(self, Self::Node(_))
    }

    /// Returns whether nobody waits for the answer any more.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Port(reply) => reply.is_gone(),
            Self::Node(node) => node.gone.is_cancelled(),
        }
    }

    /// Describes the sender for the log.
    pub(crate) fn sender(&self) -> String {
        match self {
            Self::Port(reply) => super::sender(reply),
            Self::Node(node) => format!("salt-api, for {}", node.address),
        }
    }

    /// Sends the answer. The peer may have gone.
    pub(crate) async fn send(self, payload: Bytes) {
        match self {
            Self::Port(reply) => drop(reply.send(payload).await),
            Self::Node(NodeReply { id, before, replies, place, .. }) => {
                let _ = replies.send(ToNode::Reply { id, before, payload: payload.into() }).await;
                drop(place);
            }
        }
    }
}
