//! Hashes of files.

use brine_guest::hash::{Hash, KINDS};

use crate::look::fs;

/// The hash of a file in hex.
pub(crate) fn of(path: &str, form: &str) -> Result<String, String> {
    let mut hash = Hash::new(form).ok_or_else(|| format!("Invalid hash type: {form}"))?;
    let read = fs::open(path).and_then(|file| {
        file.each(|part| {
            hash.update(part);
            true
        })
    });
    read.map_err(|error| error.at(path))?;
    Ok(hash.hex())
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
