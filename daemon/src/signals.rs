//! What signals ask of a daemon.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
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
    pub async fn next(&mut self) -> Request {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Request::Stop,
            _ = self.interrupt.recv() => Request::Stop,
            _ = self.hang_up.recv() => Request::Reload,
            _ = self.user1.recv() => Request::Dump,
            _ = self.user2.recv() => Request::Profile,
        }
    }

    /// Waits for a request to end and drops the others: a daemon that ends reloads nothing.
    pub async fn wait_for_stop(&mut self) {
        while self.next().await != Request::Stop {}
    }
}
