//! `file.decode`

use brine_guest::Value;
use brine_guest::changes::Put;
use brine_guest::hash::Hash;
use brine_guest::states::is_dry_run;

use super::arguments::Arguments;
use super::ret::Ret;
use crate::edit::place;

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
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0_u32);
    for byte in text.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if count % 4 >= 2 => break,
            _ => continue,
        };
        bits = bits << 6 | u32::from(digit);
        count += 1;
        if count % 4 == 0 {
            out.extend_from_slice(&bits.to_be_bytes()[1..]);
            bits = 0;
        }
    }
    match count % 4 {
        0 => {}
        2 => out.push((bits >> 4).to_be_bytes()[3]),
        3 => out.extend_from_slice(&(bits >> 2).to_be_bytes()[2..]),
        _ => return Err("Invalid base64-encoded string: number of data characters cannot be 1 more than a multiple of 4".into()),
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64() {
        for (text, bytes) in [("aGVsbG8K", &b"hello\n"[..]), ("aGVs\nbG8=", b"hello"), ("aA==", b"h"), ("aGU", b"he"), ("", b"")] {
            assert_eq!(decoded(text).unwrap(), bytes, "{text}");
        }
        assert!(decoded("a").is_err());
    }
}
