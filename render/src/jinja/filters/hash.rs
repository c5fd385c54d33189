//! Salt's filters on bytes: digests, base64, random values, sizes.

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed, check};
use super::super::ops;
use crate::data::chance::Source;
use crate::data::hash;
use crate::value::Value;

pub(super) const NAMES: [&str; 19] = [
    "md5",
    "sha1",
    "sha256",
    "sha512",
    "hmac",
    "hmac_compute",
    "base64_encode",
    "base64_decode",
    "uuid",
    "to_bytes",
    "human_to_bytes",
    "mac_str_to_bytes",
    "gen_mac",
    "rand_str",
    "random_hash",
    "random_str",
    "random_sample",
    "random_shuffle",
    "random",
];

/// The namespace of the UUIDs that Salt makes of names.
const NAMESPACE: u128 = 0x9163_3ebf_1c86_5e33_935a_2806_1f4b_480e;

pub(super) fn apply(interp: &mut Interp, name: &str, value: &Value, passed: &Passed) -> Res<Value> {
    check(value)?;
    let size = match value {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    interp.charge(size * 2)?;
    interp.take_steps(size / 8)?;
    Ok(match name {
        "md5" | "sha1" | "sha256" | "sha512" => hash::digest(name, value)?,
        "hmac" => {
            let (key, challenge) = (passed.need(0, "shared_secret", name)?, passed.need(1, "challenge_hmac", name)?);
            hash::verify(value, &key, &challenge)?.into()
        }
        "hmac_compute" => hash::hex(&hash::hmac(value, &passed.need(0, "shared_secret", name)?)?).into(),
        "base64_encode" => hash::encode(value)?,
        "base64_decode" => hash::decode(value)?,
        "to_bytes" => Value::Bytes(hash::bytes(value)?.into()),
        "uuid" => {
            let text = hash::bytes(value)?;
            let named = Value::Bytes([&NAMESPACE.to_be_bytes(), text].concat().into());
            let digest = hash::digest("sha1", &named)?;
            let number = digest.as_str().and_then(|hex| u128::from_str_radix(hex.get(..32)?, 16).ok()).unwrap_or(0);
            let number = number & !(0xf000 << 64) & !(0xc000 << 48) | 5 << 76 | 0x8000 << 48;
            let hex = format!("{number:032x}");
            format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]).into()
        }
        "human_to_bytes" => {
            let text = interp.text(value)?;
            let unit = passed.get(0, "default_unit").unwrap_or_else(|| "B".into());
            let metric = passed.get(1, "handle_metric").is_some_and(|v| v.truthy());
            human(&text, unit.as_str().unwrap_or_default(), metric)?
        }
        "mac_str_to_bytes" => mac(value)?,
        "gen_mac" => {
            let prefix = interp.text(value)?;
            let bytes = random(interp)?.to_be_bytes();
            format!("{prefix}:{:02X}:{:02X}:{:02X}", bytes[0], bytes[1], bytes[2]).into()
        }
        "rand_str" | "random_hash" => {
            let most = ops::integer(value).filter(|most| *most >= 0);
            let most = most.ok_or_else(|| JinjaError::python("an integer of 0 or more is needed"))?;
            let algorithm = passed.get(0, "hash_type").filter(Value::truthy).unwrap_or_else(|| "md5".into());
            let number = i128::from(random(interp)? >> 1) % most.saturating_add(1);
            hash::digest(algorithm.as_str().unwrap_or_default(), &number.to_string().into())?
        }
        "random_str" => {
            let size = ops::integer(value).and_then(|size| usize::try_from(size).ok());
            let size = size.ok_or_else(|| JinjaError::python("negative argument not allowed"))?;
            interp.charge(size.saturating_mul(3))?;
            let mut bytes = Vec::with_capacity(size + 8);
            while bytes.len() < size {
                bytes.extend(random(interp)?.to_be_bytes());
            }
            bytes.truncate(size);
            let text = hash::encode(&Value::Bytes(bytes.into()))?;
            text.as_str().unwrap_or_default().chars().take(size).collect::<String>().into()
        }
        "random" => {
            let items = ops::iterate(interp, value)?;
            if items.is_empty() {
                return Ok(super::super::object::Undefined::value("No random item, sequence was empty."));
            }
            let at = random(interp)? % items.len() as u64;
            items[at as usize].clone()
        }
        _ => sample(interp, name, value, passed)?,
    })
}

/// A number that nobody can know; a host may have none.
fn random(interp: &mut Interp) -> Res<u64> {
    interp.step()?;
    interp.host.random().ok_or_else(|| JinjaError::python("there are no random values here"))
}

fn sample(interp: &mut Interp, name: &str, value: &Value, passed: &Passed) -> Res<Value> {
    let mut items = ops::iterate(interp, value)?;
    let (count, seed) = match name {
        "random_sample" => (passed.need(0, "size", name)?, passed.get(1, "seed")),
        _ => (Value::Int(items.len() as i128), passed.get(0, "seed")),
    };
    let count = ops::integer(&count).and_then(|count| usize::try_from(count).ok()).filter(|n| *n <= items.len());
    let Some(count) = count else {
        return Err(JinjaError::python("Sample larger than population or is negative"));
    };
    if let Some(seed) = seed.filter(|seed| !matches!(seed, Value::None)) {
        let text = crate::data::text(&seed).map_err(|error| JinjaError::python(error.message))?;
        return Ok(Value::list(Source::of_hash(&text).sample(items, count)));
    }
    for at in 0..count {
        let other = at + (random(interp)? % (items.len() - at) as u64) as usize;
        items.swap(at, other);
    }
    items.truncate(count);
    Ok(Value::list(items))
}

/// `10 MiB` as number of bytes; what says no size is 0.
fn human(text: &str, default: &str, metric: bool) -> Res<Value> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = text[end..].trim_start().to_lowercase();
    let unit = if unit.is_empty() { default.to_lowercase() } else { unit };
    let mut chars = unit.chars();
    let power = chars.next().and_then(|c| "bkmgtpezy".find(c));
    let decimal = match (power, chars.as_str()) {
        (Some(1..), "b") => metric,
        (Some(1..), "" | "ib") | (Some(0), "") => false,
        _ => return Ok(Value::Int(0)),
    };
    let power = u32::try_from(power.unwrap_or(0)).unwrap_or(0);
    let scale: i128 = if decimal { 10i128.pow(power * 3) } else { 1 << (power * 10) };
    let number = match text[..end].parse::<i128>() {
        Ok(number) => number.checked_mul(scale),
        Err(_) => text[..end].parse::<f64>().ok().map(|number| (number * scale as f64) as i128).or(Some(0)),
    };
    number.map(Value::Int).ok_or_else(|| JinjaError::limit("an integer of more than 127 bits"))
}

fn mac(value: &Value) -> Res<Value> {
    let text = super::text_arg(value)?;
    let digits: String = match text.chars().count() {
        12 => text.to_owned(),
        17 => text.replace(text.chars().nth(2).unwrap_or(':'), ""),
        _ => return Err(JinjaError::python("Invalid MAC address")),
    };
    let bytes: Option<Vec<u8>> =
        (0..6).map(|at| u8::from_str_radix(digits.get(at * 2..at * 2 + 2)?, 16).ok()).collect();
    match bytes {
        Some(bytes) => Ok(Value::Bytes(bytes.into())),
        None => Err(JinjaError::python(format!(
            "invalid literal for int() with base 16: {}",
            Value::from(digits.chars().take(2).collect::<String>()).short_repr()
        ))),
    }
}
