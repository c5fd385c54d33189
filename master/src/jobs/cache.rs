//! The job cache: the embedded store, whose commits are acknowledged, and the returners that the configuration and each
//! job name.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::value::{Value, ValueExt, map};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::StoreError;
use super::forward;
use super::postgres::{self, PostgresOpts};
use super::query::{FIND_MAX, JobFilter, JobReturn, StoredJob};
use super::recent::{JobReturners, RecentJobs, Recipients, Sent, Standing};
use super::record::{Added, NewReturn};
use super::returner::{Destination, Returner, ReturnerName};
use super::store::{Adding, JobStore};

/// Bound on the returners that one job names.
const ASKED_MAX: usize = 16;

/// The settings of the job cache.
#[derive(Debug, Clone, Default)]
pub struct JobCacheOpts {
    /// `job_cache`: the embedded store keeps jobs.
    pub keep: bool,
    /// `ext_job_cache`: a returner that minions write to. Brine's minions do it through their master.
    pub ext: Option<String>,
    /// `master_job_cache`: a returner that the master writes everything to, besides the embedded store; `None`: only
    /// the embedded store.
    pub master: Option<ReturnerName>,
    /// `python_job_files`: each job leaves the two files that Python's LocalClient reads. Brine's own setting.
    pub python_files: bool,
    /// Every configured server.
    pub servers: HashMap<ReturnerName, PostgresOpts>,
}

impl JobCacheOpts {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// If `master_job_cache` names an unknown returner, or a returner's setting has a wrong value.
    pub(crate) fn from_config(c: &Config) -> Result<Self, ConfigError> {
        let ext = c.find(settings::EXT_JOB_CACHE)?;
        // Two names are no returners: `local_cache`, and `brine`, by which Python's programs on this host read the
        // embedded store.
        let master = ReturnerName::parse(&c.get(settings::MASTER_JOB_CACHE)?);
        let ext_name = ext.as_deref().and_then(ReturnerName::parse);
        let events = ReturnerName::of_events(c)?;
        let named: Vec<ReturnerName> = ext_name.into_iter().chain(master.clone()).chain(events).collect();
        let servers = PostgresOpts::all(c, &named)?;
        if let Some(ext) = ext.as_deref().filter(|ext| ReturnerName::parse(ext).is_none()) {
            tracing::warn!("ext_job_cache {ext} is for Python minions only: this master has postgres and pgjsonb");
        }
        let (keep, python_files) = (c.get(settings::JOB_CACHE)?, c.get(settings::PYTHON_JOB_FILES)?);
        Ok(Self { keep, ext, master, python_files, servers })
    }
}

/// The job cache. A master has one.
pub(crate) struct JobCache {
    local: JobStore,
    opts: JobCacheOpts,
    /// Every returner except the embedded store.
    others: HashMap<ReturnerName, Arc<dyn Returner>>,
    /// The returner that lookups use besides the embedded store.
    source: Option<Arc<dyn Returner>>,
    recent: RecentJobs,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl JobCache {
    /// Opens the embedded store, and starts to send waiting records to other returners.
    pub(crate) fn open(path: &Path, opts: &JobCacheOpts) -> Result<Self, StoreError> {
        Ok(Self::with(JobStore::open(path)?, opts.clone(), postgres::returners(&opts.servers)))
    }

    fn with(local: JobStore, opts: JobCacheOpts, others: HashMap<ReturnerName, Arc<dyn Returner>>) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        for (name, returner) in &others {
            tasks.spawn(forward::run(local.clone(), name.clone(), Arc::clone(returner), stop.clone()));
        }
        for name in local.counts().names() {
            if ReturnerName::parse(&name).is_none_or(|name| !others.contains_key(&name)) {
                let count = local.counts().of(&name).rows;
                tracing::warn!(
                    "{count} jobs and returns wait for the returner {name}, which is not configured any more: they go as old jobs go \
                     (keep_jobs_seconds)"
                );
            }
        }
        // In Salt's order of precedence.
        let ext = opts.ext.as_deref().and_then(ReturnerName::parse);
        let source = ext.or_else(|| opts.master.clone()).and_then(|name| others.get(&name).cloned());
        Self { local, opts, others, source, recent: RecentJobs::default(), stop, tasks }
    }

