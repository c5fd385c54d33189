//! Answers that are handed over with a call, so that the executor need not ask for them: what the last calls of the same
//! function with the same arguments and grants asked first.
//!
//! Each answer is made when its call starts, after the same check as a request ([`broker::check`]), and is never handed over twice.
//! What is kept are questions. What the executor says of the answers' use only decides whether the next call gets some.
//!
//! - `equal.rs`  looks of beacons that need no instance, because all is as at the last look

mod equal;

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_capabilities::{Grants, Planned, Size};
use brine_sandbox_wire::{ByteBuf, Foreseen, HostOp, Limits, Outcome, Usage};
use equal::Seen;
use futures_util::FutureExt;

use crate::kernel::broker::{self, Broker, Caller};
use crate::kernel::value;

/// Upper bound on the answers handed over with a call.
const MAX_ANSWERS: usize = 4;
/// Upper bound on the bytes of these answers: far more than most have, and written in one piece with the call.
const MAX_BYTES: usize = 64 << 10;
/// Upper bound on the bytes of the names in a question that is kept.
const MAX_NAMES: usize = 1_024;
/// Upper bound on the combinations of function, arguments, job and grants of a module whose questions are kept.
const MAX_KNOWN: usize = 32;
/// Upper bound on the bytes of a call's arguments. Longer ones seldom come twice.
const MAX_ARGUMENTS: usize = 4 << 10;
/// Calls in a row that asked the same before the next one gets the answers.
const TIMES: u8 = 2;

/// What calls of a module asked first. Another content of the module starts a new one.
#[derive(Debug, Default)]
pub(crate) struct Foresight {
    known: Mutex<VecDeque<Known>>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Known {
    key: Key,
    questions: Vec<HostOp>,
    /// Number of calls in a row that asked these, up to [`TIMES`].
    times: u8,
    /// What the last call saw and returned, if it would do so again.
    seen: Option<Seen>,
}

/// Calls that are expected to ask the same.
#[derive(Debug, Clone)]
struct Key {
    function: usize,
    /// A hash of the arguments, of who asked for the job, and of whether it is one with `test=True`. With another call's
    /// hash, a call would get answers that it does not ask for.
    hash: u64,
    grants: Arc<Grants>,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        let same_grants = || Arc::ptr_eq(&self.grants, &other.grants) || self.grants == other.grants;
        (self.function, self.hash) == (other.function, other.hash) && same_grants()
    }
}

impl Foresight {
    /// Follows a call. None for one that gets no answers: the executor itself lets it change files or reach hosts, which the
    /// answers would not show; or its arguments are long.
    pub(crate) fn watch(
        self: &Arc<Self>,
        function: usize,
        (args, kwargs): (&[u8], &[u8]),
        caller: &Caller,
    ) -> Option<Watch> {
        let direct = &caller.grants.direct;
        let acts_itself = !(direct.directories.is_empty() && direct.network.is_empty());
        if acts_itself || args.len() + kwargs.len() > MAX_ARGUMENTS {
            return None;
        }
        let job = &caller.job;
        let hash = self.hasher.hash_one((args, kwargs, &job.master, &job.user, caller.plans()));
        let key = Key { function, hash, grants: Arc::clone(&caller.grants) };
        let (handed, asked) = (Vec::new(), Vec::new());
        Some(Watch { of: Arc::clone(self), key, handed, asked, open: true, repeats: false, answers: Vec::new() })
    }

    fn known(&self) -> std::sync::MutexGuard<'_, VecDeque<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the questions that the last calls asked first.
    fn expected(&self, key: &Key) -> Vec<HostOp> {
        let known = self.known();
        let of_key = known.iter().find(|known| known.key == *key && known.times >= TIMES);
        of_key.map(|known| known.questions.clone()).unwrap_or_default()
    }

    /// Starts over with a question whose answer was not there at once or may not be given: calls have to ask it again
    /// before it is foreseen.
    fn doubt(&self, key: &Key) {
        if let Some(known) = self.known().iter_mut().find(|known| known.key == *key) {
            known.times = 0;
        }
    }

