//! Starts what reactions ask for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use super::Reactor;
use super::chunk::Start;
use super::left_out::Why;
use crate::access::Principal;

/// What is rendered and not started yet. Beyond it the thread that renders waits, and events wait for it.
pub(super) const READY_MAX: usize = 64;

/// Something to start.
pub(super) struct Ready {
    pub(super) start: Start,
    pub(super) by: Principal,
    /// For the log.
    pub(super) what: String,
}

/// Starts what comes, until `stop`. Jobs are published in their order; runners and wheel functions wait for a place.
pub(super) async fn run(reactor: &Arc<Reactor>, mut ready: Receiver<Ready>, stop: &CancellationToken) {
    let running = Arc::new(Semaphore::new(reactor.opts.at_once));
    let waiting = Arc::new(AtomicUsize::new(0));
    loop {
        let next = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            next = ready.recv() => next,
        };
        let Some(Ready { start, by, what }) = next else { return };
        match start {
            // It has been made a job.
            Start::Caller { .. } => {}
            // One after the other: who reacts to two events expects their order.
            Start::Job(job) => {
                let published = tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    published = reactor.runners.publish_for_reactor(&job, &by) => published,
                };
                match published {
                    Ok(true) => {}
                    Ok(false) => tracing::info!("reactor: {what} reaches no minion"),
                    Err(why) => tracing::warn!("reactor: {what} is not started: {why}"),
                }
            }
            Start::InMaster { form, fun, call } => {
                if waiting.load(Ordering::Relaxed) >= reactor.opts.waiting_max {
                    reactor.left_out.add(Why::Runners, 1);
                    continue;
                }
                waiting.fetch_add(1, Ordering::Relaxed);
                let (runners, running, waiting) = (reactor.runners.clone(), Arc::clone(&running), Arc::clone(&waiting));
                tokio::spawn(async move {
                    let permit = running.acquire_owned().await;
                    waiting.fetch_sub(1, Ordering::Relaxed);
                    if permit.is_ok()
                        && let Err(denied) = runners.react(form, &fun, call, &by).await
                    {
                        tracing::warn!("reactor: {what} is not started: {}", denied.message);
                    }
                });
            }
        }
    }
}
