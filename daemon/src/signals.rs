//! What a daemon is told by signals.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// SIGTERM, SIGINT: to end.
    Stop,
    /// SIGHUP: to read the configuration again.
    Reload,
    /// SIGUSR1: to write tasks and queues to the log.
    Dump,
    /// SIGUSR2: to write a profile of the next seconds to a file.
    Profile,
}

/// Listens from the moment it is made; before that a signal does what it does to any process.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user1: Signal,
    user2: Signal,
}

impl Signals {
    /// To be called inside the runtime, before anyone is told that the daemon answers.
    ///
    /// # Errors
    /// When signals cannot be received.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
        })
    }

    /// Waits for the next one. Safe to cancel.
    pub async fn next(&mut self) -> Told {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Told::Stop,
            _ = self.interrupt.recv() => Told::Stop,
            _ = self.hang_up.recv() => Told::Reload,
            _ = self.user1.recv() => Told::Dump,
            _ = self.user2.recv() => Told::Profile,
        }
    }

    /// Waits for one that tells to end, and drops the others: who ends reloads nothing.
    pub async fn stop(&mut self) {
        while self.next().await != Told::Stop {}
    }
}
