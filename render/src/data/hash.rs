//! Digests and base64 (`salt.utils.hashutils`).

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::CallError;
use crate::value::Value;

/// The bytes of text or of bytes (`salt.utils.stringutils.to_bytes`).
pub fn bytes(value: &Value) -> Result<&[u8], CallError> {
    match value {
        Value::Str(text) => Ok(text.as_bytes()),
        Value::Bytes(bytes) => Ok(bytes),
        other => {
            let name = other.type_name();
            Err(CallError::python(format!("expected str, bytes, or bytearray not <class '{name}'>")))
        }
    }
}

/// Lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest as hex, by Python's name of the algorithm.
///
/// # Errors
/// The value is no text, or the algorithm is unknown.
pub fn digest(algorithm: &str, value: &Value) -> Result<Value, CallError> {
    let data = bytes(value)?;
    Ok(match algorithm {
        "md5" => hex(&Md5::digest(data)),
        "sha1" => hex(&Sha1::digest(data)),
        "sha224" => hex(&Sha224::digest(data)),
        "sha256" => hex(&Sha256::digest(data)),
        "sha384" => hex(&Sha384::digest(data)),
        "sha512" => hex(&Sha512::digest(data)),
        other => return Err(CallError::python(format!("module 'hashlib' has no attribute '{other}'"))),
    }
    .into())
}

/// HMAC with SHA-256.
///
/// # Errors
/// One of the two is no text.
pub fn hmac(text: &Value, key: &Value) -> Result<Vec<u8>, CallError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(bytes(key)?).map_err(|why| CallError::python(why.to_string()))?;
    mac.update(bytes(text)?);
    Ok(mac.finalize().into_bytes().to_vec())
}

/// HMAC with a hash of Python's name, as hex.
///
/// # Errors
/// One of the two is no text, or the hash is unknown.
pub fn hmac_by(algorithm: &str, text: &Value, key: &Value) -> Result<String, CallError> {
    fn of<M: hmac::Mac + hmac::KeyInit>(text: &Value, key: &Value) -> Result<String, CallError> {
        let mut mac =
            <M as hmac::KeyInit>::new_from_slice(bytes(key)?).map_err(|why| CallError::python(why.to_string()))?;
        mac.update(bytes(text)?);
        Ok(hex(&mac.finalize().into_bytes()))
    }
    match algorithm {
        "md5" => of::<Hmac<Md5>>(text, key),
        "sha1" => of::<Hmac<Sha1>>(text, key),
        "sha224" => of::<Hmac<Sha224>>(text, key),
        "sha256" => of::<Hmac<Sha256>>(text, key),
        "sha384" => of::<Hmac<Sha384>>(text, key),
        "sha512" => of::<Hmac<Sha512>>(text, key),
        other => Err(CallError::python(format!("module 'hashlib' has no attribute '{other}'"))),
    }
}

/// Whether a text has an HMAC, given as base64.
///
/// # Errors
/// One of the three is no text.
pub fn verify(text: &Value, key: &Value, challenge: &Value) -> Result<bool, CallError> {
    Ok(STANDARD.encode(hmac(text, key)?).as_bytes() == bytes(challenge)?)
}

/// Base64.
///
/// # Errors
/// The value is no text.
pub fn encode(value: &Value) -> Result<Value, CallError> {
    Ok(STANDARD.encode(bytes(value)?).into())
}

/// Base64 in lines of 76 characters.
///
/// # Errors
/// The value is no text.
pub fn encode_lines(value: &Value) -> Result<Value, CallError> {
    let lines: Vec<String> = bytes(value)?.chunks(57).map(|line| STANDARD.encode(line) + "\n").collect();
    Ok(lines.concat().into())
}

/// From base64, as Python reads it: what is no digit is left out. Bytes that are no UTF-8 stay bytes.
///
/// # Errors
/// The value is no base64.
pub fn decode(value: &Value) -> Result<Value, CallError> {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let lenient = GeneralPurpose::new(&base64::alphabet::STANDARD, config);
    let mut digits: Vec<u8> = bytes(value)?.iter().copied().filter(|b| is_digit(*b) || *b == b'=').collect();
    // what follows the padding is left out
    let count = digits.iter().position(|b| *b == b'=').unwrap_or(digits.len());
    let padding = digits.len() - count;
    digits.truncate(count);
    match count % 4 {
        1 => {
            return Err(CallError::python(format!(
                "Invalid base64-encoded string: number of data characters ({count}) cannot be 1 more than a multiple of 4"
            )));
        }
        rest if rest > 0 && rest + padding < 4 => return Err(CallError::python("Incorrect padding")),
        _ => {}
    }
    let decoded = lenient.decode(digits).map_err(|_| CallError::python("Incorrect padding"))?;
    Ok(match String::from_utf8(decoded) {
        Ok(text) => text.into(),
        Err(why) => Value::Bytes(why.into_bytes().into()),
    })
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}
