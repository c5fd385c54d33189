//! `file.decode`

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use brine_guest::Value;
use brine_guest::changes::Put;
use brine_guest::hash::Hash;
use brine_guest::states::is_dry_run;

use super::Ret;
use super::arguments::Arguments;
use crate::edit::place;

/// As in Python, bits beyond the last byte do not matter.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

pub(crate) fn run(name: &str, arguments: &Arguments) -> Result<Ret, String> {
    let (given, pillar) = (arguments.named("encoded_data"), arguments.named("contents_pillar"));
    let encoded = match (given, pillar) {
        (None, None) => return Err("Specify either the 'encoded_data' or 'contents_pillar' argument.".into()),
        (Some(_), Some(_)) => return Err("Specify only one 'encoded_data' or 'contents_pillar' argument.".into()),
        (Some(encoded), None) => encoded,
        (None, Some(key)) => {
            let found = super::texts::pillar(&key)?.ok_or("Pillar data not found.")?;
            found.to_text()
        }
    };
    let kind = arguments.text("checksum").unwrap_or_else(|| "md5".into());
    let sum = |content: &[u8]| {
        let mut hash = Hash::new(&kind).ok_or_else(|| format!("hash type {kind} is not there"))?;
        hash.update(content);
        Ok::<_, String>(hash.hex())
    };
    let content = decoded(&encoded)?;
    let new = sum(&content)?;
    let old = place::read(name)?.map(|content| sum(&content)).transpose()?;
    if old.as_ref() == Some(&new) {
        return Ok(Ret::good("File is in the correct state."));
    }
    let mut ret = if is_dry_run() {
        Ret { result: None, ..Ret::good("File is set to be updated.") }
    } else {
        Put::new(name).bytes(content)?;
        Ret::good("File was updated.")
    };
    // As in Salt, a dry run tells of no change where there was no file.
    if let Some(old) = old {
        ret.change("old", old);
        ret.change("new", new);
    } else if !is_dry_run() {
        ret.change("old", Value::None);
        ret.change("new", new);
    }
    Ok(ret)
}

/// Python's `base64.decodebytes`: characters that are none of the alphabet's are left out.
fn decoded(text: &str) -> Result<Vec<u8>, String> {
    let of_alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let digits: Vec<u8> = text.bytes().filter(of_alphabet).collect();
    BASE64.decode(digits).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64() {
        for (text, bytes) in
            [("aGVsbG8K", &b"hello\n"[..]), ("aGVs\nbG8=", b"hello"), ("aA==", b"h"), ("aGVsbG9=", b"hello"), ("", b"")]
        {
            assert_eq!(decoded(text).unwrap(), bytes, "{text}");
        }
        assert!(decoded("a").is_err() && decoded("aGU").is_err());
    }
}
