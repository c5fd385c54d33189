//! Replaces secrets by markers of the same length: texts of the pillar, values under the names that the owner marks, and
//! private keys. A replay treats a marked place of a question or a return as equal to any text of its length, because a
//! module may have the same text from elsewhere.

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use brine_recording::{HostCall, Recording, Span, pack, unpack};
use brine_sandbox_wire::{ByteBuf, HostError, Outcome};
use rmpv::Value;

use crate::kernel::value;

/// The shortest text of the pillar, or of a value under a marked name, that is replaced everywhere. Shorter texts are parts
/// of other words.
const MIN: usize = 4;
/// The same for texts of the pillar that the call was not told: most of them have nothing to do with it.
const MIN_UNTOLD: usize = 6;
/// Upper bound on the different secrets of a call.
const MAX: usize = 100_000;
/// Upper bound on their bytes.
const MAX_BYTES: usize = 8 << 20;

const BEGIN: &[u8] = b"-----BEGIN ";
const PRIVATE: &[u8] = b"PRIVATE KEY-----";
const END: &[u8] = b"-----END ";

/// Replaces the secrets in a recording. `known` are values of the pillar, `names` the patterns of marked names in lower
/// case.
///
/// # Errors
/// The secrets cannot all be found, so the recording must not be kept. The error is one line.
pub(super) fn replace(recording: &mut Recording, known: &[Value], names: &[String]) -> Result<(), String> {
    let mut found = Found { names, secrets: BTreeSet::new() };
    known.iter().for_each(|value| found.texts(value, MIN_UNTOLD));
    for call in &mut recording.calls {
        if is_pillar(call) {
            found.pillar(call)?;
        } else {
            found.within(&call.asked);
            found.within(&call.told);
        }
    }
    found.within(&recording.head.args);
    found.within(&recording.head.kwargs);
    if let Outcome::Returned { value, .. } = &recording.end.outcome {
        found.within(value);
    }
    let secrets: Vec<Vec<u8>> = found.secrets.into_iter().collect();
    if secrets.len() > MAX || secrets.iter().map(Vec::len).sum::<usize>() > MAX_BYTES {
        return Err("there are too many secrets to replace".to_owned());
    }
    let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&secrets);
    let mut markers = Markers { search: search.map_err(|error| error.to_string())?, used: BTreeSet::new() };
    markers.cover(&mut recording.head.args);
    markers.cover(&mut recording.head.kwargs);
    let mut open = Open::default();
    for call in &mut recording.calls {
        call.hidden = markers.cover(&mut call.asked);
        call.hidden.extend(private_keys(&mut call.asked, &mut false));
        markers.cover(&mut call.told);
        private_keys(&mut call.told, open.of(&call.name));
    }
    let end = &mut recording.end;
    match &mut end.outcome {
        Outcome::Returned { value, .. } => {
            end.hidden = markers.cover(value);
            end.hidden.extend(private_keys(value, &mut false));
        }
        Outcome::Failed { message, .. } => {
            let mut bytes = std::mem::take(message).into_bytes();
            end.hidden = markers.cover(&mut bytes);
            end.hidden.extend(private_keys(&mut bytes, &mut false));
            *message = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    recording.head.secrets = u32::try_from(markers.used.len()).unwrap_or(u32::MAX);
    Ok(())
}

/// Whether a call is told values of the pillar: by the interface, or by a function of the module `pillar`.
fn is_pillar(call: &HostCall) -> bool {
    let by_function = || {
        let asked = value::decode(&call.asked).ok();
        let text = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("pillar."));
        asked.is_some_and(|asked| any(&asked, &|name, value| name == Some("function") && text(value)))
    };
    call.name.starts_with("pillar.") || ((call.name == "functions.call" || call.name == "states.call") && by_function())
}

/// Whether a value has an entry that fits, at any depth.
fn any(value: &Value, fits: &dyn Fn(Option<&str>, &Value) -> bool) -> bool {
    match value {
        Value::Map(entries) => entries.iter().any(|(key, value)| fits(key.as_str(), value) || any(value, fits)),
        Value::Array(items) => items.iter().any(|item| any(item, fits)),
        _ => false,
    }
}

/// The secrets of a call.
struct Found<'a> {
    names: &'a [String],
    secrets: BTreeSet<Vec<u8>>,
}

