//! A job: its request (§7.2), its publication (§5.2) and its returns (§6.2). Each is parsed once, where it arrives.
//!
//! - `publish.rs` a request to publish, and the job made from it
//! - `load.rs`    a published job as a minion reads it
//! - `kwargs.rs`  the positional and keyword arguments of a call
//! - `returns.rs` a return, as a minion makes it and as the master receives it

mod kwargs;
mod load;
mod publish;
mod returns;

pub use kwargs::{are_keywords, join_kwargs, split_kwargs};
pub use load::{FunCall, JobLoad};
pub use publish::{PublishRequest, PublishedJob, RequestedJid, refusal_event, strip_secrets};
pub use returns::{
    MAX_RETURNS, Return, ReturnJid, ReturnLoad, fun_text, is_success, join_returns, split_returns, worst_retcode,
};

/// Why a load is not a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// A field is missing or has the wrong type.
    #[error("the load has no usable {0:?}")]
    Field(&'static str),
    /// The jid is invalid.
    #[error(transparent)]
    Jid(#[from] crate::ids::IdError),
}
