//! What running calls ask for: the broker's answers to their requests, and lines of the log.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use brine_sandbox_wire::{ByteBuf, HostError, HostOp, LogLevel, MAX_OPEN_REQUESTS, ToExecutor, Wanted, WireError};
use tokio::sync::watch;

use super::lines::{Counted, is_logged};
use super::{Link, cut};
use crate::kernel::broker::{self, Broker, Caller, Next};
use crate::kernel::value;

/// Refusals of one call that are told to the owner and logged. A guest ends with the first request that is refused, and an executor says
/// what it refuses by itself once, and no more than these (`MAX_REFUSED` in `executor/src/told.rs`). The list of refusals has room for
/// as many of a module at once.
pub(super) const MAX_REFUSED: u32 = 64;
/// Lines in ten seconds about the refusals of an executor's calls.
pub(super) const REFUSAL_LINES: u32 = 100;

/// What to do about a request.
pub(super) enum Admitted {
    Asks { caller: Arc<Caller>, over: watch::Receiver<()>, op: HostOp },
    Refused(HostError),
    Answered(rmpv::Value),
    Broken(String),
}

fn asks(caller: Arc<Caller>, over: watch::Receiver<()>, op: HostOp) -> Admitted {
    log_request(&caller, &op);
    Admitted::Asks { caller, over, op }
}

/// Logs that a call asks for something that it gets.
pub(super) fn log_request(caller: &Caller, op: &HostOp) {
    tracing::trace!(jid = caller.job.jid, function = caller.job.function, "asks for {}", op.interface());
}

impl Link {
    /// Checks a guest's request against its grants. This is the only place.
    pub(super) fn admit(&self, broker: &dyn Broker, call: u64, op: HostOp) -> Admitted {
        let (caller, over, tells) = {
            let mut state = self.state();
            let Some(call) = state.calls.get_mut(&call) else {
                // The call may have just ended.
                return Admitted::Refused(HostError::Denied("the job has ended".into()));
            };
            if call.open_requests >= MAX_OPEN_REQUESTS {
                return Admitted::Broken("asked more at once than a guest can".into());
            }
            call.requests = call.requests.saturating_add(op.calls());
            if call.requests > call.max_requests {
                let refused = format!("more than {} calls of the host", call.max_requests);
                return Admitted::Refused(HostError::Denied(refused));
            }
            call.open_requests += 1;
            if let Some(watch) = &mut call.watch {
                watch.asks(&op);
            }
            let over = call.over.get_or_insert_with(|| watch::Sender::new(())).subscribe();
            (Arc::clone(&call.caller), over, call.notes_left > 0)
        };
        // The lock is free during this check, so that other calls do not wait.
        // A guest ends with its first refusal. A process that goes on asking fills neither the list nor the log.
        let checked = if tells { broker::check_and_tell(broker, &caller, op) } else { broker::check(&caller, op) };
        let admitted = match checked {
            Ok(op) => match &caller.plan {
                None => return asks(caller, over, op),
                Some(plan) => match plan.next(&caller.job.function, &caller.grants, op) {
                    Next::Perform(op) => return asks(caller, over, op),
                    Next::Answer(value) => Admitted::Answered(value),
                    Next::Stop(would) => Admitted::Refused(would),
                },
            },
            Err(error) => {
                if tells {
                    self.log_refusal(&caller, &error);
                }
                Admitted::Refused(error)
            }
        };
        if let Some(call) = self.state().calls.get_mut(&call) {
            call.open_requests = call.open_requests.saturating_sub(1);
            if matches!(admitted, Admitted::Refused(_)) {
                call.notes_left = call.notes_left.saturating_sub(1);
            }
        }
        admitted
    }

