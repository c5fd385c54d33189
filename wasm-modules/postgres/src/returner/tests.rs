//! A server that says what a test has it say.

use std::collections::VecDeque;

use super::*;

struct Scripted {
    answers: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

impl Link for &mut Scripted {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.sent.push(bytes.to_vec());
        Ok(())
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        Ok(self.answers.pop_front().unwrap_or_default())
    }
}

fn says(answers: &[Vec<u8>]) -> Scripted {
    Scripted { answers: answers.iter().cloned().collect(), sent: Vec::new() }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

fn asks(code: i32, rest: &[u8]) -> Vec<u8> {
    message(b'R', &[&code.to_be_bytes()[..], rest].concat())
}

const LOGIN: Login<'static> = Login { user: "salt", password: "pencil", database: "db", random: &[7; 24] };

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn log_in(answers: &[Vec<u8>]) -> (Result<()>, Vec<Vec<u8>>) {
    let mut server = says(answers);
    let done = Session::begin(&mut server, &LOGIN).map(drop);
    (done, server.sent)
}

#[test]
fn a_statement_goes_to_a_server_that_asks_for_no_password() {
    let greeting = [asks(0, b""), message(b'S', b"a\0b\0"), message(b'K', &[0; 8]), ready()].concat();
    let done = [message(b'1', b""), message(b'2', b""), message(b'N', b"x"), message(b'C', b"INSERT 0 1\0"), ready()];
    // In parts of any size.
    let bytes = [greeting, done.concat()].concat();
    let mut server = says(&bytes.chunks(3).map(<[u8]>::to_vec).collect::<Vec<_>>());
    let mut session = Session::begin(&mut server, &LOGIN).unwrap();
    session.run("insert $1", &["v\u{e4}l"]).unwrap();
    session.end();
    let start = b"\0\0\0\x33\0\x03\0\0user\0salt\0database\0db\0client_encoding\0UTF8\0\0";
    assert_eq!(server.sent[0][4..], start[4..]);
    assert_eq!(server.sent[0].len(), usize::from(server.sent[0][3]));
    let expected = b"P\0\0\0\x11\0insert $1\0\0\0B\0\0\0\x14\0\0\0\0\0\x01\0\0\0\x04v\xc3\xa4l\0\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
    assert_eq!(server.sent[1], expected, "{:?}", String::from_utf8_lossy(&server.sent[1]));
    assert_eq!(server.sent[2], b"X\0\0\0\x04");
}

#[test]
fn a_password_is_never_sent_as_it_is() {
    let (failed, sent) = log_in(&[asks(3, b"")]);
    assert!(failed.unwrap_err().contains("scram-sha-256") && sent.len() == 1);
    let (done, sent) = log_in(&[asks(5, b"1234"), asks(0, b""), ready()]);
    done.unwrap();
    assert!(sent[1].starts_with(b"p\0\0\0\x28md5"));
    let all: Vec<u8> = sent.concat();
    assert!(!all.windows(6).any(|part| part == b"pencil"));
}

/// Whoever is between has no proof of the password.
#[test]
fn a_server_has_to_prove_itself() {
    let mechanisms = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
    let (failed, sent) = log_in(&[asks(10, mechanisms), asks(0, b""), ready()]);
    assert!(failed.is_err() && sent[1].windows(13).any(|part| part == b"SCRAM-SHA-256"));
    let nonce = Proofs::nonce();
    let first = format!("r={nonce}server,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
    for last in [&b"v=AAAA"[..], b"", b"e=x"] {
        let (failed, sent) = log_in(&[asks(10, mechanisms), asks(11, first.as_bytes()), asks(12, last), ready()]);
        assert_eq!(failed.unwrap_err(), "the server does not know the password that it asks for");
        assert_eq!(sent.len(), 3);
    }
    let (failed, _) = log_in(&[asks(10, mechanisms), asks(11, first.as_bytes()), asks(0, b""), ready()]);
    assert!(failed.is_err());
    let (failed, _) = log_in(&[asks(10, b"OTHER\0\0")]);
    assert!(failed.is_err());
}

struct Proofs;

impl Proofs {
    fn nonce() -> String {
        brine_postgresql::scram::Proof::new("pencil", LOGIN.random).first().split_off("n,,n=,r=".len())
    }
}

#[test]
fn what_a_server_says_wrong_is_an_error() {
    let refused = message(b'E', b"SFATAL\0C28P01\0Mpassword authentication failed\0\0");
    let (failed, _) = log_in(&[refused]);
    assert_eq!(failed.unwrap_err(), "the server says: password authentication failed (28P01)");
    for odd in [
        Vec::new(),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        vec![b'R', 0, 0, 0, 0],
        vec![b'R', 0xff, 0xff, 0xff, 0xff],
        message(b'R', b"\0\0"),
        message(b'Z', b""),
        asks(0, b""),
        [asks(0, b""), message(b'R', b"")].concat(),
        message(b'N', b"").repeat(20_000),
        asks(7, b""),
    ] {
        assert!(log_in(std::slice::from_ref(&odd)).0.is_err(), "{:?}", &odd[..odd.len().min(40)]);
    }
    let mut server = says(&[asks(0, b""), ready(), message(b'E', b"Mno table\0\0")]);
    let mut session = Session::begin(&mut server, &LOGIN).unwrap();
    assert_eq!(session.run("insert", &[]).unwrap_err(), "the server says: no table");
    assert!(Session::begin(&mut says(&[]), &Login { user: "a\0b", ..LOGIN }).is_err());
}

#[test]
fn a_return_is_a_row_of_salts_table() {
    let long = "x".repeat(60);
    let ret = Value::dict([
        ("fun", long.as_str().into()),
        ("jid", "20261126".into()),
        ("id", "web1".into()),
        ("return", Value::List(vec![1_i64.into(), "\u{e4}\0".into()])),
        ("success", true.into()),
    ]);
    let [fun, jid, value, id, success, full] = row(&ret).unwrap();
    assert_eq!((fun.len(), jid.as_str(), id.as_str(), success.as_str()), (50, "20261126", "web1", "true"));
    assert!(!value.contains('\0') && value.starts_with("[1, "), "{value}");
    assert!(full.contains(&long));
    assert!(row(&Value::dict([("fun", "x".into())])).is_err());
}
