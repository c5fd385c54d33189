//! A batch: a job that runs on some minions at a time. It has one jid and is published again for each minion that
//! begins (§13.1 no. 16).

use std::collections::VecDeque;
use std::time::Instant;

use brine_protocol::ids::Jid;
use brine_protocol::value;

use super::slots::{BatchOptions, Slots};
use super::trimmed;
use super::waiter::{News, Step, Waiter};
use super::{Job, LocalClient, MinionReturn};
use crate::ClientError;
use crate::bus::BusSubscription;

/// An event of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum BatchEvent {
    /// The job was published for these minions.
    Started(Vec<String>),
    /// A minion returned.
    Return(Box<MinionReturn>),
    /// A minion did not return, and its slot is free.
    Missing(String),
}

/// A running batch.
pub struct Batch<'a> {
    client: &'a LocalClient,
    bus: BusSubscription,
    job: Job,
    slots: Slots,
    /// One waiter for each publication.
    waiters: Vec<Waiter>,
    events: VecDeque<BatchEvent>,
}

impl LocalClient {
    /// Runs a job on these minions, some at a time. The job's own target is ignored.
    ///
    /// # Errors
    /// When the master cannot be reached.
    pub async fn cmd_batch(
        &self,
        job: &Job,
        minions: Vec<String>,
        options: BatchOptions,
    ) -> Result<Batch<'_>, ClientError> {
        let bus = BusSubscription::connect(self.opts.bus_socket()).await?;
        let job = Job { jid: Jid::now().to_string(), tgt_type: "list".to_owned(), ..job.clone() };
        let slots = Slots::new(minions, options);
        Ok(Batch { client: self, bus, job, slots, waiters: Vec::new(), events: VecDeque::new() })
    }
}

impl Batch<'_> {
    /// The jid of all publications.
    pub fn jid(&self) -> &str {
        &self.job.jid
    }

    /// Whether a failure ended the batch.
    pub const fn is_halted(&self) -> bool {
        self.slots.is_halted()
    }

    /// Waits for the next event. Returns none when all minions have ended, or when a failure ended the batch.
    ///
    /// # Errors
    /// When the master refuses the job, or cannot be reached when a minion should begin.
    pub async fn next(&mut self) -> Result<Option<BatchEvent>, ClientError> {
        loop {
            // The next minion begins before the caller handles the return that freed the slot.
            let ids = self.slots.begin(Instant::now());
            if !ids.is_empty() {
                self.publish(&ids).await?;
                return Ok(Some(BatchEvent::Started(ids)));
            }
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if self.slots.is_done() {
                return Ok(None);
            }
            let now = Instant::now();
            let steps = self.waiters.iter_mut().map(|waiter| match waiter.step(now) {
                Step::Until(until) => until,
                // An event that has already arrived counts, even if this process runs late.
                Step::Probe(_) | Step::Done => now,
            });
            // A minion is active, or a slot will become free.
            let until = steps.chain(self.slots.next_free()).min().unwrap_or(now);
            let waiters = &self.waiters;
            let event = tokio::select! {
                biased;
                event = self.bus.next(|tag| waiters.iter().any(|waiter| waiter.wants(tag))) => Some(event),
                () = tokio::time::sleep_until(until.into()) => None,
            };
            match event {
                Some(Some(event)) => {
                    let now = Instant::now();
                    let news = self.waiters.iter_mut().find_map(|waiter| waiter.event(event.clone(), now));
                    self.news(news).await?;
                }
                Some(None) => {}
                None => self.time_passed().await,
            }
        }
    }

    async fn publish(&mut self, ids: &[String]) -> Result<(), ClientError> {
        self.job.tgt = value::list(ids.iter().map(String::as_str));
        match self.client.publish(&self.job).await {
            Ok(mut published) => {
                published.missing.clear();
                self.report_missing(ids.iter().filter(|id| !published.minions.contains(id)));
                let (timeout, gather) = (self.client.timeout(&self.job), self.client.opts.gather_job_timeout);
                self.waiters.push(Waiter::new(&published, timeout, gather, Instant::now()).for_these_only());
                Ok(())
            }
            // The minions' keys were removed after the ping.
            Err(ClientError::NoMatch { .. }) => {
                self.report_missing(ids);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn news(&mut self, news: Option<News>) -> Result<(), ClientError> {
        let mut ret = match news {
            None => return Ok(()),
            Some(News::Refused(text)) => return Err(ClientError::Authorization(text)),
            Some(News::Return(ret)) => ret,
        };
        if trimmed::is_trimmed(&ret.ret)
            && let Some(whole) = trimmed::fetch(self.client, &self.job.jid, &ret.id).await
        {
            ret.ret = whole;
        }
        self.slots.ended(&ret.id, ret.retcode > 0, Instant::now());
        self.events.push_back(BatchEvent::Return(Box::new(ret)));
        Ok(())
    }

    /// Asks the minions whose time is over whether they still run the job, and gives up those that do not.
    async fn time_passed(&mut self) {
        for mut waiter in std::mem::take(&mut self.waiters) {
            match waiter.step(Instant::now()) {
                Step::Until(_) => self.waiters.push(waiter),
                Step::Probe(ids) => {
                    let jid = self.client.find_job(&self.job.jid, ids).await;
                    waiter.probed(jid.as_deref(), Instant::now());
                    self.waiters.push(waiter);
                }
                Step::Done => self.report_missing(&waiter.missing()),
            }
        }
    }

    fn report_missing<'b>(&mut self, ids: impl IntoIterator<Item = &'b String>) {
        for id in ids {
            self.slots.ended(id, false, Instant::now());
            self.events.push_back(BatchEvent::Missing(id.clone()));
        }
    }
}
