//! Why a file could not be fetched.

use brine_protocol::ids::SafePath;

use crate::connection::ChannelError;

/// Why a file could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The master could not be asked.
    #[error("the master could not be asked: {0}")]
    Channel(#[from] ChannelError),
    /// The answer is malformed.
    #[error("the master's answer to {0} is malformed")]
    Malformed(&'static str),
    /// The file is not there any more.
    #[error("the master does not have {0} any more")]
    Missing(SafePath),
    /// The file is too large.
    #[error("{path} is larger than the {max} bytes that a file fetched for this may have")]
    TooLarge {
        /// The file.
        path: SafePath,
        /// The bound.
        max: u64,
    },
    /// The file comes too slowly to be complete in a reasonable time.
    #[error("the master serves {path} too slowly: {why}")]
    TooSlow {
        /// The file.
        path: SafePath,
        /// How many bytes came in which time.
        why: String,
    },
    /// The content does not have the announced hash.
    #[error("{path} has another hash ({got}) than the master said ({said})")]
    WrongHash {
        /// The file.
        path: SafePath,
        /// The hash of the content.
        got: String,
        /// The announced hash.
        said: String,
    },
    /// The master's `hash_type` proves nothing.
    #[error("the master hashes files with {0}, which proves nothing; set hash_type to sha256 there")]
    HashType(String),
    /// This host could not keep the file.
    #[error("the file could not be kept: {0}")]
    Keep(std::io::Error),
}
