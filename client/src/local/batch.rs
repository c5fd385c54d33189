//! A job for some minions at a time: one jid, published again for each minion that begins (§13.1 no. 16).

use std::collections::VecDeque;
use std::time::Instant;

use brine_protocol::ids::Jid;
use brine_protocol::value;

use super::slots::{BatchOptions, Slots};
use super::trimmed;
use super::waiter::{News, Step, Waiter};
use super::{Job, LocalClient, MinionReturn};
use crate::ClientError;
use crate::bus::Bus;

/// What happens in a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum BatchEvent {
    /// The job was published for these.
    Started(Vec<String>),
    /// A minion returned.
    Return(Box<MinionReturn>),
    /// A minion did not return, and its place is free.
    Missing(String),
}

/// A batch that runs.
pub struct Batch<'a> {
    client: &'a LocalClient,
    bus: Bus,
    job: Job,
    slots: Slots,
    /// One for each publication.
    waiters: Vec<Waiter>,
    events: VecDeque<BatchEvent>,
}

impl LocalClient {
    /// Runs a job on these minions, some at a time; its target is not looked at.
    ///
    /// # Errors
    /// When the master is not there.
    pub async fn cmd_batch(
        &self,
        job: &Job,
        minions: Vec<String>,
        options: BatchOptions,
    ) -> Result<Batch<'_>, ClientError> {
        let bus = Bus::connect(self.opts.bus_socket()).await?;
        let job = Job { jid: Jid::now().to_string(), tgt_type: "list".to_owned(), ..job.clone() };
        let slots = Slots::new(minions, options);
        Ok(Batch { client: self, bus, job, slots, waiters: Vec::new(), events: VecDeque::new() })
    }
}

impl Batch<'_> {
    /// The one jid.
    pub fn jid(&self) -> &str {
        &self.job.jid
    }

    /// Whether a failure ended it.
    pub const fn is_halted(&self) -> bool {
        self.slots.is_halted()
    }

    /// What happens next; none when everybody has ended, or where a failure ends it.
    ///
    /// # Errors
    /// When the master refuses the job, or is away when somebody is to begin.
    pub async fn next(&mut self) -> Result<Option<BatchEvent>, ClientError> {
        loop {
            // Before the return is looked at that made room.
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
                // What has arrived already counts, however late this process runs.
                Step::Probe(_) | Step::Done => now,
            });
            // Somebody is active, or a place will be free.
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
            // Their keys have gone since they were asked whether they are there.
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

    /// Asks minions whose time is up whether they still run the job, and gives up on those that do not.
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
