//! Receipts: what a minion signs about each job that it ran, refused or ended (`docs/receipts.md`).
//!
//! A receipt is an in-toto statement in a DSSE envelope, signed with an Ed25519 key for which the minion's RSA key vouches. Each has a
//! number and the hash of the one before, so that none can be taken out or put in between.
//!
//! - `receipt.rs`  the fields, and their canonical JSON, which is signed
//! - `compact.rs`  their compact encoding, to send and to store
//! - `scalar.rs`   hashes and times as the two encodings have them
//! - `signed.rs`   signs and verifies; the DSSE envelope
//! - `vouch.rs`    the RSA key's word for the Ed25519 key
//! - `evidence.rs` a line of an export: an envelope with all that proves whose it is
//! - `record.rs`   a receipt as the host keeps it, with the publication that asked
//! - `folder.rs`   the files of a host, oldest first
//! - `shown.rs`    the fields as a value, for people and programs
//! - `chain.rs`    what is odd about numbers and hashes
//!
//! Everything that is read here may be hostile: it is bounded before it is decoded, and taken only in its one encoding.

mod chain;
mod compact;
mod evidence;
mod folder;
mod receipt;
mod record;
mod scalar;
mod shown;
mod signed;
mod vouch;

#[cfg(test)]
mod tests;

pub use chain::{Chain, Odd};
pub use evidence::{Evidence, MAX_LINE, Proved};
pub use folder::{file_number, files};
pub use receipt::{
    Call, ChainId, MAX_COMPACT, Module, Outcome, PREDICATE_TYPE, Receipt, STATEMENT_TYPE, Series, Usage,
};
pub use record::{Asked, AskedBy, Head, Record};
pub use scalar::{Digest, Fingerprint, Time};
pub use shown::fields;
pub use signed::{PAYLOAD_TYPE, SignedReceipt, SigningKey};
pub use vouch::{Unproved, Vouched};

/// Why something is not a receipt that holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// More bytes than any receipt has.
    #[error("it is larger than any receipt")]
    TooLarge,
    /// It does not decode.
    #[error("it is not a receipt: {0}")]
    Malformed(&'static str),
    /// It decodes, but the same fields have another encoding.
    #[error("it is not in the one encoding of receipts")]
    NotCanonical,
    /// A later version made it.
    #[error("it is of version {0}, and this program knows version 1")]
    Version(u64),
    /// The signature is not by the key over these bytes.
    #[error("its signature does not hold")]
    Signature,
    /// The minion's RSA key does not vouch for the receipt's key.
    #[error("the minion's key does not vouch for the key that signed it")]
    Unvouched,
    /// The RSA key is another than the one in the receipt.
    #[error("it names another key of the minion than the one that vouches")]
    OtherMinionKey,
    /// The bytes of a private key cannot be used.
    #[error("the key is not an Ed25519 key in PKCS#8")]
    Key,
}