    pub(super) async fn answer(
        &self,
        broker: &dyn Broker,
        call: u64,
        request: u64,
        caller: &Caller,
        mut over: watch::Receiver<()>,
        op: HostOp,
    ) {
        let shown = op.shown();
        let result = tokio::select! {
            result = broker.host_call(caller, op) => result.map(|answer| broker::cut_down(shown, &caller.grants, answer)),
            // The channel carries no messages: it closes when the call is removed.
            _ = over.changed() => return,
        };
        let host_bytes = {
            let mut state = self.state();
            // The call ended meanwhile, and nothing waits for the answer.
            let Some(call) = state.calls.get_mut(&call) else { return };
            call.open_requests = call.open_requests.saturating_sub(1);
            call.host_bytes
        };
        let result = result.map(|value| value::encode(&value)).and_then(|answer| match answer.len() as u64 {
            size if size > host_bytes => Err(HostError::Failed(format!(
                "the answer has {size} bytes; the limit of one is {host_bytes} (sandbox:limits:host_bytes)"
            ))),
            _ => Ok(answer),
        });
        self.reply(call, request, result).await;
    }

    pub(super) async fn reply(&self, call: u64, request: u64, result: Result<Vec<u8>, HostError>) {
        let reply = |result| ToExecutor::HostReply { call, request, result };
        if let Err(error @ WireError::TooLarge { .. }) = self.send(&reply(result.map(ByteBuf::from))).await {
            let _ = self.send(&reply(Err(HostError::Failed(error.to_string())))).await;
        }
    }

    /// Adds a part to a call's recording. An error is a breach of the protocol.
    pub(super) fn recorded(&self, call: u64, part: &[u8]) -> Result<(), String> {
        let frames = self.state().calls.get(&call).map(|call| call.caller.frames.clone());
        match frames {
            // The call may have just ended.
            None => Ok(()),
            Some(None) => Err("recorded a call for which that was not asked".to_owned()),
            Some(Some(frames)) => frames.push(part),
        }
    }

    /// Jobs that come fast and are refused do not fill the log: the list of refusals counts them all.
    fn log_refusal(&self, caller: &Caller, error: &HostError) {
        let mut limit = self.refusal_lines.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = limit.count_line(Instant::now());
        drop(limit);
        if turn.unsaid > 0 {
            tracing::warn!("{} more refusals are not in the log; sandbox.refusals counts them", turn.unsaid);
        }
        if turn.say {
            let line = brine_text::line(&cut(error.to_string())).into_owned();
            tracing::warn!(jid = caller.job.jid, function = caller.job.function, "refused: {line}");
        }
    }

    /// Has the owner told of something that the executor refused by itself.
    pub(super) fn refused(&self, broker: &dyn Broker, call: u64, wanted: Wanted) {
        let caller = {
            let mut state = self.state();
            let Some(call) = state.calls.get_mut(&call).filter(|call| call.notes_left > 0) else { return };
            call.notes_left -= 1;
            Arc::clone(&call.caller)
        };
        broker::tell_of(broker, &caller, wanted);
    }

    pub(super) fn log(&self, broker: &dyn Broker, call: u64, level: LogLevel, message: &str) {
        // The bound applies to the escaped message: escaping can make it ten times as long.
        let message = brine_text::line(message);
        let (caller, most) = {
            let mut state = self.state();
            let Some(call) = state.calls.get_mut(&call) else { return };
            let size = message.len() as u64;
            if size > call.log_left || call.lines_left == 0 {
                return;
            }
            call.log_left -= size;
            call.lines_left -= 1;
            (Arc::clone(&call.caller), call.log_most)
        };
        if is_logged(level) && !self.may_log(&caller, &message, most) {
            return;
        }
        broker.log(&caller.job, level, &message);
    }

    /// Whether a line is within what its module, and all modules, write over time.
    fn may_log(&self, caller: &Caller, message: &str, most: u64) -> bool {
        let Counted { own, all } = self.lines.count(caller.module.as_str(), message, most, Instant::now());
        if own.unsaid > 0 {
            tracing::warn!("{} more lines of the module {} were left out", own.unsaid, caller.module.as_str());
        }
        if all.unsaid > 0 {
            tracing::warn!("{} more lines of modules were left out", all.unsaid);
        }
        all.say
    }
}
