//! `event_return`: returners keep events of the bus in Salt's table `salt_events`.
//!
//! Each returner has its own subscription, which bounds its waiting events. While a returner's server is away, the
//! oldest events are lost, nothing else is delayed, and the log has the number of lost events.

use std::sync::Arc;
use std::time::Duration;

use brine_protocol::config::settings::{self, Setting};
use brine_protocol::config::{Config, ConfigError};
use brine_protocol::options;
use brine_protocol::value::{Value, ValueExt};
use futures_util::FutureExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::Name;
use crate::bus::{Bus, BusEvent, Next, Subscription};
use crate::jobs::{JobCache, KeptEvent, Returner, ReturnerName, now_ms};

/// Upper bound on the events of one write, whatever `event_return_queue` says.
const BATCH_MAX: usize = 1_000;
/// Upper bound on the bytes of one write. The event that exceeds the bound is still part of the write.
const BATCH_BYTES: usize = 8 << 20;
/// The wait after the first failure. Each further failure doubles it.
const RETRY_FIRST: Duration = Duration::from_millis(500);
/// The longest wait after a failure.
const RETRY_LONGEST: Duration = Duration::from_secs(30);
/// Interval between log lines about a failure that persists.
const TELL_EVERY: Duration = Duration::from_secs(600);
/// Time for the last write when the master ends.
const LAST: Duration = Duration::from_secs(3);

options! {
    /// Which events are kept, and by which returners.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct EventReturnOpts from c {
        /// `event_return`; empty: no events are kept.
        pub(crate) to: Vec<ReturnerName> = ReturnerName::of_events(c)?,
        /// `event_return_whitelist`: tags; empty: all tags.
        allow: Vec<Name> = names(c, settings::EVENT_RETURN_WHITELIST)?,
        deny: Vec<Name> = names(c, settings::EVENT_RETURN_BLACKLIST)?,
        /// `event_return_queue`: number of events that are written together.
        queue: usize = c.get(settings::EVENT_RETURN_QUEUE)?.clamp(1, BATCH_MAX),
        /// `event_return_queue_max_seconds`: longest time that an event waits for others; `None`: no limit.
        longest: Option<Duration> =
            Some(c.get(settings::EVENT_RETURN_QUEUE_MAX_SECONDS)?).filter(|longest| !longest.is_zero()),
    }
}

impl EventReturnOpts {
    /// Returns whether events with this tag are kept, as Salt's `check_whitelist_blacklist` decides.
    fn wants(&self, tag: &str) -> bool {
        let is_in = |names: &[Name]| names.iter().any(|name| name.matches(tag));
        !is_in(&self.deny) && (self.allow.is_empty() || is_in(&self.allow))
    }
}

/// Reads a list of tags, globs or expressions, or a single one.
fn names(c: &Config, setting: Setting<Value>) -> Result<Vec<Name>, ConfigError> {
    let key = setting.row.name;
    let wrong = |why: String| {
        tracing::error!("{key}: {why}");
        c.wrong(key, "a list of tags, globs or expressions")
    };
    match c.find(setting)? {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().map(|item| Name::new(&item.python_str()).map_err(wrong)).collect(),
        Some(one) if one.text().is_some() => Ok(vec![Name::new(&one.python_str()).map_err(wrong)?]),
        Some(other) => Err(wrong(format!("{} is not a list", other.python_repr()))),
    }
}

/// Subscribes each returner, so that no later event is missed.
pub(crate) fn subscribe(opts: &EventReturnOpts, bus: &Bus) -> Vec<(ReturnerName, Subscription)> {
    opts.to.iter().filter_map(|name| Some((name.clone(), bus.subscribe()?))).collect()
}

/// Writes events to the returners until `stop`.
pub(crate) async fn run(
    jobs: Arc<JobCache>,
    opts: EventReturnOpts,
    id: String,
    subscriptions: Vec<(ReturnerName, Subscription)>,
    stop: CancellationToken,
) {
    let each = subscriptions.into_iter().filter_map(|(name, events)| {
        let returner = jobs.returner(&name)?;
        let (opts, master) = (&opts, id.clone());
        Some(
            Keeper { opts, master, name, returner, events, batch: Vec::new(), bytes: 0, since: None }.run(stop.clone()),
        )
    });
    futures_util::future::join_all(each).await;
}

/// Writes events to one returner.
struct Keeper<'a> {
    opts: &'a EventReturnOpts,
    /// The master's id, which is a column of each row.
    master: String,
    name: ReturnerName,
    returner: Arc<dyn Returner>,
    events: Subscription,
    batch: Vec<KeptEvent>,
    bytes: usize,
    /// When the first event of the batch came.
    since: Option<Instant>,
}

