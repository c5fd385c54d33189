//! Returners: modules of this host that are given the returns of jobs which name them (`salt --return`, the schedule's
//! `returner`, the setting `return`). Such a module exports the function `returner`, with the return as its argument.
//!
//! A call of a returner has the rights of the job whose return it takes. One that fails is kept on the disk and made
//! again, later each time; so are those that the minion's end cut off. What is kept is bounded, and what finds no room or
//! is given up is said in the log.
//!
//! - `kept.rs` the files of returns that wait

mod kept;

use std::sync::Arc;
use std::time::Duration;

use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{JobContext, Rest, Sandbox};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, warn};

use crate::config::MinionOpts;
use crate::lines::Lines;
use crate::modules::Modules;
use kept::{Kept, Waiting};

/// The function that a module of this kind exports.
const FUNCTION: &str = "returner";
/// Those to which a master can write too. This host's own is used where its configuration has a server for it.
const OF_MASTERS: [&str; 1] = ["postgres"];
/// Calls at once. The others wait for their turn, in memory.
const AT_ONCE: usize = 4;
/// Upper bound on the returns in memory that are under way for the first time.
const MAX_FIRST: usize = 256;
/// Pauses between the calls: what is away for a night is back in the morning.
const PAUSES: [Duration; 8] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(3600),
    Duration::from_secs(4 * 3600),
    Duration::from_secs(12 * 3600),
];

/// The returners of this host.
pub(crate) struct Returners {
    opts: Arc<MinionOpts>,
    sandbox: Arc<Sandbox>,
    modules: Arc<Modules>,
    kept: Kept,
    turns: Semaphore,
    first: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// The lines about returners that fail: modules do, as often as jobs end.
    lines: Lines,
}

/// A return on its way to a returner.
#[derive(Debug, Clone, PartialEq)]
struct Item {
    /// The module.
    name: String,
    /// The fingerprint of the master whose rights count; none for a job of this host.
    master: Option<String>,
    user: String,
    load: Value,
}

impl Returners {
    pub(crate) fn new(opts: Arc<MinionOpts>, sandbox: Arc<Sandbox>, modules: Arc<Modules>) -> Arc<Self> {
        Arc::new(Self {
            sandbox,
            modules,
            kept: Kept::new(opts.cachedir.join("returners")),
            opts,
            turns: Semaphore::new(AT_ONCE),
            first: Arc::new(Semaphore::new(MAX_FIRST)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            lines: Lines::about("returners that failed"),
        })
    }

    /// Whether a module of this host is a returner.
    pub(crate) fn is_one(&self, name: &str) -> bool {
        if OF_MASTERS.contains(&name) && self.opts.config.value(&format!("returner.{name}.host")).is_none() {
            return false;
        }
        let Some(module) = self.sandbox.describe(name) else { return false };
        let returner = module.info.functions.iter().find(|function| function.name == FUNCTION);
        returner.is_some_and(|returner| {
            let mut params = returner.params.iter().filter(|param| matches!(param.rest, Rest::No));
            params.next().is_some() && params.all(|param| param.optional)
        })
    }

    /// Gives a return to a returner of this host, and does not wait for it.
    pub(crate) fn give(self: &Arc<Self>, name: &str, master: Option<&str>, user: &str, load: &Value) {
        let item = Item {
            name: name.to_owned(),
            master: master.map(str::to_owned),
            user: user.to_owned(),
            load: load.clone(),
        };
        let jid = item.jid().to_owned();
        let this = Arc::clone(self);
        let Ok(place) = Arc::clone(&self.first).try_acquire_owned() else {
            // It waits on the disk, for the time after which the others have had their turn.
            if let Some(waiting) = self.kept.keep(&item) {
                self.again(item, waiting, 2);
            }
            return;
        };
        debug!(jid, "the returner {name} is given the return");
        self.tasks.spawn(async move {
            let called = tokio::select! {
                biased;
                called = this.call(&item) => called,
                () = this.stop.cancelled() => Err("the minion ends".to_owned()),
            };
            drop(place);
            let Err(why) = called else { return };
            if this.lines.may() {
                warn!(jid, "the returner {} failed, and is called again later: {why}", item.name);
            }
            if let Some(waiting) = this.kept.keep(&item) {
                this.again(item, waiting, 0);
            }
        });
    }

    /// Gives the return of a call on this host to a returner, and waits for it.
    ///
    /// # Errors
    /// One line.
    pub(crate) async fn hand_to(&self, name: &str, load: &Value) -> Result<(), String> {
        self.modules.ensure(name).await?;
        if !self.is_one(name) {
            return Err("no module of this host is a returner of this name".to_owned());
        }
        let user = crate::accounts::own_name();
        self.call(&Item { name: name.to_owned(), master: None, user, load: load.clone() }).await
    }

    /// Takes up what an earlier process left.
    pub(crate) fn resume(self: &Arc<Self>) {
        for (item, waiting) in self.kept.left() {
            self.again(item, waiting, 0);
        }
    }

    /// Ends the calls that run and keeps their returns.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Calls a returner again, after pauses from this one on.
    fn again(self: &Arc<Self>, item: Item, waiting: Waiting, from: usize) {
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            for pause in &PAUSES[from..] {
                // Those that failed together do not come back together.
                let pause = pause.mul_f64(1.0 + rand::random::<f64>() / 4.0);
                let called = tokio::select! {
                    biased;
                    () = this.stop.cancelled() => return,
                    called = async { tokio::time::sleep(pause).await; this.call(&item).await } => called,
                };
                match called {
                    Ok(()) => return this.kept.done(&waiting),
                    Err(why) => debug!(jid = item.jid(), "the returner {} failed again: {why}", item.name),
                }
            }
            if this.lines.may() {
                error!(
                    jid = item.jid(),
                    "the returner {} failed for the last time; this return is not in it", item.name
                );
            }
            this.kept.done(&waiting);
        });
    }

    async fn call(&self, item: &Item) -> Result<(), String> {
        let _turn = self.turns.acquire().await.map_err(|_| "the minion ends")?;
        self.modules.ensure(&item.name).await?;
        let fun = format!("{}.{FUNCTION}", item.name);
        let job = JobContext {
            jid: Jid::now().to_string(),
            function: fun.clone(),
            user: item.user.clone(),
            minion_id: self.opts.id.to_string(),
            master: item.master.clone(),
            ..JobContext::default()
        };
        let outcome = self.sandbox.run(job, &fun, vec![item.load.clone()], Vec::new()).await;
        match outcome.success && outcome.retcode == 0 {
            true => Ok(()),
            false => Err(brine_protocol::text::short(&outcome.value.python_str(), 500)),
        }
    }
}

impl Item {
    fn jid(&self) -> &str {
        self.load.get_text("jid").unwrap_or_default()
    }
}
