//! A minion's life: get ready, sign in, take jobs, send their returns, and end in order.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brine_protocol::job::JobLoad;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use super::base::Base;
use super::control::MinionControl;
use super::error::MinionError;
use super::sandbox::MakeRuntime;
use crate::config::MinionOpts;
use crate::connection::{Arrival, Channel, Patience, Publications, SignInError};
use crate::events::Events;
use crate::jobs::Source;
use crate::mine::Mine;
use crate::returns::{ReturnSender, Spool};

/// How long the last returns may take when the minion ends; what is left is in the spool.
const LAST_RETURNS: Duration = Duration::from_secs(3);

/// A minion that is ready to sign in.
pub struct Minion {
    base: Base,
    /// The connection whose publications are served.
    channel: Arc<Channel>,
    returns: Arc<ReturnSender>,
    /// Modules were fetched once, or need not be.
    synced: Arc<AtomicBool>,
    /// Told when pillar and modules are here.
    ready: Arc<Notify>,
}

impl Minion {
    /// Gets everything ready that needs no master: folders, keys, the spool, the sandbox. What an earlier run left
    /// unfinished is in the spool when this returns.
    pub async fn prepare(opts: MinionOpts, make_runtime: MakeRuntime) -> Result<Self, MinionError> {
        let base = Base::prepare(opts, true, make_runtime).await?;
        let channel = Arc::clone(base.masters.preferred().expect("it was asked for"));
        let opts = &base.opts;
        let (spool, left) = Spool::open(&opts.cachedir.join("spool"), opts.returns.limits)?;
        let kept: std::collections::HashSet<String> = left.iter().map(|entry| entry.jid().to_owned()).collect();
        let returns =
            ReturnSender::new(spool, left, base.masters.clone(), Arc::clone(&base.events), opts.returns.retry);
        base.jobs.return_unfinished(&returns, |jid| kept.contains(jid));
        let synced = Arc::new(AtomicBool::new(!base.opts.modules.autoload));
        Ok(Self { base, channel, returns, synced, ready: Arc::default() })
    }

    /// What can be told to the minion while it runs.
    pub fn control(&self) -> MinionControl {
        MinionControl {
            runtime: Arc::clone(&self.base.runtime),
            procs: Arc::clone(&self.base.procs),
            masters: self.base.masters.clone(),
            returns: Arc::clone(&self.returns),
            jobs: Arc::clone(&self.base.jobs),
        }
    }

    /// Serves the master until `end` is there; then no more jobs are taken, those that run may end, and their returns
    /// are sent or stay in the spool.
    pub async fn run(self, end: impl Future<Output = ()>) -> Result<(), MinionError> {
        // Dropped, and with that ended, when this function is.
        let mut tasks = JoinSet::new();
        tasks.spawn(deliver(Arc::clone(&self.channel), Arc::clone(&self.returns)));
        if let Some(interval) = self.base.opts.events.ping {
            tasks.spawn(ping(Arc::clone(&self.base.events), Arc::clone(&self.channel), interval));
        }
        let mine = Mine {
            opts: Arc::clone(&self.base.opts),
            masters: self.base.masters.clone(),
            pillar: Arc::clone(&self.base.pillar),
            jobs: Arc::clone(&self.base.jobs),
            ready: Arc::clone(&self.ready),
        };
        tasks.spawn(mine.run());
        let mut background = JoinSet::new();
        let ended = tokio::select! {
            ended = self.serve(&mut background) => ended,
            () = end => Ok(()),
        };
        info!("ending: {} jobs are running, {} returns wait", self.base.jobs.count(), self.returns.waiting());
        self.base.jobs.drain(self.base.opts.jobs.drain).await;
        if self.channel.current_sign_in().is_some()
            && tokio::time::timeout(LAST_RETURNS, self.returns.drained()).await.is_err()
        {
            let (kept, refusals) = (self.returns.waiting(), self.returns.refusals());
            warn!(
                "{kept} returns stay in the spool and will be sent at the next start; {refusals} refusals are not sent"
            );
        }
        self.base.runtime.shutdown().await;
        Ok(ended?)
    }

    /// Signs in and takes publications; ends only with an error.
    async fn serve(&self, background: &mut JoinSet<()>) -> Result<(), SignInError> {
        let live = self.channel.sign_in_until_accepted(Patience::Start).await?;
        let mut publications = Publications::subscribe(Arc::clone(&self.channel), live);
        loop {
            while background.try_join_next().is_some() {}
            match publications.next().await? {
                Arrival::Load { load, master } => match JobLoad::parse(&load) {
                    Ok(job) => {
                        let returns = Arc::clone(&self.returns);
                        let _task = self.base.jobs.submit(Source::Master { master, returns }, job);
                    }
                    Err(e) => warn!("a publication is no job: {e}"),
                },
                Arrival::Ready { again } => {
                    self.returns.master_is_back();
                    // A connection that comes and goes must not pile up greetings: the last one counts.
                    background.abort_all();
                    background.spawn(self.greet(again));
                }
            }
        }
    }

    /// What a minion does when it is connected: the pillar, then the start events (PROTOCOL §6.7), then, once, modules.
    fn greet(&self, again: bool) -> impl Future<Output = ()> + Send + 'static {
        let (refresh, events) = (Arc::clone(&self.base.refresh), Arc::clone(&self.base.events));
        let (modules, synced) = (Arc::clone(&self.base.modules), Arc::clone(&self.synced));
        let ready = Arc::clone(&self.ready);
        async move {
            if again {
                refresh.grains().await;
            }
            refresh.pillar_or_log().await;
            events.announce_start().await;
            debug!("the start events are sent");
            if !synced.load(Ordering::Relaxed) {
                match modules.sync(Vec::new()).await {
                    Ok(_) => synced.store(true, Ordering::Relaxed),
                    // With the next connection: it may have been the end of this one.
                    Err(e) => warn!("modules could not be synced at start: {e}"),
                }
            }
            ready.notify_one();
        }
    }
}

/// Sends returns, from the first time the minion is signed in.
async fn deliver(channel: Arc<Channel>, returns: Arc<ReturnSender>) {
    channel.signed_in().await;
    returns.run().await;
}

/// `ping_interval`
async fn ping(events: Arc<Events>, channel: Arc<Channel>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        channel.signed_in().await;
        if let Err(e) = events.ping().await {
            warn!("the master does not answer the ping: {e}");
            channel.drop_idle();
        }
    }
}
