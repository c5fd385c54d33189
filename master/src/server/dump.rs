//! Reports the master's state to the log (SIGUSR1), and writes a profile (SIGUSR2).

use std::sync::Arc;

use brine_daemon::profile;

use super::Server;

impl Server {
    /// Logs tasks and queues, as warnings, so that the usual log level shows them.
    pub fn dump(&self) {
        for line in self.lines() {
            tracing::warn!("{line}");
        }
    }

    fn lines(&self) -> Vec<String> {
        let (master, sockets) = (&self.master, self.publisher.stats());
        let handlers = &master.handlers;
        let (events, behind) = (master.bus.subscribers(), master.bus.furthest_behind());
        vec![
            format!("state of salt-master: {}", profile::runtime_line()),
            format!(
                "requests: {}, {}, {} log-ins that wait",
                handlers.lanes.line(),
                handlers.auths.line(),
                handlers.admission.access.log_ins_waiting()
            ),
            format!(
                "publishing: {} jobs wait to be signed; {}",
                handlers.dispatcher.publisher.waiting(),
                master.private.line()
            ),
            format!(
                "subscribers: {} of {} connections; {} messages given out, {} written, {} lost by slow ones",
                sockets.subscribers, sockets.connections, sockets.sent, sockets.delivered, sockets.dropped
            ),
            format!("event bus: {events} subscribers, {behind} events wait for the slowest"),
            handlers.pillars.pillars.line(),
            format!("sessions: {} minions since the start", handlers.sessions.live()),
        ]
    }

    /// Writes a profile of the next seconds into `cachedir/profiles/`, and logs when it is complete.
    pub fn profile(&self) {
        let handlers = Arc::clone(&self.master.handlers);
        let dir = self.master.opts.cachedir.join("profiles");
        let Ok(alone) = Arc::clone(&self.profiling).try_acquire_owned() else {
            tracing::warn!("a profile is being made already");
            return;
        };
        tracing::warn!("making a profile of the next {} s", profile::WINDOW.as_secs());
        // No task awaits it: it ends by itself, or with the process.
        tokio::spawn(async move {
            match profile::write("salt-master", &dir, profile::WINDOW, &handlers.timings).await {
                Ok(path) => tracing::warn!("the profile is in {}", path.display()),
                Err(error) => tracing::error!("no profile: {} cannot be written: {error}", dir.display()),
            }
            drop(alone);
        });
    }
}
