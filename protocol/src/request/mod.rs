//! Encrypted requests of an accepted minion and their replies (§4, §6).
//!
//! The minion's side is [`Session`]; the master's side is [`open_request`] and the functions that make replies.

mod content;
mod master;
mod minion;

#[cfg(test)]
mod tests;

pub use content::{AEAD, AEAD_VERSION};
pub use master::{
    Request, RequestPolicy, RequestRefusal, clear_reply, is_token, is_tokens_message, open_request, open_request_with,
    seal_content_reply, seal_pillar_reply, seal_reply, verify_load_signature,
};
pub use minion::{ReplyError, SealedRequest, Session};

/// The content that a token signs (§4.1).
const TOKEN: &[u8] = b"salt";
