//! Authentication (§3): establishes the publish key and the session key between a master and a minion.
//!
//! The minion's side is [`MinionAuth`] → [`AuthAttempt`] → [`AuthOutcome`]; the master's side is [`AuthRequest`] with
//! its reply builders. Later, a minion can renew its keys by its session ([`resume_request`]).

mod master;
mod minion;
mod resume;

use sha2::{Digest as _, Sha256};

use crate::ids::MinionId;

/// The field of a request whose sender opens sealed publications (§5.5).
pub(crate) const SEALS: &str = "seals";
/// The field of an accept reply with the key of sealed publications.
const OFFER: &str = "sealed";
/// The field of the reply for a key that waits, by which a master says that it bears being asked again at once (§3.4).
const AGAIN_SOON: &str = "again_soon";
/// The field of a verdict with whom it is about (§3.4).
const ABOUT: &str = "about";
/// The field with the master's run (§3.10) in its answers and in requests.
pub(crate) const RUN: &str = "master_run";
/// Bytes that a master makes at its start. A request under a session of an earlier run says them, so that nothing that was recorded before
/// the restart is taken after it.
pub type MasterRun = [u8; 16];

/// What a verdict says of whom it is about: a hash of the id and of the key in PEM form, cleaned. The nonce does not tell: somebody between both
/// can ask with it about another key.
fn about(id: &MinionId, pub_pem: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"brine verdict 1\0");
    hash.update(id.as_str());
    hash.update([0_u8]);
    hash.update(pub_pem);
    hash.finalize().into()
}

pub use master::{Accepted, AuthRefusal, AuthRequest, publish_key_signature};
pub use minion::{AuthAttempt, AuthError, AuthOutcome, Credentials, MinionAuth};
pub use resume::{RESUME, resume_request, resumed};

#[cfg(test)]
mod tests;
