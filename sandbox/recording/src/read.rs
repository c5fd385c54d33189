//! Reads a recording.

use std::io::{ErrorKind, Read};

use serde::Deserialize as _;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::{End, Entry, Head, HostCall, MAGIC, MAX_CALLS, MAX_FILE};

/// Upper bound on a value's nesting. The deepest entry has six levels; values inside are opaque bytes.
const MAX_DEPTH: usize = 32;

/// Why a file is no usable recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// The file does not begin as recordings do.
    #[error("is no recording of a call")]
    NoRecording,
    /// The file is of another version of the format.
    #[error("is a recording in a form that this version does not know")]
    Version,
    /// The file is larger than [`MAX_FILE`].
    #[error("is larger than the {} MiB that a recording may have", MAX_FILE >> 20)]
    TooLarge,
    /// There are more than [`MAX_CALLS`] calls.
    #[error("has more than the {MAX_CALLS} calls of the host that a recording may have")]
    TooMany,
    /// The file ends within an entry, or without the end of the call.
    #[error("is cut off: it ends after {calls} calls of the host, without the end of the call")]
    Truncated {
        /// Whole entries of calls before that.
        calls: usize,
    },
    /// An entry cannot be read.
    #[error("is damaged: entry {number} cannot be read ({why})")]
    Malformed {
        /// From 1.
        number: usize,
        /// What is wrong, in the decoder's words.
        why: String,
    },
    /// An entry is where it cannot be.
    #[error("is damaged: entry {number} is out of place")]
    Misplaced {
        /// From 1.
        number: usize,
    },
}

/// A recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// What was called.
    pub head: Head,
    /// The calls of the host.
    pub calls: Vec<HostCall>,
    /// Whether later calls are missing, because the bound was reached.
    pub full: bool,
    /// How the call ended.
    pub end: End,
}

impl Recording {
    /// Reads a file, at most [`MAX_FILE`] bytes of it.
    ///
    /// # Errors
    /// The file is no whole recording.
    pub fn from_reader(file: impl Read) -> Result<Self, RecordingError> {
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes)
    }

    /// Reads a file's content.
    ///
    /// # Errors
    /// It is no whole recording.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RecordingError> {
        let Some(frames) = bytes.strip_prefix(MAGIC) else {
            let name = MAGIC.split(|byte| *byte == b' ').next().unwrap_or(MAGIC);
            return Err(if bytes.starts_with(name) { RecordingError::Version } else { RecordingError::NoRecording });
        };
        if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE) {
            return Err(RecordingError::TooLarge);
        }
        let (mut head, mut calls, mut full, mut end) = (None, Vec::new(), false, None);
        entries(frames, |number, entry| {
            let misplaced = Err(RecordingError::Misplaced { number });
            match entry {
                _ if end.is_some() => return misplaced,
                Entry::Head(it) if head.is_none() => head = Some(*it),
                _ if head.is_none() => return misplaced,
                Entry::Call(call) if !full => calls.push(call),
                Entry::Full if !full => full = true,
                Entry::End(it) => end = Some(*it),
                Entry::Head(_) | Entry::Call(_) | Entry::Full => return misplaced,
            }
            if calls.len() > MAX_CALLS as usize { Err(RecordingError::TooMany) } else { Ok(()) }
        })
        .map_err(|error| match error {
            RecordingError::Truncated { .. } => RecordingError::Truncated { calls: calls.len() },
            error => error,
        })?;
        match (head, end) {
            (Some(head), Some(end)) => Ok(Self { head, calls, full, end }),
            _ => Err(RecordingError::Truncated { calls: calls.len() }),
        }
    }

    /// Returns the file's content.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(crate::entry(&Entry::Head(Box::new(self.head.clone()))));
        self.calls.iter().for_each(|call| bytes.extend(crate::entry(&Entry::Call(call.clone()))));
        if self.full {
            bytes.extend(crate::entry(&Entry::Full));
        }
        bytes.extend(crate::entry(&Entry::End(Box::new(self.end.clone()))));
        bytes
    }
}

/// Reads frames without a file's beginning, each passed on with its number from 1.
///
/// # Errors
/// A frame is cut off or cannot be read, or the receiver refuses it.
pub fn entries(
    mut frames: &[u8],
    mut each: impl FnMut(usize, Entry) -> Result<(), RecordingError>,
) -> Result<(), RecordingError> {
    for number in 1.. {
        if frames.is_empty() {
            break;
        }
        let cut_off = RecordingError::Truncated { calls: 0 };
        let Some((length, rest)) = frames.split_first_chunk::<4>() else { return Err(cut_off) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((body, rest)) = rest.split_at_checked(length) else { return Err(cut_off) };
        let malformed = |why: String| RecordingError::Malformed { number, why };
        each(number, unpack(body).map_err(malformed)?)?;
        frames = rest;
    }
    Ok(())
}

/// Reads exactly one value.
///
/// # Errors
/// What is wrong with it, in the decoder's words.
pub fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    reader.set_max_depth(MAX_DEPTH);
    let value = T::deserialize(&mut reader).map_err(|error| error.to_string())?;
    match IgnoredAny::deserialize(&mut reader) {
        Err(rmp_serde::decode::Error::InvalidMarkerRead(error)) if error.kind() == ErrorKind::UnexpectedEof => {
            Ok(value)
        }
        _ => Err("there are bytes behind it".to_owned()),
    }
}
