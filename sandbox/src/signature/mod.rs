//! Signatures of modules: minisign's detached signatures of the file's hash (`minisign -S`, the default since 2022).
//!
//! A file with several signers has several signatures of four lines each, one after another. A signature is parsed only
//! if a key of the policy could have made it. A signature that cannot be parsed or does not fit the content is an error
//! and does not count as missing: the file was altered.
//!
//! - `comment.rs`  parses the signed comment: time and file name
//! - `verify.rs`   finds the policy's keys that signed a content
//! - `standard.rs` the package's key and its modules

mod comment;
mod standard;
#[cfg(test)]
mod tests;
mod verify;

use std::fmt;

use minisign_verify::PublicKey;

use crate::ModuleName;
pub(crate) use standard::StandardKey;
pub(crate) use verify::signed;

/// Upper bound on the bytes of a signature file: [`MAX_SIGNERS`] times two comments and two lines.
pub const MAX_SIGNATURE: usize = 8 * 1_024;
/// Upper bound on the signatures in one file.
pub const MAX_SIGNERS: usize = 8;
/// Length of a public key's line: 42 bytes (algorithm, number, key) in base64, which has only one spelling for them.
const KEY_LINE: usize = 56;

/// The identity of a public key that signs modules: its line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; KEY_LINE]);

impl KeyId {
    /// Stands for all keys that the policy does not name.
    pub const UNKNOWN: Self = Self([b'?'; KEY_LINE]);
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A key named in the owner's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// The key.
    pub id: KeyId,
    /// The spelling in the configuration.
    pub written: String,
    key: PublicKey,
}

impl SigningKey {
    /// Parses a key from a line printed by `minisign -G`. None if the line is not a key.
    pub fn line(line: &str) -> Option<Self> {
        let id = KeyId(line.as_bytes().try_into().ok()?);
        let key = PublicKey::from_base64(line).ok()?;
        Some(Self { id, written: line.to_owned(), key })
    }

    /// Parses a key from the text of a `minisign.pub` file: a comment line and a key line.
    pub fn file(text: &str, written: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let key = lines.find(|line| !line.starts_with("untrusted comment:"))?;
        Some(Self { written: written.to_owned(), ..Self::line(key)? })
    }
}

/// The policy's keys that signed a content, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Signed {
    /// Distinct keys, none of them revoked. [`KeyId::UNKNOWN`] alone if all signatures are by other keys.
    pub(crate) keys: Vec<KeyId>,
    /// The newest signing time of these keys, in seconds since 1970. None if no signature states a time.
    pub(crate) time: Option<u64>,
}

/// Why a signature prevents the use of its module: one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The signature is for another content or another trusted comment.
    #[error(
        "module {0} is not what was signed: {0}.wasm.minisig does not fit it; fetch both again, or have it signed again with \
         `salt-module sign {0}.wasm`"
    )]
    Altered(ModuleName),
    /// The signature is over the file itself and not over its hash.
    #[error(
        "module {0} is signed in the old way (minisign -l), which is not taken; have it signed again with `salt-module sign {0}.wasm`"
    )]
    Legacy(ModuleName),
    /// Not a minisign signature.
    #[error(
        "the signature of module {0} cannot be read: {0}.wasm.minisig is no signature of minisign; fetch it again, or have the module \
         signed again with `salt-module sign {0}.wasm`"
    )]
    Malformed(ModuleName),
    /// More than [`MAX_SIGNERS`] signatures.
    #[error(
        "module {0} has too many signatures: {0}.wasm.minisig may have {MAX_SIGNERS}; take some out, or have the module signed again with \
         `salt-module sign {0}.wasm`"
    )]
    TooMany(ModuleName),
    /// The module was signed under another name.
    #[error(
        "module {name} was signed as {file} and not as {name}.wasm, and a signature is good for the name that was signed; give the file \
         that name again, or have it signed again with `salt-module sign {name}.wasm`"
    )]
    OtherName {
        /// The module.
        name: ModuleName,
        /// The signed file name.
        file: String,
    },
    /// Every signature on the module is by a revoked key.
    #[error(
        "module {name} is signed with a key that the owner of this host revoked ({keys}, by sandbox:revoked:keys); ask the owner which \
         key is good, and have it signed again with that: `salt-module sign {name}.wasm`"
    )]
    Revoked {
        /// The module.
        name: ModuleName,
        /// The keys as the owner wrote them.
        keys: String,
    },
    /// A standard module without a valid signature by the package's key.
    #[error("the standard module {name} {why}; install the package again")]
    Standard {
        /// The module.
        name: ModuleName,
        /// The rest of the sentence.
        why: String,
    },
}
