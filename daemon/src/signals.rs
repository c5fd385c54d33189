//! The signals that a daemon handles.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The request of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGTERM, SIGINT: end.
    Stop,
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGUSR1: write tasks and queues to the log.
    Dump,
    /// SIGUSR2: write a profile of the next seconds to a file.
    Profile,
}

/// Receives signals from its creation on. Before that, signals have their default effect.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user1: Signal,
    user2: Signal,
}

impl Signals {
    /// Starts to receive signals. Must be called inside the runtime, before the daemon reports that it is ready.
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

    /// Waits for the next signal. Cancel-safe.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.hang_up.recv() => SignalRequest::Reload,
            _ = self.user1.recv() => SignalRequest::Dump,
            _ = self.user2.recv() => SignalRequest::Profile,
        }
    }

    /// Waits for a request to end and drops the others: a daemon that is ending does not reload.
    pub async fn wait_for_stop(&mut self) {
        while self.next().await != SignalRequest::Stop {}
    }
}
