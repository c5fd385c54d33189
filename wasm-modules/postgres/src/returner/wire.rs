//! PostgreSQL's protocol, version 3, as far as one statement needs it.
//!
//! A server that asks for a password as it is does not get it: the connection is not encrypted.

use brine_guest::Result;
use brine_postgresql::scram::{self, Proof};

/// The protocol's number: 3.0.
const VERSION: i32 = 196_608;
/// Upper bound on the bytes of a message from the server. What a statement without rows is answered is short.
const MAX_MESSAGE: usize = 1 << 20;
/// Upper bound on the messages of one connection.
const MAX_MESSAGES: usize = 10_000;
/// Upper bound on the characters of a server's error.
const MAX_ERROR: usize = 500;

/// A connection's bytes.
pub trait Link {
    fn send(&mut self, bytes: &[u8]) -> Result<()>;
    /// Waits for bytes; none at the end.
    fn receive(&mut self) -> Result<Vec<u8>>;
}

/// A session that is logged in.
pub struct Session<L> {
    link: L,
    received: Vec<u8>,
    messages: usize,
}

/// Who logs in.
pub struct Login<'a> {
    pub user: &'a str,
    pub password: &'a str,
    pub database: &'a str,
    /// Bytes that nobody can predict.
    pub random: &'a [u8],
}

impl<L: Link> Session<L> {
    /// Logs in.
    pub fn begin(link: L, login: &Login<'_>) -> Result<Self> {
        let mut session = Self { link, received: Vec::new(), messages: 0 };
        let mut start = VERSION.to_be_bytes().to_vec();
        let pairs = [("user", login.user), ("database", login.database), ("client_encoding", "UTF8")];
        for (name, value) in pairs {
            text(&mut start, name)?;
            text(&mut start, value)?;
        }
        start.push(0);
        session.link.send(&framed(None, &start)?)?;
        let mut proof = None;
        loop {
            let (kind, body) = session.message()?;
            if kind != b'R' {
                return Err(unexpected(kind));
            }
            let (code, rest) = body.split_first_chunk().ok_or_else(short)?;
            match (i32::from_be_bytes(*code), &mut proof) {
                // The server has proved itself if it had to.
                (0, None) => break,
                (0, Some((_, true))) => break,
                (5, None) => {
                    let answer = scram::md5(login.user, login.password, rest);
                    session.password(&answer)?;
                }
                (10, None) => {
                    if !rest.split(|byte| *byte == 0).any(|name| name == scram::NAME.as_bytes()) {
                        return Err("the server asks for a way to log in that is not known here".into());
                    }
                    let begun = Proof::new(login.password, login.random);
                    let first = begun.first();
                    let mut message = Vec::new();
                    text(&mut message, scram::NAME)?;
                    message.extend(length(first.len())?.to_be_bytes());
                    message.extend(first.as_bytes());
                    session.link.send(&framed(Some(b'p'), &message)?)?;
                    proof = Some((begun, false));
                }
                (11, Some((proof, false))) => {
                    let second = proof.second(rest)?;
                    session.link.send(&framed(Some(b'p'), second.as_bytes())?)?;
                }
                (12, Some((proof, proved))) => {
                    proof.check(rest)?;
                    *proved = true;
                }
                (3, _) => {
                    return Err("the server asks for the password as it is, over a connection that is not encrypted; \
                                it is to ask for scram-sha-256"
                        .into());
                }
                _ => return Err("the server asks for a way to log in that is not known here".into()),
            }
        }
        session.ready()?;
        Ok(session)
    }

