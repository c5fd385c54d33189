//! Who may see an event: the user who started its job or run, whoever could have started it, and those with `@events`.

use std::sync::Arc;

use brine_protocol::ids::Jid;

use super::starts::{Start, Starts, Work, job};
use super::subject::Subject;
use crate::access::{Access, Viewer};
use crate::jobs::JobCache;
use crate::live_settings::SharedSettings;
use crate::requests::Handlers;
use crate::runners::Runners;
use crate::targets::Targets;

/// Decides who may see events.
pub(super) struct Judge {
    pub(super) access: Arc<Access>,
    targets: Arc<Targets>,
    pub(super) jobs: Arc<JobCache>,
    live: SharedSettings,
    runners: Runners,
    starts: Arc<Starts>,
}

impl Judge {
    pub(super) fn new(handlers: &Handlers, starts: Arc<Starts>) -> Self {
        Self {
            access: Arc::clone(&handlers.admission.access),
            targets: Arc::clone(&handlers.dispatcher.targets),
            jobs: Arc::clone(&handlers.dispatcher.jobs),
            live: Arc::clone(&handlers.live),
            runners: handlers.runners.clone(),
            starts,
        }
    }

    /// Returns whether the viewer sees all events.
    pub(super) fn sees_all(&self, viewer: &Viewer) -> bool {
        viewer.has_all_events() || self.live.load().events_for_all
    }

    /// Returns whether a runner is running.
    pub(super) fn is_running(&self, jid: &Jid) -> bool {
        self.runners.parts.runs.has(jid)
    }

    /// Returns whether the viewer may see events about this.
    pub(super) async fn sees(&self, viewer: &Viewer, subject: &Subject) -> bool {
        let mut starts = self.starts.of(subject);
        if let Subject::Job(jid) = subject
            && !starts.first().is_some_and(|start| start.is_first)
        {
            // The store has who published a jid first.
            match self.jobs.job(jid).await {
                Ok(Some(stored)) => {
                    let Some(Work::Job { calls, .. }) = job(&stored.load()) else { return false };
                    let work = Work::Job { calls, minions: stored.minions };
                    starts.insert(0, Arc::new(Start { user: stored.user, work, is_first: true }));
                }
                Ok(None) => {}
                Err(error) => tracing::warn!("events of {jid} are shown to nobody: {error}"),
            }
        }
        let Some(first) = starts.first() else { return false };
        if first.is_first && first.user == viewer.name() && !self.access.is_masters(&first.user) {
            return true;
        }
        for start in &starts {
            if !self.could_start(viewer, &start.work).await {
                return false;
            }
        }
        true
    }

    async fn could_start(&self, viewer: &Viewer, work: &Work) -> bool {
        match work {
            Work::Wheel => false,
            Work::Run { fun, args, kwargs } => viewer.may_run(fun, args, kwargs),
            Work::Job { calls, minions } => {
                let calls: Vec<_> = calls.iter().map(|(fun, arg)| (fun.as_str(), arg.as_slice())).collect();
                let resolve = |target| self.targets.permitted(target);
                !calls.is_empty()
                    && !minions.is_empty()
                    && self.access.could_publish(viewer, &calls, minions, resolve).await
            }
        }
    }
}
