//! Jobs that an orchestration starts on minions, and their returns: `saltutil.cmd` of Salt.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use brine_client::{BatchOptions, BatchSize, News, Published, Slots, Step, Waiter};
use brine_protocol::args::condition_input;
use brine_protocol::event::Event;
use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt as _, empty_map, list, map};
use indexmap::IndexMap;
use rand::seq::SliceRandom as _;

use super::super::ask;
use super::table::Actor;
use crate::bus::{Next, Subscription};

/// The longest wait for minions that a state can ask for, each time.
pub(super) const TIMEOUT_MAX_SECONDS: f64 = 604_800.0;
/// The wait after which minions of a batch and of a subset that said nothing are not there.
const PING: Duration = Duration::from_secs(15);

/// A job to publish.
pub(super) struct Wanted {
    pub(super) tgt: Value,
    pub(super) tgt_type: String,
    pub(super) fun: String,
    pub(super) args: Vec<Value>,
    pub(super) kwargs: Vec<(String, Value)>,
    /// Returners, separated by commas.
    pub(super) ret: String,
    /// Further `kwargs` of the request.
    pub(super) more: Vec<(&'static str, Value)>,
    pub(super) timeout: Option<Duration>,
    /// Minions that do not return have an entry, too.
    pub(super) expect_minions: bool,
    pub(super) batch: Option<BatchSize>,
    pub(super) subset: Option<usize>,
    /// A failure ends a batch.
    pub(super) failhard: bool,
}

impl Wanted {
    fn of(&self, fun: &str, args: Vec<Value>, tgt: Value, tgt_type: &str) -> Self {
        Self {
            tgt,
            tgt_type: tgt_type.to_owned(),
            fun: fun.to_owned(),
            args,
            kwargs: Vec::new(),
            ret: String::new(),
            more: Vec::new(),
            timeout: None,
            expect_minions: false,
            batch: None,
            subset: None,
            failhard: false,
        }
    }
}

/// The returns by minion, those that are not there last, as `saltutil.cmd` has them: `{"ret", "out", "retcode", "jid"}`, or `{"failed": true}`.
pub(super) type Returns = IndexMap<String, Value>;

/// Publishes a job with the rights of the orchestration's caller, and waits for its returns. Empty if no minion matches.
///
/// # Errors
/// The caller may not publish it, or the master cannot: a sentence.
pub(super) async fn cmd(actor: &Actor, wanted: &Wanted) -> Result<Returns, String> {
    if let Some(size) = wanted.batch {
        return Batch::new(actor, wanted, size).await?.run().await;
    }
    if let Some(most) = wanted.subset.filter(|most| *most > 0) {
        let ids = subset(actor, wanted, most).await?;
        if ids.is_empty() {
            return Ok(Returns::new());
        }
        let few = Wanted {
            args: wanted.args.clone(),
            kwargs: wanted.kwargs.clone(),
            ret: wanted.ret.clone(),
            more: wanted.more.clone(),
            timeout: wanted.timeout,
            expect_minions: wanted.expect_minions,
            ..wanted.of(&wanted.fun, Vec::new(), list(ids), "list")
        };
        return all(actor, &few).await;
    }
    all(actor, wanted).await
}

/// Some minions at random of those that have the function.
async fn subset(actor: &Actor, wanted: &Wanted, most: usize) -> Result<Vec<String>, String> {
    let asked = wanted.of("sys.list_functions", Vec::new(), wanted.tgt.clone(), &wanted.tgt_type);
    let mut found: Vec<(String, Value)> = all(actor, &asked).await?.into_iter().collect();
    found.shuffle(&mut rand::rng());
    let has = |answer: &Value| {
        answer.get_list("ret").is_some_and(|all| all.iter().any(|fun| fun.text() == Some(&wanted.fun)))
    };
    Ok(found.into_iter().filter(|(_, answer)| has(answer)).map(|(id, _)| id).take(most).collect())
}

/// Publishes for all minions at once.
async fn all(actor: &Actor, wanted: &Wanted) -> Result<Returns, String> {
    let mut watch = Watch::new(actor)?;
    let Some(published) = publish(actor, wanted, None).await? else { return Ok(Returns::new()) };
    let opts = &actor.runners.parts.opts;
    let timeout = wanted.timeout.unwrap_or(opts.timeout);
    let mut waiter = Waiter::new(&published, timeout, opts.gather_job_timeout, Instant::now());
    loop {
        match waiter.step(Instant::now()) {
            Step::Done => break,
            Step::Probe(ids) => {
                let jid = find_job(actor, &published.jid, ids).await;
                waiter.probed(jid.as_deref(), Instant::now());
            }
            Step::Until(until) => {
                for event in watch.next(&published.jid, until, &|tag| waiter.wants(tag)).await? {
                    match waiter.event(event, Instant::now()) {
                        Some(News::Return(ret)) => watch.take(ret.id, ret.load)?,
                        Some(News::Refused(why)) => return Err(why),
                        None => {}
                    }
                }
            }
        }
    }
    let mut returns = watch.finish(&published.jid).await?;
    let silent =
        |ids: &[String]| -> Vec<String> { ids.iter().filter(|id| !returns.contains_key(*id)).cloned().collect() };
    let mut failed = silent(&published.missing);
    if wanted.expect_minions {
        failed.extend(silent(&published.minions));
    }
    returns.extend(failed.into_iter().map(|id| (id, map([("failed", true)]))));
    Ok(returns)
}

/// The returns of jobs that are waited for.
struct Watch<'a> {
    actor: &'a Actor,
    events: Subscription,
    /// The loads of the returns, by minion.
    loads: BTreeMap<String, Value>,
    bytes: usize,
}

