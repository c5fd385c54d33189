//! The one way of a job out of the master, for every caller: a client (§7.2), a runner, a minion (§6.1) or the master
//! itself.
//!
//! [`Dispatcher::submit`] has these stages: make the jid, resolve the target, check permission, audit, sign and seal,
//! record, announce, send. Parsing has already validated the request ([`PublishRequest`]).

mod answer;

use std::sync::Arc;
use std::time::Duration;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::job::{PublishRequest, PublishedJob, RequestedJid};
use brine_protocol::target::{Resolved, TargetError};
use brine_protocol::value::Value;

use crate::access::{Access, Extent, Principal};
use crate::audit::{Audit, AuditLine};
use crate::bus::Bus;
use crate::chains::Chains;
use crate::fault::Fault;
use crate::jobs::{Adding, JobCache, PythonJobFiles, StoreError, StoredJob};
use crate::publisher::{PublisherHandle, Sealing, Topics};
use crate::refusals::Refusals;
use crate::targets::Targets;

/// Delay of the event `publish` of a job of a Python client. Events from before the first look of 3007's client, such
/// as a quick return, stay unseen until another event comes (docs/interop.md). This event is that other one.
const AFTERWARDS: Duration = Duration::from_millis(150);

/// Publishes jobs.
pub(crate) struct Dispatcher {
    pub(crate) targets: Arc<Targets>,
    pub(crate) access: Arc<Access>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) jobs: Arc<JobCache>,
    pub(crate) publisher: PublisherHandle,
    pub(crate) bus: Bus,
    /// Learns of the jobs that the reactor starts.
    pub(crate) chains: Arc<Chains>,
    pub(crate) refusals: Arc<Refusals>,
    /// `None` if no files are written for Python's clients.
    pub(crate) python_files: Option<PythonJobFiles>,
    /// `zmq_filtering`.
    pub(crate) filters: bool,
}

/// A published job.
pub(crate) struct Published {
    pub(crate) jid: Jid,
    pub(crate) minions: Vec<MinionId>,
    missing: Vec<String>,
}

