//! What a master and its nodes (salt-api) say to each other over one connection: requests with their replies, and one
//! stream of events.
//!
//! - `cursor.rs`  a place in the master's events
//! - `frame.rs`   messages on a stream of bytes
//!
//! A request is an envelope as on 4506 (§7), with the address of the caller that it is for. The master sends an event once, with
//! the views that may see it: a view is the master's number for callers with the same rights.
//!
//! The connection is the socket [`SOCKET`] on the master's host, where the first message is the master's, or TLS to its port for
//! nodes elsewhere, where the first message is the node's ([`ToMaster::Join`]).
//!
//! A master that hangs reads what waits for it when it goes on. So a request says until when it counts, by the master's clock as the
//! node last heard it: whoever gave it up has given it up.

mod cursor;
mod frame;

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crate::ids::MinionId;
use crate::msgpack::{self, Limits};
use crate::secret::Secret;
use crate::value::{Value, ValueExt as _};

pub use cursor::{Cursor, NoCursor};
pub use frame::{FrameReader, frame};

/// The name of the socket in `sock_dir`.
pub const SOCKET: &str = "master_api.ipc";
/// The version of the messages.
pub const VERSION: u64 = 2;
/// Upper bound on the bytes of a node's first message.
pub const JOIN_MAX: usize = 1 << 10;
/// Each side says at least this often that it is there.
pub const ALIVE_EVERY: Duration = Duration::from_millis(250);
/// Upper bound on the bytes of a node's message: a request's body has 1 MiB, and its values may take more in MessagePack.
pub const TO_MASTER_MAX: usize = 8 << 20;
/// Upper bound on the bytes of a master's message: the result of a runner, and the frame around it.
pub const TO_NODE_MAX: usize = 128 << 20;
/// Upper bound on the requests of a connection that wait for their replies.
pub const IN_FLIGHT_MAX: usize = 1_024;
/// Upper bound on the streams of a connection.
pub const STREAMS_MAX: usize = 16_384;
/// Upper bound on the bytes of a token, and of a tag that is followed. As many as there may be streams wait at once.
pub const TOKEN_MAX: usize = 128;

/// Bounds on a message: a short list. What it carries is decoded by itself.
const LIMITS: Limits = Limits { max_bytes: TO_NODE_MAX, max_depth: 3, max_items: 4 * STREAMS_MAX };

/// A message of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToMaster {
    /// A request.
    Request {
        /// Its number.
        id: u64,
        /// The address of the caller.
        address: IpAddr,
        /// When it has to be read, by the master's clock ([`ToNode::Alive`]); afterwards nobody waits for it.
        until: u64,
        /// A clear envelope.
        payload: Vec<u8>,
    },
    /// The caller of a request has left.
    Forget {
        /// The request's number.
        id: u64,
    },
    /// A stream of the events that the token's user may see.
    Watch {
        /// The stream's number.
        id: u64,
        /// The token.
        token: Secret<String>,
        /// The place after which it begins; none is now.
        after: Option<Cursor>,
    },
    /// A stream of the events of one job or run that the token's user may see, with whole returns.
    Follow {
        /// The stream's number.
        id: u64,
        /// The token.
        token: Secret<String>,
        /// `salt/job/JID` or `salt/run/JID`.
        tag: String,
        /// The place after which it begins.
        after: Cursor,
    },
    /// The end of a stream.
    Close {
        /// The stream's number.
        id: u64,
    },
    /// The first message over TLS: who this is. The key is the one that TLS has proved.
    Join {
        /// The version of the messages.
        version: u64,
        /// The node's name.
        name: String,
    },
    /// The connection is alive.
    Alive,
}

