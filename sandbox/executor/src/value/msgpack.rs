//! MessagePack without conversion: read in place, and written into a bounded buffer. Reading neither recurses nor
//! reserves memory, so its cost depends on the length of the input and not on the lengths that the input claims.

/// Upper bound on nested arrays and maps. Salt's data has under ten levels; later readers may recurse.
pub const MAX_DEPTH: usize = 64;

/// Upper bound on the items of one value, at all levels. A tree with this many items takes the minion some 20 MiB.
pub const MAX_ITEMS: usize = 500_000;

/// Why bytes are not one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The value is longer than the bytes.
    #[error("the value is cut short")]
    Truncated,
    /// The byte 0xc1, which has no meaning.
    #[error("the byte 0xc1 begins no value")]
    Reserved,
    /// Text that is not UTF-8.
    #[error("a text is not UTF-8")]
    NotUtf8,
    /// More levels than [`MAX_DEPTH`].
    #[error("values are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// More items than [`MAX_ITEMS`].
    #[error("there are more than {MAX_ITEMS} items")]
    TooMany,
    /// Bytes after the value.
    #[error("there is more than one value")]
    Trailing,
    /// Not the expected array or map.
    #[error("the value has another type")]
    Unexpected,
}

/// One step of reading: a whole scalar, or the head of an array or map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Item<'a> {
    /// nil
    Nil,
    /// bool
    Bool(bool),
    /// An integer; `i128` holds every integer of MessagePack.
    Int(i128),
    /// A float of either width.
    Float(f64),
    /// Text.
    Str(&'a str),
    /// Bytes.
    Bin(&'a [u8]),
    /// The head of an array with this many items.
    Array(u32),
    /// The head of a map with this many pairs.
    Map(u32),
    /// An extension: its type and bytes.
    Ext(i8, &'a [u8]),
}

/// Reads values from bytes.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the beginning of the bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn length(&mut self, width: u8) -> Result<u32, Malformed> {
        Ok(match width {
            1 => u32::from(self.bytes::<1>()?[0]),
            2 => u32::from(u16::from_be_bytes(self.bytes()?)),
            _ => u32::from_be_bytes(self.bytes()?),
        })
    }

    fn blob(&mut self, length: u32) -> Result<&'a [u8], Malformed> {
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn text(&mut self, length: u32) -> Result<Item<'a>, Malformed> {
        std::str::from_utf8(self.blob(length)?).map(Item::Str).map_err(|_| Malformed::NotUtf8)
    }

    fn ext(&mut self, length: u32) -> Result<Item<'a>, Malformed> {
        let kind = i8::from_be_bytes(self.bytes()?);
        Ok(Item::Ext(kind, self.blob(length)?))
    }

    /// Reads the next scalar or head.
    ///
    /// # Errors
    /// When the bytes are malformed at this point.
    pub fn item(&mut self) -> Result<Item<'a>, Malformed> {
        let [marker] = self.bytes()?;
        Ok(match marker {
            0x00..=0x7f => Item::Int(i128::from(marker)),
            0x80..=0x8f => Item::Map(u32::from(marker & 0x0f)),
            0x90..=0x9f => Item::Array(u32::from(marker & 0x0f)),
            0xa0..=0xbf => return self.text(u32::from(marker & 0x1f)),
            0xc0 => Item::Nil,
            0xc1 => return Err(Malformed::Reserved),
            0xc2 | 0xc3 => Item::Bool(marker == 0xc3),
            0xc4..=0xc6 => {
                let length = self.length(1 << (marker - 0xc4))?;
                Item::Bin(self.blob(length)?)
            }
            0xc7..=0xc9 => {
                let length = self.length(1 << (marker - 0xc7))?;
                return self.ext(length);
            }
            0xca => Item::Float(f64::from(f32::from_be_bytes(self.bytes()?))),
            0xcb => Item::Float(f64::from_be_bytes(self.bytes()?)),
            0xcc => Item::Int(i128::from(self.bytes::<1>()?[0])),
            0xcd => Item::Int(i128::from(u16::from_be_bytes(self.bytes()?))),
            0xce => Item::Int(i128::from(u32::from_be_bytes(self.bytes()?))),
            0xcf => Item::Int(i128::from(u64::from_be_bytes(self.bytes()?))),
            0xd0 => Item::Int(i128::from(i8::from_be_bytes(self.bytes()?))),
            0xd1 => Item::Int(i128::from(i16::from_be_bytes(self.bytes()?))),
            0xd2 => Item::Int(i128::from(i32::from_be_bytes(self.bytes()?))),
            0xd3 => Item::Int(i128::from(i64::from_be_bytes(self.bytes()?))),
            0xd4..=0xd8 => return self.ext(1 << (marker - 0xd4)),
            0xd9..=0xdb => {
                let length = self.length(1 << (marker - 0xd9))?;
                return self.text(length);
            }
            0xdc | 0xdd => Item::Array(self.length(2 << (marker - 0xdc))?),
            0xde | 0xdf => Item::Map(self.length(2 << (marker - 0xde))?),
            0xe0..=0xff => Item::Int(i128::from(i8::from_be_bytes([marker]))),
        })
    }

    /// Skips one whole value and returns its bytes.
    ///
    /// # Errors
    /// When the value is malformed or exceeds a bound.
    pub fn value(&mut self) -> Result<&'a [u8], Malformed> {
        self.counted_value(&mut 0)
    }

    /// As [`Reader::value`]; adds the number of items to `items`.
    fn counted_value(&mut self, items: &mut usize) -> Result<&'a [u8], Malformed> {
        let start = self.rest;
        // The number of items to come at each level.
        let mut open = [0u64; MAX_DEPTH];
        let mut depth = 0;
        loop {
            *items += 1;
            if *items > MAX_ITEMS {
                return Err(Malformed::TooMany);
            }
            let inside = match self.item()? {
                Item::Array(length) => u64::from(length),
                Item::Map(length) => u64::from(length) * 2,
                _ => 0,
            };
            if inside > 0 {
                *open.get_mut(depth).ok_or(Malformed::TooDeep)? = inside;
                depth += 1;
                continue;
            }
            loop {
                let Some(level) = depth.checked_sub(1) else { return Ok(&start[..start.len() - self.rest.len()]) };
                open[level] -= 1;
                if open[level] > 0 {
                    break;
                }
                depth = level;
            }
        }
    }
}

