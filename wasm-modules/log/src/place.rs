//! Where in a file the last look ended.
//!
//! A file is rotated by another name for it, or by cutting it off. Then what was not looked at yet is in `FILE.1`, if that is
//! the file of the last look and the owner granted it, and the rest is in the file of the name.

use brine_guest::Value;
use brine_guest::host::changes::{self, Entry, Kind};

/// Bytes of one look. What a host logs in a second is less; after more, the next look goes on.
pub const MOST: usize = 1 << 20;
/// Bytes of one request.
const PART: u32 = 256 << 10;

/// A file, and how far it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub inode: u64,
    pub offset: u64,
}

impl Place {
    pub fn value(&self) -> Value {
        Value::List(vec![self.inode.into(), self.offset.into()])
    }

    pub fn read(value: &Value) -> Option<Self> {
        let number = |value: &Value| match value {
            Value::Int(number) => u64::try_from(*number).ok(),
            Value::Big(number) => Some(*number),
            _ => None,
        };
        let Value::List(parts) = value else { return None };
        Some(Self { inode: number(parts.first()?)?, offset: number(parts.get(1)?)? })
    }
}

/// A file by its name.
pub struct File<'a> {
    path: &'a str,
    now: Entry,
}

impl<'a> File<'a> {
    /// # Errors
    /// It is missing, no regular file, or not granted.
    pub fn of(path: &'a str) -> Result<File<'a>, String> {
        match changes::look(path, true, false)? {
            Some(now) if now.kind == Kind::Regular => Ok(File { path, now }),
            Some(_) => Err(format!("{path} is no regular file")),
            // Python's words.
            None => Err(format!("[Errno 2] No such file or directory: '{path}'")),
        }
    }

    /// Where it ends.
    pub fn end(&self) -> Place {
        Place { inode: self.now.inode, offset: self.now.size }
    }

    /// What came since a place, and where it begins.
    pub fn since(&self, last: &Place) -> Result<(Vec<u8>, Place), String> {
        if self.now.inode == last.inode {
            // Shorter than before: it was cut off.
            let offset = if self.now.size < last.offset { 0 } else { last.offset };
            return Ok((read(self.path, offset)?, Place { inode: last.inode, offset }));
        }
        let before = format!("{}.1", self.path);
        if let Ok(Some(entry)) = changes::look(&before, false, false)
            && entry.inode == last.inode
            && entry.size > last.offset
        {
            let rest = read(&before, last.offset)?;
            // A last line without an end has one now: nothing follows it.
            if rest.contains(&b'\n') {
                return Ok((rest, *last));
            }
        }
        Ok((read(self.path, 0)?, Place { inode: self.now.inode, offset: 0 }))
    }
}

fn read(path: &str, offset: u64) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    while all.len() < MOST {
        let part = changes::read(path, offset + all.len() as u64, PART)?.unwrap_or_default();
        if part.is_empty() {
            break;
        }
        all.extend(part);
    }
    all.truncate(MOST);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_kept_as_a_value() {
        for place in [Place { inode: 5, offset: 0 }, Place { inode: u64::MAX, offset: 1 << 40 }] {
            assert_eq!(Place::read(&place.value()), Some(place));
        }
        for odd in [Value::None, Value::List(vec![Value::Int(1)]), Value::List(vec![Value::Int(-1), Value::Int(0)])] {
            assert_eq!(Place::read(&odd), None);
        }
    }
}
