//! Finds the keys that signed a content.

use std::collections::BTreeSet;

use minisign_verify::{Error, Signature};

use super::comment::Comment;
use super::{KeyId, MAX_SIGNATURE, MAX_SIGNERS, SignatureError, Signed, SigningKey};
use crate::ModuleName;
use crate::sentence::join_names;

/// Returns the keys that signed this content under this name. A revoked key does not count. A content signed only by
/// revoked keys is an error, whether signatures are required or not.
pub(crate) fn signed(
    name: &ModuleName,
    wasm: &[u8],
    signatures: Option<&[u8]>,
    keys: &[SigningKey],
    revoked: &BTreeSet<KeyId>,
) -> Result<Signed, SignatureError> {
    let Some(signatures) = signatures.filter(|_| !keys.is_empty()) else { return Ok(Signed::default()) };
    let mut signed = Signed::default();
    let mut bad: Vec<&str> = Vec::new();
    for signature in read(name, signatures)? {
        for key in keys {
            let Some(comment) = verify(name, wasm, &signature, key)? else { continue };
            if revoked.contains(&key.id) {
                bad.push(&key.written);
                continue;
            }
            signed.time = signed.time.max(comment.time);
            if !signed.keys.contains(&key.id) {
                signed.keys.push(key.id);
            }
        }
    }
    if signed.keys.is_empty() {
        if !bad.is_empty() {
            return Err(SignatureError::Revoked { name: name.clone(), keys: join_names(&bad) });
        }
        signed.keys.push(KeyId::UNKNOWN);
    }
    Ok(signed)
}

/// Parses the signatures of a file, four lines each.
pub(super) fn read(name: &ModuleName, file: &[u8]) -> Result<Vec<Signature>, SignatureError> {
    let malformed = || SignatureError::Malformed(name.clone());
    let text = std::str::from_utf8(file).ok().filter(|text| text.len() <= MAX_SIGNATURE).ok_or_else(malformed)?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let blocks = lines.chunks(4);
    if blocks.len() > MAX_SIGNERS {
        return Err(SignatureError::TooMany(name.clone()));
    }
    let signatures: Vec<Signature> = blocks
        .map(|block| {
            let comment = block.first().is_some_and(|line| line.starts_with("untrusted comment:"));
            Signature::decode(&block.join("\n")).ok().filter(|_| comment).ok_or_else(malformed)
        })
        .collect::<Result<_, _>>()?;
    if signatures.is_empty() { Err(malformed()) } else { Ok(signatures) }
}

/// Returns the signed comment. None if another key made the signature.
pub(super) fn verify(
    name: &ModuleName,
    wasm: &[u8],
    signature: &Signature,
    key: &SigningKey,
) -> Result<Option<Comment>, SignatureError> {
    match key.key.verify(wasm, signature, false) {
        Ok(()) => {}
        Err(Error::UnexpectedKeyId) => return Ok(None),
        Err(Error::InvalidSignature) => return Err(SignatureError::Altered(name.clone())),
        Err(Error::UnexpectedAlgorithm) => return Err(SignatureError::Legacy(name.clone())),
        Err(_) => return Err(SignatureError::Malformed(name.clone())),
    }
    let comment = Comment::read(signature.trusted_comment());
    match comment.other_than(&format!("{name}.wasm")) {
        None => Ok(Some(comment)),
        Some(file) => Err(SignatureError::OtherName { name: name.clone(), file }),
    }
}
