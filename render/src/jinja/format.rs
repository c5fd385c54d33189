//! `text % values` and `text.format(…)`.

use super::error::{JinjaError, Res};
use super::interp::{Interp, Passed};
use super::{attribute, ops};
use crate::value::Value;

/// Upper bound on a width or precision.
const MAX_WIDTH: usize = 100_000;

struct Spec {
    fill: char,
    align: Option<char>,
    sign: char,
    alternate: bool,
    width: usize,
    comma: Option<char>,
    precision: Option<usize>,
    kind: char,
}

fn bounded(text: &str) -> Res<usize> {
    match text.parse::<usize>() {
        Ok(n) if n <= MAX_WIDTH => Ok(n),
        _ => Err(JinjaError::limit(format!("a width of more than {MAX_WIDTH}"))),
    }
}

fn pad(interp: &mut Interp, text: &str, spec: &Spec, default: char) -> Res<String> {
    let length = text.chars().count();
    let missing = spec.width.saturating_sub(length);
    interp.charge(missing + text.len())?;
    let fill = |count: usize| spec.fill.to_string().repeat(count);
    Ok(match spec.align.unwrap_or(default) {
        '<' => format!("{text}{}", fill(missing)),
        '^' => format!("{}{text}{}", fill(missing / 2), fill(missing - missing / 2)),
        '=' => {
            let sign = usize::from(text.starts_with(['-', '+', ' ']));
            format!("{}{}{}", &text[..sign], fill(missing), &text[sign..])
        }
        _ => format!("{}{text}", fill(missing)),
    })
}

fn group(digits: &str, mark: char) -> String {
    let (whole, rest) = digits.split_at(digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()));
    let mut out = String::new();
    for (at, c) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(mark);
        }
        out.push(c);
    }
    out + rest
}

fn float_digits(n: f64, kind: char, precision: usize) -> String {
    match kind {
        'e' | 'E' => {
            let text = format!("{n:.precision$e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let exponent: i32 = exponent.parse().unwrap_or_default();
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}{kind}{sign}{:02}", exponent.abs())
        }
        'g' | 'G' => {
            let precision = precision.max(1);
            let text = format!("{n:.*e}", precision - 1);
            let exponent: i32 = text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or_default();
            let trim = |text: String| match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            };
            if n != 0.0 && (exponent < -4 || exponent >= precision as i32) {
                let mantissa = trim(text.split('e').next().unwrap_or_default().to_owned());
                let sign = if exponent < 0 { '-' } else { '+' };
                return format!("{mantissa}e{sign}{:02}", exponent.abs());
            }
            trim(format!("{n:.*}", (precision as i32 - 1 - exponent).max(0) as usize))
        }
        _ => format!("{n:.precision$}"),
    }
}

