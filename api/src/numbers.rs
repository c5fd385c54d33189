//! Whole numbers of JSON that 64 bits do not hold, such as a jid that a client wrote without quotes. Python has them
//! exactly, and sends them on as text; read as floating point numbers they would be others.

use std::borrow::Cow;

/// Puts quotes around such numbers.
pub fn quoted(json: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Vec<u8> = Vec::new();
    // Up to here, `out` has what was read.
    let mut copied = 0;
    let (mut at, mut in_text) = (0, false);
    while let Some(byte) = json.get(at) {
        match byte {
            // Whatever is escaped ends no text.
            b'\\' if in_text => at += 2,
            b'"' => {
                in_text = !in_text;
                at += 1;
            }
            b'-' | b'0'..=b'9' if !in_text => {
                let end = at + json[at..].iter().take_while(|byte| is_of_number(**byte)).count();
                if is_large(&json[at..end]) {
                    out.extend_from_slice(&json[copied..at]);
                    out.push(b'"');
                    out.extend_from_slice(&json[at..end]);
                    out.push(b'"');
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.extend_from_slice(&json[copied..]);
    Cow::Owned(out)
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || b"+-.eE".contains(&byte)
}

/// Whether this is a whole number of JSON beyond 64 bits.
fn is_large(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let is_whole = digits.iter().all(u8::is_ascii_digit) && digits.first().is_some_and(|first| *first != b'0');
    let fits = |text: &str| text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
    is_whole && std::str::from_utf8(number).is_ok_and(|text| !fits(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_64_bits_do_not_hold_is_text() {
        let read = |json: &str| String::from_utf8(quoted(json.as_bytes()).into_owned()).unwrap();
        assert_eq!(
            read(r#"{"jid": 20261124070448670000, "b": [-9223372036854775809,18446744073709551616]}"#),
            r#"{"jid": "20261124070448670000", "b": ["-9223372036854775809","18446744073709551616"]}"#
        );
        assert_eq!(read("99999999999999999999"), "\"99999999999999999999\"");
        for same in [
            "",
            "18446744073709551615",
            "[-9223372036854775808, 1.5, 1e400, 123456789012345678901234567890.0, 12345678901234567890123e2]",
            // No numbers of JSON, and they become none.
            "[0123456789012345678901234, -, --1, 00000000000000000000001]",
            r#"{"20261124070448670000": "20261124070448670000", "a\"20261124070448670000": "\\"}"#,
            r#""an open text 20261124070448670000"#,
            "\"\\",
        ] {
            assert_eq!(read(same), same);
        }
    }
}
