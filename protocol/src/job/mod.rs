//! A job from the request for it (§7.2) by its publication (§5.2) to its returns (§6.2), each read once where it comes in.
//!
//! - `publish.rs` what a caller asks to have published, and the job that becomes of it
//! - `load.rs`    a published job as a minion reads it
//! - `kwargs.rs`  the arguments of a call, by position and by name
//! - `returns.rs` a return, as a minion makes it and as the master takes it in

mod kwargs;
mod load;
mod publish;
mod returns;

pub use kwargs::{join_kwargs, split_kwargs};
pub use load::{FunCall, JobLoad};
pub use publish::{PublishRequest, PublishedJob, RequestedJid, refusal_event, strip_secrets};
pub use returns::{Return, ReturnJid, ReturnLoad, fun_text, is_success, worst_retcode};

/// Why a load is no job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// A field is missing or has the wrong type.
    #[error("the load has no usable {0:?}")]
    Field(&'static str),
    /// The jid is none.
    #[error(transparent)]
    Jid(#[from] crate::ids::IdError),
}
