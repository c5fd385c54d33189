//! What running calls ask for: the broker's answers to their requests, and lines of the log.

use std::sync::Arc;

use brine_sandbox_wire::{ByteBuf, HostError, HostOp, LogLevel, ToExecutor, WireError};
use tokio::sync::watch;

use super::{Link, cut};
use crate::kernel::broker::{self, Broker, Caller, Next};
use crate::kernel::value;

/// Open broker requests of one call. A guest waits for each answer, so an honest executor has at most one.
pub(super) const MAX_OPEN_REQUESTS: u32 = 4;

/// What to do about a request.
pub(super) enum Admitted {
    Asks { caller: Arc<Caller>, over: watch::Receiver<()>, op: HostOp },
    Refused(HostError),
    Answered(rmpv::Value),
    Broken(String),
}

impl Link {
    /// Checks a guest's request against its grants. This is the only place.
    pub(super) fn admit(&self, broker: &dyn Broker, call: u64, op: HostOp) -> Admitted {
        let (caller, over) = {
            let mut state = self.state();
            let Some(call) = state.calls.get_mut(&call) else {
                // The call may have just ended.
                return Admitted::Refused(HostError::Denied("the job has ended".into()));
            };
            if call.open_requests >= MAX_OPEN_REQUESTS {
                return Admitted::Broken("asked more at once than a guest can".into());
            }
            call.requests += 1;
            if call.requests > call.max_requests {
                let refused = format!("more than {} calls of the host", call.max_requests);
                return Admitted::Refused(HostError::Denied(refused));
            }
            call.open_requests += 1;
            let over = call.over.get_or_insert_with(|| watch::Sender::new(())).subscribe();
            (Arc::clone(&call.caller), over)
        };
        // The lock is free during this check, so that other calls do not wait.
        let admitted = match broker::check_and_tell(broker, &caller, op) {
            Ok(op) => match &caller.plan {
                None => return Admitted::Asks { caller, over, op },
                Some(plan) => match plan.next(&caller.job.function, &caller.grants, op) {
                    Next::Perform(op) => return Admitted::Asks { caller, over, op },
                    Next::Answer(value) => Admitted::Answered(value),
                    Next::Stop(would) => Admitted::Refused(would),
                },
            },
            Err(error) => {
                let line = brine_text::line(&cut(error.to_string())).into_owned();
                tracing::warn!(jid = caller.job.jid, function = caller.job.function, "refused: {line}");
                Admitted::Refused(error)
            }
        };
        if let Some(call) = self.state().calls.get_mut(&call) {
            call.open_requests = call.open_requests.saturating_sub(1);
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

    pub(super) fn log(&self, broker: &dyn Broker, call: u64, level: LogLevel, message: &str) {
        // The bound applies to the escaped message: escaping can make it ten times as long.
        let message = brine_text::line(message);
        let caller = {
            let mut state = self.state();
            let Some(call) = state.calls.get_mut(&call) else { return };
            let size = message.len() as u64;
            if size > call.log_left || call.lines_left == 0 {
                return;
            }
            call.log_left -= size;
            call.lines_left -= 1;
            Arc::clone(&call.caller)
        };
        broker.log(&caller.job, level, &message);
    }
}