impl Found<'_> {
    fn add(&mut self, text: &[u8], min: usize) {
        if text.len() >= min {
            self.secrets.insert(text.to_vec());
        }
        // A text of several lines may be used line by line.
        if text.contains(&b'\n') {
            let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            self.secrets.extend(lines.filter(|line| line.len() >= 2 * MIN_UNTOLD).map(<[u8]>::to_vec));
        }
    }

    /// Adds all texts of a value; the names of its entries are not secret.
    fn texts(&mut self, value: &Value, min: usize) {
        match value {
            Value::String(text) => self.add(text.as_bytes(), min),
            Value::Binary(bytes) => match inner(bytes) {
                Some(value) => self.texts(&value, min),
                None => self.add(bytes, min),
            },
            Value::Array(items) => items.iter().for_each(|item| self.texts(item, min)),
            Value::Map(entries) => entries.iter().for_each(|(_, value)| self.texts(value, min)),
            _ => {}
        }
    }

    /// Adds what a call is told of the pillar, and replaces it there whatever its length.
    fn pillar(&mut self, call: &mut HostCall) -> Result<(), String> {
        let odd = || "an answer of the pillar cannot be read".to_owned();
        let told: Result<ByteBuf, HostError> = unpack(&call.told).map_err(|_| odd())?;
        let Ok(told) = told else { return Ok(()) };
        let mut told = value::decode(&told).map_err(|_| odd())?;
        self.texts(&told, MIN);
        cover_short(&mut told);
        call.told = ByteBuf::from(pack(&Ok::<_, HostError>(ByteBuf::from(value::encode(&told)))));
        Ok(())
    }

    /// Adds the values under marked names in MessagePack.
    fn within(&mut self, bytes: &[u8]) {
        if let Ok(value) = value::decode(bytes) {
            self.marked(&value);
        }
    }

    fn marked(&mut self, value: &Value) {
        match value {
            Value::Map(entries) => {
                for (name, value) in entries {
                    match name.as_str() {
                        // The values for a pillar of this job alone.
                        Some("pillar") => self.texts(value, MIN),
                        Some(name) if self.is_marked(name) => self.texts(value, MIN),
                        _ => {}
                    }
                    self.marked(value);
                }
            }
            // Variables and headers are pairs.
            Value::Array(items) => {
                if let [Value::String(name), value @ Value::String(_)] = &items[..]
                    && name.as_str().is_some_and(|name| self.is_marked(name))
                {
                    self.texts(value, MIN);
                }
                items.iter().for_each(|item| self.marked(item));
            }
            // Arguments of functions and answers are MessagePack within.
            Value::Binary(bytes) => {
                if let Some(value) = inner(bytes) {
                    self.marked(&value);
                }
            }
            _ => {}
        }
    }

    fn is_marked(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.names.iter().any(|pattern| fits(pattern, &name))
    }
}

/// Returns the array or map of MessagePack in these bytes.
fn inner(bytes: &[u8]) -> Option<Value> {
    let container = bytes.first().is_some_and(|first| matches!(first, 0x80..=0x9f | 0xdc..=0xdf));
    container.then(|| value::decode(bytes).ok()).flatten()
}

/// Whether a name fits a pattern, in which `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
    }
    match last {
        None => rest.is_empty(),
        Some(last) => rest.ends_with(last),
    }
}

/// Replaces the texts that are too short to be found elsewhere.
fn cover_short(value: &mut Value) {
    match value {
        Value::String(text) if text.as_bytes().len() < MIN => {
            *value = Value::from(String::from_utf8_lossy(&marker(0, text.as_bytes().len())).into_owned());
        }
        Value::Array(items) => items.iter_mut().for_each(cover_short),
        Value::Map(entries) => entries.iter_mut().for_each(|(_, value)| cover_short(value)),
        _ => {}
    }
}

/// The marker of this length in place of a secret.
fn marker(number: usize, length: usize) -> Vec<u8> {
    let mut text = format!("<secret {number}>").into_bytes();
    text.resize(length, b'.');
    text
}

struct Markers {
    search: AhoCorasick,
    used: BTreeSet<usize>,
}

impl Markers {
    /// Replaces the secrets in these bytes. Returns where they were.
    fn cover(&mut self, bytes: &mut Vec<u8>) -> Vec<Span> {
        let places: Vec<(usize, Range<usize>)> =
            self.search.find_iter(bytes.as_slice()).map(|found| (found.pattern().as_usize(), found.range())).collect();
        for (number, place) in &places {
            self.used.insert(*number);
            let text = marker(number + 1, place.len());
            bytes[place.clone()].copy_from_slice(&text);
        }
        places.into_iter().map(|(_, place)| span(&place)).collect()
    }
}

fn span(place: &Range<usize>) -> Span {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    (number(place.start), number(place.len()))
}

/// A private key that is read in parts: the function whose next answer goes on with it.
#[derive(Default)]
struct Open {
    name: String,
    open: bool,
}

impl Open {
    fn of(&mut self, name: &str) -> &mut bool {
        if self.name != name {
            (self.name, self.open) = (name.to_owned(), false);
        }
        &mut self.open
    }
}

/// Replaces private keys in PEM. `open` says whether the bytes go on with one, and is set to whether one goes on behind
/// them.
fn private_keys(bytes: &mut [u8], open: &mut bool) -> Vec<Span> {
    let mut places = Vec::new();
    let mut at = if *open { Some(0) } else { begin(bytes, 0) };
    *open = false;
    while let Some(start) = at {
        let end = find(bytes, END, start);
        *open = end.is_none();
        let place = start..end.unwrap_or(bytes.len());
        let text = marker(0, place.len());
        bytes[place.clone()].copy_from_slice(&text);
        places.push(span(&place));
        at = end.and_then(|end| begin(bytes, end));
    }
    places
}

/// Returns where the content of the next private key begins.
fn begin(bytes: &[u8], from: usize) -> Option<usize> {
    let mut from = from;
    while let Some(at) = find(bytes, BEGIN, from) {
        let line = at + BEGIN.len();
        if let Some(end) = find(&bytes[..bytes.len().min(line + 40)], PRIVATE, line) {
            return Some(end + PRIVATE.len());
        }
        from = line;
    }
    None
}

fn find(bytes: &[u8], what: &[u8], from: usize) -> Option<usize> {
    let at = bytes.get(from..)?.windows(what.len()).position(|window| window == what)?;
    Some(from + at)
}
