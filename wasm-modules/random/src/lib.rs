//! The module `random`: random numbers and texts, and hashes. The functions and their documentation are in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "random",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/log@1.0.0": brine_guest::host::log,
    },
    generate_all,
});

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_accounts::hash::{self, Algorithm};
use brine_guest::Value;
use brine_guest::hash::Hash;
use brine_guest::host::grains;
use brine_render::data::chance::Source;
use wasi::random::random::get_random_u64;

/// The longest random text, in characters.
const MAX_LENGTH: usize = 1 << 20;

const LOWERCASE: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPERCASE: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";
const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
const WHITESPACE: &str = " \t\n\r\u{b}\u{c}";

struct Module;

/// What a seed chooses by; the host's chance without one.
fn source(seed: Option<&Value>) -> Result<Source, String> {
    match seed {
        None | Some(Value::None) => Ok(Source::Host(get_random_u64)),
        Some(Value::Text(text)) => Ok(Source::of_text(text)),
        Some(Value::Int(integer)) => Ok(Source::of_integer(*integer)),
        Some(Value::Bool(flag)) => Ok(Source::of_integer(i64::from(*flag))),
        Some(_) => Err("a seed is a text or an integer".to_owned()),
    }
}

fn seeded(seed: Option<Data>) -> Result<Source, String> {
    source(seed.map(|seed| seed.value()).transpose()?.as_ref())
}

/// The bytes of a value that can be hashed or encoded.
fn bytes(value: &Data) -> Result<Vec<u8>, String> {
    match value.value()? {
        Value::Text(text) => Ok(text.into_bytes()),
        Value::Bytes(bytes) => Ok(bytes),
        other => Err(format!("it is to be a text, not {}", other.to_text())),
    }
}

/// So many of these characters.
fn text(length: usize, chars: &[char]) -> Result<String, String> {
    if length > MAX_LENGTH {
        return Err(format!("a text of {length} characters is longer than the longest, {MAX_LENGTH}"));
    }
    if chars.is_empty() {
        return Err("there are no characters to choose from".to_owned());
    }
    let mut source = Source::Host(get_random_u64);
    let choose = |_| usize::try_from(source.below(chars.len() as u64)).map_or(chars[0], |place| chars[place]);
    Ok((0..length).map(choose).collect())
}

fn length(length: Option<Data>) -> Result<usize, String> {
    let Some(length) = length.map(|length| length.value()).transpose()? else { return Ok(20) };
    let number = match &length {
        Value::Int(number) => Some(*number),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    // As in Salt, a negative number is an empty text.
    let number = number.ok_or_else(|| format!("the length is a number, not {}", length.to_text()))?;
    Ok(usize::try_from(number.max(0)).unwrap_or(usize::MAX))
}

fn items(value: &Data) -> Result<Vec<Value>, String> {
    match value.value()? {
        Value::List(items) => Ok(items),
        _ => Err("the value is to be a list".to_owned()),
    }
}

fn chosen(items: Vec<Value>, size: usize, seed: Option<Data>) -> Result<Vec<Data>, String> {
    if size > items.len() {
        // Python's words.
        return Err("Sample larger than population or is negative".to_owned());
    }
    let mut source = match seed.map(|seed| seed.value()).transpose()? {
        None | Some(Value::None) => Source::Host(get_random_u64),
        // As in Salt, whose seed is the hash of what is given.
        Some(seed) => Source::of_hash(&seed.to_text()),
    };
    Ok(source.sample(items, size).into_iter().map(Data::from).collect())
}

impl Guest for Module {
    fn hash(value: Data, algorithm: Option<String>) -> Result<String, String> {
        let name = algorithm.as_deref().unwrap_or("sha512");
        let mut hash = Hash::new(name).ok_or("You must specify a valid algorithm.")?;
        hash.update(&bytes(&value)?);
        Ok(hash.hex())
    }

    fn str_encode(value: Data, encoder: Option<String>) -> Result<String, String> {
        match encoder.as_deref() {
            None | Some("base64") => Ok(STANDARD.encode(bytes(&value)?)),
            Some(_) => Err("You must specify a valid encoder".to_owned()),
        }
    }

    fn get_str(
        length: Option<Data>,
        chars: Option<String>,
        lowercase: Option<bool>,
        uppercase: Option<bool>,
        digits: Option<bool>,
        punctuation: Option<bool>,
        whitespace: Option<bool>,
        printable: Option<bool>,
    ) -> Result<String, String> {
        let all = printable == Some(true);
        let classes = [
            (all || lowercase != Some(false), LOWERCASE),
            (all || uppercase != Some(false), UPPERCASE),
            (all || digits != Some(false), DIGITS),
            (all || punctuation != Some(false), PUNCTUATION),
            (all || whitespace == Some(true), WHITESPACE),
        ];
        let of_classes = || classes.iter().filter(|(wanted, _)| *wanted).map(|(_, class)| *class).collect();
        // As in Salt, `printable` comes before what is named.
        let chars = chars.filter(|chars| !all && !chars.is_empty()).unwrap_or_else(of_classes);
        text(self::length(length)?, &chars.chars().collect::<Vec<_>>())
    }

    fn shadow_hash(
        crypt_salt: Option<String>,
        password: Option<String>,
        algorithm: Option<String>,
    ) -> Result<String, String> {
        let algorithm = Algorithm::named(algorithm.as_deref().unwrap_or("sha512"))?;
        let usual: Vec<char> = [LOWERCASE, UPPERCASE, DIGITS].concat().chars().collect();
        let password = password.filter(|password| !password.is_empty()).map_or_else(|| text(20, &usual), Ok)?;
        let salt = crypt_salt.filter(|salt| !salt.is_empty()).unwrap_or_else(|| {
            let mut random = [0; 16];
            random[..8].copy_from_slice(&get_random_u64().to_le_bytes());
            random[8..].copy_from_slice(&get_random_u64().to_le_bytes());
            hash::salt(random)
        });
        hash::hash(&password, &salt, algorithm)
    }

    fn rand_int(start: Option<i64>, end: Option<i64>, seed: Option<Data>) -> Result<i64, String> {
        let (start, end) = (start.unwrap_or(1), end.unwrap_or(10));
        let count = end.checked_sub(start).and_then(|count| count.checked_add(1));
        let count = count.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > 0);
        let count = count.ok_or_else(|| format!("there is no number from {start} to {end}"))?;
        // Less than the distance of the two.
        Ok(start + i64::try_from(seeded(seed)?.below(count)).unwrap_or_default())
    }

    fn seed(range: Option<i64>, hash: Option<Data>) -> Result<i64, String> {
        let range = u64::try_from(range.unwrap_or(10)).ok().filter(|range| *range > 0);
        let range = range.ok_or("the range is to be more than 0")?;
        let given = hash.map(|hash| hash.value()).transpose()?.filter(|hash| *hash != Value::None);
        let hash = match given {
            Some(hash) => hash,
            None => grains::get("id", None).map_or(Ok(Value::None), |id| id.value())?,
        };
        Ok(i64::try_from(source(Some(&hash))?.below(range)).unwrap_or_default())
    }

    fn sample(value: Data, size: u32, seed: Option<Data>) -> Result<Vec<Data>, String> {
        chosen(items(&value)?, size as usize, seed)
    }

    fn shuffle(value: Data, seed: Option<Data>) -> Result<Vec<Data>, String> {
        let items = items(&value)?;
        let size = items.len();
        chosen(items, size, seed)
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
