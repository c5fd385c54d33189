//! Signatures of modules: minisign's, detached, of the kind that signs the hash (`minisign -S`, which all since 2022 make).
//!
//! A signature is read where a key of the policy could have made it. One that cannot be read or does not fit the content is an
//! error, not a missing one: somebody altered something.

use std::fmt;

use minisign_verify::{Error, PublicKey, Signature};

use crate::ModuleName;

/// Bytes of a signature's file: two comments and two lines.
pub const MAX_SIGNATURE: usize = 8 * 1_024;
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

/// Why a signature is in the way of its module: one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Another content, or another trusted comment, was signed.
    #[error(
        "module {0} is not what was signed: {0}.wasm.minisig does not fit it; fetch both again, or sign again with `minisign -S -m {0}.wasm`"
    )]
    Altered(ModuleName),
    /// It signs the file itself and not its hash.
    #[error(
        "module {0} is signed in the old way (minisign -l), which is not taken; sign again with `minisign -S -m {0}.wasm`"
    )]
    Legacy(ModuleName),
    /// It is none of minisign's.
    #[error(
        "the signature of module {0} cannot be read: {0}.wasm.minisig is no signature of minisign; sign again with `minisign -S -m {0}.wasm`"
    )]
    Malformed(ModuleName),
}

/// Which of the keys signed this content.
pub(crate) fn signers(
    name: &ModuleName,
    wasm: &[u8],
    signature: Option<&[u8]>,
    keys: &[SigningKey],
) -> Result<Vec<KeyId>, SignatureError> {
    let Some(signature) = signature.filter(|_| !keys.is_empty()) else { return Ok(Vec::new()) };
    let malformed = || SignatureError::Malformed(name.clone());
    let text = std::str::from_utf8(signature).ok().filter(|text| text.len() <= MAX_SIGNATURE);
    let signature = Signature::decode(text.ok_or_else(malformed)?).map_err(|_| malformed())?;
    let mut signers = Vec::new();
    for key in keys {
        match key.key.verify(wasm, &signature, false) {
            Ok(()) => signers.push(key.id),
            Err(Error::UnexpectedKeyId) => {}
            Err(Error::InvalidSignature) => return Err(SignatureError::Altered(name.clone())),
            Err(Error::UnexpectedAlgorithm) => return Err(SignatureError::Legacy(name.clone())),
            Err(_) => return Err(malformed()),
        }
    }
    if signers.is_empty() {
        signers.push(KeyId::UNKNOWN);
    }
    Ok(signers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    // From the tests of minisign-verify: the content is `test`.
    const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    const SIGNATURE: &str = "untrusted comment: signature from minisign secret key\n\
        RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n\
        trusted comment: timestamp:1633700835\tfile:test\tprehashed\n\
        wLMDjy9FLAuxZ3q4NlEvkgtyhrr0gtTu6KC4KBJdITbbOeAi1zBIYo0v4iTgt8jJpIidRJnp94ABQkJAgAooBQ==\n";
    const LEGACY: &str = "untrusted comment: signature from minisign secret key\n\
        RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=\n\
        trusted comment: timestamp:1555779966\tfile:test\n\
        QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==\n";

    fn signed(content: &str, signature: Option<&str>, keys: &[&str]) -> Result<Vec<KeyId>, String> {
        let keys: Vec<SigningKey> = keys.iter().map(|line| SigningKey::line(line).unwrap()).collect();
        let signature = signature.map(str::as_bytes);
        signers(&name("deploy"), content.as_bytes(), signature, &keys).map_err(|error| error.to_string())
    }

    #[test]
    fn content_is_what_was_signed() {
        let key = SigningKey::line(KEY).unwrap().id;
        assert_eq!(signed("test", Some(SIGNATURE), &[KEY]), Ok(vec![key]));
        assert_eq!(signed("test", None, &[KEY]), Ok(vec![]));
        let altered = "module deploy is not what was signed: deploy.wasm.minisig does not fit it; fetch both again, or sign again with \
                       `minisign -S -m deploy.wasm`";
        assert_eq!(signed("Test", Some(SIGNATURE), &[KEY]), Err(altered.into()));
        // The trusted comment is signed too.
        let comment = SIGNATURE.replace("file:test", "file:best");
        assert_eq!(signed("test", Some(&comment), &[KEY]), Err(altered.into()));
        let legacy = "module deploy is signed in the old way (minisign -l), which is not taken; sign again with `minisign -S -m deploy.wasm`";
        assert_eq!(signed("test", Some(LEGACY), &[KEY]), Err(legacy.into()));
        let malformed = "the signature of module deploy cannot be read: deploy.wasm.minisig is no signature of minisign; sign again with \
                         `minisign -S -m deploy.wasm`";
        let long = format!("{SIGNATURE}{}", "x".repeat(MAX_SIGNATURE));
        for bad in ["", "x", "\0\n\n\n\n", &SIGNATURE[..100], &SIGNATURE.replace("RUQ", "RUX"), &long] {
            assert_eq!(signed("test", Some(bad), &[KEY]), Err(malformed.into()), "{bad:?}");
        }
        // Nobody asks for signatures: none is read.
        assert_eq!(signed("test", Some("x"), &[]), Ok(vec![]));
    }

    #[test]
    fn another_key_signs_nothing() {
        // Another number, and another key of the same number.
        let number = KEY.replacen("RWQf6", "RWQg6", 1);
        assert_eq!(signed("test", Some(SIGNATURE), &[&number]), Ok(vec![KeyId::UNKNOWN]));
        let other = KEY.replacen("GFO3", "GFO4", 1);
        assert!(signed("test", Some(SIGNATURE), &[&other]).is_err());
        assert_eq!(signed("test", Some(SIGNATURE), &[&number, KEY]), Ok(vec![SigningKey::line(KEY).unwrap().id]));
    }

    #[test]
    fn keys_are_lines_or_files() {
        for bad in ["", "ops.pub", &KEY[1..], &KEY.replace("RWQ", "RXQ"), &format!("{KEY} "), "é".repeat(28).as_str()]
        {
            assert!(SigningKey::line(bad).is_none(), "{bad}");
        }
        let file = SigningKey::file(&format!("untrusted comment: minisign public key\n{KEY}\n"), "ops.pub").unwrap();
        assert_eq!((file.id.to_string().as_str(), file.written.as_str()), (KEY, "ops.pub"));
        assert_eq!(SigningKey::file(KEY, "ops.pub").unwrap().id, file.id);
        assert!(SigningKey::file("untrusted comment: x\n", "ops.pub").is_none());
    }
}
