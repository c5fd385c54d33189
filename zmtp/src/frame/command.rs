//! Commands: a name and its data (RFC 37, "Commands").

use bytes::{BufMut, Bytes, BytesMut};

use super::FrameError;

/// Upper bound on the context of a PING.
pub const MAX_PING_CONTEXT_LEN: usize = 16;
/// Upper bound on the properties of READY, which has two or three.
const MAX_PROPERTIES: usize = 32;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The end of the NULL handshake, with the peer's metadata.
    Ready(ReadyProperties),
    /// The peer refuses the connection, with the reason.
    Error(Bytes),
    /// A request for a PONG with the same context.
    Ping {
        /// Tenths of a second without traffic after which the peer wants to be dropped; 0 for never.
        ttl: u16,
        /// The context for the PONG.
        context: Bytes,
    },
    /// The reply to a PING.
    Pong {
        /// The context of the PING.
        context: Bytes,
    },
    /// A subscription to messages whose first frame starts with this prefix.
    Subscribe(Bytes),
    /// The end of one subscription.
    Cancel(Bytes),
    /// A command of a later version; it is ignored.
    Unknown,
}

/// The properties of READY.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadyProperties {
    /// `Socket-Type`.
    pub socket_type: Bytes,
    /// `Identity`, up to 255 bytes.
    pub identity: Bytes,
}

impl Command {
    /// Parses the body of a command frame.
    ///
    /// # Errors
    /// When the body is not a command.
    pub fn parse(body: &[u8]) -> Result<Command, FrameError> {
        let (&name_len, rest) = body.split_first().ok_or(FrameError::Command("it is empty"))?;
        let (name, data) =
            rest.split_at_checked(usize::from(name_len)).ok_or(FrameError::Command("its name is cut off"))?;
        if name.is_empty() || !name.iter().all(u8::is_ascii_alphabetic) {
            return Err(FrameError::Command("its name is not made of letters"));
        }
        Ok(match name {
            b"READY" => Command::Ready(ReadyProperties::parse(data)?),
            b"ERROR" => {
                let (&len, reason) = data.split_first().ok_or(FrameError::Command("ERROR has no reason"))?;
                if reason.len() != usize::from(len) {
                    return Err(FrameError::Command("ERROR has a reason of another length than it says"));
                }
                Command::Error(Bytes::copy_from_slice(reason))
            }
            b"PING" => {
                let (ttl, context) = data.split_first_chunk().ok_or(FrameError::Command("PING has no TTL"))?;
                if context.len() > MAX_PING_CONTEXT_LEN {
                    return Err(FrameError::Command("PING has a context of more than 16 bytes"));
                }
                Command::Ping { ttl: u16::from_be_bytes(*ttl), context: Bytes::copy_from_slice(context) }
            }
            b"PONG" => {
                if data.len() > MAX_PING_CONTEXT_LEN {
                    return Err(FrameError::Command("PONG has a context of more than 16 bytes"));
                }
                Command::Pong { context: Bytes::copy_from_slice(data) }
            }
            b"SUBSCRIBE" => Command::Subscribe(Bytes::copy_from_slice(data)),
            b"CANCEL" => Command::Cancel(Bytes::copy_from_slice(data)),
            _ => Command::Unknown,
        })
    }

    /// The body of a command frame: name and data; `None` for [`Command::Unknown`].
    pub(super) fn encode_body(&self) -> Option<BytesMut> {
        let mut body = BytesMut::new();
        let mut name = |name: &str| {
            body.put_u8(u8::try_from(name.len()).expect("names of commands are short"));
            body.put_slice(name.as_bytes());
        };
        match self {
            Command::Ready(properties) => {
                name("READY");
                properties.encode(&mut body);
            }
            Command::Error(reason) => {
                name("ERROR");
                let reason = &reason[..reason.len().min(255)];
                body.put_u8(u8::try_from(reason.len()).expect("cut to 255"));
                body.put_slice(reason);
            }
            Command::Ping { ttl, context } => {
                name("PING");
                body.put_u16(*ttl);
                body.put_slice(context);
            }
            Command::Pong { context } => {
                name("PONG");
                body.put_slice(context);
            }
            Command::Subscribe(prefix) => {
                name("SUBSCRIBE");
                body.put_slice(prefix);
            }
            Command::Cancel(prefix) => {
                name("CANCEL");
                body.put_slice(prefix);
            }
            Command::Unknown => return None,
        }
        Some(body)
    }
}

