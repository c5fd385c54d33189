//! When each beacon looks. There is one timer, for the next look of all. One that waits by itself is called again after each
//! call.

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::config::settings;
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::Sha256Hex;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tracing::{debug, error, warn};

use super::config::{self, Beacon};
use super::edit::MAX_BEACONS;
use super::look::{self, Seen};
use super::{BEACONS, Beacons, ENABLED};
use crate::connection::Masters;
use crate::events::Events;
use crate::jobs::ProcDir;

/// Looks at once. They are short; one that hangs holds up nothing else.
const AT_ONCE: usize = 4;
/// How long a look has the others wait for it. Those that are due together come one after the other: so each finds the
/// executor where the last one left it, and no second processor is woken.
const ALONE: Duration = Duration::from_millis(20);
/// Beacons at once that wait by themselves; each has an instance. Further ones look as those do that cannot wait.
const WAIT_AT_ONCE: usize = 32;
/// The pause that follows an event of such a beacon: so it has no more events in a second than one that looks.
const EVENT: Duration = Duration::from_millis(2);
/// The shortest time between two calls of a beacon that waits by itself.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause after looks that failed, unless the beacon's interval is longer.
const MAX_PAUSE: Duration = Duration::from_secs(300);
/// Functions while which a beacon with `disable_during_state_run` does not look.
const STATES: &str = "state";

/// Has the beacons look until the minion ends.
pub(crate) struct Runner {
    pub(crate) beacons: Arc<Beacons>,
    pub(crate) masters: Masters,
    pub(crate) events: Arc<Events>,
    pub(crate) procs: Arc<ProcDir>,
    /// Whether the pillar and the modules are here.
    pub(crate) ready: watch::Receiver<bool>,
}

/// A beacon and when it looks.
struct Entry {
    beacon: Arc<Beacon>,
    due: Instant,
    looks: bool,
    /// The call in which it waits.
    waits: Option<AbortHandle>,
    /// What it handed on at its last look.
    state: Option<Vec<u8>>,
    /// Looks that failed, since the last one that did not.
    failed: u32,
    /// The content of the module that judged its configuration, and whether that can be used.
    judged: Option<(Sha256Hex, bool)>,
}

/// A beacon whose turn it is, what it handed on, how its configuration was judged, and whether it waits by itself.
type Turn = (Arc<Beacon>, Option<Vec<u8>>, Option<(Sha256Hex, bool)>, bool);
type Ended = (String, Arc<Beacon>, Looked);
/// What looks now, in the runner's own task: most looks end at once, and a task of its own would wake another processor for each. None of one
/// that panicked.
type Looking = FuturesUnordered<BoxFuture<'static, Option<Ended>>>;
/// What waits by itself, each in a task that can be ended.
type Waiting = JoinSet<Ended>;

/// What became of a look.
enum Looked {
    /// The beacon cannot look: said already.
    Not(Option<(Sha256Hex, bool)>),
    Failed(Option<(Sha256Hex, bool)>),
    Saw {
        judged: (Sha256Hex, bool),
        state: Option<Vec<u8>>,
        told: bool,
        /// The number of its events, if it waited for them by itself.
        waited: Option<usize>,
    },
}

