//! Starts and ends calls.

use std::collections::hash_map;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_sandbox_wire::{Foreseen, JobContext, Limits, Record, Run, ToExecutor, WireError};
use tokio::sync::oneshot;

use super::requests::MAX_REFUSED;
use super::{Bounds, Call, CallEnd, GRACE, Link};
use crate::kernel::broker::Caller;
use crate::kernel::foresight::Watch;
use crate::kernel::loadable::Loadable;

/// What a call gets.
pub(crate) struct Terms<'a> {
    pub(crate) limits: &'a Limits,
    /// Memory until it asks for more. None: its limit.
    pub(crate) lease: Option<u64>,
    /// Answers that it is expected to ask for.
    pub(crate) foreseen: Vec<Foreseen>,
}

impl Link {
    /// Registers a call with its caller, for checks of its requests. The channel delivers its end. [`Link::start`]
    /// sends it; dropping the ticket ends it.
    pub(crate) fn register(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        limits: &Limits,
        watch: Option<Watch>,
    ) -> (Ticket, oneshot::Receiver<CallEnd>) {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        let (done, ended) = oneshot::channel();
        let mut state = self.state();
        if let Some(why) = &state.died {
            let _ = done.send(CallEnd::NotBegun(Arc::clone(why)));
        } else {
            let call_state = Call {
                caller: Arc::clone(caller),
                done,
                last_byte: None,
                bounds: Bounds::of(limits),
                requests: 0,
                open_requests: 0,
                max_requests: limits.host_calls,
                host_bytes: limits.host_bytes,
                log_most: limits.log,
                log_left: limits.log,
                lines_left: limits.log_lines,
                notes_left: MAX_REFUSED,
                watch,
                over: None,
            };
            state.calls.insert(call, call_state);
        }
        (Ticket { link: Arc::clone(self), call }, ended)
    }

    /// Sends a registered call. Returns the arguments, for another attempt
    /// if the executor dies before it has read them.
    pub(crate) async fn start(
        &self,
        ticket: &Ticket,
        caller: &Caller,
        module: &Loadable,
        function: &str,
        (args, kwargs): (Vec<u8>, Vec<u8>),
        Terms { limits, lease, foreseen }: Terms<'_>,
    ) -> Result<(Vec<u8>, Vec<u8>), WireError> {
        let run = Box::new(Run {
            call: ticket.call,
            module: module.key,
            function: function.to_owned(),
            args,
            kwargs,
            context: JobContext::clone(&caller.job),
            limits: limits.clone(),
            imports_granted: module.interfaces.clone(),
            direct: caller.grants.direct.clone(),
            would_write: caller.grants.would_write.clone(),
            record: caller.frames.as_ref().map(|frames| Record::Keep { bytes: frames.bytes() }),
            foreseen,
        });
        let message = match lease {
            Some(lease) => ToExecutor::RunWithin { run, lease },
            None => ToExecutor::Run(run),
        };
        let sent = {
            let sending = std::pin::pin!(async {
                let mut sender = self.sender.lock().await;
                // A call dropped before this point was never sent.
                let note = |last| {
                    if let Some(call) = self.state().calls.get_mut(&ticket.call) {
                        call.last_byte = Some(last);
                    }
                };
                sender.send_noting(&message, note).await
            });
            self.taken(sending).await
        };
        // A message that is too large leaves the connection intact. Any other error ends it, and the reader reports
        // how.
        if let Err(error @ (WireError::TooLarge { .. } | WireError::Encode(_))) = sent {
            self.state().calls.remove(&ticket.call);
            return Err(error);
        }
        match message {
            ToExecutor::RunWithin { run, .. } | ToExecutor::Run(run) => Ok((run.args, run.kwargs)),
            _ => Ok(Default::default()),
        }
    }

    pub(super) async fn kill(&self, call: u64, reason: &str) {
        let _ = self.send(&ToExecutor::Kill { call, reason: reason.to_owned() }).await;
    }

    pub(super) fn runs(&self, call: u64) -> bool {
        self.state().calls.contains_key(&call)
    }

    /// Returns whether the executor must be asked to end an abandoned call. Forgets a call that was never sent.
    fn abandon(&self, call: u64) -> bool {
        match self.state().calls.entry(call) {
            hash_map::Entry::Occupied(known) if known.get().last_byte.is_none() => {
                known.remove();
                false
            }
            hash_map::Entry::Occupied(_) => true,
            hash_map::Entry::Vacant(_) => false,
        }
    }
}

/// A call with a waiting caller. Dropping the ticket before the call's end ends the call, and ends an executor that
/// does not comply.
pub(crate) struct Ticket {
    link: Arc<Link>,
    pub(super) call: u64,
}

impl Ticket {
    /// Reports that the call takes longer than usual, so that the executor is checked.
    pub(crate) fn doubt(&self) {
        self.link.doubt();
    }

    /// Asks the executor to end the call. The end still arrives through the channel.
    pub(crate) async fn kill(&self, reason: &str) {
        self.link.kill(self.call, reason).await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !self.link.abandon(self.call) {
            return;
        }
        let (link, call) = (Arc::clone(&self.link), self.call);
        // The task is not awaited, but it ends by itself within twice the grace time.
        runtime.spawn(async move {
            let killed = tokio::time::timeout(GRACE, link.kill(call, "its job is gone")).await;
            tokio::time::sleep(GRACE).await;
            if killed.is_err() || link.runs(call) {
                link.condemn("did not end a job that was over");
            }
        });
    }
}
