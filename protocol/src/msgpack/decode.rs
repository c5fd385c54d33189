//! The decoder with its limits, and decoding of parts of a value.

use crate::value::Value;

/// Limits on decoding. A [`Value`] takes 40 bytes, while the smallest item takes one byte on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole message.
    pub max_bytes: usize,
    /// Nested lists and maps.
    pub max_depth: usize,
    /// Values in the whole message, keys included.
    pub max_items: usize,
}

impl Limits {
    /// For a peer that has not proved its identity: an `_auth` request has some 1.3 KB, and autosign grains.
    pub const UNAUTHENTICATED: Self = Self { max_bytes: 64 << 10, max_depth: 16, max_items: 4 << 10 };
    /// For a request of an accepted minion, or a reply to it: job returns and file chunks. Salt's own limit is 100 MB.
    pub const REQUEST: Self = Self { max_bytes: 128 << 20, max_depth: 256, max_items: 2 << 20 };
    /// For an envelope on 4506 from any sender: its load is one byte string, or a clear load with a long target list.
    /// The transport bounds the bytes until the sender is known; these limits bound the decoded value.
    pub const ENVELOPE: Self = Self { max_bytes: 128 << 20, max_depth: 64, max_items: 128 << 10 };
    /// A publication: a load with a long target list.
    pub const PUBLICATION: Self = Self { max_bytes: 32 << 20, max_depth: 256, max_items: 1 << 20 };
    /// For an event on the local bus; its sender bounds it with `max_event_size`.
    pub const EVENT: Self = Self { max_bytes: 128 << 20, max_depth: 256, max_items: 2 << 20 };
    /// For a file that this program wrote itself.
    pub const DISK: Self = Self::EVENT;
}

/// Why bytes are not a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The message ended within a value.
    #[error("the message ends within a value")]
    Truncated,
    /// Bytes follow the value.
    #[error("{0} bytes follow the value")]
    Trailing(usize),
    /// The byte 0xc1, which MessagePack does not use.
    #[error("0xc1 is not a MessagePack code")]
    Reserved,
    /// A limit is exceeded.
    #[error("the message has more than {limit} {what}")]
    TooMuch {
        /// Bytes, levels or items.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// Decodes one value. Byte strings that are UTF-8 become text, whatever type they were sent as.
///
/// # Errors
/// When the bytes are not exactly one value within the limits.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Value, DecodeError> {
    read_whole(bytes, limits, Strings::TextIfUtf8, |decoder| decoder.value(limits.max_depth))
}

/// Decodes one value. Every byte string, also as a key, becomes [`Value::Binary`] (as Salt does for `_serve_file`).
///
/// # Errors
/// As [`decode`].
pub fn decode_raw(bytes: &[u8], limits: &Limits) -> Result<Value, DecodeError> {
    read_whole(bytes, limits, Strings::Bytes, |decoder| decoder.value(limits.max_depth))
}

/// Decodes one disk-flavour value: text stays text (invalid UTF-8 becomes bytes) and bytes stay bytes.
///
/// # Errors
/// As [`decode`].
pub fn decode_disk(bytes: &[u8], limits: &Limits) -> Result<Value, DecodeError> {
    read_whole(bytes, limits, Strings::AsSent, |decoder| decoder.value(limits.max_depth))
}

/// Decodes the first disk-flavour value and returns its length in bytes, for streams of values.
///
/// # Errors
/// As [`decode`], but bytes may follow; [`DecodeError::Truncated`] means that more bytes are needed.
pub fn decode_prefix(bytes: &[u8], limits: &Limits) -> Result<(Value, usize), DecodeError> {
    let mut decoder = Decoder::new(bytes, limits, Strings::AsSent);
    let value = decoder.value(limits.max_depth)?;
    Ok((value, decoder.at))
}