impl<'a> Watch<'a> {
    /// Call it before the job is published.
    fn new(actor: &'a Actor) -> Result<Self, String> {
        let events = actor.runners.parts.bus.subscribe().ok_or("the event bus has as many subscribers as it may")?;
        Ok(Self { actor, events, loads: BTreeMap::new(), bytes: 0 })
    }

    /// Waits for the next event that counts; nothing when the time has come. After lost events, the returns are those of
    /// the job store.
    async fn next(
        &mut self,
        jid: &str,
        until: Instant,
        wants: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Vec<Event>, String> {
        loop {
            let next = tokio::select! {
                biased;
                next = self.events.next() => next,
                () = tokio::time::sleep_until(until.into()) => return Ok(Vec::new()),
            };
            match next {
                None => return Err("the master is stopping".to_owned()),
                Some(Next::Event(event)) if wants(&event.event.tag) => {
                    self.bytes += event.size();
                    return Ok(vec![event.event.clone()]);
                }
                Some(Next::Event(_)) => {}
                Some(Next::Lost(_)) => {
                    let stored = self.stored(jid).await?;
                    let event = |(id, load): (String, Value)| Event::new(format!("salt/job/{jid}/ret/{id}"), load);
                    return Ok(stored.into_iter().map(event).collect());
                }
            }
        }
    }

    async fn stored(&self, jid: &str) -> Result<Vec<(String, Value)>, String> {
        let jobs = &self.actor.runners.parts.jobs;
        let Ok(jid) = Jid::try_from(jid) else { return Ok(Vec::new()) };
        if !jobs.keeps() {
            return Ok(Vec::new());
        }
        let returns = jobs.returns(&jid).await.map_err(|error| error.to_string())?;
        Ok(returns.into_iter().map(|stored| (stored.minion.to_string(), stored.load())).collect())
    }

    fn take(&mut self, id: String, load: Value) -> Result<(), String> {
        let most = self.actor.return_max;
        if self.bytes > most.saturating_mul(4) {
            return Err(format!("the minions returned more than four times orchestrate_max_return ({most} bytes)"));
        }
        self.loads.insert(id, load);
        Ok(())
    }

    /// The returns, whole: those that were too large for the bus are in the job store.
    async fn finish(mut self, jid: &str) -> Result<Returns, String> {
        if self.loads.values().any(|load| load.get("return").is_some_and(ask::is_cut)) {
            for (id, load) in self.stored(jid).await? {
                self.loads.entry(id).and_modify(|known| *known = load);
            }
        }
        Ok(self.loads.into_iter().map(|(id, load)| (id, returned(&load))).collect())
    }
}

/// What `saltutil.cmd` has of a return.
fn returned(load: &Value) -> Value {
    let mut returned = map([("ret", load.get("return").cloned().unwrap_or(Value::Nil))]);
    for name in ["out", "retcode", "jid"] {
        if let Some(value) = load.get(name) {
            returned.insert(name, value.clone());
        }
    }
    returned
}

/// Publishes by the way of all callers. None if no minion matches.
async fn publish(actor: &Actor, wanted: &Wanted, jid: Option<&Jid>) -> Result<Option<Published>, String> {
    let parts = &actor.runners.parts;
    let (tgt, tgt_type) =
        ask::without_groups(parts, &wanted.tgt, &wanted.tgt_type).map_err(|failure| failure.0.python_str())?;
    let mut load = map([
        ("cmd", Value::from("publish")),
        ("tgt", tgt),
        ("fun", wanted.fun.as_str().into()),
        ("arg", Value::Array(condition_input(wanted.args.clone(), wanted.kwargs.clone()))),
        ("tgt_type", tgt_type.into()),
        ("ret", wanted.ret.as_str().into()),
        ("jid", jid.map_or("", Jid::as_str).into()),
        ("user", actor.by.name().into()),
    ]);
    if !wanted.more.is_empty() {
        load.insert("kwargs", map(wanted.more.clone()));
    }
    // Only Python's clients read a job back from files.
    load.insert("python_job_files", false);
    let reply = parts.dispatcher.answer(load, &actor.by).await.map_err(|fault| fault.to_string())?;
    match reply.get("error") {
        None => Ok(Published::from_reply(&reply).ok()),
        Some(error) => {
            let why = error.get_text("message").map_or_else(|| error.python_str(), str::to_owned);
            Err(format!("{} may not run {} on {}: {why}", actor.by.name(), wanted.fun, wanted.tgt.python_str()))
        }
    }
}

/// Asks minions whether they run a job. Returns the jid of the question.
async fn find_job(actor: &Actor, jid: &str, ids: Vec<String>) -> Option<String> {
    let nothing = Wanted {
        tgt: Value::Nil,
        tgt_type: String::new(),
        fun: String::new(),
        args: Vec::new(),
        kwargs: Vec::new(),
        ret: String::new(),
        more: Vec::new(),
        timeout: None,
        expect_minions: false,
        batch: None,
        subset: None,
        failhard: false,
    };
    let question = nothing.of("saltutil.find_job", vec![jid.into()], list(ids), "list");
    publish(actor, &question, None).await.ok().flatten().map(|published| published.jid)
}

/// A job that runs on some minions at a time, under one jid.
struct Batch<'a> {
    actor: &'a Actor,
    wanted: &'a Wanted,
    jid: Jid,
    slots: Slots,
    waiters: Vec<Waiter>,
    watch: Watch<'a>,
    silent: Vec<String>,
}