fn format_number(interp: &mut Interp, value: &Value, spec: &Spec) -> Res<String> {
    let is_float = matches!(spec.kind, 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%');
    let integer = ops::integer(value);
    let (negative, mut digits) = match (integer, value) {
        (Some(n), _) if !is_float => {
            let size = n.unsigned_abs();
            let (prefix, digits) = match spec.kind {
                'x' => ("0x", format!("{size:x}")),
                'X' => ("0X", format!("{size:X}")),
                'o' => ("0o", format!("{size:o}")),
                'b' => ("0b", format!("{size:b}")),
                'c' => return Ok(u32::try_from(n).ok().and_then(char::from_u32).unwrap_or_default().to_string()),
                _ => ("", size.to_string()),
            };
            (n < 0, if spec.alternate { format!("{prefix}{digits}") } else { digits })
        }
        _ => {
            let n = match value {
                Value::Float(n) => *n,
                _ => integer.unwrap_or_default() as f64,
            };
            let size = n.abs();
            let digits = match spec.kind {
                _ if !size.is_finite() => crate::value::python_float(size),
                '%' => format!("{:.*}%", spec.precision.unwrap_or(6), size * 100.0),
                '\0' if spec.precision.is_none() => crate::value::python_float(size),
                '\0' | 'n' => float_digits(size, 'g', spec.precision.unwrap_or(6)),
                kind => float_digits(size, kind, spec.precision.unwrap_or(6)),
            };
            (n.is_sign_negative(), digits)
        }
    };
    if let Some(mark) = spec.comma {
        digits = group(&digits, mark);
    }
    let sign = match (negative, spec.sign) {
        (true, _) => "-",
        (false, '+') => "+",
        (false, ' ') => " ",
        _ => "",
    };
    pad(interp, &format!("{sign}{digits}"), spec, '>')
}

fn parse_spec(text: &str) -> Res<Spec> {
    let mut spec = Spec {
        fill: ' ',
        align: None,
        sign: '-',
        alternate: false,
        width: 0,
        comma: None,
        precision: None,
        kind: '\0',
    };
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    let is_align = |c: Option<&char>| c.is_some_and(|c| "<>^=".contains(*c));
    if is_align(chars.get(1)) {
        (spec.fill, spec.align, at) = (chars[0], Some(chars[1]), 2);
    } else if is_align(chars.first()) {
        (spec.align, at) = (Some(chars[0]), 1);
    }
    if let Some(sign) = chars.get(at).filter(|c| "+- ".contains(**c)) {
        (spec.sign, at) = (*sign, at + 1);
    }
    if chars.get(at) == Some(&'#') {
        (spec.alternate, at) = (true, at + 1);
    }
    if chars.get(at) == Some(&'0') {
        if spec.align.is_none() {
            (spec.fill, spec.align) = ('0', Some('='));
        }
        at += 1;
    }
    let digits = |at: &mut usize| {
        let start = *at;
        while chars.get(*at).is_some_and(char::is_ascii_digit) {
            *at += 1;
        }
        chars[start..*at].iter().collect::<String>()
    };
    let width = digits(&mut at);
    spec.width = if width.is_empty() { 0 } else { bounded(&width)? };
    if let Some(mark) = chars.get(at).filter(|c| ",_".contains(**c)) {
        (spec.comma, at) = (Some(*mark), at + 1);
    }
    if chars.get(at) == Some(&'.') {
        at += 1;
        spec.precision = Some(bounded(&digits(&mut at))?);
    }
    if let Some(kind) = chars.get(at) {
        (spec.kind, at) = (*kind, at + 1);
    }
    if at < chars.len() {
        return Err(JinjaError::python("Invalid format specifier"));
    }
    Ok(spec)
}

/// Python's `format(value, spec)`.
pub(super) fn format_value(interp: &mut Interp, value: &Value, spec: &str) -> Res<String> {
    if spec.is_empty() {
        return interp.text(value).map(|text| text.to_string());
    }
    let parsed = parse_spec(spec)?;
    let unknown = || {
        let name = value.type_name();
        Err(JinjaError::python(format!("Unknown format code '{}' for object of type '{name}'", parsed.kind)))
    };
    match value {
        Value::Str(text) => {
            if !matches!(parsed.kind, 's' | '\0') {
                return unknown();
            }
            let text: String = text.chars().take(parsed.precision.unwrap_or(usize::MAX)).collect();
            pad(interp, &text, &parsed, '<')
        }
        Value::Int(_) | Value::Bool(_) | Value::Float(_) => {
            let known = match value {
                Value::Float(_) => "eEfFgGn%\0",
                _ => "bcdoxXneEfFgG%\0",
            };
            if !known.contains(parsed.kind) {
                return unknown();
            }
            format_number(interp, value, &parsed)
        }
        other => {
            let name = other.type_name();
            Err(JinjaError::python(format!("unsupported format string passed to {name}.__format__")))
        }
    }
}

/// `format % values`
pub(super) fn percent(interp: &mut Interp, format: &str, values: &Value) -> Res<String> {
    let all: Vec<Value> = match values {
        Value::Tuple(items) => items.to_vec(),
        other => vec![other.clone()],
    };
    let is_mapping = matches!(values, Value::Dict(_) | Value::List(_));
    let (mut out, mut next, mut named) = (String::new(), 0, false);
    let mut rest = format;
    while let Some(found) = rest.find('%') {
        out.push_str(&rest[..found]);
        rest = &rest[found + 1..];
        if let Some(tail) = rest.strip_prefix('%') {
            out.push('%');
            rest = tail;
            continue;
        }
        let mut value = None;
        if let Some(tail) = rest.strip_prefix('(') {
            let Some((name, tail)) = tail.split_once(')') else {
                return Err(JinjaError::python("incomplete format key"));
            };
            let Value::Dict(dict) = values else { return Err(JinjaError::python("format requires a mapping")) };
            value = Some(dict.get(name).ok_or_else(|| JinjaError::python(format!("'{name}'")))?);
            (rest, named) = (tail, true);
        }
        let end = rest
            .find(|c: char| !"-+ #0123456789.*lh".contains(c))
            .ok_or_else(|| JinjaError::python("incomplete format"))?;
        let flags = &rest[..end];
        let kind = rest[end..].chars().next().unwrap_or('s');
        rest = &rest[end + kind.len_utf8()..];
        let value = match value {
            Some(value) => value,
            None => {
                let value = all.get(next).cloned();
                next += 1;
                value.ok_or_else(|| JinjaError::python("not enough arguments for format string"))?
            }
        };
        let leading = flags.len() - flags.trim_start_matches(['-', '+', ' ', '#', '0']).len();
        let (marks, sizes) = flags.split_at(leading);
        let sizes = sizes.trim_end_matches(['l', 'h']);
        let (width, precision) = match sizes.split_once('.') {
            Some((width, precision)) => (width, Some(if precision.is_empty() { 0 } else { bounded(precision)? })),
            None => (sizes, None),
        };
        let has = |mark| marks.contains(mark);
        let zero = has('0') && !has('-') && !matches!(kind, 's' | 'r' | 'a' | 'c');
        let mut spec = Spec {
            fill: if zero { '0' } else { ' ' },
            align: Some(if has('-') {
                '<'
            } else if zero {
                '='
            } else {
                '>'
            }),
            sign: if has('+') {
                '+'
            } else if has(' ') {
                ' '
            } else {
                '-'
            },
            alternate: has('#'),
            width: if width.is_empty() { 0 } else { bounded(width)? },
            comma: None,
            precision,
            kind,
        };
        let text = match kind {
            's' | 'r' | 'a' => {
                let text = match kind {
                    's' => interp.text(&value)?.to_string(),
                    _ => interp.written(|out| value.write_repr(out))?,
                };
                let text: String = text.chars().take(precision.unwrap_or(usize::MAX)).collect();
                pad(interp, &text, &spec, '>')?
            }
            'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'c' => {
                let mut value = value;
                if matches!(kind, 'd' | 'i' | 'u') {
                    spec.kind = 'd';
                    if let Value::Float(n) = value {
                        value = Value::Int(n.trunc() as i128);
                    }
                }
                if ops::integer(&value).is_none() && !matches!(value, Value::Float(_)) {
                    super::interp::check(&value)?;
                    let name = value.type_name();
                    return Err(JinjaError::python(match kind {
                        'd' | 'i' | 'u' => format!("%{kind} format: a real number is required, not {name}"),
                        'x' | 'X' | 'o' => format!("%{kind} format: an integer is required, not {name}"),
                        _ => format!("must be real number, not {name}"),
                    }));
                }
                format_number(interp, &value, &spec)?
            }
            other => {
                let message = format!(
                    "unsupported format character '{other}' ({:#x}) at index {}",
                    other as u32,
                    format.len() - rest.len() - 1
                );
                return Err(JinjaError::python(message));
            }
        };
        out.push_str(&text);
    }
    out.push_str(rest);
    if next < all.len() && !named && !is_mapping {
        return Err(JinjaError::python("not all arguments converted during string formatting"));
    }
    interp.charge(out.len())?;
    Ok(out)
}

