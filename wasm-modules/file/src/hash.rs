//! Hashes of files.

use brine_guest::fs;
use md5::Md5;
use sha1::Sha1;
use sha2::digest::DynDigest;
use sha2::{Sha224, Sha256, Sha384, Sha512};

/// The hash types, with the length of each in hex.
pub(crate) const KINDS: [(&str, usize); 6] =
    [("md5", 32), ("sha1", 40), ("sha224", 56), ("sha256", 64), ("sha384", 96), ("sha512", 128)];

/// The hash of a file in hex.
pub(crate) fn of(path: &str, form: &str) -> Result<String, String> {
    let mut hash: Box<dyn DynDigest> = match form {
        "md5" => Box::new(Md5::default()),
        "sha1" => Box::new(Sha1::default()),
        "sha224" => Box::new(Sha224::default()),
        "sha256" => Box::new(Sha256::default()),
        "sha384" => Box::new(Sha384::default()),
        "sha512" => Box::new(Sha512::default()),
        _ => return Err(format!("Invalid hash type: {form}")),
    };
    let read = fs::open(path).and_then(|file| {
        file.each(|part| {
            hash.update(part);
            true
        })
    });
    read.map_err(|error| error.at(path))?;
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    let mut out = vec![0; hash.output_size()];
    hash.finalize_into_reset(&mut out).map_err(|_| format!("Invalid hash type: {form}"))?;
    Ok(out.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
}

/// Splits a hash into its type and its digits.
pub(crate) fn parse(text: &str) -> Result<(&str, &str), String> {
    for separator in [':', '='] {
        if let Some(parts) = text.split_once(separator) {
            return Ok(parts);
        }
    }
    let length = text.chars().count();
    match KINDS.iter().find(|(_, len)| *len == length) {
        Some((kind, _)) => Ok((kind, text)),
        None => {
            let kinds: Vec<String> = KINDS.iter().map(|(kind, len)| format!("{kind} ({len})")).collect();
            Err(format!(
                "Hash {text} (length: {length}) could not be matched to a supported hash type. The supported hash types and \
                 lengths are: {}",
                kinds.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_tells_its_kind() {
        assert_eq!(parse("md5:abc"), Ok(("md5", "abc")));
        assert_eq!(parse("sha1=abc"), Ok(("sha1", "abc")));
        let long = "0".repeat(64);
        assert_eq!(parse(&long), Ok(("sha256", long.as_str())));
        assert!(parse("abc").unwrap_err().starts_with("Hash abc (length: 3) could not be matched"));
    }
}