impl<'a> Batch<'a> {
    async fn new(actor: &'a Actor, wanted: &'a Wanted, size: BatchSize) -> Result<Self, String> {
        let ping = Wanted {
            timeout: Some(wanted.timeout.unwrap_or(PING).min(PING)),
            ..wanted.of("test.ping", Vec::new(), wanted.tgt.clone(), &wanted.tgt_type)
        };
        let minions: Vec<String> =
            all(actor, &ping).await?.into_iter().filter(|(_, pong)| pong.has("ret")).map(|(id, _)| id).collect();
        let slots = Slots::new(minions, BatchOptions { size, wait: Duration::ZERO, failhard: wanted.failhard });
        let (jid, watch) = (Jid::now(), Watch::new(actor)?);
        Ok(Self { actor, wanted, jid, slots, waiters: Vec::new(), watch, silent: Vec::new() })
    }

    async fn run(mut self) -> Result<Returns, String> {
        loop {
            let ids = self.slots.begin(Instant::now());
            if !ids.is_empty() {
                self.begin(&ids).await?;
                continue;
            }
            if self.slots.is_done() {
                break;
            }
            let now = Instant::now();
            let steps: Vec<Step> = self.waiters.iter_mut().map(|waiter| waiter.step(now)).collect();
            let until = steps.iter().map(|step| if let Step::Until(until) = step { *until } else { now }).min();
            let until = until.unwrap_or(now);
            if until > now {
                let waiters = &self.waiters;
                let wants = |tag: &str| waiters.iter().any(|waiter| waiter.wants(tag));
                for event in self.watch.next(self.jid.as_str(), until, &wants).await? {
                    let now = Instant::now();
                    let news = self.waiters.iter_mut().find_map(|waiter| waiter.event(event.clone(), now));
                    match news {
                        Some(News::Return(ret)) => {
                            self.slots.ended(&ret.id, ret.retcode > 0, now);
                            self.watch.take(ret.id, ret.load)?;
                        }
                        Some(News::Refused(why)) => return Err(why),
                        None => {}
                    }
                }
                continue;
            }
            self.time_passed(steps).await;
        }
        let returns = self.watch.finish(self.jid.as_str()).await?;
        let shown = |value: Value| {
            let ret = value.get("ret").cloned().unwrap_or(Value::Nil);
            map([("out", Value::from("highstate")), ("ret", ret)])
        };
        let silent =
            self.silent.into_iter().map(|id| (id, map([("out", Value::from("highstate")), ("ret", empty_map())])));
        let all: Returns = silent.collect();
        Ok(all.into_iter().chain(returns.into_iter().map(|(id, value)| (id, shown(value)))).collect())
    }

