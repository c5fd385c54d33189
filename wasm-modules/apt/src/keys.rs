//! OpenPGP keys: what gpg tells of them, and their binary form.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_guest::{Result, Value};

/// Reads gpg's list `--with-colons`: a dict of keys by their ids.
pub fn listed(output: &str) -> Value {
    let mut keys: Vec<(String, Value)> = Vec::new();
    for line in output.lines().filter(|line| !line.trim().is_empty()) {
        let items: Vec<Value> = line.split(':').map(item).collect();
        let at = |index: usize| items.get(index).cloned().unwrap_or_default();
        match at(0).text() {
            Some(kind @ ("pub" | "sub")) => {
                let id = at(4).to_text();
                let key = Value::dict([
                    ("algorithm", at(3)),
                    ("bits", at(2)),
                    ("capability", at(11)),
                    ("date_creation", at(5)),
                    ("date_expiration", at(6)),
                    ("keyid", id.clone().into()),
                    ("validity", at(1)),
                ]);
                match keys.last_mut() {
                    Some((_, last)) if kind == "sub" => set(last, "subkey", key),
                    _ => keys.push((id, key)),
                }
            }
            Some("fpr") => {
                if let Some((_, last)) = keys.last_mut() {
                    match last.get("subkey").cloned() {
                        Some(mut subkey) => {
                            set(&mut subkey, "fingerprint", at(9));
                            set(last, "subkey", subkey);
                        }
                        None => set(last, "fingerprint", at(9)),
                    }
                }
            }
            Some("uid") => {
                if let Some((_, last)) = keys.last_mut() {
                    set(last, "uid", at(9));
                    set(last, "uid_hash", at(7));
                }
            }
            _ => (),
        }
    }
    let mut result = Value::Dict(Vec::new());
    keys.into_iter().for_each(|(id, key)| set(&mut result, &id, key));
    result
}

fn set(dict: &mut Value, key: &str, value: Value) {
    let Value::Dict(entries) = dict else { return };
    entries.retain(|(known, _)| known.text() != Some(key));
    entries.push((key.into(), value));
}

/// A number if it is one, None if it is empty.
fn item(text: &str) -> Value {
    match text.trim() {
        "" => Value::None,
        text => text.parse().map_or_else(|_| text.into(), Value::Int),
    }
}

/// Whether the bytes are a key in its form of text.
pub fn is_armored(bytes: &[u8]) -> bool {
    let start = bytes.iter().position(|byte| *byte != b'-').unwrap_or(bytes.len());
    bytes[start..].starts_with(b"BEGIN PGP") && std::str::from_utf8(bytes).is_ok()
}

/// Returns the binary form of the keys in a text.
///
/// # Errors
/// When the text is cut off, or not what its checksum says.
pub fn dearmored(text: &[u8]) -> Result<Vec<u8>> {
    let text = std::str::from_utf8(text).map_err(|_| "the key is no text")?;
    let mut keys = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if !line.starts_with("-----BEGIN PGP") {
            continue;
        }
        let (mut body, mut checksum, mut ended) = (String::new(), None, false);
        // Headers are before an empty line.
        for line in lines.by_ref().skip_while(|line| !line.is_empty()).skip(1) {
            if line.starts_with("-----END PGP") {
                ended = true;
                break;
            }
            match line.strip_prefix('=') {
                Some(sum) => checksum = Some(sum),
                None => body.push_str(line),
            }
        }
        if !ended {
            return Err("the key has no end".into());
        }
        let bytes = STANDARD.decode(body).map_err(|_| "the key is not in base64")?;
        if let Some(checksum) = checksum {
            let expected = STANDARD.decode(checksum).map_err(|_| "the key's checksum is not in base64")?;
            if expected != crc24(&bytes).to_be_bytes()[1..] {
                return Err("the key is not what its checksum says".into());
            }
        }
        keys.extend(bytes);
    }
    if keys.is_empty() { Err("there is no key in the text".into()) } else { Ok(keys) }
}

/// OpenPGP's checksum.
fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x00b7_04ce, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 16, |crc, _| {
            let next = crc << 1;
            (if next & 0x0100_0000 != 0 { next ^ 0x0186_4cfb } else { next }) & 0x00ff_ffff
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_listed_by_their_ids() {
        let output = "tru::1:1\npub:-:256:22:00112233AABBCCDD:1700000000:::-:::scESC::::::23::0:\nfpr:::::::::0123456789ABCDEF:\n\
                      uid:-::::1700000000::HASH::A <a@x.example>::::::::::0:\nsub:-:256:18:1111111111111111:1700000000::::::e:\n\
                      fpr:::::::::FEDC:\n";
        let found = listed(output);
        let key = found.get("00112233AABBCCDD").unwrap();
        assert_eq!(key.get("bits"), Some(&Value::Int(256)));
        assert_eq!(key.get("uid"), Some(&"A <a@x.example>".into()));
        // Salt reads numbers where there are any.
        assert_eq!(key.get("fingerprint"), Some(&"0123456789ABCDEF".into()));
        assert_eq!(key.get("subkey").and_then(|sub| sub.get("fingerprint")), Some(&"FEDC".into()));
    }

    #[test]
    fn a_key_in_text_is_checked() {
        // The checksum is of the nine digits, the usual example of CRC-24.
        assert_eq!(crc24(b"123456789"), 0x0021_cf02);
        let text = |sum: &str| {
            format!(
                "-----BEGIN PGP PUBLIC KEY BLOCK-----\nVersion: x\n\nMTIzNDU2\nNzg5\n={sum}\n-----END PGP PUBLIC KEY BLOCK-----\n"
            )
        };
        assert!(is_armored(text("Ic8C").as_bytes()) && !is_armored(b"\x99\x01"));
        assert_eq!(dearmored(text("Ic8C").as_bytes()), Ok(b"123456789".to_vec()));
        assert_eq!(dearmored([text("Ic8C"), text("Ic8C")].concat().as_bytes()), Ok(b"123456789123456789".to_vec()));
        assert!(dearmored(text("AAAA").as_bytes()).unwrap_err().contains("checksum"));
        assert!(dearmored(b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n").unwrap_err().contains("no end"));
        assert!(dearmored(b"nothing").is_err());
    }
}