/// `text.format(…)`
pub(super) fn str_format(interp: &mut Interp, format: &str, passed: &Passed) -> Res<String> {
    let (mut out, mut next) = (String::new(), 0);
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '{' && chars.next_if_eq(&'{').is_some()
            || c == '}' && chars.next_if_eq(&'}').is_some()
            || !"{}".contains(c)
        {
            out.push(c);
            continue;
        }
        if c == '}' {
            return Err(JinjaError::python("Single '}' encountered in format string"));
        }
        let (mut field, mut depth) = (String::new(), 1);
        for c in chars.by_ref() {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            if depth == 0 {
                break;
            }
            field.push(c);
        }
        if depth > 0 {
            return Err(JinjaError::python(match field.is_empty() {
                true => "Single '{' encountered in format string",
                false => "expected '}' before end of string",
            }));
        }
        let (name, spec) = field.split_once(':').unwrap_or((&field, ""));
        let (name, conversion) = name.split_once('!').map_or((name, ""), |(name, c)| (name, c));
        let value = field_value(interp, name, passed, &mut next)?;
        let mut spec = spec.to_owned();
        if spec.contains('{') {
            let inner = spec.find('{').unwrap_or_default();
            let end = spec.find('}').unwrap_or(spec.len() - 1);
            let value = field_value(interp, &spec[inner + 1..end], passed, &mut next)?;
            let text = interp.text(&value)?;
            spec.replace_range(inner..=end, &text);
        }
        let value = match conversion {
            "r" | "a" => Value::str(interp.written(|out| value.write_repr(out))?),
            "s" => Value::Str(interp.text(&value)?),
            _ => value,
        };
        super::interp::check(&value)?;
        out.push_str(&format_value(interp, &value, &spec)?);
    }
    interp.charge(out.len())?;
    Ok(out)
}

fn field_value(interp: &mut Interp, name: &str, passed: &Passed, next: &mut usize) -> Res<Value> {
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (first, mut path) = name.split_at(end);
    let index = if first.is_empty() {
        *next += 1;
        Some(*next - 1)
    } else {
        first.parse().ok()
    };
    let mut value = match index {
        Some(at) => passed.positional.get(at).cloned().ok_or_else(|| JinjaError::python("tuple index out of range"))?,
        None => passed.named(first).cloned().ok_or_else(|| JinjaError::python(format!("'{first}'")))?,
    };
    while !path.is_empty() {
        if let Some(tail) = path.strip_prefix('[') {
            let (key, tail) = tail.split_once(']').ok_or_else(|| JinjaError::python("Missing ']' in format string"))?;
            let key = key.parse().map_or_else(|_| Value::str(key), Value::Int);
            (value, path) = (attribute::get_item(interp, &value, &key)?, tail);
        } else {
            let tail = path.trim_start_matches('.');
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            (value, path) = (attribute::get_attribute(interp, &value, &tail[..end])?, &tail[end..]);
        }
    }
    Ok(value)
}
