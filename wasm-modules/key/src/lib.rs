//! The module `key`: fingerprints of the public keys of a minion and of its master. The functions and their documentation
//! are in `wit/world.wit`.
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "key",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/kernel@1.0.0": brine_guest::host::kernel,
    },
    generate_all,
});

use brine_guest::Value;
use brine_guest::hash::Hash;
use brine_guest::host::{config, kernel};

struct Module;

impl Guest for Module {
    fn finger(hash_type: Option<String>) -> Result<String, String> {
        finger("minion.pub", hash_type)
    }

    fn finger_master(hash_type: Option<String>) -> Result<String, String> {
        finger("minion_master.pub", hash_type)
    }
}

fn finger(key: &str, kind: Option<String>) -> Result<String, String> {
    let kind = match kind {
        Some(kind) => kind,
        None => match config::get("hash_type").map(|kind| kind.value()).transpose()? {
            Some(Value::Text(kind)) => kind,
            _ => "sha256".to_owned(),
        },
    };
    fingerprint(&kernel::read(key)?, &kind)
}

/// Colon-separated hex of a hash over the lines of a PEM without the first and the last (`salt.utils.crypt.pem_finger`).
fn fingerprint(pem: &[u8], kind: &str) -> Result<String, String> {
    let mut hash = Hash::new(kind).ok_or_else(|| format!("there is no hash {kind:?}"))?;
    let lines: Vec<&[u8]> = pem.trim_ascii().split_inclusive(|byte| *byte == b'\n').collect();
    let [_, body @ .., _] = &lines[..] else { return Ok(String::new()) };
    body.iter().for_each(|line| hash.update(line));
    let hex = hash.hex();
    let pairs: Vec<&str> = (0..hex.len()).step_by(2).map(|at| &hex[at..at + 2]).collect();
    Ok(pairs.join(":"))
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_between_the_first_and_the_last_count() {
        let finger = |pem: &str| fingerprint(pem.as_bytes(), "md5").unwrap();
        // The MD5 of "a\n".
        assert_eq!(finger("-----BEGIN-----\na\n-----END-----\n"), "60:b7:25:f1:0c:9c:85:c7:0d:97:88:0d:fe:81:91:b3");
        assert_eq!(finger("-----BEGIN-----\na\n-----END-----"), finger("-----BEGIN-----\na\n-----END-----\n"));
        assert_eq!(finger(""), "");
        assert!(fingerprint(b"", "sha3").is_err());
    }
}