    /// Runs one statement with text parameters.
    pub fn run(&mut self, statement: &str, parameters: &[&str]) -> Result<()> {
        let mut all = Vec::new();
        let mut parse = vec![0];
        text(&mut parse, statement)?;
        parse.extend([0, 0]);
        all.extend(framed(Some(b'P'), &parse)?);
        let count = i16::try_from(parameters.len()).map_err(|_| "too many parameters")?.to_be_bytes();
        let mut bind = vec![0, 0, 0, 0];
        bind.extend(count);
        for parameter in parameters {
            bind.extend(length(parameter.len())?.to_be_bytes());
            bind.extend(parameter.as_bytes());
        }
        bind.extend([0, 0]);
        all.extend(framed(Some(b'B'), &bind)?);
        all.extend(framed(Some(b'E'), &[0, 0, 0, 0, 0])?);
        all.extend(framed(Some(b'S'), &[])?);
        self.link.send(&all)?;
        self.ready()
    }

    /// Says goodbye.
    pub fn end(mut self) {
        if let Ok(message) = framed(Some(b'X'), &[]) {
            // It was answered already.
            let _ = self.link.send(&message);
        }
    }

    fn password(&mut self, password: &str) -> Result<()> {
        let mut message = Vec::new();
        text(&mut message, password)?;
        self.link.send(&framed(Some(b'p'), &message)?)
    }

    /// Reads on until the server waits. Its error is one here.
    fn ready(&mut self) -> Result<()> {
        loop {
            match self.message()? {
                (b'Z', _) => return Ok(()),
                // Done with the parts of a statement, keys, rows that nobody asked for.
                (b'1' | b'2' | b'C' | b'K' | b'n' | b'T' | b'D' | b'I', _) => {}
                (kind, _) => return Err(unexpected(kind)),
            }
        }
    }

    /// The next message that counts.
    fn message(&mut self) -> Result<(u8, Vec<u8>)> {
        loop {
            self.messages += 1;
            if self.messages > MAX_MESSAGES {
                return Err("the server sends too much".into());
            }
            let head = self.take(5)?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let length = length.checked_sub(4).filter(|length| *length <= MAX_MESSAGE);
            let body = self.take(length.ok_or("what answers is no PostgreSQL server")?)?;
            match head[0] {
                b'E' => return Err(error(&body)),
                // Notices, settings, notifications.
                b'N' | b'S' | b'A' => {}
                kind => return Ok((kind, body)),
            }
        }
    }

    fn take(&mut self, bytes: usize) -> Result<Vec<u8>> {
        while self.received.len() < bytes {
            let more = self.link.receive()?;
            if more.is_empty() {
                return Err("the server closed the connection".into());
            }
            self.received.extend(more);
        }
        let rest = self.received.split_off(bytes);
        Ok(std::mem::replace(&mut self.received, rest))
    }
}

/// A message: its kind, its length with these four bytes, its content.
fn framed(kind: Option<u8>, content: &[u8]) -> Result<Vec<u8>> {
    let mut message: Vec<u8> = kind.into_iter().collect();
    message.extend((length(content.len())?.checked_add(4).ok_or_else(large)?).to_be_bytes());
    message.extend(content);
    Ok(message)
}

fn length(bytes: usize) -> Result<i32> {
    i32::try_from(bytes).map_err(|_| large())
}

fn text(message: &mut Vec<u8>, text: &str) -> Result<()> {
    if text.contains('\0') {
        return Err("a setting of the returner has a NUL character".into());
    }
    message.extend(text.as_bytes());
    message.push(0);
    Ok(())
}

/// The server's message and code.
fn error(body: &[u8]) -> String {
    let field = |kind: u8| {
        let field = body.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(&[kind]));
        field.map(|text| String::from_utf8_lossy(text).chars().take(MAX_ERROR).collect::<String>())
    };
    let message = field(b'M').unwrap_or_else(|| "no reason".into());
    match field(b'C') {
        Some(code) => format!("the server says: {message} ({code})"),
        None => format!("the server says: {message}"),
    }
}

fn unexpected(kind: u8) -> String {
    format!("the server sends a message of the kind {:?} at the wrong time", char::from(kind))
}

fn short() -> String {
    "the server sends a message that is too short".into()
}

fn large() -> String {
    "the return is too large".into()
}
