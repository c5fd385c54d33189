//! The streams of one connection. One task reads the ring at the connection's pace, judges each event once for each view, and
//! sends it once. What the connection is too slow for is lost and counted, by the ring's bound.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::event::Event;
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::nodes::{Cursor, STREAMS_MAX, ToNode};
use brine_protocol::secret::Secret;
use brine_protocol::value::ValueExt as _;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::Nodes;
use super::ring::RingEvent;
use super::subject::Subject;
use crate::access::Viewer;
use crate::jobs::{JobReturn, StoreError};

/// How often the tokens of streams are looked at: a stream ends within a second after its token.
const LOOK: Duration = Duration::from_millis(400);
/// Events that are read from the ring at a time.
const AT_ONCE: usize = 64;
/// Upper bound on the jobs of which it is remembered who may see them.
const VERDICTS_MAX: usize = 16_384;

/// What a node asks of its streams.
#[derive(Debug)]
pub(super) enum Command {
    Watch { id: u64, token: Secret<String>, after: Option<Cursor> },
    Follow { id: u64, token: Secret<String>, tag: String, after: Cursor },
    Close { id: u64 },
}

/// The streams.
pub(super) struct Streams {
    nodes: Arc<Nodes>,
    out: mpsc::Sender<ToNode>,
    /// The number of the last event that was passed on.
    at: u64,
    streams: HashMap<u64, Stream>,
    views: HashMap<u64, View>,
    next_view: u64,
    follows: HashMap<Subject, Vec<u64>>,
    /// Who may see events about this, by view.
    verdicts: HashMap<Subject, HashMap<u64, bool>>,
    generation: u64,
}

/// A stream.
struct Stream {
    token: Secret<String>,
    viewer: Viewer,
    view: u64,
    /// The job or run that it follows; none if it watches all that its view may see.
    follows: Option<Subject>,
}

/// Callers with the same rights.
struct View {
    viewer: Viewer,
    watchers: usize,
    streams: usize,
}

/// The connection has ended.
struct Gone;

impl Streams {
    pub(super) fn new(nodes: Arc<Nodes>, out: mpsc::Sender<ToNode>) -> Self {
        let (at, generation) = (nodes.ring.head().seq, nodes.judge.access.generation());
        Self {
            nodes,
            out,
            at,
            streams: HashMap::new(),
            views: HashMap::new(),
            next_view: 1,
            follows: HashMap::new(),
            verdicts: HashMap::new(),
            generation,
        }
    }

