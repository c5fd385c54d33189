//! The recording of a call: its parts as they arrive from an executor, and the taker of the whole.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use brine_recording::Head;
use brine_sandbox_wire::Outcome;
use futures_util::future::BoxFuture;

/// Room for the frame that says that the bound was reached.
const LAST: u64 = 64;

/// Takes the recordings of ended calls.
pub(crate) trait Keeper: Send + Sync + Debug {
    /// Takes a recording, and keeps it as far as it can.
    fn keep(&self, recorded: Recorded) -> BoxFuture<'_, ()>;
}

/// The recording of an ended call.
pub(crate) struct Recorded {
    pub(crate) head: Head,
    /// The executor's frames, which nobody has checked.
    pub(crate) frames: Vec<u8>,
    pub(crate) outcome: Outcome,
}

/// How a call is recorded.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) keeper: Arc<dyn Keeper>,
    /// Upper bound on the bytes of the calls of the host.
    pub(crate) bytes: u64,
}

/// The frames of a running call that have arrived.
#[derive(Debug)]
pub(crate) struct Frames {
    bytes: u64,
    frames: Mutex<Vec<u8>>,
}

impl Frames {
    pub(crate) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self { bytes, frames: Mutex::default() })
    }

    /// The bound that the executor keeps.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a part. An executor that sends more than it may has no recording.
    pub(crate) fn push(&self, part: &[u8]) -> Result<(), String> {
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if (frames.len() + part.len()) as u64 > self.bytes + LAST {
            return Err("recorded more than it may".to_owned());
        }
        frames.extend_from_slice(part);
        Ok(())
    }

    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.frames.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