    /// Records what a call asked first, with what it got with the call, and what it saw.
    fn learn(&self, key: Key, mut questions: Vec<HostOp>, seen: Option<Seen>) {
        let mut known = self.known();
        let mut times = 0;
        if let Some(at) = known.iter().position(|known| known.key == key)
            && let Some(before) = known.remove(at)
        {
            let same = before.questions.iter().zip(&questions).take_while(|(before, now)| before == now).count();
            if same > 0 {
                questions.truncate(same);
                times = before.times;
            }
        }
        if !questions.is_empty() {
            known.push_front(Known { key, questions, times: (times + 1).min(TIMES), seen });
            known.truncate(MAX_KNOWN);
            known.iter_mut().skip(equal::MAX_SEEN).for_each(|known| known.seen = None);
        }
    }
}

/// Follows what one call asks first.
#[derive(Debug)]
pub(crate) struct Watch {
    of: Arc<Foresight>,
    key: Key,
    /// The questions whose answers were handed over.
    handed: Vec<HostOp>,
    asked: Vec<HostOp>,
    /// Whether the call has asked only for what can be foreseen.
    open: bool,
    /// Whether the call need not be made if it would end as the last one.
    repeats: bool,
    /// If it repeats: the answers that were handed over.
    answers: Vec<Foreseen>,
}

impl Watch {
    /// Says that the call need not be made if it would end as the last one: see [`Watch::repeated`].
    pub(crate) fn repeating(self) -> Self {
        Self { repeats: true, ..self }
    }

    /// Returns answers for the call, which starts now. Those of a call that repeats may take a moment.
    pub(crate) async fn foresee(&mut self, broker: &dyn Broker, caller: &Caller, limits: &Limits) -> Vec<Foreseen> {
        let mut left = MAX_BYTES.min(usize::try_from(limits.host_bytes).unwrap_or(MAX_BYTES));
        let most = usize::try_from(limits.host_calls).unwrap_or(MAX_ANSWERS);
        let mut foreseen = Vec::new();
        for op in self.of.expected(&self.key).into_iter().take(most) {
            let patience = if self.repeats { equal::PATIENCE } else { Duration::ZERO };
            let answer = answer(broker, caller, op.clone(), patience).await.filter(|answer| answer.len() <= left);
            let Some(answer) = answer else {
                self.of.doubt(&self.key);
                break;
            };
            left -= answer.len();
            self.handed.push(op.clone());
            foreseen.push(Foreseen { op, answer: ByteBuf::from(answer) });
        }
        if self.repeats {
            self.answers.clone_from(&foreseen);
        }
        foreseen
    }

    /// Takes note of a request.
    pub(crate) fn asks(&mut self, op: &HostOp) {
        let Size { names, command, content } = op.size();
        // A look has time for tables that a call's start would not wait for.
        let foreseeable = op.is_foreseeable() || (self.repeats && matches!(op, HostOp::Kernel(_)));
        let can_be_foreseen = foreseeable && names <= MAX_NAMES && command + content == 0;
        // Who asks the same again wants another answer.
        let again = self.handed.iter().chain(&self.asked).any(|known| known == op);
        self.open &= can_be_foreseen && !again && self.asked.len() < MAX_ANSWERS;
        if self.open {
            self.asked.push(op.clone());
        }
    }

    /// Ends with the call, which used as many of its answers as the executor says. Returns the questions of these.
    pub(crate) fn ended(mut self, outcome: &Outcome, usage: &Usage) -> Vec<HostOp> {
        let used = usize::try_from(usage.foreseen).unwrap_or(usize::MAX);
        let seen = self.repeats && usage.repeatable && used == self.handed.len() && self.asked.is_empty();
        let seen = seen.then(|| Seen::new(std::mem::take(&mut self.answers), outcome)).flatten();
        self.handed.truncate(used);
        let mut questions = self.handed.clone();
        questions.extend(self.asked);
        questions.truncate(MAX_ANSWERS);
        self.of.learn(self.key, questions, seen);
        self.handed
    }
}

/// Asks the broker for an answer that is there at once, or in this time. A refusal is no answer, and nobody is told of it.
async fn answer(broker: &dyn Broker, caller: &Caller, op: HostOp, patience: Duration) -> Option<Vec<u8>> {
    let mut op = broker::permitted(caller, op)?;
    if caller.plans() {
        op = match op.planned(&caller.grants) {
            Planned::Look(op) => op,
            _ => return None,
        };
    }
    let shown = op.shown();
    let asked = broker.host_call(caller, op);
    let answer = match patience.is_zero() {
        true => asked.now_or_never()?,
        false => tokio::time::timeout(patience, asked).await.ok()?,
    };
    let answer = answer.ok()?;
    Some(value::encode(&broker::cut_down(shown, &caller.grants, answer)))
}

#[cfg(test)]
mod tests;