impl Runner {
    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        let every = self.beacons.opts.config.get(settings::LOOP_INTERVAL).unwrap_or(Duration::from_secs(1));
        let Ok(channel) = self.masters.preferred().map(Arc::clone) else { return };
        self.beacons.runs.store(true, std::sync::atomic::Ordering::Relaxed);
        if self.ready.wait_for(|ready| *ready).await.is_err() {
            return;
        }
        let (mut pillar, mut own) = (self.beacons.pillar.changes(), self.beacons.changes.subscribe());
        let this = Arc::new(self);
        let mut table = Table { entries: BTreeMap::new(), every, said: HashMap::new() };
        table.update(&this.beacons);
        table.settle(&this.beacons).await;
        let (mut looking, mut waiting) = (Looking::new(), Waiting::new());
        // Until when the last look has the others wait.
        let mut alone = Instant::now();
        loop {
            let now = Instant::now();
            let free = looking.is_empty() || (looking.len() < AT_ONCE && now >= alone);
            let places = (usize::from(free), WAIT_AT_ONCE - waiting.len());
            for (beacon, state, judged, waits) in table.due(now, places, |beacon| this.waits(beacon)) {
                let this = Arc::clone(&this);
                let master = Arc::clone(&channel.signed_in().await.master);
                let name = beacon.name.clone();
                let look = async move {
                    let looked = this.look(&beacon, state, judged, waits, &master).await;
                    (beacon.name.clone(), beacon, looked)
                };
                if waits {
                    table.waits(&name, waiting.spawn(look));
                } else {
                    alone = now + ALONE;
                    looking.push(AssertUnwindSafe(look).catch_unwind().map(Result::ok).boxed());
                }
            }
            // Most end here, and need no timer.
            if let Some(Some(ended)) = looking.next().now_or_never() {
                table.ended(ended, &this.beacons);
                continue;
            }
            let next = table.next().filter(|_| looking.len() < AT_ONCE);
            let next = next.map(|next| if looking.is_empty() { next } else { next.max(alone) });
            let ended = tokio::select! {
                Ok(()) = pillar.changed() => {
                    table.update(&this.beacons);
                    table.settle(&this.beacons).await;
                    continue;
                }
                Ok(()) = own.changed() => {
                    table.update(&this.beacons);
                    table.settle(&this.beacons).await;
                    continue;
                }
                Some(looked) = looking.next() => looked,
                Some(looked) = waiting.join_next() => match looked {
                    // It is gone, or has another configuration.
                    Err(e) if e.is_cancelled() => continue,
                    looked => looked.ok(),
                },
                () = tokio::time::sleep_until(next.unwrap_or(now)), if next.is_some() => continue,
            };
            table.ended(ended, &this.beacons);
        }
    }

    /// Whether the module of a beacon can wait by itself.
    fn waits(&self, beacon: &Beacon) -> bool {
        let module = self.beacons.sandbox().and_then(|sandbox| look::ready_module(&sandbox, &beacon.module).ok());
        module.is_some_and(|module| look::waits(&module))
    }

    /// One look, and its events on their way.
    async fn look(
        &self,
        beacon: &Beacon,
        state: Option<Vec<u8>>,
        judged: Option<(Sha256Hex, bool)>,
        waits: bool,
        master: &str,
    ) -> Looked {
        let (name, beacons) = (&beacon.name, &self.beacons);
        let Some(sandbox) = beacons.sandbox() else { return Looked::Not(judged) };
        let content = match look::module(&sandbox, &beacon.module).await {
            Ok(module) => module.sha256,
            Err(why) => {
                let said = format!("Unable to process beacon {name}: {why}");
                beacons.say_once(name, said);
                return Looked::Not(None);
            }
        };
        if beacon.pauses && self.states_run().await {
            debug!("Skipping beacon {name}. State run in progress.");
            return Looked::Not(judged);
        }
        let judged = match judged.filter(|(by, _)| *by == content) {
            Some(judged) => judged,
            None => {
                let (valid, words) = beacons.judge(&beacon.module, &beacon.said, Some(master)).await;
                if !valid {
                    beacons.say_once(name, format!("Beacon {name} configuration invalid, not running.\n{words}"));
                }
                (content, valid)
            }
        };
        if !judged.1 {
            return Looked::Not(Some(judged));
        }
        let (seen, failed) = match beacons.look(beacon, state.as_deref(), waits, Some(master)).await {
            Ok(seen) => (seen, false),
            Err(why) => {
                beacons.say_once(name, format!("Unable to start {name} beacon, {why}"));
                (Seen { events: vec![beacons.failed(beacon, &why)], ..Seen::default() }, true)
            }
        };
        // States that began while it waited: what it saw, it sees again when they have ended.
        if waits && beacon.pauses && self.states_run().await {
            return Looked::Not(Some(judged));
        }
        if let Some(what) = &seen.left_out {
            beacons.say_once(name, format!("of beacon {name}, this is left out: {what}"));
        }
        let (mut told, waited) = (true, waits.then_some(seen.events.len()));
        if !seen.events.is_empty()
            && let Err(why) = self.events.send_several(seen.events).await
        {
            warn!("beacon {name}: {why}");
            told = false;
        }
        match failed {
            true => Looked::Failed(Some(judged)),
            false => Looked::Saw { judged, state: seen.state, told, waited },
        }
    }

    async fn states_run(&self) -> bool {
        let procs = Arc::clone(&self.procs);
        let running = tokio::task::spawn_blocking(move || procs.running("")).await.unwrap_or_default();
        let is_states = |fun: &Value| fun.text().is_some_and(|fun| fun.starts_with(STATES));
        running.iter().filter_map(|load| load.get("fun")).any(|fun| match fun {
            Value::Array(funs) => funs.iter().any(is_states),
            one => is_states(one),
        })
    }
}