impl Keeper<'_> {
    async fn run(mut self, stop: CancellationToken) {
        loop {
            let too_long = self.since.zip(self.opts.longest).map(|(since, longest)| since + longest);
            let next = tokio::select! {
                next = self.events.next() => next,
                () = until(too_long) => {
                    self.write(&stop).await;
                    continue;
                }
                () = stop.cancelled() => break,
            };
            match next {
                Some(next) => self.take(next),
                None => break,
            }
            // Events that have arrived meanwhile join the same transaction.
            while !self.is_full()
                && let Some(Some(next)) = self.events.next().now_or_never()
            {
                self.take(next);
            }
            if self.batch.len() >= self.opts.queue || self.is_full() {
                self.write(&stop).await;
            }
        }
        while !self.is_full()
            && let Some(Some(next)) = self.events.next().now_or_never()
        {
            self.take(next);
        }
        let left = self.batch.len();
        if left > 0 && !matches!(tokio::time::timeout(LAST, self.attempt()).await, Ok(Ok(()))) {
            tracing::error!("event_return: {left} events are lost to {}: the master ends", self.name);
        }
    }

    fn is_full(&self) -> bool {
        self.batch.len() >= BATCH_MAX || self.bytes >= BATCH_BYTES
    }

    fn take(&mut self, next: Next) {
        match next {
            Next::Event(event) if self.opts.wants(&event.event.tag) => self.push(&event),
            Next::Event(_) => {}
            Next::Lost(count) => {
                tracing::error!("event_return: {count} events are lost to {}: it is too slow, or away", self.name);
            }
        }
    }

    fn push(&mut self, event: &BusEvent) {
        self.since.get_or_insert_with(Instant::now);
        self.bytes += event.size();
        let (tag, data) = (event.event.tag.clone(), event.event.data.clone());
        self.batch.push(KeptEvent { tag, data, at_ms: now_ms() });
    }

    async fn attempt(&mut self) -> Result<(), crate::jobs::StoreError> {
        let refused = self.returner.save_events(&self.master, &self.batch).await?;
        if let Some(why) = refused.first() {
            tracing::error!("event_return: {} does not take {} events: {why}", self.name, refused.len());
        }
        self.batch.clear();
        (self.bytes, self.since) = (0, None);
        Ok(())
    }

    /// Tries until the batch is written. After `stop` the batch stays.
    async fn write(&mut self, stop: &CancellationToken) {
        let mut wait = RETRY_FIRST;
        let mut told: Option<Instant> = None;
        while let Err(error) = self.attempt().await {
            if told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
                tracing::error!("event_return: {error}; it is tried again, and events wait meanwhile");
                told = Some(Instant::now());
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => return,
            }
            wait = (wait * 2).min(RETRY_LONGEST);
        }
        if told.is_some() {
            tracing::warn!("event_return: the returner {} works again", self.name);
        }
    }
}

/// Waits until `at`, or for ever without one.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use brine_protocol::config::Role;

    use super::*;

    fn opts(yaml: &str) -> Result<EventReturnOpts, String> {
        let config = Config::from_yaml(yaml, Path::new("/x/master"), Role::Master).unwrap();
        EventReturnOpts::from_config(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn which_tags_are_kept() {
        for (lists, yes, no) in [
            ("{}", &["salt/auth", "x"][..], &[][..]),
            ("event_return_whitelist: [salt/auth, 'salt/job/*/ret/*']", &["salt/auth", "salt/job/1/ret/a"], &["x"]),
            ("event_return_whitelist: salt/auth", &["salt/auth"], &["salt/key"]),
            ("event_return_blacklist: ['salt/job/\\d+/new']", &["salt/auth", "salt/job/x/new"], &["salt/job/12/new"]),
            (
                "{event_return_whitelist: ['salt/*'], event_return_blacklist: ['*/new']}",
                &["salt/auth"],
                &["salt/job/1/new", "x"],
            ),
        ] {
            let opts = opts(lists).unwrap();
            assert!(yes.iter().all(|tag| opts.wants(tag)) && !no.iter().any(|tag| opts.wants(tag)), "{lists}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert!(opts("event_return: ''").unwrap().to.is_empty());
        assert_eq!(opts("event_return: [postgres, pgjsonb, postgres]").unwrap().to.len(), 2);
        for (yaml, key) in [
            ("event_return: mysql", "event_return"),
            ("event_return: local_cache", "event_return"),
            ("event_return_queue: many", "event_return_queue"),
            ("event_return_whitelist: {a: b}", "event_return_whitelist"),
            ("event_return_blacklist: ['(?!a)b']", "event_return_blacklist"),
        ] {
            let error = opts(yaml).unwrap_err();
            assert!(error.contains(key), "{yaml}: {error}");
        }
    }
}