/// Checks that the bytes are exactly one value within the bounds. Returns the number of its items.
///
/// # Errors
/// When the bytes are anything else.
pub fn check(bytes: &[u8]) -> Result<usize, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut items = 0;
    reader.counted_value(&mut items)?;
    if reader.rest.is_empty() { Ok(items) } else { Err(Malformed::Trailing) }
}

/// Checks an array and returns its items.
///
/// # Errors
/// When the bytes are not one array within the bounds.
pub fn array(bytes: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    check(bytes)?;
    let mut reader = Reader::new(bytes);
    let Item::Array(length) = reader.item()? else { return Err(Malformed::Unexpected) };
    (0..length).map(|_| reader.value()).collect()
}

/// Checks a map whose keys are text and returns its pairs.
///
/// # Errors
/// When the bytes are not one such map within the bounds.
pub fn map(bytes: &[u8]) -> Result<Vec<(&str, &[u8])>, Malformed> {
    check(bytes)?;
    let mut reader = Reader::new(bytes);
    let Item::Map(length) = reader.item()? else { return Err(Malformed::Unexpected) };
    let pair = |_| match reader.item()? {
        Item::Str(key) => Ok((key, reader.value()?)),
        _ => Err(Malformed::Unexpected),
    };
    (0..length).map(pair).collect()
}

/// Why something does not fit a [`Writer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// More bytes than allowed.
    #[error("it is larger than {0} bytes")]
    Bytes(usize),
    /// More items than [`MAX_ITEMS`].
    #[error("it has more than {MAX_ITEMS} items")]
    Items,
}

/// Writes MessagePack with the shortest form of each number.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    limit: usize,
    items: usize,
}

