//! Literals of numbers and text, and Python's `int()` and `float()` of text.

use super::token::Tok;

/// Reads a number at the start of a text: its length and the token.
pub(super) fn read_literal(text: &str, after_dot: bool) -> Result<(usize, Tok), String> {
    let digits = |from: usize, is: fn(&char) -> bool| {
        let mut end = from;
        for c in text[from..].chars() {
            let next_is = text[end + 1..].chars().next().is_some_and(|n| is(&n));
            if is(&c) || c == '_' && end > from && next_is {
                end += 1;
            } else {
                break;
            }
        }
        end
    };
    for (prefix, radix) in [("0x", 16), ("0b", 2), ("0o", 8)] {
        if text.get(..2).is_some_and(|p| p.eq_ignore_ascii_case(prefix)) {
            let end = digits(2, |c| c.is_ascii_hexdigit());
            let number = i128::from_str_radix(&text[2..end].replace('_', ""), radix);
            return Ok((end, Tok::Int(number.map_err(|_| "the number is too large".to_owned())?)));
        }
    }
    let is_digit = |c: &char| c.is_ascii_digit();
    let mut end = digits(0, is_digit);
    let mut float = false;
    if !after_dot {
        let fraction = text[end..].starts_with('.') && text[end + 1..].starts_with(|c: char| c.is_ascii_digit());
        if fraction {
            end = digits(end + 1, is_digit);
            float = true;
        }
        if text[end..].starts_with(['e', 'E']) {
            let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
            if text[end + 1 + sign..].starts_with(|c: char| c.is_ascii_digit()) {
                end = digits(end + 1 + sign, is_digit);
                float = true;
            }
        }
    }
    let clean = text[..end].replace('_', "");
    let token = if float { clean.parse().map(Tok::Float).ok() } else { clean.parse().map(Tok::Int).ok() };
    Ok((end, token.ok_or("the number is too large")?))
}

/// Python's escapes in a string literal.
pub(super) fn unescape(text: &str) -> Result<String, String> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(c) = chars.next() else { break };
        let length = match c {
            '\n' => continue,
            'a' => Ok('\x07'),
            'b' => Ok('\x08'),
            'f' => Ok('\x0c'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\x0b'),
            '\\' | '\'' | '"' => Ok(c),
            'x' => Err(2),
            'u' => Err(4),
            'U' => Err(8),
            '0'..='7' => {
                let mut number = c as u32 - 48;
                for _ in 0..2 {
                    if let Some(d) = chars.next_if(|d| ('0'..='7').contains(d)) {
                        number = number * 8 + (d as u32 - 48);
                    }
                }
                Ok(char::from_u32(number).unwrap_or('\u{fffd}'))
            }
            other => {
                out.push('\\');
                Ok(other)
            }
        };
        match length {
            Ok(c) => out.push(c),
            Err(length) => {
                let mut number = 0;
                for _ in 0..length {
                    let digit = chars.next_if(char::is_ascii_hexdigit).and_then(|d| d.to_digit(16));
                    number = number * 16 + digit.ok_or("truncated \\xXX escape")?;
                }
                out.push(char::from_u32(number).ok_or("illegal Unicode character")?);
            }
        }
    }
    Ok(out)
}

/// Python's `int(text, base)`.
pub(super) fn parse_int(text: &str, base: u32) -> Option<i128> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixed = |p: &str| digits.get(..2).filter(|d| d.eq_ignore_ascii_case(p)).map(|_| &digits[2..]);
    let (base, digits) = match base {
        0 => match (prefixed("0x"), prefixed("0o"), prefixed("0b")) {
            (Some(d), ..) => (16, d),
            (_, Some(d), _) => (8, d),
            (.., Some(d)) => (2, d),
            _ => (10, digits),
        },
        16 => (16, prefixed("0x").unwrap_or(digits)),
        8 => (8, prefixed("0o").unwrap_or(digits)),
        2 => (2, prefixed("0b").unwrap_or(digits)),
        other => (other, digits),
    };
    if !(2..=36).contains(&base)
        || digits.starts_with(['+', '-', '_'])
        || digits.ends_with('_')
        || digits.contains("__")
    {
        return None;
    }
    let number = i128::from_str_radix(&digits.replace('_', ""), base).ok()?;
    Some(if negative { -number } else { number })
}

/// Python's `float(text)`.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let lower = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    let word = matches!(lower.as_str(), "inf" | "infinity" | "nan");
    let plain = lower.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'+' | b'-' | b'_'));
    if !word && !plain || text.starts_with('_') || text.ends_with('_') || text.contains("__") {
        return None;
    }
    text.replace('_', "").parse().ok()
}
