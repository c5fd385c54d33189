//! Periodic tasks: rotating the publish key (§3.5), and forgetting old jobs (§9.2), expired tokens, sessions of minions
//! without a key, and hashes of files that are no longer requested.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_protocol::config::settings;
use brine_protocol::job::PublishRequest;
use brine_protocol::options;
use brine_protocol::value::{Value, map};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::access::{Access, Principal};
use crate::bus::{Bus, BusEvent, Next, Subscription};
use crate::dispatch::Dispatcher;
use crate::files;
use crate::fileserver::FileServer;
use crate::jobs::{JobCache, PythonJobFiles, now_ms};
use crate::key_removal::KeyRemoval;
use crate::keys::MinionKeys;
use crate::live_settings::SharedSettings;
use crate::mine::Mine;
use crate::peer::Peer;
use crate::presence::Presence;
use crate::publisher::CurrentKey;
use crate::refusals::Refusals;
use crate::sessions::Sessions;
use crate::throttle::Throttle;

/// Interval for checking the dropfile, if `loop_interval` is not shorter. Python's salt-key writes the file some time
/// after it has reported the deletion of a key, and until the publish key is replaced the deleted minion can read
/// publications.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Shortest interval between searches for old jobs, however short `loop_interval` is.
const CLEAN_EVERY: Duration = Duration::from_secs(60);
/// Largest size of the dropfile in bytes. It contains the master's id.
const DROPFILE_MAX: u64 = 1_024;

options! {
    /// The settings of the periodic tasks.
    #[derive(Debug, Clone)]
    pub(crate) struct MaintenanceOpts from c {
        /// `id`: the master's name, which the dropfile must contain.
        id: String = c.get(settings::ID)?,
        /// `user`: the user of the job that `ping_on_rotate` publishes.
        user: String = c.get(settings::USER)?,
        cachedir: PathBuf = c.get(settings::CACHEDIR)?,
        pub(crate) loop_interval: Duration = c.get(settings::LOOP_INTERVAL)?,
        ping_on_rotate: bool = c.get(settings::PING_ON_ROTATE)?,
        pub(crate) presence_events: bool = c.get(settings::PRESENCE_EVENTS)?,
        has_data: bool = c.get(settings::MINION_DATA_CACHE)?,
    }
}

/// The parts that need periodic tasks.
pub(crate) struct Maintenance {
    pub(crate) opts: MaintenanceOpts,
    pub(crate) live: SharedSettings,
    pub(crate) access: Arc<Access>,
    pub(crate) keys: Arc<MinionKeys>,
    pub(crate) key_removal: Arc<KeyRemoval>,
    pub(crate) publish_key: CurrentKey,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) jobs: Arc<JobCache>,
    pub(crate) python_jobs: PythonJobFiles,
    pub(crate) files: Arc<FileServer>,
    pub(crate) mine: Arc<Mine>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) bus: Bus,
}

impl Maintenance {
    /// Runs the periodic tasks until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut tick = tokio::time::interval(self.opts.loop_interval.min(LOOK_EVERY));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = self.bus.subscribe();
        let clean_every = self.opts.loop_interval.max(CLEAN_EVERY);
        let mut cleaned: Option<Instant> = None;
        // A task of its own: cleaning a large store takes long, and the rotation after a key's deletion must not wait
        // for it.
        let mut cleaning: Option<AbortOnDropHandle<()>> = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = tick.tick() => {
                    self.refusals.tell_sums();
                    self.look_for_dropfile().await;
                    if cleaned.is_none_or(|at| at.elapsed() >= clean_every) {
                        if cleaning.as_ref().is_none_or(|task| task.is_finished()) {
                            let this = Arc::clone(&self);
                            cleaning = Some(AbortOnDropHandle::new(tokio::spawn(async move { this.clean().await })));
                        }
                        self.throttle.upkeep();
                        self.forget_what_is_over().await;
                        self.forget_minions_without_keys().await;
                        cleaned = Some(Instant::now());
                    }
                }
                () = self.key_removal.rotate.notified() => self.rotate("a key was deleted").await,
                event = next(&mut events) => {
                    if event.is_some_and(|event| asks_to_look(&event)) {
                        self.look_for_dropfile().await;
                        self.forget_minions_without_keys().await;
                    }
                }
            }
        }
    }

    async fn look_for_dropfile(&self) {
        let path = self.opts.cachedir.join(".dfn");
        match take_dropfile(&path, &self.opts.id) {
            Ok(false) => {}
            Ok(true) => self.rotate("salt-key asked for it").await,
            Err(error) => tracing::error!("the dropfile {} is ignored: {error}", path.display()),
        }
    }

    async fn rotate(&self, why: &str) {
        if let Err(error) = self.publish_key.rotate().await {
            tracing::error!("the publish key was not replaced: {error}");
            return;
        }
        tracing::info!("the publish key was replaced: {why}");
        self.forget_sessions_without_keys();
        self.bus.fire("key", map([("rotate_aes_key", true)]));
        if self.opts.ping_on_rotate
            && let Err(error) = self.ping().await
        {
            tracing::error!("ping_on_rotate: nobody was told of the new key: {error}");
        }
    }

    /// `ping_on_rotate`: sends connected minions a job that only the new publish key decrypts, so that they fetch the
    /// key now.
    async fn ping(&self) -> Result<(), String> {
        let (tgt, tgt_type) = if self.opts.has_data {
            let (there, _) = self.presence.partition().await.map_err(|error| error.to_string())?;
            (Value::Array(there.iter().map(Value::from).collect()), "list")
        } else {
            (Value::from("*"), "glob")
        };
        let request = PublishRequest::new(Value::from("test.ping"), Vec::new(), tgt, tgt_type, &self.opts.user);
        self.dispatcher.publish(&request, &Principal::Master).await.map(drop).map_err(|fault| fault.to_string())
    }

    /// Forgets peer jobs of minions without an accepted key, and mine data of those without any: whoever is rejected for a while does not send
    /// its data again when it is accepted, and nobody reads it meanwhile.
    async fn forget_minions_without_keys(&self) {
        let keys = Arc::clone(&self.keys);
        self.peer.forget(|id| keys.accepted(id).is_some());
        self.mine.forget(move |id| keys.is_known(id)).await;
    }

    /// Forgets sessions of minions without an accepted key, because Python's salt-key deletes only the keys.
    fn forget_sessions_without_keys(&self) {
        for id in self.sessions.ids() {
            if self.keys.accepted(&id).is_none() {
                self.sessions.forget(&id);
            }
        }
    }

    /// Forgets expired tokens, hashes of files and sessions, in memory and on disk.
    async fn forget_what_is_over(self: &Arc<Self>) {
        let this = Arc::clone(self);
        let work = move || {
            this.access.forget_expired_tokens();
            this.files.upkeep();
            if let Err(error) = this.sessions.forget_others(|id| this.keys.accepted(id).is_some()) {
                tracing::warn!("sessions of minions that are gone stay: {error}");
            }
        };
        let _ = tokio::task::spawn_blocking(work).await;
    }

    async fn clean(&self) {
        let Some(keep) = self.live.load().keep_jobs else { return };
        let before = now_ms().saturating_sub(i64::try_from(keep.as_millis()).unwrap_or(i64::MAX));
        match self.jobs.clean(before).await {
            Ok(0) => {}
            Ok(jobs) => tracing::info!("{jobs} jobs older than keep_jobs_seconds were forgotten"),
            Err(error) => tracing::error!("old jobs stay: {error}"),
        }
        let files = self.python_jobs.clone();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || files.clean(keep)).await {
            tracing::warn!("old files of the job cache stay: {error}");
        }
    }
}

