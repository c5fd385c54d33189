//! Signatures of modules: minisign's, detached, of the kind that signs the hash (`minisign -S`, which all since 2022 make).
//!
//! Several signers are several signatures of four lines each, one after another in the same file. A signature is read where a key of
//! the policy could have made it. One that cannot be read or does not fit the content is an error, not a missing one: somebody
//! altered something.
//!
//! - `comment.rs`  what stands in the comment that is signed too: when, and under which name
//! - `verify.rs`   who of the policy's keys signed a content
//! - `standard.rs` the package's own key and its modules

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

/// Bytes of a file of signatures: [`MAX_SIGNERS`] times two comments and two lines.
pub const MAX_SIGNATURE: usize = 8 * 1_024;
/// Signatures in one file.
pub const MAX_SIGNERS: usize = 8;
/// Characters of a public key's line: 42 bytes (algorithm, number, key) in base64, in which there is only one way to write them.
const KEY_LINE: usize = 56;

/// A public key that signs modules: its line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; KEY_LINE]);

impl KeyId {
    /// Of content that is signed, but by no key that the policy names.
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

/// A key that the owner's entries name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// The key.
    pub id: KeyId,
    /// As the owner wrote it.
    pub written: String,
    key: PublicKey,
}

impl SigningKey {
    /// The key of a line as `minisign -G` shows it; none where it is no such line.
    pub fn line(line: &str) -> Option<Self> {
        let id = KeyId(line.as_bytes().try_into().ok()?);
        let key = PublicKey::from_base64(line).ok()?;
        Some(Self { id, written: line.to_owned(), key })
    }

    /// The key of a file, `minisign.pub`: a line of comment and one of key.
    pub fn file(text: &str, written: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let key = lines.find(|line| !line.starts_with("untrusted comment:"))?;
        Some(Self { written: written.to_owned(), ..Self::line(key)? })
    }
}

/// Who signed a content, of the keys that the policy names, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Signed {
    /// Different keys, none of them revoked; [`KeyId::UNKNOWN`] alone where all signatures are others'.
    pub(crate) keys: Vec<KeyId>,
    /// The newest time that one of these keys signed, in seconds since 1970; none where no signature says when.
    pub(crate) time: Option<u64>,
}

/// Why a signature is in the way of its module: one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Another content, or another trusted comment, was signed.
    #[error(
        "module {0} is not what was signed: {0}.wasm.minisig does not fit it; fetch both again, or have it signed again with \
         `salt-module sign {0}.wasm`"
    )]
    Altered(ModuleName),
    /// It signs the file itself and not its hash.
    #[error(
        "module {0} is signed in the old way (minisign -l), which is not taken; have it signed again with `salt-module sign {0}.wasm`"
    )]
    Legacy(ModuleName),
    /// It is none of minisign's.
    #[error(
        "the signature of module {0} cannot be read: {0}.wasm.minisig is no signature of minisign; fetch it again, or have the module \
         signed again with `salt-module sign {0}.wasm`"
    )]
    Malformed(ModuleName),
    /// More signatures than there may be.
    #[error(
        "module {0} has too many signatures: {0}.wasm.minisig may have {MAX_SIGNERS}; take some out, or have the module signed again with \
         `salt-module sign {0}.wasm`"
    )]
    TooMany(ModuleName),
    /// It was signed under another name.
    #[error(
        "module {name} was signed as {file} and not as {name}.wasm, and a signature is good for the name that was signed; give the file \
         that name again, or have it signed again with `salt-module sign {name}.wasm`"
    )]
    OtherName {
        /// The module.
        name: ModuleName,
        /// What was signed.
        file: String,
    },
    /// Nobody else signed it but with keys that the owner revoked.
    #[error(
        "module {name} is signed with a key that the owner of this host revoked ({keys}, by sandbox:revoked:keys); ask the owner which \
         key is good, and have it signed again with that: `salt-module sign {name}.wasm`"
    )]
    Revoked {
        /// The module.
        name: ModuleName,
        /// As the owner wrote them.
        keys: String,
    },
    /// One of the package's, without the signature that the package's own key makes.
    #[error("the standard module {name} {why}; install the package again")]
    Standard {
        /// The module.
        name: ModuleName,
        /// The rest of the sentence.
        why: String,
    },
}
