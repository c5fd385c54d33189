//! Why a file could not be fetched.

use brine_protocol::ids::SafePath;

use crate::connection::ChannelError;

/// Why a file could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The channel.
    #[error("the master could not be asked: {0}")]
    Channel(#[from] ChannelError),
    /// The answer.
    #[error("the master's answer to {0} is malformed")]
    Malformed(&'static str),
    /// It is not there any more.
    #[error("the master does not have {0} any more")]
    Missing(SafePath),
    /// It is too large.
    #[error("{path} is larger than the {max} bytes that a file fetched for this may have")]
    TooLarge {
        /// The file.
        path: SafePath,
        /// The bound.
        max: u64,
    },
    /// It comes, and would not be whole in any time.
    #[error("the master serves {path} too slowly: {why}")]
    TooSlow {
        /// The file.
        path: SafePath,
        /// What came, and in which time.
        why: String,
    },
    /// What came is not what was announced.
    #[error("{path} has another hash ({got}) than the master said ({said})")]
    WrongHash {
        /// The file.
        path: SafePath,
        /// Of what came.
        got: String,
        /// What was announced.
        said: String,
    },
    /// The master's `hash_type`.
    #[error("the master hashes files with {0}, which proves nothing; set hash_type to sha256 there")]
    HashType(String),
    /// This host could not keep it.
    #[error("the file could not be kept: {0}")]
    Keep(std::io::Error),
}