/// Returns the next event; `None` if events were lost. Waits for ever once the bus is gone.
async fn next(events: &mut Option<Subscription>) -> Option<Arc<BusEvent>> {
    match events {
        Some(subscription) => match subscription.next().await {
            Some(Next::Event(event)) => return Some(event),
            Some(Next::Lost(_)) => return None,
            None => *events = None,
        },
        None => std::future::pending().await,
    }
    None
}

/// Returns whether an event is salt-key's report of a changed key, after which a dropfile may exist. Only events from
/// root or the master's own user on this host count.
fn asks_to_look(event: &BusEvent) -> bool {
    event.by.is_root() && matches!(event.event.tag.as_str(), "salt/key" | "key")
}

/// Removes a valid dropfile. Returns false if there was no file.
fn take_dropfile(path: &Path, id: &str) -> io::Result<bool> {
    let Some((content, metadata)) = files::read_regular(path, DROPFILE_MAX)? else { return Ok(false) };
    let mode = metadata.permissions().mode() & 0o7777;
    if mode != 0o400 {
        return Err(io::Error::other(format!("its mode is {mode:o}, not 400")));
    }
    let owner = metadata.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    // The salt-key of 3006 writes an empty dropfile.
    if !content.trim_ascii().is_empty() && content.trim_ascii() != id.as_bytes() {
        return Err(io::Error::other(format!("its content is not this master's id, {id}")));
    }
    std::fs::remove_file(path)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::Bus;
    use brine_protocol::event::Framing;

    #[tokio::test]
    async fn only_programs_of_this_host_make_the_master_look() {
        let bus = Bus::new(Framing::Bare, 1 << 20);
        let events = bus.subscribe().unwrap();
        let minion = Principal::Minion("a".parse().unwrap());
        for (by, tag, looks) in [
            (Principal::local_program(), "salt/key", true),
            (Principal::local_program(), "key", true),
            (Principal::local_program(), "salt/keys", false),
            (minion.clone(), "salt/key", false),
            (minion, "key", false),
            (Principal::Master, "key", false),
        ] {
            bus.fire_by(by.clone(), tag, map([("act", "delete"), ("id", "a")]));
            let Some(Next::Event(event)) = events.next().await else { panic!() };
            assert_eq!(asks_to_look(&event), looks, "{tag} {by:?}");
        }
    }

    #[test]
    fn a_dropfile_counts_only_in_its_exact_form() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".dfn");
        let put = |content: &str, mode: u32| {
            let _ = std::fs::remove_file(&path);
            files::write_atomic(&path, content.as_bytes(), mode).unwrap();
        };
        assert!(!take_dropfile(&path, "m").unwrap());
        for (content, mode) in [("m", 0o600), ("m", 0o444), ("", 0o600), ("other", 0o400)] {
            put(content, mode);
            assert!(take_dropfile(&path, "m").is_err(), "{content} {mode:o}");
            assert!(path.exists());
        }
        for content in ["m\n", ""] {
            put(content, 0o400);
            assert!(take_dropfile(&path, "m").unwrap(), "{content}");
            assert!(!path.exists());
        }
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(take_dropfile(&path, "m").is_err());
    }
}
