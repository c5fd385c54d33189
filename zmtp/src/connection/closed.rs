//! Why a connection ended.

use std::{
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tracing::{debug, warn};

use crate::{frame::FrameError, throttle::Throttle};

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Closed {
    #[error("the peer closed the connection")]
    Eof,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("nothing came from the peer for {0:?}")]
    Silent(Duration),
    #[error("the peer took nothing for {0:?}")]
    Stalled(Duration),
    #[error("the peer takes less than {0} bytes a second of what waits for it")]
    Slow(usize),
    #[error("its message arrives at less than {0} bytes a second")]
    Late(usize),
    #[error("others wanted the memory of its unfinished message, and it had been arriving for the longest time")]
    Displaced,
    #[error("others of its address, or that had no place, came after it, and it had proved nothing")]
    GaveWay,
    #[error("all peers, or all of its address or identity, hold too much together; this one wanted more")]
    Budget,
    #[error("the peer has more than {0} subscriptions")]
    Subscriptions(usize),
    #[error("the peer refused: {0}")]
    Refused(String),
    #[error("{0}")]
    Protocol(&'static str),
}

impl Closed {
    /// Whether the peer violated the protocol or a limit.
    pub(crate) fn is_violation(&self) -> bool {
        !matches!(self, Closed::Eof | Closed::Io(_) | Closed::Refused(_) | Closed::GaveWay | Closed::Displaced)
    }

    /// Logs the end of the connection of the peer with this name. An operator has to see when peers hold too much: honest
    /// ones may be affected too.
    pub(crate) fn log(&self, name: &str, refusals: &Mutex<Throttle>) {
        if matches!(self, Closed::Budget | Closed::Displaced)
            && let Some(more) = refusals.lock().unwrap_or_else(PoisonError::into_inner).pass()
        {
            warn!("{name} was disconnected: {self} (and {more} more)");
        } else {
            debug!("{name} left: {self}");
        }
    }
}
