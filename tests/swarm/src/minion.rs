//! A simulated minion in one task. Like a real minion it signs in, subscribes, returns, signs in again, and restarts on
//! request.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brine_protocol::ids::MinionId;
use brine_protocol::job::Return;
use brine_protocol::keys::PublicKey;
use brine_protocol::publication::BROADCAST;
use brine_protocol::request::Session;
use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_zmtp::{Backoff, Endpoint, SubConfig, SubEvent, Subscriber};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::functions::{self, Answer};
use crate::keys::SwarmKey;
use crate::link::Link;
use crate::plan::{Plan, Temper};
use crate::publications::{Job, Publications};
use crate::stats::{Stats, up};

/// Upper bound on the bytes of a fetched file.
const FILE_MAX: u64 = 1 << 30;

/// The state that all minions of a swarm share.
pub(crate) struct Shared {
    pub(crate) plan: Arc<Plan>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) publications: Publications,
    /// The master's key, trusted by all after the first of them has seen it.
    pub(crate) master: Arc<OnceLock<PublicKey>>,
    pub(crate) count: usize,
}

/// A simulated minion.
pub(crate) struct Minion {
    shared: Arc<Shared>,
    index: usize,
    id: MinionId,
    key: Arc<SwarmKey>,
    temper: Temper,
    /// Jobs that a slow minion has not returned yet.
    late: VecDeque<(Instant, Arc<Job>)>,
}

