//! Events that the minion sends to its master (PROTOCOL §6.7, §8.5), always in the form that names the sender.

use std::sync::Arc;
use std::time::Duration;

use brine_protocol::job::JobLoad;
use brine_protocol::value::{Value, ValueExt, map};
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::config::MinionOpts;
use crate::connection::{ChannelError, Masters};
use crate::grains::GrainsStore;

/// Events under way at once. A further event is dropped with a line in the log: events inform, and no job depends on them.
const MAX_UNDER_WAY: usize = 64;
/// The longest time that a task waits for an event to be sent.
const MAX_SENDING: Duration = Duration::from_secs(10);
const PAUSE_BEFORE_RETRY: Duration = Duration::from_secs(1);

/// Sends events.
pub struct Events {
    opts: Arc<MinionOpts>,
    masters: Masters,
    grains: Arc<GrainsStore>,
    tasks: TaskTracker,
}

impl Events {
    /// Makes the sender of events to these masters.
    pub fn new(opts: Arc<MinionOpts>, masters: Masters, grains: Arc<GrainsStore>) -> Arc<Self> {
        Arc::new(Self { opts, masters, grains, tasks: TaskTracker::new() })
    }

    /// Announces that the minion is there: `minion_start` if `enable_legacy_startup_events`, then `salt/minion/<id>/start`.
    pub async fn announce_start(&self) {
        let id = self.opts.id.as_str();
        let text = format!("Minion {id} started at {}", jiff::Zoned::now().strftime("%a %b %e %H:%M:%S %Y"));
        let mut tags = Vec::with_capacity(2);
        if self.opts.events.legacy_start {
            tags.push("minion_start".to_owned());
        }
        tags.push(format!("salt/minion/{id}/start"));
        for tag in tags {
            if let Err(e) = self.send(None, &tag, Value::from(text.as_str()), self.start_grains()).await {
                warn!("the event {tag} could not be sent: {e}");
            }
        }
    }

    /// Tells the master of this fingerprint that its job was taken.
    pub fn announce_job(self: &Arc<Self>, job: &JobLoad, master: &str) {
        let mut data = map([("id", Value::from(&self.opts.id)), ("jid", Value::from(&job.jid))]);
        for key in ["fun", "tgt", "tgt_type", "user", "master_id", "metadata"] {
            if let Some(value) = job.raw.get(key) {
                data.insert(key, value.clone());
            }
        }
        let tag = format!("salt/job/{}/start/{}", job.jid, self.opts.id);
        if self.tasks.len() >= MAX_UNDER_WAY {
            warn!("the event {tag} is dropped: {MAX_UNDER_WAY} events are under way");
            return;
        }
        let (this, master) = (Arc::clone(self), master.to_owned());
        self.tasks.spawn(async move {
            if let Err(e) = this.send(Some(&master), &tag, data, None).await {
                warn!("the event {tag} could not be sent: {e}");
            }
        });
    }

    /// Sends a heartbeat (`ping_interval`).
    ///
    /// # Errors
    /// When the master does not reply.
    pub async fn ping(&self) -> Result<(), ChannelError> {
        self.send(None, "minion_ping", Value::from("ping"), None).await
    }

    /// Sends an event under this minion's own tags and waits for at most 10 s. A failure is logged.
    pub async fn send_own(&self, below: &str, data: Value) {
        if let Err(e) = self.try_send_own(below, data).await {
            warn!("{e}");
        }
    }

    /// As [`Events::send_own`].
    ///
    /// # Errors
    /// A sentence that names the event.
    pub async fn try_send_own(&self, below: &str, data: Value) -> Result<(), String> {
        let tag = format!("salt/minion/{}/{below}", self.opts.id);
        match tokio::time::timeout(MAX_SENDING, self.send(None, &tag, data, None)).await {
            Ok(Ok(())) => {
                debug!("the event {tag} is sent");
                Ok(())
            }
            Ok(Err(e)) => Err(format!("the event {tag} could not be sent: {e}")),
            Err(_) => Err(format!("the event {tag} could not be sent within {MAX_SENDING:?}")),
        }
    }

    /// Sends events in one request, each a dict of `tag` and `data`, to the preferred master, and waits for at most 10 s.
    ///
    /// # Errors
    /// A sentence.
    pub async fn send_several(&self, events: Vec<Value>) -> Result<(), String> {
        let load = map([
            ("cmd", Value::from("_minion_event")),
            ("id", Value::from(&self.opts.id)),
            ("events", Value::Array(events)),
            ("pretag", Value::Nil),
        ]);
        match tokio::time::timeout(MAX_SENDING, self.request(None, "of beacons", load)).await {
            // A master answers false to events for which it has no room.
            Ok(Ok(Value::Boolean(false))) => Err("the master takes no more events of this minion now".to_owned()),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(e)) => Err(format!("events could not be sent: {e}")),
            Err(_) => Err(format!("events could not be sent within {MAX_SENDING:?}")),
        }
    }

    fn start_grains(&self) -> Option<Value> {
        let names = &self.opts.events.start_grains;
        if names.is_empty() {
            return None;
        }
        let grains = self.grains.now();
        let chosen: Vec<(&str, Value)> =
            names.iter().filter_map(|name| Some((name.as_str(), grains.get(name)?.clone()))).collect();
        Some(map(chosen))
    }

    /// Sends an event to the master of this fingerprint, or to the preferred one.
    async fn send(
        &self,
        master: Option<&str>,
        tag: &str,
        data: Value,
        grains: Option<Value>,
    ) -> Result<(), ChannelError> {
        let mut load = map([
            ("cmd", Value::from("_minion_event")),
            ("id", Value::from(&self.opts.id)),
            ("tag", Value::from(tag)),
            ("data", data),
            ("pretag", Value::Nil),
        ]);
        if let Some(grains) = grains {
            load.insert("grains", grains);
        }
        self.request(master, tag, load).await.map(drop)
    }

    async fn request(&self, master: Option<&str>, tag: &str, load: Value) -> Result<Value, ChannelError> {
        let mut tries = self.opts.net.request_tries;
        loop {
            match self.masters.asker(master)?.request(load.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(e @ ChannelError::Network(_)) if tries > 1 => {
                    tries -= 1;
                    debug!("the event {tag} is sent again: {e}");
                    tokio::time::sleep(PAUSE_BEFORE_RETRY).await;
                }
                Err(e) => return Err(e),
            }
        }
    }
}
