//! Notifies a running master of a change of a key with the event `salt/key` (§8.2), or `brine/node/key` for a node's.

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::event::{Event, EventPusher};
use brine_protocol::keys::KeyKind;
use brine_protocol::value::{self, Value, ValueExt};

/// Upper bound on the time that a master may take to accept an event.
const PUSH: Duration = Duration::from_secs(2);

/// The announcer before it connects.
pub(super) struct Announcer {
    socket: PathBuf,
    tag: &'static str,
}

/// The announcer after it tried to connect; it has a connection if a master runs.
pub(super) struct Connected {
    pusher: Option<EventPusher>,
    tag: &'static str,
}

impl Announcer {
    pub(super) const fn new(socket: PathBuf, kind: KeyKind) -> Self {
        let tag = match kind {
            KeyKind::Minions => "salt/key",
            KeyKind::Nodes => "brine/node/key",
        };
        Self { socket, tag }
    }

    /// Connects to the master if one runs.
    pub(super) async fn connect(self) -> Connected {
        let pusher = tokio::time::timeout(PUSH, EventPusher::connect(&self.socket)).await;
        Connected { pusher: pusher.ok().and_then(Result::ok), tag: self.tag }
    }
}

impl Connected {
    /// Fires the event. A failure does not undo the change of the key.
    pub(super) async fn announce(&mut self, act: &str, id: &str, pem: Option<String>) {
        let Some(pusher) = &mut self.pusher else { return };
        let mut data = value::map([("result", Value::from(true)), ("act", Value::from(act)), ("id", Value::from(id))]);
        if let Some(pem) = pem {
            data.insert("pub", pem);
        }
        let pushed = tokio::time::timeout(PUSH, pusher.push(&Event::new(self.tag, data))).await;
        if !matches!(pushed, Ok(Ok(()))) {
            tracing::warn!("the master did not take the event about the key of {id}");
            self.pusher = None;
        }
    }
}