    /// Returns whether the embedded store keeps jobs (`job_cache`).
    pub(crate) const fn keeps(&self) -> bool {
        self.opts.keep
    }

    /// Returns the embedded store alone.
    pub(crate) const fn local(&self) -> &JobStore {
        &self.local
    }

    /// Returns a configured returner other than the embedded store.
    pub(crate) fn returner(&self, name: &ReturnerName) -> Option<Arc<dyn Returner>> {
        self.others.get(name).cloned()
    }

    /// Returns the `ret` that a job is published with: with `ext_job_cache`, which Python's clients add themselves.
    pub(crate) fn ret(&self, ret: &str) -> String {
        match self.opts.ext.as_deref() {
            Some(ext) if ret.is_empty() => ext.to_owned(),
            Some(ext) if ret.split(',').all(|name| name != ext) => format!("{ret},{ext}"),
            _ => ret.to_owned(),
        }
    }

    /// Returns the returners that a published load names and that the master writes to. `ret_kwargs` are refused,
    /// because the publisher of a job could use them to send the master's password to any server.
    fn returners_of_load(&self, load: &Value) -> JobReturners {
        let kwarg = |key: &str| load.get(key).or_else(|| load.get("kwargs")?.get(key)).filter(|value| value.truthy());
        let config = kwarg("ret_config").map(ValueExt::python_str);
        let mut asked = JobReturners::default();
        for name in load.get_text("ret").unwrap_or_default().split(',').filter(|name| !name.is_empty()).take(ASKED_MAX)
        {
            let full = config.as_ref().map_or_else(|| name.to_owned(), |config| format!("{config}.{name}"));
            let found = ReturnerName::parse(&full).filter(|name| self.others.contains_key(name));
            let short: String = full.chars().take(64).collect();
            match found {
                Some(_) if kwarg("ret_kwargs").is_some() => {
                    asked.refused.push(format!("{short}: the master takes no return_kwargs, use return_config"));
                }
                Some(name) if !asked.known.contains(&name) => asked.known.push(name),
                Some(_) => {}
                None => asked.refused.push(format!(
                    "{short}: the master has no settings for it, such as returner.postgres.host or returner.pgjsonb.host"
                )),
            }
        }
        asked
    }

    /// Classifies a return of `id` for `jid`.
    pub(crate) async fn standing(&self, jid: &Jid, id: &MinionId) -> Result<Standing, StoreError> {
        if self.recent.is_sent_to(jid, id) {
            return Ok(Standing::Asked);
        }
        if !self.keeps() {
            return Ok(Standing::Unasked);
        }
        let _one_at_a_time = self.recent.reading.lock().await;
        if self.recent.is_sent_to(jid, id) {
            return Ok(Standing::Asked);
        }
        // Read also if the job is remembered: a batch of 3008 publishes one jid several times.
        let Some(job) = self.local().job(jid).await? else { return Ok(Standing::Unasked) };
        let returners = Arc::new(self.returners_of_load(&job.load()));
        let recipients = Recipients::new(&job.tgt_type, job.minions.into_iter());
        let is_meant = recipients.has(id);
        self.recent.remember(Sent { jid: jid.clone(), recipients, returners });
        Ok(if is_meant { Standing::Asked } else { Standing::NotMeant })
    }

    /// Remembers a job that is in the store.
    pub(crate) fn remember(&self, jid: &Jid, tgt_type: &str, minions: &[MinionId], stored: &Value) {
        let recipients = Recipients::new(tgt_type, minions.iter().cloned());
        let returners = Arc::new(self.returners_of_load(stored));
        self.recent.remember(Sent { jid: jid.clone(), recipients, returners });
    }