impl Entry {
    /// Ends the call in which it waits. A look goes on, and nobody hears of it.
    fn stop(&mut self) {
        if let Some(call) = self.waits.take() {
            call.abort();
        }
    }
}

/// All beacons, by name.
struct Table {
    entries: BTreeMap<String, Entry>,
    /// The time between looks of a beacon without an interval.
    every: Duration,
    /// What cannot be a beacon, by name, as it was said.
    said: HashMap<String, String>,
}

impl Table {
    /// Waits for the modules of all beacons, which a start may still be preparing: whether one waits by itself is known from its
    /// module.
    async fn settle(&self, beacons: &Beacons) {
        let Some(sandbox) = beacons.sandbox() else { return };
        sandbox.settle_those(|name| self.entries.values().any(|entry| entry.beacon.module == name)).await;
    }

    /// Takes over what the configuration and the pillar say now. A beacon that stays keeps its place in time, and what it
    /// handed on while its module is the same.
    fn update(&mut self, beacons: &Beacons) {
        let (now, mut before) = (Instant::now(), std::mem::take(&mut self.entries));
        let mut said = HashMap::new();
        for beacon in configured(beacons, &mut said) {
            let every = beacon.interval;
            let mut old = before.remove(&beacon.name);
            if let Some(other) = old.take_if(|old| old.beacon.module != beacon.module) {
                before.insert(other.beacon.name.clone(), other);
            }
            let entry = match old {
                Some(old) if *old.beacon == beacon => old,
                Some(mut old) => {
                    old.stop();
                    let due = if old.beacon.interval == every { old.due } else { now + every.unwrap_or_default() };
                    let (beacon, state) = (Arc::new(beacon), old.state.take());
                    Entry { beacon, due, looks: false, waits: None, failed: 0, judged: None, state }
                }
                // As in Salt, a beacon with an interval waits for it first.
                None => Entry {
                    due: now + every.unwrap_or_default(),
                    looks: false,
                    waits: None,
                    state: None,
                    failed: 0,
                    judged: None,
                    beacon: Arc::new(beacon),
                },
            };
            self.entries.insert(entry.beacon.name.clone(), entry);
        }
        before.values_mut().for_each(Entry::stop);
        for (name, why) in &said {
            if self.said.get(name) != Some(why) {
                error!("Beacon {name} is not run: {why}");
            }
        }
        self.said = said;
        beacons.names.send_replace(self.entries.keys().cloned().collect());
        beacons.forget_said(|name| self.entries.contains_key(name));
        beacons.lines.retain(|name| self.entries.contains_key(name));
    }

    /// Takes beacons whose turn it is: so many that look, and so many that wait by themselves.
    fn due(&mut self, now: Instant, places: (usize, usize), waits: impl Fn(&Beacon) -> bool) -> Vec<Turn> {
        let (mut look_places, mut wait_places) = places;
        let mut due: Vec<&mut Entry> = self.entries.values_mut().filter(|e| !e.looks && e.due <= now).collect();
        due.sort_by_key(|entry| entry.due);
        let mut turns = Vec::new();
        for entry in due {
            let waits = wait_places > 0 && waits(&entry.beacon);
            let places = if waits { &mut wait_places } else { &mut look_places };
            if *places == 0 {
                continue;
            }
            *places -= 1;
            entry.looks = true;
            turns.push((Arc::clone(&entry.beacon), entry.state.clone(), entry.judged, waits));
        }
        turns
    }

