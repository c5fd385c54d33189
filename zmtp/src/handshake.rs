//! Greeting and READY of the NULL mechanism (RFC 37, "Greeting" and "The NULL Security Mechanism"), under one deadline.

use std::{io, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{io::Interest, time::timeout};

use crate::{
    frame::{Command, Decoded, Decoder, DecoderLimits, FrameError, ReadyProperties, encode_command},
    stream::Stream,
};

pub(crate) const GREETING_LEN: usize = 64;
/// Upper bound on READY, which has about 30 bytes, or 300 with the longest identity.
const MAX_READY_LEN: usize = 4096;
/// Bytes of one read. Bytes after READY belong to the connection.
const READ_LEN: usize = 1024;

/// This side's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketType {
    Pub,
    Sub,
    Router,
    Req,
}

impl SocketType {
    fn name(self) -> &'static str {
        match self {
            SocketType::Pub => "PUB",
            SocketType::Sub => "SUB",
            SocketType::Router => "ROUTER",
            SocketType::Req => "REQ",
        }
    }

    /// The types of sockets that it may talk to (RFC 37, "The Socket-Type Property").
    fn peers(self) -> &'static [&'static str] {
        match self {
            SocketType::Pub => &["SUB", "XSUB"],
            SocketType::Sub => &["PUB", "XPUB"],
            SocketType::Router => &["REQ", "DEALER", "ROUTER"],
            SocketType::Req => &["REP", "ROUTER"],
        }
    }
}

/// The handshake failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("no handshake within {0:?}")]
    Deadline(Duration),
    #[error("the peer closed the connection during the handshake")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the peer does not speak ZMTP 3 (its greeting starts with {0})")]
    NotZmtp(String),
    #[error("the peer wants mechanism {0}, this side speaks NULL only")]
    Mechanism(String),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("the peer sent something else than READY")]
    NotReady,
    #[error("the peer refused: {0}")]
    Refused(String),
    #[error("the peer is a {theirs} socket, which cannot talk to a {ours} socket")]
    SocketType { ours: &'static str, theirs: String },
}

impl HandshakeError {
    /// Whether the peer violated the protocol, as opposed to a network error.
    pub(crate) fn is_violation(&self) -> bool {
        !matches!(self, HandshakeError::Closed | HandshakeError::Io(_))
    }
}

/// A peer after the handshake.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) stream: Stream,
    /// Whether the peer knows the commands of ZMTP 3.1: PING, SUBSCRIBE, CANCEL.
    pub(crate) knows_3_1: bool,
    /// Bytes that were read beyond READY.
    pub(crate) input: BytesMut,
}

/// Performs the handshake within its deadline.
pub(crate) async fn handshake(
    stream: Stream,
    ours: SocketType,
    identity: Option<&Bytes>,
    deadline: Duration,
) -> Result<Established, HandshakeError> {
    timeout(deadline, exchange(stream, ours, identity)).await.map_err(|_| HandshakeError::Deadline(deadline))?
}

async fn exchange(
    mut stream: Stream,
    ours: SocketType,
    identity: Option<&Bytes>,
) -> Result<Established, HandshakeError> {
    write_all(&stream, &encode_greeting()).await?;
    let mut input = BytesMut::new();
    let knows_3_1 = loop {
        if let Some(knows_3_1) = parse_greeting(&input)? {
            input.advance(GREETING_LEN);
            break knows_3_1;
        }
        read_some(&mut stream, &mut input).await?;
    };
    let ready = Command::Ready(ReadyProperties {
        socket_type: Bytes::from_static(ours.name().as_bytes()),
        identity: identity.cloned().unwrap_or_default(),
    });
    write_all(&stream, &encode_command(&ready)).await?;

    let mut decoder = Decoder::new(DecoderLimits { max_message: 0, max_frames: 0, max_command: MAX_READY_LEN });
    let item = loop {
        let mut bytes = &input[..];
        let item = decoder.decode(&mut bytes)?;
        let used = input.len() - bytes.len();
        input.advance(used);
        match item {
            Some(item) => break item,
            None => read_some(&mut stream, &mut input).await?,
        }
    };
    match item {
        Decoded::Command(Command::Ready(theirs)) => {
            let known = ours.peers().iter().any(|name| name.as_bytes() == &theirs.socket_type[..]);
            if !known {
                let theirs = printable(&theirs.socket_type);
                let error = HandshakeError::SocketType { ours: ours.name(), theirs };
                // The refusal is for the peer's log; it does not matter whether it arrives.
                let refusal = encode_command(&Command::Error(Bytes::from("Invalid socket type")));
                let _ = stream.try_write(&[io::IoSlice::new(&refusal)]);
                return Err(error);
            }
            Ok(Established { stream, knows_3_1, input })
        }
        Decoded::Command(Command::Error(reason)) => Err(HandshakeError::Refused(printable(&reason))),
        Decoded::Command(_) | Decoded::Message(_) => Err(HandshakeError::NotReady),
    }
}