    async fn begin(&mut self, ids: &[String]) -> Result<(), String> {
        let part = Wanted {
            kwargs: self.wanted.kwargs.clone(),
            ret: self.wanted.ret.clone(),
            more: self.wanted.more.clone(),
            ..self.wanted.of(&self.wanted.fun, self.wanted.args.clone(), list(ids.iter().map(String::as_str)), "list")
        };
        let opts = &self.actor.runners.parts.opts;
        let published = publish(self.actor, &part, Some(&self.jid)).await?;
        let known = published.as_ref().map_or(&[][..], |published| &published.minions);
        let gone: Vec<String> = ids.iter().filter(|id| !known.contains(id)).cloned().collect();
        self.give_up(gone);
        if let Some(mut published) = published {
            published.missing.clear();
            let timeout = self.wanted.timeout.unwrap_or(opts.timeout);
            let waiter = Waiter::new(&published, timeout, opts.gather_job_timeout, Instant::now());
            self.waiters.push(waiter.for_these_only());
        }
        Ok(())
    }

    fn give_up(&mut self, ids: Vec<String>) {
        for id in ids {
            self.slots.ended(&id, false, Instant::now());
            self.silent.push(id);
        }
    }

    async fn time_passed(&mut self, steps: Vec<Step>) {
        for (mut waiter, step) in std::mem::take(&mut self.waiters).into_iter().zip(steps) {
            match step {
                Step::Until(_) => self.waiters.push(waiter),
                Step::Probe(ids) => {
                    let jid = find_job(self.actor, self.jid.as_str(), ids).await;
                    waiter.probed(jid.as_deref(), Instant::now());
                    self.waiters.push(waiter);
                }
                Step::Done => {
                    let missing = waiter.missing();
                    self.give_up(missing);
                }
            }
        }
    }
}