    /// Notes the call in which a beacon waits.
    fn waits(&mut self, name: &str, call: AbortHandle) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.waits = Some(call);
        }
    }

    /// When the next one looks.
    fn next(&self) -> Option<Instant> {
        self.entries.values().filter(|entry| !entry.looks).map(|entry| entry.due).min()
    }

    /// Takes note of what became of a call; none if it panicked.
    fn ended(&mut self, ended: Option<Ended>, beacons: &Beacons) {
        match ended {
            Some((name, beacon, looked)) => self.looked(&name, &beacon, looked, beacons),
            None => error!("the minion failed on a beacon"),
        }
    }

    fn looked(&mut self, name: &str, beacon: &Arc<Beacon>, looked: Looked, beacons: &Beacons) {
        let now = Instant::now();
        // It may have been changed or removed meanwhile.
        let Some(entry) = self.entries.get_mut(name).filter(|entry| Arc::ptr_eq(&entry.beacon, beacon)) else { return };
        let every = beacon.interval.unwrap_or(self.every).max(Duration::from_millis(1));
        (entry.looks, entry.waits) = (false, None);
        let mut pause = every;
        let mut again = None;
        match looked {
            Looked::Not(judged) => entry.judged = judged,
            Looked::Failed(judged) => {
                entry.judged = judged;
                entry.failed = entry.failed.saturating_add(1);
                pause = every.saturating_mul(1 << entry.failed.min(16)).min(MAX_PAUSE.max(every));
            }
            Looked::Saw { judged, state, told, waited } => {
                let waited = waited.filter(|_| told && beacon.interval.is_none());
                again = match waited.map(|count| u32::try_from(count).unwrap_or(u32::MAX)) {
                    Some(0) if now.saturating_duration_since(entry.due) < every => None,
                    Some(count) => Some(EVENT.saturating_mul(count).max(MIN_PAUSE)),
                    None => None,
                };
                if entry.failed > 0 || entry.judged.is_none() {
                    beacons.forget_said(|other| other != name);
                }
                (entry.judged, entry.failed) = (Some(judged), 0);
                // What was not told is seen again.
                if told {
                    entry.state = state;
                }
                if beacon.once {
                    beacons.looked_once(name);
                }
            }
        }
        if let Some(pause) = again {
            entry.due = now + pause;
            return;
        }
        // In step with the others, so that looks of one second share one waking.
        entry.due += pause;
        if entry.due <= now {
            let missed = now.duration_since(entry.due).as_nanos() / pause.as_nanos() + 1;
            entry.due += pause.saturating_mul(u32::try_from(missed).unwrap_or(u32::MAX));
        }
    }
}

/// The beacons that are to run. Why others cannot is added to `said`.
fn configured(beacons: &Beacons, said: &mut HashMap<String, String>) -> Vec<Beacon> {
    let mut all = Vec::new();
    let (pillar, own) = (beacons.pillar.now(), beacons.own().clone());
    let empty = Value::Map(Vec::new());
    let of_pillar = match pillar.get(BEACONS) {
        None | Some(Value::Nil) => &empty,
        Some(of_pillar @ Value::Map(_)) => of_pillar,
        Some(_) => {
            said.insert("of the pillar".to_owned(), "Beacons must be of type dict.".to_owned());
            &empty
        }
    };
    if [of_pillar, &own].into_iter().any(|of| of.get(ENABLED).is_some_and(|enabled| !enabled.truthy())) {
        return all;
    }
    // What the pillar says of a name comes before what the configuration says, as in Salt.
    let own = own.entries().unwrap_or_default().iter();
    let own = own.filter(|(name, _)| name.text().is_none_or(|name| !of_pillar.has(name)));
    for (name, config) in of_pillar.entries().unwrap_or_default().iter().chain(own) {
        let name = name.python_str();
        if name == ENABLED {
            continue;
        }
        if all.len() == MAX_BEACONS {
            said.insert("of others".to_owned(), format!("there are more than {MAX_BEACONS}"));
            break;
        }
        match config::read(&name, config) {
            Ok(beacon) => all.extend(beacon),
            Err(why) => {
                let name: String = name.chars().take(100).collect();
                said.insert(name, why);
            }
        }
    }
    all
}
