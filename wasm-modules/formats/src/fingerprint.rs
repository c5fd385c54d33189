//! Fingerprints of public keys, as Salt writes them: bytes in hex with colons between.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use brine_guest::Result;
use brine_guest::hash::Hash;

/// As Python's `b64decode` with `validate`: bits beyond the last byte do not matter.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// The fingerprint of a key; none if it is no base64. `kind` is a hash, SHA-256 if it is none.
pub(crate) fn of(key: &str, kind: Option<&str>) -> Result<Option<String>> {
    let kind = kind.filter(|kind| !kind.is_empty()).map_or_else(|| "sha256".into(), str::to_lowercase);
    let mut hash = Hash::new(&kind).ok_or_else(|| format!("The fingerprint_hash_type {kind} is not supported."))?;
    let Ok(bytes) = BASE64.decode(key) else { return Ok(None) };
    hash.update(&bytes);
    let hex = hash.hex();
    let pairs: Vec<&str> = (0..hex.len()).step_by(2).map(|at| &hex[at..at + 2]).collect();
    Ok(Some(pairs.join(":")))
}