    /// Returns the returners that the job was published with. For a job unknown to the master this is `ext_job_cache`.
    pub(crate) async fn returners_of(&self, jid: &Jid) -> Result<Arc<JobReturners>, StoreError> {
        if let Some(returners) = self.recent.returners(jid) {
            return Ok(returners);
        }
        let load = self.local().job(jid).await?.map_or_else(|| map([("ret", self.ret(""))]), |job| job.load());
        Ok(Arc::new(self.returners_of_load(&load)))
    }

    /// Records a job, and waits until it is on disk.
    pub(crate) async fn add_job(&self, job: StoredJob) -> Result<(), StoreError> {
        self.begin_job(job).await?.synced().await
    }

    /// Records a job.
    pub(crate) async fn begin_job(&self, job: StoredJob) -> Result<Adding<()>, StoreError> {
        let ext = self.opts.ext.as_deref().and_then(ReturnerName::parse);
        let to = self.destination(ext.as_slice());
        if to.not_kept && to.also.is_empty() {
            return Ok(Adding::nothing(()));
        }
        self.local.begin_job(job, to).await
    }

    /// Records a return, also for the returners `asked` that its job named.
    pub(crate) async fn add_return(&self, new: NewReturn, asked: &[ReturnerName]) -> Result<Adding<Added>, StoreError> {
        let to = self.destination(asked);
        if to.not_kept && to.also.is_empty() {
            return Ok(Adding::nothing(Added::New));
        }
        self.local.begin_return(new, to).await
    }

    fn destination(&self, asked: &[ReturnerName]) -> Destination {
        let mut also: Vec<ReturnerName> = Vec::new();
        // `job_cache: False` turns off the master's own cache, and so `master_job_cache` too.
        for name in self.opts.master.iter().filter(|_| self.opts.keep).chain(asked) {
            if self.others.contains_key(name) && !also.contains(name) {
                also.push(name.clone());
            }
        }
        Destination { not_kept: !self.opts.keep, also }
    }

    /// Returns the job `jid`.
    pub(crate) async fn job(&self, jid: &Jid) -> Result<Option<StoredJob>, StoreError> {
        match (self.local.job(jid).await?, &self.source) {
            (None, Some(source)) => source.job(jid).await,
            (job, _) => Ok(job),
        }
    }

    /// Returns every return of the job `jid`, by minion. Returns in the embedded store may not have reached the other
    /// returner yet.
    pub(crate) async fn returns(&self, jid: &Jid) -> Result<Vec<JobReturn>, StoreError> {
        let own = self.local.returns(jid).await?;
        let Some(source) = &self.source else { return Ok(own) };
        let others = match source.returns(jid).await {
            Ok(others) => others,
            Err(error) if !own.is_empty() => {
                tracing::warn!("the returns of {jid} are those of the embedded store: {error}");
                return Ok(own);
            }
            Err(error) => return Err(error),
        };
        let all = others.into_iter().chain(own).map(|ret| (ret.minion.clone(), ret));
        Ok(all.collect::<BTreeMap<_, _>>().into_values().collect())
    }

    /// Returns the jobs that match `filter`, newest first.
    pub(crate) async fn find(&self, filter: JobFilter) -> Result<Vec<StoredJob>, StoreError> {
        let Some(source) = &self.source else { return self.local.find(filter).await };
        let limit = filter.limit.unwrap_or(FIND_MAX).min(FIND_MAX) as usize;
        let all = source.find(filter.clone()).await?.into_iter().chain(self.local.find(filter).await?);
        let all: BTreeMap<Jid, StoredJob> = all.map(|job| (job.jid.clone(), job)).collect();
        Ok(all.into_values().rev().take(limit).collect())
    }

    /// Deletes jobs from before `before_ms`. Returns their number.
    pub(crate) async fn clean(&self, before_ms: i64) -> Result<usize, StoreError> {
        let mut gone = self.local.clean(before_ms).await?;
        if let Some(master) = self.opts.master.as_ref().and_then(|name| self.others.get(name)) {
            gone += master.clean(before_ms).await?;
        }
        Ok(gone)
    }

    /// Closes the cache. Records that still wait for other returners are sent after the next start.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.local.close().await;
    }
}