/// A message of a master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToNode {
    /// The first message.
    Hello {
        /// The version of the messages.
        version: u64,
        /// The place of the last event.
        at: Cursor,
        /// The master's clock.
        now: u64,
    },
    /// The connection is alive.
    Alive {
        /// The master's clock: milliseconds since some time of this start of it.
        now: u64,
        /// The largest number of a request or stream that has been read.
        seen: u64,
    },
    /// The reply to a request.
    Reply {
        /// The request's number.
        id: u64,
        /// The last event before the request: those of what it started come after.
        before: u64,
        /// A value, as on 4506.
        payload: Vec<u8>,
    },
    /// A stream has what was before, and gets from now on what its view gets.
    Watching {
        /// The stream's number.
        id: u64,
        /// Its view.
        view: u64,
        /// The last event before.
        seq: u64,
    },
    /// An event.
    Event {
        /// Its number.
        seq: u64,
        /// The views that may see it.
        views: Vec<u64>,
        /// The single streams that get it.
        streams: Vec<u64>,
        /// An event as [`crate::event::Event::encode`] makes it.
        event: Vec<u8>,
    },
    /// Events are missing.
    Lost {
        /// The last one of them.
        seq: u64,
        /// The single stream that lost them; none for all views.
        stream: Option<u64>,
        /// How many; none if that is not known.
        count: Option<u64>,
    },
    /// A stream has ended with its token, or could not begin.
    Ended {
        /// The stream's number.
        id: u64,
        /// Whether there is no such token.
        refused: bool,
    },
    /// A request was read too late, and not looked at.
    Late {
        /// The request's number.
        id: u64,
    },
    /// The node may not speak for anybody, and the connection ends.
    Refused(Refusal),
}

/// Why a node may not speak for anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// An operator has not accepted its key yet.
    Pending,
    /// An operator has rejected its key.
    Rejected,
    /// The master knows another key by this name.
    OtherKey,
    /// It has as many connections as it may, or all nodes together have.
    Many,
    /// The master speaks another version.
    Version,
}

impl Refusal {
    const ALL: [Self; 5] = [Self::Pending, Self::Rejected, Self::OtherKey, Self::Many, Self::Version];
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "its key waits to be accepted there",
            Self::Rejected => "its key has been rejected there",
            Self::OtherKey => "another key is known there by this name",
            Self::Many => "there are as many connections as there may be",
            Self::Version => "the master speaks another version",
        })
    }
}

/// Upper bound on the bytes of a node's name.
const NAME_MAX: usize = 253;

/// Checks the name of a node: letters, digits, and `.`, `_`, `-` between them. It is stricter than a minion's id, because operators copy
/// it out of logs into commands, and strangers choose it.
pub fn node_name(text: &str) -> Option<MinionId> {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_good = text.len() <= NAME_MAX
        && is_end(text.bytes().next())
        && is_end(text.bytes().next_back())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    MinionId::new(text).ok().filter(|_| is_good)
}

/// A message that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a message between a master and a node")]
pub struct NoMessage;

fn encode<const N: usize>(kind: u8, fields: [Value; N]) -> Vec<u8> {
    let items = std::iter::once(Value::from(kind)).chain(fields).collect();
    msgpack::encode_disk(&Value::Array(items))
}

fn optional<T: Into<Value>>(value: Option<T>) -> Value {
    value.map_or(Value::Nil, Into::into)
}

fn numbers(numbers: &[u64]) -> Value {
    Value::Array(numbers.iter().copied().map(Value::from).collect())
}

/// The fields of a message, taken one after the other.
struct Fields(std::vec::IntoIter<Value>);

impl Fields {
    fn read(bytes: &[u8]) -> Result<(u64, Self), NoMessage> {
        let Ok(Value::Array(items)) = msgpack::decode_disk(bytes, &LIMITS) else { return Err(NoMessage) };
        let mut fields = Self(items.into_iter());
        Ok((fields.number()?, fields))
    }

    fn next(&mut self) -> Result<Value, NoMessage> {
        self.0.next().ok_or(NoMessage)
    }

    fn number(&mut self) -> Result<u64, NoMessage> {
        self.next()?.as_u64().ok_or(NoMessage)
    }

    fn optional(&mut self) -> Result<Option<u64>, NoMessage> {
        match self.next()? {
            Value::Nil => Ok(None),
            value => value.as_u64().map(Some).ok_or(NoMessage),
        }
    }

    fn numbers(&mut self) -> Result<Vec<u64>, NoMessage> {
        self.next()?.list().ok_or(NoMessage)?.iter().map(|value| value.as_u64().ok_or(NoMessage)).collect()
    }

    fn text(&mut self) -> Result<String, NoMessage> {
        self.next()?.text().map(str::to_owned).ok_or(NoMessage)
    }

    /// A token or a tag.
    fn short(&mut self) -> Result<String, NoMessage> {
        Some(self.text()?).filter(|text| text.len() <= TOKEN_MAX).ok_or(NoMessage)
    }

