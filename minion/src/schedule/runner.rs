//! The one timer, and the jobs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt};
use brine_schedule::ReturnJob;
use jiff::Zoned;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tracing::info;

use super::table::Start;
use super::whose::Rights;
use super::{Schedule, now};
use crate::config::MinionOpts;
use crate::connection::Masters;
use crate::events::Events;
use crate::jobs::{AsJid, Jobs, Reply, Source, own_job};
use crate::pillar::PillarStore;
use crate::returns::ReturnSender;

/// A timer does not see that the clock was set or that the machine slept, so it looks after this time at the latest.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// The tasks that wait for jobs of the schedule to end.
pub(crate) type Watchers = TaskTracker;

/// Fires the entries.
pub(crate) struct Runner {
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) opts: Arc<MinionOpts>,
    pub(crate) masters: Masters,
    pub(crate) pillar: Arc<PillarStore>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) returns: Arc<ReturnSender>,
    pub(crate) events: Arc<Events>,
    pub(crate) watchers: Watchers,
    /// True when the pillar and the modules are here.
    pub(crate) ready: watch::Receiver<bool>,
}

impl Runner {
    /// Fires the entries from the first pillar on.
    pub(crate) async fn run(mut self) {
        if self.ready.wait_for(|ready| *ready).await.is_err() {
            return;
        }
        let Ok(channel) = self.masters.preferred().map(Arc::clone) else { return };
        let mut master = Arc::clone(&channel.signed_in().await.master);
        let mut pillar = self.pillar.changes();
        self.schedule.table().begin(&now());
        loop {
            pillar.borrow_and_update();
            let (starts, lost, wait) = {
                let mut table = self.schedule.table();
                self.schedule.take_pillar(&mut table);
                let now = now();
                table.arm(&now, &|name| self.schedule.named(name));
                let starts = table.due(&now, &|| Jid::now().to_string());
                (starts, table.take_lost(), table.wait(&now))
            };
            // A master that is away is still the one whose jobs these are.
            if let Some(live) = channel.current_sign_in() {
                master = Arc::clone(&live.master);
            }
            for start in starts {
                self.start(start, &master);
            }
            if let Some(data) = lost {
                let events = Arc::clone(&self.events);
                self.watchers.spawn(async move { events.send_own("schedule/missed", data).await });
            }
            let sleep = wait.unwrap_or(MAX_SLEEP).min(MAX_SLEEP);
            tokio::select! {
                () = tokio::time::sleep(sleep) => {}
                () = self.schedule.changed.notified() => {}
                _ = pillar.changed() => {}
            }
        }
    }

    fn start(&self, start: Start, preferred: &Arc<str>) {
        let Start { entry, function, of_pillar, rights, jid, due, running } = start;
        let master = match rights {
            Rights::Owner if !of_pillar => None,
            Rights::Owner | Rights::Master => Some(Arc::clone(preferred)),
            Rights::Asker(asker) => asker,
        };
        // The pillar is the preferred master's, and chooses no function for another's rights.
        if of_pillar && master.as_ref() != Some(preferred) {
            info!(
                "the schedule does not run {function} in the place of the job {:?}: that is another master's",
                entry.name
            );
            running.fetch_sub(1, Ordering::Relaxed);
            self.schedule.table().ended(&jid);
            return;
        }
        let mut options = vec![("schedule", Value::from(entry.name.as_str())), ("jid", Value::from(jid.as_str()))];
        if let Some(metadata) = entry.metadata.clone() {
            options.push(("metadata", stamped(metadata)));
        }
        for (name, value) in [("ret_config", &entry.return_config), ("ret_kwargs", &entry.return_kwargs)] {
            if let Some(value) = value.as_ref().filter(|_| !entry.returners.is_empty()) {
                options.push((name, value.clone()));
            }
        }
        let mut job = own_job(&self.opts, &function, entry.args, entry.kwargs, options);
        job.ret = entry.returners.join(",");
        if let Ok(jid) = jid.parse() {
            job.jid = jid;
        }
        let reply = |as_jid| Reply::Master { returns: Arc::clone(&self.returns), as_jid };
        let reply = match entry.return_job {
            ReturnJob::No => Reply::Nobody,
            ReturnJob::NotKept if job.ret.is_empty() => reply(Some(AsJid::NotKept)),
            _ if job.ret.is_empty() => reply(Some(AsJid::Requested)),
            _ => reply(None),
        };
        info!(jid, fun = function, "the schedule starts the job {:?}, due at {due}", entry.name);
        let recorded = entry.maxrunning.is_some();
        let (schedule, ended) = (Arc::clone(&self.schedule), jid.clone());
        let on_end = Box::new(move || schedule.table().ended(&ended));
        let task = self.jobs.submit(Source::Own { master, recorded, reply, on_end: Some(on_end) }, job);
        let schedule = Arc::clone(&self.schedule);
        self.watchers.spawn(async move {
            if let Some(task) = task {
                let _ = task.await;
            }
            running.fetch_sub(1, Ordering::Relaxed);
            // One that was refused.
            schedule.table().ended(&jid);
        });
    }
}

/// Metadata with the times that Salt adds.
fn stamped(mut metadata: Value) -> Value {
    let now = Zoned::now();
    let utc = now.with_time_zone(jiff::tz::TimeZone::UTC);
    metadata.insert("_TOS", now.strftime("%z").to_string());
    metadata.insert("_TS", now.strftime("%a %b %e %H:%M:%S %Y").to_string());
    metadata.insert("_TT", utc.strftime("%Y %B %d %a %H %m").to_string());
    metadata
}