/// The reason why a job was not published.
enum Rejection {
    NotAllowed,
    /// The target matches no minion; with the error if it is not a valid target.
    Nobody(Option<TargetError>),
    BadJid,
    NotAudited(&'static str),
    NotStored(StoreError),
}

impl Dispatcher {
    /// Publishes a job that the master or a rule of its configuration permits. Returns `None` if it was not published.
    pub(crate) async fn publish(&self, request: &PublishRequest, by: &Principal) -> Result<Option<Published>, Fault> {
        match self.submit(request, by).await? {
            Ok(published) => Ok(Some(published)),
            Err(Rejection::NotStored(error)) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// Publishes a job, if `by` is permitted to.
    async fn submit(&self, request: &PublishRequest, by: &Principal) -> Result<Result<Published, Rejection>, Fault> {
        let jid = match request.jid() {
            RequestedJid::New => Jid::now(),
            RequestedJid::Given(jid) => jid.clone(),
            RequestedJid::Invalid => return Ok(Err(Rejection::BadJid)),
        };
        self.chains.note(&jid, by);
        let (Resolved { matched, missing }, no_target) = self.resolve(request).await?;
        let Some(extent) = self.permit(request, by, &matched).await else { return Ok(Err(Rejection::NotAllowed)) };
        if let Err(why) = self.audit(request, by, &jid, &matched) {
            return Ok(Err(Rejection::NotAudited(why)));
        }
        if matched.is_empty() {
            return Ok(Err(Rejection::Nobody(no_target)));
        }
        let ret = self.jobs.ret(request.ret());
        let job = request.publish(&jid, &ret, (extent == Extent::Found).then_some(&matched));
        let load = job.to_load();
        let stored = job.to_stored();
        let python_files = self.write_python_files(request, &jid, &stored, &matched);
        let storing = self.jobs.begin_job(StoredJob::to_record(jid.clone(), &stored, matched.clone())).await;
        // The load is sealed while the job is written.
        let sealing = self.seal(load.clone(), &job, &matched).await?;
        let storing = match self.record(request, &jid, storing, &stored, &matched).await {
            Ok(storing) => storing,
            Err(error) => {
                if let Some(line) = audit_line("failed", request, by) {
                    self.audit.note(line.put("jid", jid.as_str()).put("why", error.to_string()));
                }
                return Ok(Err(Rejection::NotStored(error)));
            }
        };
        self.announce(request, &job, &jid, load, (&matched, &missing));
        sealing.send().await?;
        tracing::info!("published {} as {jid}", request.fun());
        // Minions work while the disk syncs; the caller waits for it.
        if let Err(error) = storing.synced().await {
            tracing::warn!("{jid} is published, and after a crash of this machine the master may not know it: {error}");
        }
        // Awaited, because Python's client reads the files after the answer.
        if let Some(Ok(Err(error))) = futures_util::future::OptionFuture::from(python_files).await {
            tracing::warn!("the job cache for Python's clients cannot be written: {error}");
        }
        Ok(Ok(Published { jid, minions: matched, missing }))
    }

    /// Resolves the target to minions. An invalid target resolves to none, with the error.
    async fn resolve(&self, request: &PublishRequest) -> Result<(Resolved, Option<TargetError>), Fault> {
        match self.targets.parse(request.tgt_type(), request.tgt(), request.delimiter()) {
            Ok(target) => Ok((self.targets.resolve(target).await?, None)),
            Err(error) => {
                tracing::warn!("a target was not resolved: {error}");
                Ok((Resolved::default(), Some(error)))
            }
        }
    }

    /// Decides whether the job may go to all of these minions, and whether also to others that match. Returns `None` if
    /// it is not allowed.
    async fn permit(&self, request: &PublishRequest, by: &Principal, minions: &[MinionId]) -> Option<Extent> {
        let resolve = |target| self.targets.permitted(target);
        by.may_publish(&request.calls(), minions, resolve).await
    }

    /// Writes the audit line before the job is published, so that no job lacks a line.
    fn audit(
        &self,
        request: &PublishRequest,
        by: &Principal,
        jid: &Jid,
        minions: &[MinionId],
    ) -> Result<(), &'static str> {
        let outcome = if minions.is_empty() { "nobody" } else { "allowed" };
        let Some(line) = audit_line(outcome, request, by) else { return Ok(()) };
        self.audit.write(line.put("jid", jid.as_str()).put("minions", minions.len()))
    }

    /// Signs and encrypts the load. It is sent after the job is recorded.
    async fn seal(&self, load: Value, job: &PublishedJob<'_>, minions: &[MinionId]) -> Result<Sealing, Fault> {
        let topics = match job.tgt_type() {
            _ if !self.filters => Topics::Everyone,
            "glob" | "pcre" | "list" => Topics::Minions,
            _ => Topics::Broadcast,
        };
        Ok(self.publisher.seal(load, minions.to_vec(), topics).await?)
    }

    /// Commits the job before it is announced, so that no return can arrive for a job that the end of this process made
    /// the master forget.
    async fn record(
        &self,
        request: &PublishRequest,
        jid: &Jid,
        storing: Result<Adding<()>, StoreError>,
        stored: &Value,
        minions: &[MinionId],
    ) -> Result<Adding<()>, StoreError> {
        let mut storing = storing?;
        if storing.stored().await.is_none() {
            storing.synced().await?;
            return Err(StoreError::Closed);
        }
        self.jobs.remember(jid, request.tgt_type(), minions, stored);
        Ok(storing)
    }

    /// Fires the events of a new job.
    fn announce(
        &self,
        request: &PublishRequest,
        job: &PublishedJob<'_>,
        jid: &Jid,
        load: Value,
        (minions, missing): (&[MinionId], &[String]),
    ) {
        // Clients that connected to the bus before they requested the job get all of its events.
        self.bus.settle();
        self.bus.fire(format!("salt/job/{jid}/new"), job.to_announcement(minions, missing));
        let tag = format!("salt/job/{jid}/publish");
        if !request.reads_files() {
            return self.bus.fire(tag, load);
        }
        let bus = self.bus.clone();
        tokio::spawn(async move {
            tokio::time::sleep(AFTERWARDS).await;
            bus.fire(tag, load);
        });
    }

    /// Writes the job's files for Python's clients, if the client reads them.
    fn write_python_files(
        &self,
        request: &PublishRequest,
        jid: &Jid,
        stored: &Value,
        minions: &[MinionId],
    ) -> Option<tokio::task::JoinHandle<std::io::Result<()>>> {
        let files = self.python_files.clone().filter(|_| request.reads_files())?;
        let (jid, stored, ids) = (jid.clone(), stored.clone(), minions.to_vec());
        Some(tokio::task::spawn_blocking(move || files.write(&jid, &stored, &ids)))
    }
}

/// Returns the audit line of a job; `None` for jobs of the master itself.
fn audit_line(outcome: &'static str, request: &PublishRequest, by: &Principal) -> Option<AuditLine> {
    if matches!(by, Principal::Master) {
        return None;
    }
    let line = AuditLine::new("publish", outcome).by(by);
    let line = line.put("tgt", request.tgt_text()).put("tgt_type", request.tgt_type());
    Some(line.call(request.fun(), request.arg()))
}