    fn bytes(&mut self) -> Result<Vec<u8>, NoMessage> {
        match self.next()? {
            Value::Binary(bytes) => Ok(bytes),
            _ => Err(NoMessage),
        }
    }

    fn cursor(&mut self) -> Result<Option<Cursor>, NoMessage> {
        match self.next()? {
            Value::Nil => Ok(None),
            value => value.text().and_then(|text| text.parse().ok()).map(Some).ok_or(NoMessage),
        }
    }

    fn done<T>(mut self, message: T) -> Result<T, NoMessage> {
        self.0.next().map_or(Ok(message), |_| Err(NoMessage))
    }
}

impl ToMaster {
    /// Encodes the message.
    pub fn encode(self) -> Vec<u8> {
        let cursor = |cursor: Cursor| Value::from(cursor.to_string());
        match self {
            Self::Request { id, address, until, payload } => {
                encode(0, [id.into(), address.to_string().into(), until.into(), Value::Binary(payload)])
            }
            Self::Forget { id } => encode(1, [id.into()]),
            Self::Watch { id, token, after } => {
                encode(2, [id.into(), token.expose().as_str().into(), optional(after.map(cursor))])
            }
            Self::Follow { id, token, tag, after } => {
                encode(3, [id.into(), token.expose().as_str().into(), tag.into(), cursor(after)])
            }
            Self::Close { id } => encode(4, [id.into()]),
            Self::Join { version, name } => encode(5, [version.into(), name.into()]),
            Self::Alive => encode(6, []),
        }
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// When it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, NoMessage> {
        let (kind, mut fields) = Fields::read(bytes)?;
        let message = match kind {
            0 => {
                let (id, address) = (fields.number()?, fields.text()?.parse().map_err(|_| NoMessage)?);
                Self::Request { id, address, until: fields.number()?, payload: fields.bytes()? }
            }
            1 => Self::Forget { id: fields.number()? },
            2 => Self::Watch { id: fields.number()?, token: fields.short()?.into(), after: fields.cursor()? },
            3 => {
                let (id, token, tag) = (fields.number()?, fields.short()?.into(), fields.short()?);
                Self::Follow { id, token, tag, after: fields.cursor()?.ok_or(NoMessage)? }
            }
            4 => Self::Close { id: fields.number()? },
            5 => Self::Join { version: fields.number()?, name: fields.text()? },
            6 => Self::Alive,
            _ => return Err(NoMessage),
        };
        fields.done(message)
    }
}

