//! Formats any value for an error message: one short line in the notation that Salt's operators know.

use std::fmt::Write;

use super::msgpack::{Item, Reader};

/// Upper bound on the characters of a value in a message; the rest becomes "…".
const MAX_SHOWN: usize = 60;

/// Upper bound on the nested values shown; deeper ones become "…".
const MAX_LEVELS: usize = 3;

/// `'abc'`, `5`, `True`, `None`, `b'\x00'`, `[1, 2]`, `{'a': 1}`.
#[must_use]
pub fn show(value: &[u8]) -> String {
    let mut out = String::new();
    let whole = write(&mut Reader::new(value), &mut out, 0).is_some();
    if let Some((cut, _)) = out.char_indices().nth(MAX_SHOWN) {
        out.truncate(cut);
        out.push('…');
    } else if !whole {
        out.push('…');
    }
    out
}

/// Writes a value; returns none when the text is long enough.
fn write(reader: &mut Reader<'_>, out: &mut String, level: usize) -> Option<()> {
    if out.len() > MAX_SHOWN * 4 {
        return None;
    }
    match reader.item().ok()? {
        Item::Nil => out.push_str("None"),
        Item::Bool(value) => out.push_str(if value { "True" } else { "False" }),
        Item::Int(value) => write!(out, "{value}").ok()?,
        Item::Float(value) => write!(out, "{value:?}").ok()?,
        Item::Str(text) => {
            out.push('\'');
            let end = text.char_indices().nth(MAX_SHOWN).map_or(text.len(), |(end, _)| end);
            out.push_str(&brine_text::line(&text[..end]));
            out.push('\'');
        }
        Item::Bin(bytes) => write!(out, "b'{}'", bytes[..bytes.len().min(MAX_SHOWN)].escape_ascii()).ok()?,
        Item::Ext(kind, bytes) => write!(out, "an extension {kind} of {} bytes", bytes.len()).ok()?,
        Item::Array(_) | Item::Map(_) if level == MAX_LEVELS => return None,
        Item::Array(length) => {
            out.push('[');
            for index in 0..length {
                out.push_str(if index > 0 { ", " } else { "" });
                write(reader, out, level + 1)?;
            }
            out.push(']');
        }
        Item::Map(length) => {
            out.push('{');
            for index in 0..length {
                out.push_str(if index > 0 { ", " } else { "" });
                write(reader, out, level + 1)?;
                out.push_str(": ");
                write(reader, out, level + 1)?;
            }
            out.push('}');
        }
    }
    Some(())
}
