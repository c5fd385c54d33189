//! The sandbox in which engines are called. Another one takes its place where the configuration asks for other modules
//! or settings; the one before ends after the calls that run in it.

use std::path::Path;
use std::sync::Arc;

use brine_sandbox::Sandbox;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::config::EngineOpts;
use super::modules::{self, Refused};
use crate::bus::Bus;

/// A sandbox, and the calls that run in it.
pub(super) struct InUse {
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) refused: Refused,
    calls: TaskTracker,
    /// What it was made with.
    opts: EngineOpts,
}

/// The sandbox of now.
#[derive(Default)]
pub(super) struct SharedSandbox {
    now: watch::Sender<Option<Arc<InUse>>>,
    /// Those before, until they have ended.
    closing: TaskTracker,
}

impl SharedSandbox {
    /// Waits until there is a sandbox. It lasts for as long as the token.
    pub(super) async fn enter(&self) -> (Arc<InUse>, TaskTrackerToken) {
        let mut now = self.now.subscribe();
        let enter = |now: &Arc<InUse>| (Arc::clone(now), now.calls.token());
        // While it is borrowed, it cannot be exchanged: the token is taken before the sandbox is closed.
        let entered = now.wait_for(Option::is_some).await.ok().and_then(|now| now.as_ref().map(enter));
        match entered {
            Some(entered) => entered,
            // Never: the sender is here.
            None => std::future::pending().await,
        }
    }

    /// Makes a sandbox with these settings, if the one of now has others or modules were refused, which may be good now.
    ///
    /// # Errors
    /// One line: it does not start. The one of now goes on.
    pub(super) async fn set_up(&self, opts: &EngineOpts, cachedir: &Path, bus: &Bus) -> Result<(), String> {
        let now = self.now.borrow().clone();
        if let Some(now) = now.filter(|now| now.refused.is_empty() && opts.has_sandbox_of(&now.opts)) {
            // Key files may have changed even if the configuration has not.
            now.sandbox.reload(opts.sandbox.policy.clone(), opts.sandbox.limits.clone()).await;
            return Ok(());
        }
        let (sandbox, refused) = modules::start(opts, cachedir, bus).await?;
        let new = InUse { sandbox, refused, calls: TaskTracker::new(), opts: opts.clone() };
        self.replace(Some(Arc::new(new)));
        Ok(())
    }

    /// Ends the sandbox after its calls, each of which has a limit of time.
    pub(super) fn end(&self) {
        self.replace(None);
    }

    /// Waits until all have ended that were to end.
    pub(super) async fn ended(&self) {
        self.closing.close();
        self.closing.wait().await;
    }

    fn replace(&self, new: Option<Arc<InUse>>) {
        if let Some(before) = self.now.send_replace(new) {
            self.closing.spawn(async move {
                before.calls.close();
                before.calls.wait().await;
                before.sandbox.shutdown().await;
            });
        }
    }
}
