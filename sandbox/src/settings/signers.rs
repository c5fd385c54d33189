//! Parses required signatures and revocations. `keys.rs` reads the keys that they name.

use brine_sandbox_wire::Sha256Hex;
use rmpv::Value;

use super::values::{count, entries, list};
use super::{Result, error};
use crate::policy::{Quorum, Revoked, Signer, Signers};
use crate::signature::MAX_SIGNERS;

/// The allowed forms of `signed_by`.
const FORMS: &str = "any, a list of public keys, {at_least: 2, of: […]} or false";

pub(super) fn signed_by(path: &str, value: &Value) -> Result<Signers> {
    match value {
        _ if value.as_bool() == Some(false) => Ok(Signers::NotNeeded),
        Value::Map(_) => several(path, value).map(Signers::Needed),
        _ => quorum(path, value, 1).map(Signers::Needed),
    }
}

/// `{at_least: 2, of: [a.pub, b.pub, c.pub]}`
fn several(path: &str, value: &Value) -> Result<Quorum> {
    let (mut at_least, mut of) = (None, None);
    for (key, value) in entries(path, value)? {
        let path = format!("{path}:{key}");
        match key {
            // More than the largest number of signatures could never be satisfied.
            "at_least" => at_least = Some(count(&path, value, 1..=MAX_SIGNERS)?),
            "of" => of = Some((path, value)),
            _ => return error(&path, "there is no such key; there are at_least and of"),
        }
    }
    match (at_least, of) {
        (Some(at_least), Some((path, value))) => quorum(&path, value, at_least),
        _ => error(path, "both at_least and of are needed, as in {at_least: 2, of: [a.pub, b.pub, c.pub]}"),
    }
}

/// Parses `any` or a list of keys.
fn quorum(path: &str, value: &Value, at_least: usize) -> Result<Quorum> {
    if value.as_str() == Some("any") {
        return Ok(Quorum { at_least, of: Vec::new(), any: true });
    }
    let Value::Array(items) = value else {
        let forms = if path.ends_with(":of") { "any or a list of public keys" } else { FORMS };
        return error(path, format!("{forms} is expected, not {value}"));
    };
    if items.is_empty() {
        return error(path, "the list is empty: nothing could be so signed");
    }
    if items.len() < at_least {
        return error(path, format!("{at_least} signatures are asked for, and there are {} keys", items.len()));
    }
    Ok(Quorum { at_least, of: signers(path, value)?, any: false })
}

/// Parses keys as written; [`super::keys`] reads them.
pub(super) fn signers(path: &str, value: &Value) -> Result<Vec<Signer>> {
    let written = list(path, value, |_, _| Ok(()))?;
    Ok(written.into_iter().map(|written| Signer { written, key: None }).collect())
}

/// `revoked`
pub(super) fn revoked(path: &str, value: &Value) -> Result<Revoked> {
    let mut revoked = Revoked::default();
    for (key, value) in entries(path, value)? {
        let path = format!("{path}:{key}");
        match key {
            "keys" => revoked.written = signers(&path, value)?,
            "sha256" => {
                let Value::Array(items) = value else {
                    return error(&path, format!("a list is expected, not {value}"));
                };
                revoked.sha256 = items.iter().map(|item| sha256(&path, item)).collect::<Result<_>>()?;
            }
            _ => return error(&path, "there is no such setting; there are keys and sha256"),
        }
    }
    Ok(revoked)
}

pub(super) fn sha256(path: &str, value: &Value) -> Result<Sha256Hex> {
    match value.as_str().unwrap_or_default().parse() {
        Ok(hash) => Ok(hash),
        Err(_) => error(path, "64 hex digits are expected, in quotes if all of them are decimal"),
    }
}
