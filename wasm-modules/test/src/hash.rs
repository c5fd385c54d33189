//! Hashes by name.

use md5::Md5;
use sha1::Sha1;
use sha2::digest::DynDigest;
use sha2::{Sha224, Sha256, Sha384, Sha512};

/// The hash of a text in hex.
pub(crate) fn hex(text: &str, kind: &str) -> Result<String, String> {
    let mut hash: Box<dyn DynDigest> = match kind {
        "md5" => Box::new(Md5::default()),
        "sha1" => Box::new(Sha1::default()),
        "sha224" => Box::new(Sha224::default()),
        "sha256" => Box::new(Sha256::default()),
        "sha384" => Box::new(Sha384::default()),
        "sha512" => Box::new(Sha512::default()),
        _ => return Err(format!("hash_type is to be md5, sha1, sha224, sha256, sha384 or sha512, not {kind}")),
    };
    hash.update(text.as_bytes());
    let mut out = vec![0; hash.output_size()];
    hash.finalize_into_reset(&mut out).map_err(|_| format!("{kind} has no hash of its own length"))?;
    Ok(out.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_by_name() {
        assert_eq!(hex("a", "md5").unwrap(), "0cc175b9c0f1b6a831c399e269772661");
        for (kind, length) in
            [("md5", 32), ("sha1", 40), ("sha224", 56), ("sha256", 64), ("sha384", 96), ("sha512", 128)]
        {
            assert_eq!(hex("1", kind).unwrap().len(), length, "{kind}");
        }
        assert!(hex("1", "nope").unwrap_err().contains("nope"));
    }
}
