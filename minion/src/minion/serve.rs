//! A minion's life: get ready, sign in, take jobs, send their returns, and end in order.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brine_protocol::job::JobLoad;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use super::base::Base;
use super::control::MinionControl;
use super::error::MinionError;
use super::sandbox::MakeSandbox;
use crate::beacons::Runner as BeaconRunner;
use crate::config::MinionOpts;
use crate::connection::{Arrival, Channel, Patience, Publications, SignInError};
use crate::events::Events;
use crate::jobs::Source;
use crate::mine::Mine;
use crate::receipts::Receipts;
use crate::returns::{ReturnSender, Spool, SpooledReturn};
use crate::schedule::{Runner, Watchers};
use crate::startup::Startup;

/// How long the last returns may take when the minion ends. Others stay in the spool.
const LAST_RETURNS: Duration = Duration::from_secs(3);

/// How long the schedule may take to note what has ended.
const LAST_NOTES: Duration = Duration::from_secs(1);

/// A minion that is ready to sign in.
pub struct Minion {
    base: Base,
    /// The connection whose publications are served.
    channel: Arc<Channel>,
    returns: Arc<ReturnSender>,
    /// Whether modules were synced since the start, or need not be.
    synced: Arc<AtomicBool>,
    /// True when pillar and modules are here.
    ready: watch::Sender<bool>,
}

impl Minion {
    /// Gets everything ready that needs no master: folders, keys, the spool, the sandbox. Afterwards, the spool has a return for each
    /// job that an earlier run left unfinished.
    ///
    /// # Errors
    /// When a folder, a key, a setting or the sandbox cannot be used.
    pub async fn prepare(opts: MinionOpts, make_sandbox: MakeSandbox) -> Result<Self, MinionError> {
        let base = Base::prepare(opts, true, true, make_sandbox).await?;
        let channel = Arc::clone(base.masters.preferred().expect("it was asked for"));
        base.refresh.keep_summary();
        let opts = &base.opts;
        let (spool, left) = Spool::open(&opts.cachedir.join("spool"), opts.returns.limits)?;
        let kept: std::collections::HashSet<String> = left.iter().map(|entry| entry.jid().to_owned()).collect();
        let receipts = receipts(&channel, &spool, &left)?;
        if let Some(receipts) = &receipts {
            base.jobs.attach_receipts(Arc::clone(receipts));
        }
        let returns = ReturnSender::new(
            spool,
            left,
            base.masters.clone(),
            Arc::clone(&base.events),
            opts.returns.retry,
            receipts,
        );
        // Before the spool has returns of jobs that did not end.
        base.schedule.tell_cut_off(|jid| kept.contains(jid));
        base.jobs.return_unfinished(&returns, |jid| kept.contains(jid));
        base.jobs.tidy_states();
        base.jobs.resume_returners();
        let synced = Arc::new(AtomicBool::new(!base.opts.modules.autoload));
        Ok(Self { base, channel, returns, synced, ready: watch::Sender::new(false) })
    }

    /// A handle to the running minion.
    pub fn control(&self) -> MinionControl {
        MinionControl {
            sandbox: Arc::clone(&self.base.sandbox),
            procs: Arc::clone(&self.base.procs),
            masters: self.base.masters.clone(),
            returns: Arc::clone(&self.returns),
            jobs: Arc::clone(&self.base.jobs),
            schedule: Arc::clone(&self.base.schedule),
        }
    }

