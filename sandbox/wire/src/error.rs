//! Errors of a connection.

/// Why a connection is unusable. All errors are final except a sender's `TooLarge` and `Encode`.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The other end closed between two frames: the ordinary end.
    #[error("the other end closed the connection")]
    Closed,
    /// The other end closed in the middle of a frame.
    #[error("the other end closed the connection in the middle of a message")]
    Truncated,
    /// A sent or received frame is over the limit.
    #[error("a message of {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its size in bytes, or the size in its header.
        size: usize,
        /// [`crate::MAX_FRAME`]
        limit: usize,
    },
    /// Not a valid message of this direction.
    #[error("a malformed message: {0}")]
    Malformed(String),
    /// A message that needs an open file came without one.
    #[error("a message that needs an open file came without one")]
    FileMissing,
    /// More open files came than messages for them.
    #[error("more open files came than messages for them")]
    TooManyFiles,
    /// A message cannot be encoded as MessagePack.
    #[error("a message could not be written: {0}")]
    Encode(String),
    /// The socket failed.
    #[error("the socket failed: {0}")]
    Io(#[from] std::io::Error),
}