impl Minion {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, id: MinionId, key: Arc<SwarmKey>) -> Self {
        let temper = shared.plan.temper(index, shared.count);
        Self { shared, index, id, key, temper, late: VecDeque::new() }
    }

    /// Runs until the swarm ends, and restarts whenever `storms` changes.
    pub(crate) async fn run(mut self, mut storms: watch::Receiver<u64>) {
        let plan = Arc::clone(&self.shared.plan);
        sleep(plan.start_over.mul_f64(rand::random())).await;
        // The first regular restart comes at a random time, so that restarts are spread.
        let mut lifetime = plan.restart_every.map(|every| every.mul_f64(rand::random()));
        loop {
            let end = async {
                match lifetime {
                    Some(lifetime) => sleep(lifetime).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.live() => {}
                () = end => {}
                changed = storms.changed() => if changed.is_err() { return },
            }
            lifetime = plan.restart_every;
            self.late.clear();
            up(&self.shared.stats.restarts);
        }
    }

    /// Runs one life of the minion. Ends only when dropped.
    async fn live(&mut self) {
        let shared = Arc::clone(&self.shared);
        let (plan, stats, master) = (Arc::clone(&shared.plan), Arc::clone(&shared.stats), Arc::clone(&shared.master));
        let mut link = Link::new(plan, stats, master, self.id.clone(), Arc::clone(&self.key));
        link.sign_in().await;
        let mut port = None;
        let mut subscription = None;
        let mut connected_before = false;
        loop {
            let now = link.live().map(|live| live.credentials.publish_port);
            let subscription = match (now, &mut subscription) {
                (Some(_), Some(open)) if now == port => open,
                (Some(at), slot) => {
                    port = now;
                    connected_before = false;
                    slot.insert(Subscription::new(&shared, &self.id, at))
                }
                (None, _) => {
                    link.sign_in().await;
                    continue;
                }
            };
            let due = self.late.front().map(|(due, _)| *due);
            let event = tokio::select! {
                event = subscription.recv() => event,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if let Some((_, job)) = self.late.pop_front() {
                        self.answer(&mut link, &job).await;
                    }
                    continue;
                }
            };
            match event {
                SubEvent::Connected if std::mem::replace(&mut connected_before, true) => {
                    // Like a real minion, because the master may be another one with another publish key.
                    link.reconnect();
                    link.renew().await;
                }
                SubEvent::Connected => self.greet(&mut link).await,
                SubEvent::Disconnected { reason } => shared.stats.error(&format!("publications: {reason}")),
                SubEvent::Message(frames) => {
                    up(&shared.stats.publications);
                    self.publication(&mut link, &frames).await;
                }
            }
        }
    }

    async fn publication(&mut self, link: &mut Link, frames: &[Bytes]) {
        let stats = Arc::clone(&self.shared.stats);
        let mut opened = self.open(link, frames);
        if opened.as_ref().is_some_and(|opened| opened.as_ref().is_err_and(|error| error.wants_reauth())) {
            sleep(self.shared.plan.reauth_over.mul_f64(rand::random())).await;
            link.renew().await;
            opened = self.open(link, frames);
        }
        let job = match opened {
            Some(Ok(job)) => job,
            Some(Err(error)) => {
                up(&stats.publications_bad);
                return stats.error(&error.to_string());
            }
            None => return,
        };
        if !job.is_for(&self.id, || Plan::grains(&self.id, self.index)) {
            return;
        }
        up(&stats.jobs);
        match self.temper {
            Temper::Silent => {}
            // `find_job` about a slow job is answered at once.
            Temper::Slow if job.load.fun() != "saltutil.find_job" => {
                self.late.push_back((Instant::now() + self.shared.plan.slow_for, job));
            }
            Temper::Slow | Temper::Prompt => self.answer(link, &job).await,
        }
    }

    fn open(&self, link: &Link, frames: &[Bytes]) -> Option<Result<Arc<Job>, crate::publications::Unusable>> {
        self.shared.publications.open(frames, &self.id.topic(), link.live()?)
    }

    /// Runs a job and sends the return until the master has acknowledged it.
    async fn answer(&self, link: &mut Link, job: &Job) {
        let stats = &self.shared.stats;
        let grains = Plan::grains(&self.id, self.index);
        let (mut values, mut codes) = (Vec::new(), Vec::new());
        for call in &job.load.calls {
            let running = self.late.front().map(|(_, job)| &job.load);
            let result = match functions::call(&call.fun, &call.arg, &grains, running) {
                Answer::Value(value) => Ok(value),
                Answer::Failure(why) => Err(why),
                Answer::Fetch(path) => self.fetch(link, &path).await.map(Value::from),
                Answer::Refresh => self.refresh(link).await.map(|()| Value::from(true)),
            };
            codes.push((Value::from(call.fun.as_str()), Value::from(i64::from(result.is_err()))));
            values.push((Value::from(call.fun.as_str()), result.unwrap_or_else(Value::from)));
        }
        let fun_args = job.load.raw.get("arg").and_then(ValueExt::list).unwrap_or_default().to_vec();
        let mut answer = Return::new(self.id.clone(), job.load.jid.clone(), job.load.fun(), fun_args, Value::Nil, 0);
        let failed = codes.iter().any(|(_, code)| code.as_i64() != Some(0));
        if job.load.multi {
            answer.fun = job.load.raw.get("fun").cloned().unwrap_or(Value::Nil);
            answer.return_ = Value::Map(values);
            answer.success = Some(Value::Map(
                codes.iter().map(|(fun, code)| (fun.clone(), Value::from(code.as_i64() == Some(0)))).collect(),
            ));
            answer.retcode = Value::Map(codes);
        } else {
            answer.return_ = values.pop().map_or(Value::Nil, |(_, value)| value);
            answer.retcode = Value::from(i64::from(failed));
            answer.success = Some(Value::from(!failed));
        }
        answer.metadata.clone_from(&job.load.metadata);
        let started = std::time::Instant::now();
        match link.request(&answer.to_load(), Session::open_reply).await {
            Ok(_) => {
                stats.return_time.add(started.elapsed());
                up(&stats.returns_acknowledged);
            }
            Err(error) => stats.error(&format!("return: {error}")),
        }
    }

    /// Requests the pillar and fires the start event, if the plan says so.
    async fn greet(&self, link: &mut Link) {
        if !self.shared.plan.pillar {
            return;
        }
        let started = map([
            ("cmd", Value::from("_minion_event")),
            ("id", Value::from(&self.id)),
            ("tag", Value::from(format!("salt/minion/{}/start", self.id))),
            ("data", Value::from(format!("Minion {} started", self.id))),
            ("pretag", Value::Nil),
        ]);
        let pillar = self.refresh(link).await;
        let event = link.request(&started, Session::open_reply).await;
        for (what, done) in [("pillar", pillar), ("start event", event.map(drop))] {
            if let Err(error) = done {
                self.shared.stats.error(&format!("{what}: {error}"));
            }
        }
    }

    /// Requests the pillar. One with `_errors` has failed.
    async fn refresh(&self, link: &mut Link) -> Result<(), String> {
        let load = map([
            ("cmd", Value::from("_pillar")),
            ("id", Value::from(&self.id)),
            ("grains", Plan::grains(&self.id, self.index)),
            ("saltenv", Value::Nil),
            ("pillarenv", Value::Nil),
            ("pillar_override", empty_map()),
            ("extra_minion_data", empty_map()),
            ("ver", Value::from("2")),
        ]);
        let began = std::time::Instant::now();
        let pillar = link.request(&load, Session::open_pillar_reply).await?;
        self.shared.stats.pillar_time.add(began.elapsed());
        up(&self.shared.stats.pillars);
        if pillar.has("_errors") { Err("the pillar has errors".to_owned()) } else { Ok(()) }
    }

    /// Fetches a file and returns its size.
    async fn fetch(&self, link: &mut Link, path: &str) -> Result<u64, String> {
        let load = |cmd: &str| map([("cmd", cmd), ("path", path), ("saltenv", "base")]);
        let stated = link.request(&load("_file_hash"), Session::open_reply).await?;
        let hash = stated.get_text("hsum").ok_or_else(|| format!("the master has no {path}"))?;
        let (mut hasher, mut at) = (Sha256::new(), 0_u64);
        loop {
            let mut piece = load("_serve_file");
            piece.insert("loc", at);
            let answer = link.request(&piece, Session::open_raw_reply).await?;
            let data = answer.get_bytes("data").ok_or("the answer to _serve_file is malformed")?;
            if data.is_empty() {
                break;
            }
            at += data.len() as u64;
            if at > FILE_MAX {
                return Err(format!("{path} is larger than {FILE_MAX} bytes"));
            }
            hasher.update(data);
            self.shared.stats.file_bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        if hex::encode(hasher.finalize()) != hash {
            return Err(format!("{path} has another hash than the master says"));
        }
        up(&self.shared.stats.files_fetched);
        Ok(at)
    }
}