impl ReadyProperties {
    fn parse(mut data: &[u8]) -> Result<ReadyProperties, FrameError> {
        let cut_off = FrameError::Command("READY has a property that is cut off");
        let mut properties = ReadyProperties::default();
        let mut count = 0;
        while let Some((&name_len, rest)) = data.split_first() {
            count += 1;
            if count > MAX_PROPERTIES {
                return Err(FrameError::Command("READY has more than 32 properties"));
            }
            let (name, rest) = rest.split_at_checked(usize::from(name_len)).ok_or(cut_off.clone())?;
            let (value_len, rest) = rest.split_first_chunk().ok_or(cut_off.clone())?;
            let value_len = usize::try_from(u32::from_be_bytes(*value_len)).unwrap_or(usize::MAX);
            let (value, rest) = rest.split_at_checked(value_len).ok_or(cut_off.clone())?;
            data = rest;
            if name.is_empty() {
                return Err(FrameError::Command("READY has a property without a name"));
            } else if name.eq_ignore_ascii_case(b"Socket-Type") {
                properties.socket_type = Bytes::copy_from_slice(value);
            } else if name.eq_ignore_ascii_case(b"Identity") {
                if value.len() > 255 {
                    return Err(FrameError::Command("READY has an identity of more than 255 bytes"));
                }
                properties.identity = Bytes::copy_from_slice(value);
            }
        }
        Ok(properties)
    }

    fn encode(&self, body: &mut BytesMut) {
        let mut put = |name: &str, value: &[u8]| {
            body.put_u8(u8::try_from(name.len()).expect("names of properties are short"));
            body.put_slice(name.as_bytes());
            body.put_u32(u32::try_from(value.len()).expect("values of properties are short"));
            body.put_slice(value);
        };
        put("Socket-Type", &self.socket_type);
        if !self.identity.is_empty() {
            put("Identity", &self.identity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let ready = ReadyProperties { socket_type: Bytes::from("SUB"), identity: Bytes::from("m1") };
        for command in [
            Command::Ready(ready),
            Command::Ready(ReadyProperties::default()),
            Command::Error(Bytes::from("no")),
            Command::Ping { ttl: 300, context: Bytes::from("0123456789abcdef") },
            Command::Pong { context: Bytes::new() },
            Command::Subscribe(Bytes::new()),
            Command::Cancel(Bytes::from("topic")),
        ] {
            assert_eq!(Command::parse(&command.encode_body().unwrap()), Ok(command));
        }
    }

    #[test]
    fn refuses_malformed_commands_and_ignores_unknown_ones() {
        let ready_with = |data: &[u8]| [b"\x05READY", data].concat();
        let long_identity = [&b"\x08Identity\0\0\x01\0"[..], &[b'x'; 256]].concat();
        for (body, why) in [
            (b"".to_vec(), "empty"),
            (b"\0".to_vec(), "not made of letters"),
            (b"\x05PING".to_vec(), "name is cut off"),
            (b"\xffPING".to_vec(), "name is cut off"),
            (b"\x04PI\0G".to_vec(), "not made of letters"),
            (b"\x04PI G\0\0".to_vec(), "not made of letters"),
            (b"\x04\xff\xfe\xfd\xfc".to_vec(), "not made of letters"),
            (b"\x04PING".to_vec(), "no TTL"),
            (b"\x04PING\0".to_vec(), "no TTL"),
            (b"\x04PING\0\x000123456789abcdefg".to_vec(), "more than 16"),
            (b"\x04PONG0123456789abcdefg".to_vec(), "more than 16"),
            (b"\x05ERROR".to_vec(), "no reason"),
            (b"\x05ERROR\x09no".to_vec(), "another length"),
            (ready_with(b"\x0bSocket"), "cut off"),
            (ready_with(b"\x01a\0\0"), "cut off"),
            (ready_with(b"\x01a\0\0\0\x05b"), "cut off"),
            (ready_with(b"\x01a\xff\xff\xff\xff"), "cut off"),
            (ready_with(b"\0\0\0\0\0"), "without a name"),
            (ready_with(&b"\x01a\0\0\0\0".repeat(33)), "more than 32"),
            (ready_with(&long_identity), "more than 255"),
        ] {
            let error = Command::parse(&body).unwrap_err().to_string();
            assert!(error.contains(why), "{body:?}: {error}");
        }
        assert_eq!(Command::parse(b"\x05LEAVExyz"), Ok(Command::Unknown));
    }
}
