//! The encoder of both flavours.

use crate::value::Value;

/// Encodes in the network flavour: text and bytes both as raw, never as str8 or bin.
pub fn encode_network(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(room(value));
    encode(value, Flavour::Network, &mut out);
    out
}

/// Appends a value in the network flavour to the buffer.
pub fn encode_network_into(value: &Value, out: &mut Vec<u8>) {
    encode(value, Flavour::Network, out);
}

/// Encodes in the disk flavour.
pub fn encode_disk(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(room(value));
    encode(value, Flavour::Disk, &mut out);
    out
}

/// Appends a value in the disk flavour to the buffer.
pub fn encode_disk_into(value: &Value, out: &mut Vec<u8>) {
    encode(value, Flavour::Disk, out);
}

/// Encodes a byte string in the network flavour: the reply to an encrypted request is one such string.
pub fn encode_network_bytes(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 5);
    raw(bytes, false, &mut out);
    out
}

/// Appends a byte string in the disk flavour to the buffer.
pub fn encode_disk_bytes_into(bytes: &[u8], out: &mut Vec<u8>) {
    binary(bytes, Flavour::Disk, out);
}

/// Appends a map in the disk flavour. All entries but the last are already encoded as the map `packed`.
pub fn encode_disk_last_entry_into(entries: &[(Value, Value)], packed: &[u8], out: &mut Vec<u8>) {
    let Some(((key, value), first)) = entries.split_last() else { return out.push(0x80) };
    let behind_header = match first.len() {
        0..=15 => 1,
        16..=0xffff => 3,
        _ => 5,
    };
    header(entries.len(), [0x80, 0xde, 0xdf], out);
    out.extend_from_slice(packed.get(behind_header..).unwrap_or_default());
    encode(key, Flavour::Disk, out);
    encode(value, Flavour::Disk, out);
}

/// Bytes that a value takes at most when it is encoded, so that its buffer is allocated once.
pub(crate) fn room(value: &Value) -> usize {
    const HEADER: usize = 5;
    match value {
        Value::Nil | Value::Boolean(_) => 1,
        Value::Integer(_) | Value::F32(_) | Value::F64(_) => 9,
        Value::String(text) => HEADER + text.as_bytes().len(),
        Value::Binary(bytes) => HEADER + bytes.len(),
        Value::Array(items) => HEADER + items.iter().map(room).sum::<usize>(),
        Value::Map(entries) => HEADER + entries.iter().map(|(key, item)| room(key) + room(item)).sum::<usize>(),
        Value::Ext(_, data) => HEADER + 1 + data.len(),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flavour {
    Network,
    Disk,
}

fn encode(value: &Value, flavour: Flavour, out: &mut Vec<u8>) {
    match value {
        Value::Nil => out.push(0xc0),
        Value::Boolean(false) => out.push(0xc2),
        Value::Boolean(true) => out.push(0xc3),
        Value::Integer(n) => match (n.as_u64(), n.as_i64()) {
            (Some(n), _) => unsigned(n, out),
            (None, n) => negative(n.unwrap_or_default(), out),
        },
        Value::F32(n) => float(f64::from(*n), out),
        Value::F64(n) => float(*n, out),
        Value::String(text) => match text.as_str() {
            Some(text) => raw(text.as_bytes(), flavour == Flavour::Disk, out),
            None => binary(text.as_bytes(), flavour, out),
        },
        Value::Binary(bytes) => binary(bytes, flavour, out),
        Value::Array(items) => {
            header(items.len(), [0x90, 0xdc, 0xdd], out);
            for item in items {
                encode(item, flavour, out);
            }
        }
        Value::Map(entries) => {
            header(entries.len(), [0x80, 0xde, 0xdf], out);
            for (key, item) in entries {
                encode(key, flavour, out);
                encode(item, flavour, out);
            }
        }
        Value::Ext(kind, data) => ext(*kind, data, out),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "each arm's range says that the number fits")]
fn unsigned(n: u64, out: &mut Vec<u8>) {
    match n {
        0..=0x7f => out.push(n as u8),
        0x80..=0xff => out.extend([0xcc, n as u8]),
        0x100..=0xffff => prefixed(0xcd, &(n as u16).to_be_bytes(), out),
        0x1_0000..=0xffff_ffff => prefixed(0xce, &(n as u32).to_be_bytes(), out),
        _ => prefixed(0xcf, &n.to_be_bytes(), out),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "each arm's range says that the number fits")]
fn negative(n: i64, out: &mut Vec<u8>) {
    match n {
        -32.. => out.extend((n as i8).to_be_bytes()),
        -0x80..-32 => prefixed(0xd0, &(n as i8).to_be_bytes(), out),
        -0x8000..-0x80 => prefixed(0xd1, &(n as i16).to_be_bytes(), out),
        -0x8000_0000..-0x8000 => prefixed(0xd2, &(n as i32).to_be_bytes(), out),
        _ => prefixed(0xd3, &n.to_be_bytes(), out),
    }
}

fn float(n: f64, out: &mut Vec<u8>) {
    prefixed(0xcb, &n.to_be_bytes(), out);
}

fn prefixed(code: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(code);
    out.extend_from_slice(bytes);
}

/// A length as MessagePack writes it. A value whose length exceeds 32 bits does not fit into memory.
fn len32(len: usize) -> [u8; 4] {
    u32::try_from(len).expect("no value of ours has 2^32 items or bytes").to_be_bytes()
}

/// The header of a list or map: in the code itself up to 15, then with 16 or 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "each arm's range says that the number fits")]
fn header(len: usize, [fix, code16, code32]: [u8; 3], out: &mut Vec<u8>) {
    match len {
        0..=15 => out.push(fix | len as u8),
        16..=0xffff => prefixed(code16, &(len as u16).to_be_bytes(), out),
        _ => prefixed(code32, &len32(len), out),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "each arm's range says that the number fits")]
fn raw(bytes: &[u8], str8: bool, out: &mut Vec<u8>) {
    match bytes.len() {
        len @ 0..=31 => out.push(0xa0 | len as u8),
        len @ 32..=0xff if str8 => out.extend([0xd9, len as u8]),
        len @ 32..=0xffff => prefixed(0xda, &(len as u16).to_be_bytes(), out),
        len => prefixed(0xdb, &len32(len), out),
    }
    out.extend_from_slice(bytes);
}

#[expect(clippy::cast_possible_truncation, reason = "each arm's range says that the number fits")]
fn binary(bytes: &[u8], flavour: Flavour, out: &mut Vec<u8>) {
    if flavour == Flavour::Network {
        return raw(bytes, false, out);
    }
    match bytes.len() {
        len @ 0..=0xff => out.extend([0xc4, len as u8]),
        len @ 0x100..=0xffff => prefixed(0xc5, &(len as u16).to_be_bytes(), out),
        len => prefixed(0xc6, &len32(len), out),
    }
    out.extend_from_slice(bytes);
}

#[expect(clippy::cast_possible_truncation, reason = "each arm's range says that the number fits")]
fn ext(kind: i8, data: &[u8], out: &mut Vec<u8>) {
    match data.len() {
        1 => out.push(0xd4),
        2 => out.push(0xd5),
        4 => out.push(0xd6),
        8 => out.push(0xd7),
        16 => out.push(0xd8),
        len @ 0..=0xff => out.extend([0xc7, len as u8]),
        len @ 0x100..=0xffff => prefixed(0xc8, &(len as u16).to_be_bytes(), out),
        len => prefixed(0xc9, &len32(len), out),
    }
    out.extend(kind.to_be_bytes());
    out.extend_from_slice(data);
}