    /// Serves the streams until the connection ends.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut changes = self.nodes.ring.changes();
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut behind = false;
        loop {
            let done = tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.take(command).await,
                    None => return,
                },
                _ = look.tick() => self.look().await,
                changed = changes.changed(), if !behind => match changed {
                    Ok(()) => self.advance().await,
                    Err(_) => return,
                },
                () = std::future::ready(()), if behind => self.advance().await,
            };
            if done.is_err() {
                return;
            }
            behind = self.nodes.ring.head().seq > self.at;
        }
    }

    async fn send(&self, message: ToNode) -> Result<(), Gone> {
        self.out.send(message).await.map_err(|_| Gone)
    }

    async fn take(&mut self, command: Command) -> Result<(), Gone> {
        let (id, token, subject, after) = match command {
            Command::Close { id } => {
                self.remove(id);
                return Ok(());
            }
            Command::Watch { id, token, after } => (id, token, None, after),
            Command::Follow { id, token, tag, after } => (id, token, Some(Subject::of(&tag)), Some(after)),
        };
        let viewer = self.nodes.judge.access.viewer(token.expose()).filter(|viewer| !viewer.is_over());
        let Some(viewer) = viewer else { return self.send(ToNode::Ended { id, refused: true }).await };
        let is_good = !matches!(subject, Some(Subject::Other | Subject::Wheel(_)));
        if !is_good || self.streams.len() >= STREAMS_MAX || self.streams.contains_key(&id) {
            return self.send(ToNode::Ended { id, refused: false }).await;
        }
        // The other streams first get what comes before.
        let head = self.nodes.ring.head();
        while self.at < head.seq {
            self.advance().await?;
        }
        let view = self.view(&viewer);
        let from = after.map(|after| if after.epoch == head.epoch { Ok(after.seq) } else { Err(()) });
        match from {
            None => {}
            Some(Ok(seq)) => self.replay(id, view, &subject, seq.min(self.at)).await?,
            Some(Err(())) => {
                let (oldest, _) = self.nodes.ring.after(0, 1);
                let before = oldest.first().map_or(self.at, |oldest| oldest.seq - 1).min(self.at);
                self.lost(id, view, &subject, (before, None)).await?;
                self.replay(id, view, &subject, before).await?;
            }
        }
        let known = self.views.get_mut(&view);
        if let Some(known) = known {
            known.streams += 1;
            known.watchers += usize::from(subject.is_none());
        }
        if let Some(subject) = &subject {
            self.follows.entry(subject.clone()).or_default().push(id);
        }
        self.streams.insert(id, Stream { token, viewer, view, follows: subject });
        self.send(ToNode::Watching { id, view, seq: self.at }).await
    }

    /// Returns the view of a viewer.
    fn view(&mut self, viewer: &Viewer) -> u64 {
        if let Some((id, _)) = self.views.iter().find(|(_, view)| view.viewer.who() == viewer.who()) {
            return *id;
        }
        let id = self.next_view;
        self.next_view += 1;
        self.views.insert(id, View { viewer: viewer.clone(), watchers: 0, streams: 0 });
        id
    }

    fn remove(&mut self, id: u64) {
        let Some(Stream { view, follows, .. }) = self.streams.remove(&id) else { return };
        if let Some(subject) = &follows
            && let Some(ids) = self.follows.get_mut(subject)
        {
            ids.retain(|known| *known != id);
            if ids.is_empty() {
                self.follows.remove(subject);
            }
        }
        if let Some(known) = self.views.get_mut(&view) {
            known.streams -= 1;
            known.watchers -= usize::from(follows.is_none());
            if known.streams == 0 {
                self.views.remove(&view);
                for verdicts in self.verdicts.values_mut() {
                    verdicts.remove(&view);
                }
            }
        }
    }

    /// Sends one stream what it may see of the events after `seq` that have been passed on to the others.
    async fn replay(&mut self, id: u64, view: u64, subject: &Option<Subject>, mut seq: u64) -> Result<(), Gone> {
        while seq < self.at {
            let (events, _) = self.nodes.ring.after(seq, AT_ONCE);
            let at = self.at;
            let events: Vec<_> = events.into_iter().take_while(|event| event.seq <= at).collect();
            if events.is_empty() {
                return self.lost(id, view, subject, (self.at, Some(self.at - seq))).await;
            }
            for event in events {
                if event.seq > seq + 1 {
                    self.lost(id, view, subject, (event.seq - 1, Some(event.seq - seq - 1))).await?;
                }
                seq = event.seq;
                let is_meant = subject.as_ref().is_none_or(|subject| *subject == event.subject);
                if is_meant && self.sees(view, &event).await {
                    let packed = if subject.is_some() { self.whole(&event).await } else { event.packed.to_vec() };
                    let streams = vec![id];
                    self.send(ToNode::Event { seq, views: Vec::new(), streams, event: packed }).await?;
                }
            }
        }
        Ok(())
    }

    /// Says what one stream lost. Who follows a job gets its returns from the job store instead.
    async fn lost(
        &self,
        id: u64,
        view: u64,
        subject: &Option<Subject>,
        (seq, count): (u64, Option<u64>),
    ) -> Result<(), Gone> {
        match subject {
            None => self.send(ToNode::Lost { seq, stream: Some(id), count }).await,
            Some(subject) => self.recover(id, view, subject).await,
        }
    }

    /// Passes on the next events.
    async fn advance(&mut self) -> Result<(), Gone> {
        let (events, head) = self.nodes.ring.after(self.at, AT_ONCE);
        if events.is_empty() && head > self.at {
            return self.all_lost(head).await;
        }
        for event in events {
            if event.seq > self.at + 1 {
                self.all_lost(event.seq - 1).await?;
            }
            self.at = event.seq;
            if event.tag.ends_with("/new") {
                self.verdicts.remove(&event.subject);
            }
            self.pass_on(&event).await?;
        }
        Ok(())
    }

    async fn pass_on(&mut self, event: &RingEvent) -> Result<(), Gone> {
        let watching: Vec<u64> = self.views.iter().filter(|(_, view)| view.watchers > 0).map(|(id, _)| *id).collect();
        let mut views = Vec::new();
        for view in watching {
            if self.sees(view, event).await {
                views.push(view);
            }
        }
        let mut streams = Vec::new();
        for id in self.follows.get(&event.subject).cloned().unwrap_or_default() {
            let view = self.streams.get(&id).map(|stream| stream.view);
            if let Some(view) = view
                && self.sees(view, event).await
            {
                streams.push(id);
            }
        }
        if !streams.is_empty() && event.is_trimmed {
            let whole = self.whole(event).await;
            self.send(ToNode::Event { seq: event.seq, views: Vec::new(), streams, event: whole }).await?;
            streams = Vec::new();
        }
        if views.is_empty() && streams.is_empty() {
            return Ok(());
        }
        self.send(ToNode::Event { seq: event.seq, views, streams, event: event.packed.to_vec() }).await
    }

    /// Says that all streams lost the events up to this number.
    async fn all_lost(&mut self, seq: u64) -> Result<(), Gone> {
        let count = Some(seq - self.at);
        self.at = seq;
        if self.views.values().any(|view| view.watchers > 0) {
            self.send(ToNode::Lost { seq, stream: None, count }).await?;
        }
        let follows: Vec<(u64, u64, Subject)> =
            self.streams.iter().filter_map(|(id, stream)| Some((*id, stream.view, stream.follows.clone()?))).collect();
        for (id, view, subject) in follows {
            self.recover(id, view, &subject).await?;
        }
        Ok(())
    }

    /// Sends the returns of a job or run from the job store. A stream whose result nobody has any more ends.
    async fn recover(&self, id: u64, view: u64, subject: &Subject) -> Result<(), Gone> {
        let (Subject::Job(jid) | Subject::Run(jid)) = subject else { return Ok(()) };
        let Some(View { viewer, .. }) = self.views.get(&view) else { return Ok(()) };
        let judge = &self.nodes.judge;
        let mut returns = Vec::new();
        if judge.sees_all(viewer) || judge.sees(viewer, subject).await {
            returns = judge.jobs.returns(jid).await.unwrap_or_else(|error| {
                tracing::warn!("the returns of {jid} cannot be looked up for salt-api: {error}");
                Vec::new()
            });
        }
        if returns.is_empty() && matches!(subject, Subject::Run(_)) && !judge.is_running(jid) {
            return self.send(ToNode::Ended { id, refused: false }).await;
        }
        for ret in returns {
            let event = match subject {
                Subject::Run(_) => of_run(jid, &ret),
                _ => of_job(jid, &ret),
            };
            let streams = vec![id];
            self.send(ToNode::Event { seq: self.at, views: Vec::new(), streams, event: event.encode() }).await?;
        }
        Ok(())
    }

    /// Returns an event with its whole return, which the bus did not have.
    async fn whole(&self, event: &RingEvent) -> Vec<u8> {
        let kept = || event.packed.to_vec();
        let Subject::Job(jid) = &event.subject else { return kept() };
        let minion = event.tag.rsplit_once("/ret/").and_then(|(_, id)| MinionId::try_from(id).ok());
        let Some(minion) = minion.filter(|_| event.is_trimmed) else { return kept() };
        match self.stored(jid, &minion).await {
            Ok(Some(ret)) => of_job(jid, &ret).encode(),
            Ok(None) => kept(),
            Err(error) => {
                tracing::warn!("a return of {jid} cannot be looked up for salt-api: {error}");
                kept()
            }
        }
    }

    async fn stored(&self, jid: &Jid, minion: &MinionId) -> Result<Option<JobReturn>, StoreError> {
        self.nodes.judge.jobs.local().one_return(jid, minion).await
    }

    /// Returns whether a view may see an event.
    async fn sees(&mut self, view: u64, event: &RingEvent) -> bool {
        let Some(View { viewer, .. }) = self.views.get(&view) else { return false };
        if self.nodes.judge.sees_all(viewer) {
            return true;
        }
        if event.subject == Subject::Other {
            return false;
        }
        if let Some(verdict) = self.verdicts.get(&event.subject).and_then(|verdicts| verdicts.get(&view)) {
            return *verdict;
        }
        let verdict = self.nodes.judge.sees(viewer, &event.subject).await;
        if self.verdicts.len() >= VERDICTS_MAX {
            self.verdicts.clear();
        }
        self.verdicts.entry(event.subject.clone()).or_default().insert(view, verdict);
        verdict
    }

    /// Ends the streams whose tokens have ended.
    async fn look(&mut self) -> Result<(), Gone> {
        let nodes = Arc::clone(&self.nodes);
        let access = &nodes.judge.access;
        let generation = access.generation();
        let is_new = generation != self.generation;
        self.generation = generation;
        let mut ended = Vec::new();
        for (id, stream) in &mut self.streams {
            if is_new {
                match access.viewer(stream.token.expose()) {
                    Some(viewer) => {
                        if let Some(view) = self.views.get_mut(&stream.view) {
                            view.viewer = viewer.clone();
                        }
                        stream.viewer = viewer;
                    }
                    None => ended.push(*id),
                }
            } else if stream.viewer.is_over() || !access.has_token(stream.token.expose()) {
                ended.push(*id);
            }
        }
        if is_new {
            self.verdicts.clear();
        }
        for id in ended {
            self.remove(id);
            self.send(ToNode::Ended { id, refused: false }).await?;
        }
        Ok(())
    }
}

/// The event of a return in the job store.
fn of_job(jid: &Jid, ret: &JobReturn) -> Event {
    Event::new(format!("salt/job/{jid}/ret/{}", ret.minion), ret.load())
}

/// The event of a run's result in the job store.
fn of_run(jid: &Jid, ret: &JobReturn) -> Event {
    let mut load = ret.load();
    Event {
        tag: format!("salt/run/{jid}/ret"),
        data: load.remove("return").unwrap_or_else(brine_protocol::value::empty_map),
    }
}