/// Decodes the entries of a map whose keys are wanted, and skips the rest, of which only the structure is checked. Byte
/// strings that are UTF-8 become text.
///
/// # Errors
/// As [`decode`]. A value that is not a map decodes to nil.
pub fn decode_entries(bytes: &[u8], limits: &Limits, wanted: &dyn Fn(&str) -> bool) -> Result<Value, DecodeError> {
    let pick = |way: &[&str]| if way.last().is_some_and(|key| wanted(key)) { Pick::Whole } else { Pick::Skip };
    decode_picked(bytes, limits, &pick)
}

/// How [`decode_picked`] treats the entry of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The entry is left out.
    Skip,
    /// The entry is decoded with its whole content.
    Whole,
    /// The entry is decoded, but a list or a map becomes an empty one.
    Scalar,
    /// If the entry is a map, its own entries are picked; anything else becomes nil.
    Within,
}

/// Decodes the entries of a map, and of maps in it, that `pick` selects by their path of keys, and skips the rest.
/// Skipped values take no memory, however many there are. Byte strings that are UTF-8 become text.
///
/// # Errors
/// As [`decode`]. A value that is not a map decodes to nil.
pub fn decode_picked(bytes: &[u8], limits: &Limits, pick: &dyn Fn(&[&str]) -> Pick) -> Result<Value, DecodeError> {
    read_whole(bytes, limits, Strings::TextIfUtf8, |decoder| decoder.picked(&mut Vec::new(), limits.max_depth, pick))
}

/// The conversion of byte strings.
#[derive(Clone, Copy)]
enum Strings {
    TextIfUtf8,
    Bytes,
    AsSent,
}

/// Reads one value that must take all bytes.
fn read_whole<'a>(
    bytes: &'a [u8],
    limits: &'a Limits,
    strings: Strings,
    read: impl FnOnce(&mut Decoder<'a>) -> Result<Value, DecodeError>,
) -> Result<Value, DecodeError> {
    if bytes.len() > limits.max_bytes {
        return Err(DecodeError::TooMuch { what: "bytes", limit: limits.max_bytes });
    }
    let mut decoder = Decoder::new(bytes, limits, strings);
    let value = read(&mut decoder)?;
    match bytes.len() - decoder.at {
        0 => Ok(value),
        more => Err(DecodeError::Trailing(more)),
    }
}

struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    items_left: usize,
    limits: &'a Limits,
    strings: Strings,
}