    /// Serves the master until `end` completes. Then the minion takes no more jobs, lets the running ones end, and sends their returns
    /// or leaves them in the spool.
    ///
    /// # Errors
    /// When the minion has to end: it cannot sign in.
    pub async fn run(self, end: impl Future<Output = ()>) -> Result<(), MinionError> {
        // The tasks end when this set is dropped.
        let mut tasks = JoinSet::new();
        tasks.spawn(deliver(Arc::clone(&self.channel), Arc::clone(&self.returns)));
        if let Some(interval) = self.base.opts.events.ping {
            tasks.spawn(ping(Arc::clone(&self.base.events), Arc::clone(&self.channel), interval));
        }
        let jobs = Arc::clone(&self.base.jobs);
        tasks.spawn(async move { jobs.beat().await });
        let refresh = Arc::clone(&self.base.refresh);
        tasks.spawn(async move { refresh.tell_changes().await });
        let refresh = Arc::clone(&self.base.refresh);
        tasks.spawn(async move { refresh.grains_now_and_then().await });
        let mine = Mine {
            opts: Arc::clone(&self.base.opts),
            masters: self.base.masters.clone(),
            pillar: Arc::clone(&self.base.pillar),
            jobs: Arc::clone(&self.base.jobs),
            ready: self.ready.subscribe(),
        };
        tasks.spawn(mine.run());
        let beacons = BeaconRunner {
            beacons: Arc::clone(&self.base.beacons),
            masters: self.base.masters.clone(),
            events: Arc::clone(&self.base.events),
            procs: Arc::clone(&self.base.procs),
            ready: self.ready.subscribe(),
        };
        tasks.spawn(beacons.run());
        let startup = Startup {
            opts: Arc::clone(&self.base.opts),
            masters: self.base.masters.clone(),
            jobs: Arc::clone(&self.base.jobs),
            returns: Arc::clone(&self.returns),
            ready: self.ready.subscribe(),
        };
        tasks.spawn(startup.run());
        let watchers = Watchers::new();
        let scheduled = Runner {
            schedule: Arc::clone(&self.base.schedule),
            opts: Arc::clone(&self.base.opts),
            masters: self.base.masters.clone(),
            pillar: Arc::clone(&self.base.pillar),
            jobs: Arc::clone(&self.base.jobs),
            returns: Arc::clone(&self.returns),
            events: Arc::clone(&self.base.events),
            watchers: watchers.clone(),
            ready: self.ready.subscribe(),
        };
        let firing = tasks.spawn(scheduled.run());
        let mut background = JoinSet::new();
        let ended = tokio::select! {
            ended = self.serve(&mut background) => ended,
            () = end => Ok(()),
        };
        info!("ending: {} jobs are running, {} returns wait", self.base.jobs.count(), self.returns.waiting());
        firing.abort();
        self.base.jobs.drain(self.base.opts.jobs.drain).await;
        // The schedule notes that its jobs have ended.
        watchers.close();
        let _ = tokio::time::timeout(LAST_NOTES, watchers.wait()).await;
        if self.channel.current_sign_in().is_some()
            && tokio::time::timeout(LAST_RETURNS, self.returns.drained()).await.is_err()
        {
            let (kept, refusals) = (self.returns.waiting(), self.returns.refusals());
            warn!(
                "{kept} returns stay in the spool and will be sent at the next start; {refusals} refusals are not sent"
            );
        }
        self.base.sandbox.shutdown().await;
        Ok(ended?)
    }

    /// Signs in and takes publications.
    ///
    /// # Errors
    /// When the minion has to end.
    async fn serve(&self, background: &mut JoinSet<()>) -> Result<(), SignInError> {
        let live = self.channel.sign_in_until_accepted(Patience::Start).await?;
        let mut publications = Publications::subscribe(Arc::clone(&self.channel), live);
        loop {
            while background.try_join_next().is_some() {}
            match publications.next().await? {
                Arrival::Load { load, asked, master } => match JobLoad::parse(&load) {
                    Ok(job) => {
                        let returns = Arc::clone(&self.returns);
                        let _task = self.base.jobs.submit(Source::Master { master, asked, returns }, job);
                    }
                    Err(e) => warn!("a publication is no job: {e}"),
                },
                Arrival::Ready { again } => {
                    self.returns.master_is_back();
                    // The last greeting counts, so that a connection that comes and goes does not pile them up.
                    background.abort_all();
                    background.spawn(self.greet(again));
                }
            }
        }
    }

    /// Greets the master after each connection: asks for the pillar, sends the start events (PROTOCOL §6.7), and syncs modules once.
    fn greet(&self, again: bool) -> impl Future<Output = ()> + Send + 'static {
        let (refresh, events) = (Arc::clone(&self.base.refresh), Arc::clone(&self.base.events));
        let (modules, synced) = (Arc::clone(&self.base.modules), Arc::clone(&self.synced));
        let ready = self.ready.clone();
        async move {
            match again {
                true => refresh.grains().await,
                false => refresh.grains_at_start().await,
            }
            refresh.pillar_or_log().await;
            events.announce_start().await;
            debug!("the start events are sent");
            if !synced.load(Ordering::Relaxed) {
                match modules.sync(Vec::new()).await {
                    Ok(changed) => {
                        synced.store(true, Ordering::Relaxed);
                        if !changed.is_empty() {
                            refresh.modules_changed().await;
                        }
                    }
                    // The next connection syncs again: this one may have been lost.
                    Err(e) => warn!("modules could not be synced at start: {e}"),
                }
            }
            ready.send_replace(true);
        }
    }
}

/// Opens the receipts of this host, and takes up those that the spool has and they lack: of returns that were written when an earlier
/// run was cut off.
fn receipts(channel: &Channel, spool: &Spool, left: &[SpooledReturn]) -> Result<Option<Arc<Receipts>>, MinionError> {
    let opts = &channel.opts;
    let Some(max_bytes) = opts.returns.receipts else { return Ok(None) };
    let receipts = Receipts::open(&opts.cachedir.join("receipts"), max_bytes, &opts.id, &channel.pki)?;
    receipts.take_up(left.iter().rev().filter_map(|entry| spool.read(entry)));
    Ok(Some(Arc::new(receipts)))
}

/// Sends returns after the first sign-in.
async fn deliver(channel: Arc<Channel>, returns: Arc<ReturnSender>) {
    channel.signed_in().await;
    returns.run().await;
}

/// Sends heartbeats every `ping_interval`.
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
