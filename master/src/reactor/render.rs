//! The thread that renders: one event after the other, so that reactions start in the order of their events, as in Salt.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, ValueExt as _, map};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use super::chunk::Start;
use super::queue::Work;
use super::start::Ready;
use super::{Reactor, files, trust};
use crate::access::{Principal, Reaction};
use crate::runners::{Reacting, ReactorJob};

/// Stack of the thread, for templates of `render_max_depth`.
const STACK: usize = 16 << 20;
/// How long grains of the host count.
const GRAINS_FRESH: Duration = Duration::from_secs(60);
/// Time between two lines of the log that are equal.
const SAY_AGAIN: Duration = Duration::from_secs(60);
/// Bound on the lines that are remembered.
const SAID_MAX: usize = 1_000;

/// Renders the reactions to events.
pub(super) struct Renderer {
    reactor: Arc<Reactor>,
    starts: Sender<Ready>,
    runtime: Handle,
    stop: CancellationToken,
    /// The last grains of the host, and when they were asked for.
    grains: Arc<Mutex<Value>>,
    asked: Option<Instant>,
    said: HashMap<String, Instant>,
}

impl Renderer {
    /// Starts the thread. It ends with the reactor's queue.
    pub(super) fn start(
        reactor: Arc<Reactor>,
        starts: Sender<Ready>,
        stop: CancellationToken,
    ) -> std::io::Result<std::thread::JoinHandle<()>> {
        let runtime = Handle::current();
        let grains = Arc::new(Mutex::new(map::<&str, Value>([])));
        let mut this = Self { reactor, starts, runtime, stop, grains, asked: None, said: HashMap::new() };
        let thread = std::thread::Builder::new().name("reactor".to_owned()).stack_size(STACK);
        thread.spawn(move || {
            this.refresh_grains(true);
            while let Some(work) = this.reactor.queue.pop() {
                let rendered = std::panic::catch_unwind(AssertUnwindSafe(|| this.react(&work)));
                if rendered.is_err() {
                    tracing::error!("a reaction failed: this is a bug in salt-master, please report it");
                }
            }
        })
    }

    /// Renders the reactions to an event, and passes on what they start.
    fn react(&mut self, work: &Work) {
        let event = &work.event.event;
        self.refresh_grains(false);
        let mut sources = Vec::new();
        for sls in work.entries.iter().flat_map(|entry| &entry.sls) {
            match files::read(sls, &self.reactor.runners.parts.files) {
                Ok(found) => sources.extend(found),
                Err(why) => self.say(format!("reactor: {why}, so there is no reaction by it")),
            }
        }
        if sources.is_empty() {
            return;
        }
        let by = Principal::Reactor(Reaction::new(self.reactor.permissions(), Arc::clone(&work.chain)));
        let grains = self.grains.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let reacting = Reacting {
            tag: &event.tag,
            data: work.data.as_ref().unwrap_or(&event.data),
            fired_by: &trust::fired_by(&work.event.by),
            grains: &grains,
            by: &by,
        };
        let shown = brine_protocol::text::short(&event.tag, 128);
        let chunks = match self.reactor.runners.reactions(&self.runtime, &self.stop, &reacting, sources) {
            Ok(chunks) => chunks,
            Err(why) => {
                let why = brine_protocol::text::short(&why, 1_000);
                return self.say(format!("reactor: the reactions to {shown} cannot be taken: {why}"));
            }
        };
        for chunk in chunks {
            let id = chunk.get("__id__").map(|id| id.python_str()).unwrap_or_default();
            let what = format!("{id:?}, a reaction to {shown},");
            let start = Start::new(&chunk).and_then(|start| on_sender(start, work));
            match start {
                Ok(start) => {
                    if self.starts.blocking_send(Ready { start, by: by.clone(), what }).is_err() {
                        return;
                    }
                }
                Err(why) => self.say(format!("reactor: {what} is not started: {why}")),
            }
        }
    }

    /// Asks for the grains of the host from time to time. Only the first events wait for them.
    fn refresh_grains(&mut self, wait: bool) {
        if self.asked.is_some_and(|at| at.elapsed() < GRAINS_FRESH) {
            return;
        }
        self.asked = Some(Instant::now());
        let (runners, grains) = (self.reactor.runners.clone(), Arc::clone(&self.grains));
        let asking = async move {
            let found = runners.host_grains().await;
            *grains.lock().unwrap_or_else(PoisonError::into_inner) = found;
        };
        if wait {
            let stop = self.stop.clone();
            self.runtime.block_on(async {
                tokio::select! {
                    () = asking => {}
                    () = stop.cancelled() => {}
                }
            });
        } else {
            self.runtime.spawn(asking);
        }
    }

    /// Logs an error, at most once a minute.
    fn say(&mut self, text: String) {
        if self.said.len() >= SAID_MAX {
            self.said.retain(|_, at| at.elapsed() < SAY_AGAIN);
        }
        let is_new = self.said.get(&text).is_none_or(|at| at.elapsed() >= SAY_AGAIN);
        if is_new && self.said.len() < SAID_MAX {
            tracing::error!("{text}");
            self.said.insert(text, Instant::now());
        }
    }
}

/// A reaction of the kind `caller` as a job on the minion that the event came from.
fn on_sender(start: Start, work: &Work) -> Result<Start, String> {
    let Start::Caller { fun, args, kwargs } = start else { return Ok(start) };
    let id = sender(work).ok_or("caller runs on the minion that an event came from, and this one came from none")?;
    let (tgt, tgt_type) = (Value::Array(vec![id.as_str().into()]), "list".to_owned());
    let options = map::<&str, Value>([]);
    Ok(Start::Job(ReactorJob { tgt, tgt_type, fun, args, kwargs, ret: String::new(), options }))
}

/// The minion that an event came from: who fired it, or whose return or request the master tells of.
fn sender(work: &Work) -> Option<MinionId> {
    match &work.event.by {
        Principal::Minion(id) => Some(id.clone()),
        Principal::Master => {
            let event = &work.event.event;
            let id = match event.tag.split('/').collect::<Vec<_>>().as_slice() {
                ["salt", "job", _, "ret", id] => id,
                ["salt", "auth" | "key"] => event.data.get_text("id")?,
                _ => return None,
            };
            MinionId::try_from(id).ok()
        }
        _ => None,
    }
}
