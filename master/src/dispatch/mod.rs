//! The one way of a job out of the master, whoever asks for it: a client (§7.2), a runner, a minion (§6.1) or the master itself.
//!
//! [`Dispatcher::submit`] goes through the stages: jid, resolve the target, permit, audit, sign and seal, record, announce, send. The request
//! was validated when it was read ([`PublishRequest`]).

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
use crate::fault::Fault;
use crate::jobs::{Job, JobCache, PythonJobFiles, StoreError};
use crate::publisher::{PublisherHandle, Sealing, Topics};
use crate::refusals::Refusals;
use crate::targets::Targets;

/// How long after a job of a Python client the event `publish` comes, which nobody waits for. What is on the bus before 3007's client first
/// looks, a quick return too, it does not see until another event comes (docs/interop.md): this is the one that comes.
const AFTERWARDS: Duration = Duration::from_millis(150);

/// Publishes jobs.
pub(crate) struct Dispatcher {
    pub(crate) targets: Arc<Targets>,
    pub(crate) access: Arc<Access>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) jobs: Arc<JobCache>,
    pub(crate) publisher: PublisherHandle,
    pub(crate) bus: Bus,
    pub(crate) refusals: Arc<Refusals>,
    /// None where no files are written for Python's clients.
    pub(crate) python_files: Option<PythonJobFiles>,
    /// `zmq_filtering`.
    pub(crate) filters: bool,
}

/// A job that is on its way.
pub(crate) struct Published {
    pub(crate) jid: Jid,
    pub(crate) minions: Vec<MinionId>,
    missing: Vec<String>,
}

/// Why a job is not on its way.
enum Rejection {
    NotAllowed,
    /// The target means no minion; and why, where it is no target at all.
    Nobody(Option<TargetError>),
    BadJid,
    NotAudited(&'static str),
    NotStored(StoreError),
}

impl Dispatcher {
    /// Publishes a job that the master or a rule of its configuration permits; none if it is for nobody.
    pub(crate) async fn publish(&self, request: &PublishRequest, by: &Principal) -> Result<Option<Published>, Fault> {
        match self.submit(request, by).await? {
            Ok(published) => Ok(Some(published)),
            Err(Rejection::NotStored(error)) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// Publishes a job, as far as `by` may.
    async fn submit(&self, request: &PublishRequest, by: &Principal) -> Result<Result<Published, Rejection>, Fault> {
        let jid = match request.jid() {
            RequestedJid::New => Jid::now(),
            RequestedJid::Given(jid) => jid.clone(),
            RequestedJid::Invalid => return Ok(Err(Rejection::BadJid)),
        };
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
        // Signed while the disk takes the job.
        let load = job.to_load();
        let sealing = self.seal(load.clone(), &job, &matched).await?;
        let stored = job.to_stored();
        let python_files = self.write_python_files(request, &jid, &stored, &matched);
        if let Err(error) = self.record(request, &jid, &stored, &matched).await {
            if let Some(line) = audit_line("failed", request, by) {
                self.audit.note(line.put("jid", jid.as_str()).put("why", error.to_string()));
            }
            return Ok(Err(Rejection::NotStored(error)));
        }
        self.announce(request, &job, &jid, load, (&matched, &missing));
        sealing.send().await?;
        tracing::info!("published {} as {jid}", request.fun());
        // Python's client looks for them when it has the answer.
        if let Some(Ok(Err(error))) = futures_util::future::OptionFuture::from(python_files).await {
            tracing::warn!("the job cache for Python's clients cannot be written: {error}");
        }
        Ok(Ok(Published { jid, minions: matched, missing }))
    }

    /// Resolves the target to minions; to none, with the error, if it is no target.
    async fn resolve(&self, request: &PublishRequest) -> Result<(Resolved, Option<TargetError>), Fault> {
        match self.targets.parse(request.tgt_type(), request.tgt(), request.delimiter()) {
            Ok(target) => Ok((self.targets.resolve(target).await?, None)),
            Err(error) => {
                tracing::warn!("a target was not resolved: {error}");
                Ok((Resolved::default(), Some(error)))
            }
        }
    }

    /// Decides whether the job may go to all of these minions, and whether to others that find themselves meant; none if not.
    async fn permit(&self, request: &PublishRequest, by: &Principal, minions: &[MinionId]) -> Option<Extent> {
        let resolve = |target| self.targets.permitted(target);
        by.may_publish(&request.calls(), minions, resolve).await
    }

    /// Before anything is done, so that nothing is done that is not written down.
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

    /// Begins to sign and encrypt the load; it is sent once the job is recorded.
    async fn seal(&self, load: Value, job: &PublishedJob<'_>, minions: &[MinionId]) -> Result<Sealing, Fault> {
        let topics = match job.tgt_type() {
            _ if !self.filters => Topics::Everyone,
            "glob" | "pcre" | "list" => Topics::Minions(minions.to_vec()),
            _ => Topics::Broadcast,
        };
        Ok(self.publisher.seal(load, topics).await?)
    }

    /// On disk before anyone hears of it: a return can then never come for a job that a crash made the master forget.
    async fn record(
        &self,
        request: &PublishRequest,
        jid: &Jid,
        stored: &Value,
        minions: &[MinionId],
    ) -> Result<(), StoreError> {
        self.jobs.add_job(Job::to_record(jid.clone(), stored, minions.to_vec())).await?;
        self.jobs.remember(jid, request.tgt_type(), minions, stored);
        Ok(())
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
        // Who connected to the bus before asking gets every event of the job.
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

    /// Writes what Python's clients read of a job, if they are to find it.
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

/// The line of the audit log about a job; none about the master's own.
fn audit_line(outcome: &'static str, request: &PublishRequest, by: &Principal) -> Option<AuditLine> {
    if matches!(by, Principal::Master) {
        return None;
    }
    let line = AuditLine::new("publish", outcome).by(by);
    let line = line.put("tgt", request.tgt_text()).put("tgt_type", request.tgt_type());
    Some(line.call(request.fun(), request.arg()))
}