impl ToNode {
    /// Encodes the message.
    pub fn encode(self) -> Vec<u8> {
        match self {
            Self::Hello { version, at, now } => encode(0, [version.into(), at.to_string().into(), now.into()]),
            Self::Alive { now, seen } => encode(1, [now.into(), seen.into()]),
            Self::Reply { id, before, payload } => encode(2, [id.into(), before.into(), Value::Binary(payload)]),
            Self::Watching { id, view, seq } => encode(3, [id.into(), view.into(), seq.into()]),
            Self::Event { seq, views, streams, event } => {
                encode(4, [seq.into(), numbers(&views), numbers(&streams), Value::Binary(event)])
            }
            Self::Lost { seq, stream, count } => encode(5, [seq.into(), optional(stream), optional(count)]),
            Self::Ended { id, refused } => encode(6, [id.into(), refused.into()]),
            Self::Late { id } => encode(7, [id.into()]),
            Self::Refused(why) => encode(8, [Value::from(why as u8)]),
        }
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// When it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, NoMessage> {
        let (kind, mut fields) = Fields::read(bytes)?;
        let message = match kind {
            0 => {
                let (version, at) = (fields.number()?, fields.cursor()?.ok_or(NoMessage)?);
                Self::Hello { version, at, now: fields.number()? }
            }
            1 => Self::Alive { now: fields.number()?, seen: fields.number()? },
            2 => Self::Reply { id: fields.number()?, before: fields.number()?, payload: fields.bytes()? },
            3 => Self::Watching { id: fields.number()?, view: fields.number()?, seq: fields.number()? },
            4 => Self::Event {
                seq: fields.number()?,
                views: fields.numbers()?,
                streams: fields.numbers()?,
                event: fields.bytes()?,
            },
            5 => Self::Lost { seq: fields.number()?, stream: fields.optional()?, count: fields.optional()? },
            6 => Self::Ended { id: fields.number()?, refused: fields.next()?.as_bool().ok_or(NoMessage)? },
            7 => Self::Late { id: fields.number()? },
            8 => {
                let why = usize::try_from(fields.number()?).map_err(|_| NoMessage)?;
                Self::Refused(*Refusal::ALL.get(why).ok_or(NoMessage)?)
            }
            _ => return Err(NoMessage),
        };
        fields.done(message)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AT: Cursor = Cursor { epoch: 7, seq: 9 };

    #[test]
    fn messages_come_as_they_were_sent() {
        let token = || Secret::new("ab".to_owned());
        for message in [
            ToMaster::Request { id: 1, address: IpAddr::from([192, 0, 2, 7]), until: 3, payload: vec![0xff, 0] },
            ToMaster::Forget { id: 1 },
            ToMaster::Watch { id: 2, token: token(), after: Some(AT) },
            ToMaster::Watch { id: 2, token: token(), after: None },
            ToMaster::Follow { id: 3, token: token(), tag: "salt/job/1".to_owned(), after: AT },
            ToMaster::Close { id: u64::MAX },
            ToMaster::Join { version: VERSION, name: "api1".to_owned() },
            ToMaster::Alive,
        ] {
            assert_eq!(ToMaster::decode(&message.clone().encode()), Ok(message));
        }
        for message in [
            ToNode::Hello { version: VERSION, at: AT, now: 7 },
            ToNode::Alive { now: 1, seen: u64::MAX },
            ToNode::Late { id: 3 },
            ToNode::Reply { id: 1, before: 2, payload: vec![0xff] },
            ToNode::Watching { id: 1, view: 2, seq: 3 },
            ToNode::Event { seq: 1, views: vec![2, 3], streams: Vec::new(), event: vec![1] },
            ToNode::Lost { seq: 1, stream: None, count: Some(3) },
            ToNode::Lost { seq: 1, stream: Some(2), count: None },
            ToNode::Ended { id: 1, refused: true },
        ] {
            assert_eq!(ToNode::decode(&message.clone().encode()), Ok(message));
        }
        for why in Refusal::ALL {
            assert_eq!(ToNode::decode(&ToNode::Refused(why).encode()), Ok(ToNode::Refused(why)));
        }
    }

    #[test]
    fn names_are_for_people_and_shells() {
        for good in ["api1", "a", "api-1.example.com", "API_2"] {
            assert_eq!(node_name(good).map(MinionId::into_string).as_deref(), Some(good));
        }
        let long = "x".repeat(NAME_MAX + 1);
        for wrong in ["", "*", "-a", "a*", "a b", "a;b", "$(x)", "a/b", "../x", ".x", "a.", "ä", "a\n", &long] {
            assert_eq!(node_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let ended = ToNode::Ended { id: 1, refused: true }.encode();
        assert_eq!(ToMaster::decode(&ended), Err(NoMessage));
        let request = |address: &str| encode(0, [1.into(), address.into(), 2.into(), Value::Binary(Vec::new())]);
        assert_eq!(ToNode::decode(&encode(8, [9.into()])), Err(NoMessage));
        assert!(ToMaster::decode(&request("192.0.2.7")).is_ok());
        // As many as there may be streams wait at once, so what each holds has a bound.
        let watch = |token: usize| encode(2, [1.into(), "x".repeat(token).into(), Value::Nil]);
        let follow = |token: usize, tag: usize| {
            encode(3, [1.into(), "x".repeat(token).into(), "x".repeat(tag).into(), AT.to_string().into()])
        };
        assert!(ToMaster::decode(&watch(TOKEN_MAX)).is_ok() && ToMaster::decode(&follow(TOKEN_MAX, TOKEN_MAX)).is_ok());
        for wrong in [watch(TOKEN_MAX + 1), follow(TOKEN_MAX + 1, 1), follow(1, TOKEN_MAX + 1)] {
            assert_eq!(ToMaster::decode(&wrong), Err(NoMessage));
        }
        for wrong in [request("local"), request(""), encode(4, [1.into(), 2.into()]), encode(9, [1.into()]), vec![0x90]]
        {
            assert_eq!(ToMaster::decode(&wrong), Err(NoMessage), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = ToMaster::decode(&bytes);
            let _ = ToNode::decode(&bytes);
        }
    }
}