impl<'a> Decoder<'a> {
    const fn new(bytes: &'a [u8], limits: &'a Limits, strings: Strings) -> Self {
        Self { bytes, at: 0, items_left: limits.max_items, limits, strings }
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..n)).ok_or(DecodeError::Truncated)?;
        self.at += n;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut number = [0; N];
        number.copy_from_slice(self.take(N)?);
        Ok(number)
    }

    fn u8(&mut self) -> Result<usize, DecodeError> {
        self.number().map(|[n]| usize::from(n))
    }

    fn u16(&mut self) -> Result<usize, DecodeError> {
        self.number().map(|n| usize::from(u16::from_be_bytes(n)))
    }

    fn u32(&mut self) -> Result<usize, DecodeError> {
        // A message of such a length cannot have arrived either.
        self.number().map(|n| usize::try_from(u32::from_be_bytes(n)).unwrap_or(usize::MAX))
    }

    fn value(&mut self, depth_left: usize) -> Result<Value, DecodeError> {
        let [code] = self.number()?;
        Ok(match code {
            0x00..=0x7f => Value::from(code),
            0x80..=0x8f => self.map(usize::from(code & 0x0f), depth_left)?,
            0x90..=0x9f => self.array(usize::from(code & 0x0f), depth_left)?,
            0xa0..=0xbf => self.text(usize::from(code & 0x1f))?,
            0xc0 => Value::Nil,
            0xc1 => return Err(DecodeError::Reserved),
            0xc2 => Value::Boolean(false),
            0xc3 => Value::Boolean(true),
            0xc4 => self.u8().and_then(|n| self.binary(n))?,
            0xc5 => self.u16().and_then(|n| self.binary(n))?,
            0xc6 => self.u32().and_then(|n| self.binary(n))?,
            0xc7 => self.u8().and_then(|n| self.ext(n))?,
            0xc8 => self.u16().and_then(|n| self.ext(n))?,
            0xc9 => self.u32().and_then(|n| self.ext(n))?,
            // Python has one float type; a float32 is encoded as float64 again.
            0xca => Value::F64(f64::from(f32::from_be_bytes(self.number()?))),
            0xcb => Value::F64(f64::from_be_bytes(self.number()?)),
            0xcc => Value::from(u8::from_be_bytes(self.number()?)),
            0xcd => Value::from(u16::from_be_bytes(self.number()?)),
            0xce => Value::from(u32::from_be_bytes(self.number()?)),
            0xcf => Value::from(u64::from_be_bytes(self.number()?)),
            0xd0 => Value::from(i8::from_be_bytes(self.number()?)),
            0xd1 => Value::from(i16::from_be_bytes(self.number()?)),
            0xd2 => Value::from(i32::from_be_bytes(self.number()?)),
            0xd3 => Value::from(i64::from_be_bytes(self.number()?)),
            0xd4..=0xd8 => self.ext(1 << (code - 0xd4))?,
            0xd9 => self.u8().and_then(|n| self.text(n))?,
            0xda => self.u16().and_then(|n| self.text(n))?,
            0xdb => self.u32().and_then(|n| self.text(n))?,
            0xdc => self.u16().and_then(|n| self.array(n, depth_left))?,
            0xdd => self.u32().and_then(|n| self.array(n, depth_left))?,
            0xde => self.u16().and_then(|n| self.map(n, depth_left))?,
            0xdf => self.u32().and_then(|n| self.map(n, depth_left))?,
            0xe0..=0xff => Value::from(i8::from_be_bytes([code])),
        })
    }

    /// Reads the next value and keeps the picked entries.
    fn picked(
        &mut self,
        way: &mut Vec<&'a str>,
        depth_left: usize,
        pick: &dyn Fn(&[&str]) -> Pick,
    ) -> Result<Value, DecodeError> {
        let start = self.at;
        let [code] = self.number()?;
        let len = match code {
            0x80..=0x8f => usize::from(code & 0x0f),
            0xde => self.u16()?,
            0xdf => self.u32()?,
            _ => {
                self.at = start;
                self.skip(depth_left)?;
                return Ok(Value::Nil);
            }
        };
        let deeper = self.open(len.saturating_mul(2), depth_left)?;
        let mut entries = Vec::new();
        for _ in 0..len {
            let Some(key) = self.key(deeper)? else {
                self.skip(deeper)?;
                continue;
            };
            way.push(key);
            match pick(way) {
                Pick::Skip => self.skip(deeper)?,
                Pick::Whole => entries.push((Value::from(key), self.value(deeper)?)),
                Pick::Scalar => entries.push((Value::from(key), self.scalar(deeper)?)),
                Pick::Within => entries.push((Value::from(key), self.picked(way, deeper, pick)?)),
            }
            way.pop();
        }
        Ok(Value::Map(entries))
    }

    /// Reads the next key; none if it is not text.
    fn key(&mut self, depth_left: usize) -> Result<Option<&'a str>, DecodeError> {
        let start = self.at;
        let [code] = self.number()?;
        let len = match code {
            0xa0..=0xbf => usize::from(code & 0x1f),
            0xc4 | 0xd9 => self.u8()?,
            0xc5 | 0xda => self.u16()?,
            0xc6 | 0xdb => self.u32()?,
            _ => {
                self.at = start;
                return self.skip(depth_left).map(|()| None);
            }
        };
        self.take(len).map(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// Reads a scalar; a list or map becomes an empty one.
    fn scalar(&mut self, depth_left: usize) -> Result<Value, DecodeError> {
        let stands_for = match self.bytes.get(self.at) {
            Some(0x80..=0x8f | 0xde | 0xdf) => Value::Map(Vec::new()),
            Some(0x90..=0x9f | 0xdc | 0xdd) => Value::Array(Vec::new()),
            _ => return self.value(depth_left),
        };
        self.skip(depth_left)?;
        Ok(stands_for)
    }

    /// Skips a value within the same limits.
    fn skip(&mut self, depth_left: usize) -> Result<(), DecodeError> {
        let [code] = self.number()?;
        let bytes = match code {
            0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => 0,
            0x80..=0x8f => return self.skip_items(2 * usize::from(code & 0x0f), depth_left),
            0x90..=0x9f => return self.skip_items(usize::from(code & 0x0f), depth_left),
            0xdc => return self.u16().and_then(|n| self.skip_items(n, depth_left)),
            0xdd => return self.u32().and_then(|n| self.skip_items(n, depth_left)),
            0xde => return self.u16().and_then(|n| self.skip_items(2 * n, depth_left)),
            0xdf => return self.u32().and_then(|n| self.skip_items(n.saturating_mul(2), depth_left)),
            0xa0..=0xbf => usize::from(code & 0x1f),
            0xc1 => return Err(DecodeError::Reserved),
            0xc4 | 0xd9 => self.u8()?,
            0xc5 | 0xda => self.u16()?,
            0xc6 | 0xdb => self.u32()?,
            0xc7 => self.u8()?.saturating_add(1),
            0xc8 => self.u16()?.saturating_add(1),
            0xc9 => self.u32()?.saturating_add(1),
            0xcc | 0xd0 => 1,
            0xcd | 0xd1 => 2,
            0xca | 0xce | 0xd2 => 4,
            0xcb | 0xcf | 0xd3 => 8,
            0xd4..=0xd8 => 1 + (1 << (code - 0xd4)),
        };
        self.take(bytes).map(|_| ())
    }

    fn skip_items(&mut self, items: usize, depth_left: usize) -> Result<(), DecodeError> {
        let deeper = self.open(items, depth_left)?;
        (0..items).try_for_each(|_| self.skip(deeper))
    }

    /// Charges the items of a list or map to the budget before anything is reserved for them.
    fn open(&mut self, items: usize, depth_left: usize) -> Result<usize, DecodeError> {
        let deeper =
            depth_left.checked_sub(1).ok_or(DecodeError::TooMuch { what: "levels", limit: self.limits.max_depth })?;
        self.items_left = self
            .items_left
            .checked_sub(items)
            .ok_or(DecodeError::TooMuch { what: "items", limit: self.limits.max_items })?;
        // Every item takes at least one byte.
        if items > self.bytes.len() - self.at {
            return Err(DecodeError::Truncated);
        }
        Ok(deeper)
    }

    fn array(&mut self, len: usize, depth_left: usize) -> Result<Value, DecodeError> {
        let deeper = self.open(len, depth_left)?;
        let mut items = Vec::with_capacity(len);
        for _ in 0..len {
            items.push(self.value(deeper)?);
        }
        Ok(Value::Array(items))
    }

    fn map(&mut self, len: usize, depth_left: usize) -> Result<Value, DecodeError> {
        let deeper = self.open(len.saturating_mul(2), depth_left)?;
        let mut entries = Vec::with_capacity(len);
        for _ in 0..len {
            let key = self.value(deeper)?;
            entries.push((key, self.value(deeper)?));
        }
        Ok(Value::Map(entries))
    }

    fn text(&mut self, len: usize) -> Result<Value, DecodeError> {
        let bytes = self.take(len)?;
        Ok(match (self.strings, std::str::from_utf8(bytes)) {
            (Strings::TextIfUtf8 | Strings::AsSent, Ok(text)) => Value::from(text),
            _ => Value::Binary(bytes.to_vec()),
        })
    }

    fn binary(&mut self, len: usize) -> Result<Value, DecodeError> {
        match self.strings {
            Strings::TextIfUtf8 => self.text(len),
            Strings::Bytes | Strings::AsSent => Ok(Value::Binary(self.take(len)?.to_vec())),
        }
    }

    fn ext(&mut self, len: usize) -> Result<Value, DecodeError> {
        let [kind] = self.number()?;
        Ok(Value::Ext(i8::from_be_bytes([kind]), self.take(len)?.to_vec()))
    }
}