/// The subscription, which is counted while it is connected.
struct Subscription {
    subscriber: Subscriber,
    stats: Arc<Stats>,
    connected: bool,
}

impl Subscription {
    fn new(shared: &Shared, id: &MinionId, port: u16) -> Self {
        let plan = &shared.plan;
        let topics = vec![Bytes::from_static(BROADCAST.as_bytes()), Bytes::from(id.topic())];
        let (initial, max) = plan.reconnect;
        let config = SubConfig {
            subscriptions: if plan.filtering { topics } else { vec![Bytes::new(), topics[1].clone()] },
            identity: Some(Bytes::from(id.to_string())),
            backoff: Backoff { initial, max, randomize: true },
            ..SubConfig::default()
        };
        let subscriber = Subscriber::connect(Endpoint::tcp(plan.master.as_str(), port), config);
        Self { subscriber, stats: Arc::clone(&shared.stats), connected: false }
    }

    /// Returns the next event. Cancel-safe.
    async fn recv(&mut self) -> SubEvent {
        let event = self.subscriber.recv().await;
        match event {
            SubEvent::Connected => {
                self.connected = true;
                up(&self.stats.connected);
                up(&self.stats.connects);
            }
            SubEvent::Disconnected { .. } => self.lost(),
            SubEvent::Message(_) => {}
        }
        event
    }

    fn lost(&mut self) {
        if std::mem::replace(&mut self.connected, false) {
            self.stats.connected.fetch_sub(1, Ordering::Relaxed);
            up(&self.stats.losses);
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.lost();
    }
}

/// Interval at which a swarm checks its counters.
pub(crate) const LOOK: Duration = Duration::from_millis(5);
