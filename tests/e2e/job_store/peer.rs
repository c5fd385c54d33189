//! A minion without a host that returns as fast as requested.

use std::sync::Arc;

use brine_kit_peer::{ANSWER, Minion};
use brine_protocol::ids::{Jid, MinionId};
use brine_zmtp::{Endpoint, ReqConfig, Requester};

/// A minion that has authenticated. Clones share the session.
#[derive(Clone)]
pub(super) struct Connected {
    minion: Arc<Minion>,
    endpoint: Endpoint,
}

impl Connected {
    /// Authenticates a minion whose key the master has accepted.
    pub(super) async fn new(id: &str, key_no: usize, port: u16) -> Self {
        let (mut minion, endpoint) = (Minion::new(id, key_no), Endpoint::tcp("127.0.0.1", port));
        minion.connect(&endpoint).await;
        Self { minion: Arc::new(minion), endpoint }
    }

    pub(super) fn id(&self) -> &MinionId {
        &self.minion.id
    }

    /// Makes a separate connection.
    pub(super) fn requester(&self) -> Requester {
        Requester::new(self.endpoint.clone(), ReqConfig::default())
    }

    /// Sends a return for a job. Returns whether the master acknowledged it.
    pub(super) async fn give(&self, requester: &mut Requester, jid: &Jid, value: &str) -> bool {
        let session = self.minion.session();
        let sealed = session.seal_request(self.minion.return_load(jid.as_str(), value)).expect("a request");
        let Ok(reply) = requester.request(sealed.payload.into(), ANSWER).await else { return false };
        // A refusal is not encrypted, so it cannot be opened.
        session.open_reply(&reply, &sealed.nonce).is_ok_and(|reply| reply.is_nil())
    }
}
