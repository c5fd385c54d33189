//! What ends a connection.

/// Why a connection is of no more use. Every one but `TooLarge` and `Encode` of a sender is final.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The other end closed between two frames: the ordinary end.
    #[error("the other end closed the connection")]
    Closed,
    /// The other end closed within a frame.
    #[error("the other end closed the connection in the middle of a message")]
    Truncated,
    /// A frame over the limit, here or from the other end.
    #[error("a message of {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its size in bytes, or what its header says.
        size: usize,
        /// [`crate::MAX_FRAME`]
        limit: usize,
    },
    /// Not a message of this direction.
    #[error("a malformed message: {0}")]
    Malformed(String),
    /// A message that needs an open file came without.
    #[error("a message that needs an open file came without one")]
    FileMissing,
    /// More open files than messages for them.
    #[error("more open files came than messages for them")]
    TooManyFiles,
    /// A message could not be written as MessagePack.
    #[error("a message could not be written: {0}")]
    Encode(String),
    /// The socket failed.
    #[error("the socket failed: {0}")]
    Io(#[from] std::io::Error),
}