fn encode_greeting() -> [u8; GREETING_LEN] {
    let mut greeting = [0; GREETING_LEN];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting[11] = 1;
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

/// Returns whether the peer knows ZMTP 3.1, once its greeting is complete. Refuses an invalid greeting as early as
/// possible.
fn parse_greeting(bytes: &[u8]) -> Result<Option<bool>, HandshakeError> {
    let not_zmtp = || HandshakeError::NotZmtp(printable(&bytes[..bytes.len().min(12)]));
    // ZMTP 1 and 2 peers fill in the length of the signature; the revision after it identifies them.
    if bytes.first().is_some_and(|first| *first != 0xff)
        || bytes.get(9).is_some_and(|last| last & 1 == 0)
        || bytes.get(10).is_some_and(|major| *major < 3)
    {
        return Err(not_zmtp());
    }
    let Some(greeting) = bytes.first_chunk::<GREETING_LEN>() else { return Ok(None) };
    let mechanism = &greeting[12..32];
    if mechanism[..4] != *b"NULL" || mechanism[4..].iter().any(|byte| *byte != 0) {
        let end = mechanism.iter().position(|byte| *byte == 0).unwrap_or(mechanism.len());
        return Err(HandshakeError::Mechanism(printable(&mechanism[..end])));
    }
    Ok(Some(greeting[10] > 3 || greeting[11] >= 1))
}

/// Makes foreign bytes printable for a log.
fn printable(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

async fn read_some(stream: &mut Stream, input: &mut BytesMut) -> Result<(), HandshakeError> {
    loop {
        stream.ready(Interest::READABLE).await?;
        match stream.try_read(input, READ_LEN)? {
            Some(0) => return Err(HandshakeError::Closed),
            Some(_) => return Ok(()),
            // There was nothing, or this task has to let others run.
            None => tokio::task::coop::consume_budget().await,
        }
    }
}

async fn write_all(stream: &Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.ready(Interest::WRITABLE).await?;
        if let Some(count) = stream.try_write(&[io::IoSlice::new(bytes)])? {
            bytes = &bytes[count..];
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_greetings_of_3_0_and_3_1() {
        let mut greeting = encode_greeting();
        for len in 0..GREETING_LEN {
            assert!(matches!(parse_greeting(&greeting[..len]), Ok(None)), "{len}");
        }
        assert!(matches!(parse_greeting(&greeting), Ok(Some(true))));
        greeting[11] = 0;
        assert!(matches!(parse_greeting(&greeting), Ok(Some(false))));
        // A later version announces itself but speaks 3.1.
        greeting[10] = 4;
        assert!(matches!(parse_greeting(&greeting), Ok(Some(true))));
    }

    #[test]
    fn refuses_strangers_at_their_first_wrong_byte() {
        assert!(matches!(parse_greeting(b"G"), Err(HandshakeError::NotZmtp(_))));
        assert!(matches!(parse_greeting(b"\xff\0\0\0\0\0\0\0\x01\x7e"), Err(HandshakeError::NotZmtp(_))));
        let zmtp_2 = parse_greeting(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01").unwrap_err();
        assert_eq!(
            zmtp_2.to_string(),
            r"the peer does not speak ZMTP 3 (its greeting starts with \xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01)"
        );
        let mut curve = encode_greeting();
        curve[12..17].copy_from_slice(b"CURVE");
        let error = parse_greeting(&curve).unwrap_err().to_string();
        assert_eq!(error, "the peer wants mechanism CURVE, this side speaks NULL only");
        let mut trailing = encode_greeting();
        trailing[31] = 1;
        assert!(matches!(parse_greeting(&trailing), Err(HandshakeError::Mechanism(_))));
    }
}
