//! What running calls use, for the owner of this host who looks at them. An executor's word is shown within what the minion knows by
//! itself, and decides nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_sandbox_wire::{InUse, JobContext, Limits, ToExecutor};
use tokio::sync::oneshot;

use super::Link;

/// Time for an executor's answer. Its loop waits for no guest, but a call on its thread has a turn first.
const ANSWER: Duration = Duration::from_millis(500);
/// Questions without an answer. Each asker waits for [`ANSWER`] at most.
const MAX_QUESTIONS: usize = 16;

/// The limits of a call, as far as its use is shown beside them.
pub(super) struct Bounds {
    began: Instant,
    memory: u64,
    cpu_ms: u64,
    wall_ms: u64,
}

impl Bounds {
    pub(super) fn of(limits: &Limits) -> Self {
        let Limits { memory, cpu_ms, wall_ms, .. } = *limits;
        Self { began: Instant::now(), memory, cpu_ms, wall_ms }
    }
}

/// A call that runs, with its limits.
#[derive(Debug, Clone)]
pub struct RunningCall {
    /// The job.
    pub job: Arc<JobContext>,
    /// The number of the call. Those of later calls are larger.
    pub number: u64,
    /// Time since it was sent.
    pub elapsed: Duration,
    /// The limit of elapsed time.
    pub wall_ms: u64,
    /// Bytes of memory, as its executor says. None: it did not say.
    pub memory: Option<u64>,
    /// The limit of memory.
    pub memory_max: u64,
    /// CPU time, as its executor says. None: it did not say.
    pub cpu: Option<Duration>,
    /// The limit of CPU time.
    pub cpu_ms: u64,
}

impl Link {
    /// Returns the running calls with what they use. Those of an executor that does not answer in time are without.
    pub(crate) async fn measure(&self) -> Vec<RunningCall> {
        if self.state().calls.is_empty() {
            return Vec::new();
        }
        let answer = tokio::time::timeout(ANSWER, self.asked_to_measure()).await.ok().flatten();
        let said: HashMap<u64, InUse> = answer.into_iter().flatten().map(|one| (one.call, one)).collect();
        let calls = &self.state().calls;
        calls
            .iter()
            .map(|(call, known)| {
                let (bounds, elapsed) = (&known.bounds, known.bounds.began.elapsed());
                let said = said.get(call);
                RunningCall {
                    job: Arc::clone(&known.caller.job),
                    number: known.caller.number,
                    elapsed,
                    wall_ms: bounds.wall_ms,
                    // No instance holds more than its limit, and none computes longer than it runs: it has one thread.
                    memory: said.map(|said| said.memory.min(bounds.memory)),
                    memory_max: bounds.memory,
                    cpu: said.map(|said| Duration::from_micros(said.cpu_us).min(elapsed)),
                    cpu_ms: bounds.cpu_ms,
                }
            })
            .collect()
    }

    async fn asked_to_measure(&self) -> Option<Vec<InUse>> {
        let (sender, answer) = oneshot::channel();
        let n = self.next_question();
        {
            let measuring = &mut self.state().measuring;
            measuring.retain(|(_, waiting)| !waiting.is_closed());
            if measuring.len() >= MAX_QUESTIONS {
                return None;
            }
            measuring.push((n, sender));
        }
        self.send(&ToExecutor::Measure { n }).await.ok()?;
        answer.await.ok()
    }

    pub(super) fn measured(&self, n: u64, calls: Vec<InUse>) {
        let measuring = &mut self.state().measuring;
        if let Some(at) = measuring.iter().position(|(number, _)| *number == n) {
            let _ = measuring.swap_remove(at).1.send(calls);
        }
    }
}
