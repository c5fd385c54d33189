//! Writes entries.

use serde::Serialize;

use crate::{Entry, HostCall, MAX_CALLS};

/// Returns a value as MessagePack.
pub fn pack<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    rmp_serde::to_vec_named(value).expect("values of these types have no part that MessagePack lacks")
}

/// Returns the frame of an entry.
pub fn entry(entry: &Entry) -> Vec<u8> {
    let body = pack(entry);
    let length = u32::try_from(body.len()).expect("an entry is far smaller than 4 GiB");
    [&length.to_be_bytes()[..], &body].concat()
}

/// The calls of a running instance, written within a bound.
#[derive(Debug)]
pub struct Written {
    pending: Vec<u8>,
    left: u64,
    calls: u32,
    full: bool,
}

impl Written {
    /// Starts with room for this many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self { pending: Vec::new(), left: bytes, calls: MAX_CALLS, full: false }
    }

    /// Checks whether the bound was reached. From then on nothing is written.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Writes a call, or that there is no room for it. Returns whether the bound was reached by it.
    pub fn call(&mut self, call: HostCall) -> bool {
        if self.full {
            return false;
        }
        let frame = entry(&Entry::Call(call));
        let left = u64::try_from(frame.len()).ok().and_then(|length| self.left.checked_sub(length));
        match (left, self.calls.checked_sub(1)) {
            (Some(left), Some(calls)) => {
                (self.left, self.calls) = (left, calls);
                self.pending.extend_from_slice(&frame);
            }
            _ => {
                self.full = true;
                self.pending.extend_from_slice(&entry(&Entry::Full));
            }
        }
        self.full
    }

    /// Takes the frames that were not taken yet, if they have this many bytes.
    pub fn take(&mut self, at_least: usize) -> Option<Vec<u8>> {
        (!self.pending.is_empty() && self.pending.len() >= at_least).then(|| std::mem::take(&mut self.pending))
    }
}