impl Writer {
    /// A writer of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, items: 0 }
    }

    /// The written bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn count(&mut self, items: usize) -> Result<(), Full> {
        self.items = self.items.saturating_add(items);
        if self.items > MAX_ITEMS { Err(Full::Items) } else { Ok(()) }
    }

    fn put(&mut self, head: &[u8], body: &[u8]) -> Result<(), Full> {
        if self.bytes.len() + head.len() + body.len() > self.limit {
            return Err(Full::Bytes(self.limit));
        }
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(body);
        Ok(())
    }

    fn scalar(&mut self, marker: u8, body: &[u8]) -> Result<(), Full> {
        self.count(1)?;
        self.put(&[marker], body)
    }

    /// Writes nil.
    ///
    /// # Errors
    /// When a bound is exceeded.
    pub fn nil(&mut self) -> Result<(), Full> {
        self.scalar(0xc0, &[])
    }

    /// Writes a bool.
    ///
    /// # Errors
    /// When a bound is exceeded.
    pub fn bool(&mut self, value: bool) -> Result<(), Full> {
        self.scalar(if value { 0xc3 } else { 0xc2 }, &[])
    }

    /// Writes an integer. Numbers below `i64::MIN` are not supported; no component type has them.
    ///
    /// # Errors
    /// When a bound is exceeded.
    pub fn int(&mut self, value: i128) -> Result<(), Full> {
        if let Ok(small) = i8::try_from(value)
            && small >= -32
        {
            self.scalar(small.to_be_bytes()[0], &[])
        } else if let Ok(value) = u8::try_from(value) {
            self.scalar(0xcc, &value.to_be_bytes())
        } else if let Ok(value) = u16::try_from(value) {
            self.scalar(0xcd, &value.to_be_bytes())
        } else if let Ok(value) = u32::try_from(value) {
            self.scalar(0xce, &value.to_be_bytes())
        } else if let Ok(value) = u64::try_from(value) {
            self.scalar(0xcf, &value.to_be_bytes())
        } else if let Ok(value) = i8::try_from(value) {
            self.scalar(0xd0, &value.to_be_bytes())
        } else if let Ok(value) = i16::try_from(value) {
            self.scalar(0xd1, &value.to_be_bytes())
        } else if let Ok(value) = i32::try_from(value) {
            self.scalar(0xd2, &value.to_be_bytes())
        } else {
            self.scalar(0xd3, &i64::try_from(value).unwrap_or(i64::MIN).to_be_bytes())
        }
    }

    /// Writes a float of 64 bits.
    ///
    /// # Errors
    /// When a bound is exceeded.
    pub fn float(&mut self, value: f64) -> Result<(), Full> {
        self.scalar(0xcb, &value.to_be_bytes())
    }

    /// Writes a text.
    ///
    /// # Errors
    /// When a bound is exceeded.
    pub fn str(&mut self, text: &str) -> Result<(), Full> {
        self.count(1)?;
        let head = head(text.len(), [(0xa0, 0x1f), (0xd9, 0xff), (0xda, 0xffff), (0xdb, u32::MAX)]);
        self.put(head.bytes(), text.as_bytes())
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// When a bound is exceeded.
    pub fn bin(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.count(1)?;
        let head = head(bytes.len(), [(0xc4, 0), (0xc4, 0xff), (0xc5, 0xffff), (0xc6, u32::MAX)]);
        self.put(head.bytes(), bytes)
    }

    /// Writes the head of an array.
    ///
    /// # Errors
    /// When a bound is exceeded.
    pub fn array(&mut self, length: usize) -> Result<(), Full> {
        self.count(1)?;
        let head = head(length, [(0x90, 0x0f), (0xdc, 0), (0xdc, 0xffff), (0xdd, u32::MAX)]);
        self.put(head.bytes(), &[])
    }

    /// Writes the head of a map.
    ///
    /// # Errors
    /// When a bound is exceeded.
    pub fn map(&mut self, length: usize) -> Result<(), Full> {
        self.count(1)?;
        let head = head(length, [(0x80, 0x0f), (0xde, 0), (0xde, 0xffff), (0xdf, u32::MAX)]);
        self.put(head.bytes(), &[])
    }

    /// Writes a value that was checked and has this many items.
    ///
    /// # Errors
    /// When a bound is exceeded.
    pub fn raw(&mut self, value: &[u8], items: usize) -> Result<(), Full> {
        self.count(items)?;
        self.put(&[], value)
    }
}

struct Head {
    bytes: [u8; 5],
    length: usize,
}

impl Head {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Encodes a marker and a length. The four forms hold the length in the marker, in one byte, in two and in four; each
/// has the largest length that it can hold.
fn head(length: usize, forms: [(u8, u32); 4]) -> Head {
    // A length beyond 32 bits exceeds the limit of every writer, so `put` refuses its body.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let mut bytes = [0; 5];
    let [fixed, one, two, four] = forms;
    let used = if fixed.1 > 0 && length <= fixed.1 {
        bytes[0] = fixed.0 | length.to_be_bytes()[3];
        1
    } else if one.1 > 0 && length <= one.1 {
        bytes[..2].copy_from_slice(&[one.0, length.to_be_bytes()[3]]);
        2
    } else if length <= two.1 {
        bytes[0] = two.0;
        bytes[1..3].copy_from_slice(&length.to_be_bytes()[2..]);
        3
    } else {
        bytes[0] = four.0;
        bytes[1..].copy_from_slice(&length.to_be_bytes());
        5
    };
    Head { bytes, length: used }
}
