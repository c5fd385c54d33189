//! Requests, replies, publications and events.

use std::sync::Arc;

use super::{KEYS, aes_key, hex, lines, list, text, value_of};
use crate::auth::Credentials;
use crate::crypticle::{Crypticle, SerialGuard};
use crate::envelope::{AesEnvelope, Envelope};
use crate::event::{self, Event, FrameDecoder, Framing};
use crate::ids::MinionId;
use crate::keys::{EncAlg, SignAlg};
use crate::msgpack::{self, Limits};
use crate::publication::{self, PublicationError};
use crate::request::{self, ReplyError, Request, RequestPolicy, Session};
use crate::value::{Value, ValueExt};
use serde_json::Value as Json;

lines! {
    aes_request: check_aes_request;
    aes_reply: check_aes_reply;
    pillar_reply: check_pillar_reply;
    publish_signed: check_publish_signed;
    publish_unsigned_is_refused: check_publish_unsigned;
    publish_topics: check_publish_topics;
    clear_publish: check_clear_publish;
    event_bytes: check_event_bytes;
    event_framing: check_event_framing;
    tcp_frame: check_tcp_frame;
}

fn minion_id() -> MinionId {
    MinionId::new("vec-minion").unwrap()
}

fn session(line: &Json) -> Session {
    let credentials = Credentials {
        publish_key: aes_key(&line["auth"], "aes_key"),
        session_key: aes_key(&line["auth"], "session_key"),
        publish_port: 4505,
        master: KEYS.master.public().clone(),
        master_is_new: false,
        offer: None,
        run: None,
    };
    let key = Arc::new(KEYS.minion.clone());
    Session::new(&minion_id(), key, &credentials, EncAlg::OaepSha1, SignAlg::Pkcs1v15Sha1).unwrap()
}

fn aes_envelope(bytes: &[u8]) -> AesEnvelope {
    match Envelope::decode(bytes, &Limits::ENVELOPE).unwrap() {
        Envelope::Aes(envelope) => envelope,
        Envelope::Clear { .. } => panic!("clear"),
    }
}

fn policy() -> RequestPolicy {
    RequestPolicy { minimum_version: 3, ttl: 0, now: 0, limits: Limits::REQUEST }
}

fn check_aes_request(line: &Json) {
    let part = &line["aes_request"];
    let sent = hex(part, "request_hex");
    let envelope = aes_envelope(&sent);
    assert_eq!(Envelope::Aes(envelope.clone()).encode(), sent);

    let crypticle = Crypticle::new(&aes_key(part, "session_key"));
    let read = request::open_request(&envelope, &crypticle, &policy(), |_| Some(KEYS.minion.public().clone())).unwrap();
    let whole = value_of(&part["decrypted_load"]);
    let mut expect = whole.clone();
    expect.remove("nonce");
    expect.remove("tok");
    assert_eq!((read.load, read.cmd.as_str(), read.id), (expect, "_return", minion_id()));
    assert_eq!(read.nonce.as_deref(), part["nonce"].as_str());

    // With the same nonce and time, the minion sends the same plaintext in an envelope of the same length.
    let mut load = whole;
    let ts = load.remove("ts").unwrap().as_i64().unwrap();
    load.remove("nonce");
    load.remove("tok");
    let ours = session(line).seal_with(load, text(part, "nonce").to_owned(), ts).unwrap();
    assert_eq!(ours.payload.len(), sent.len());
    let plaintext = |bytes: &[u8]| crypticle.decrypt(&aes_envelope(bytes).load).unwrap();
    assert_eq!(plaintext(&ours.payload), plaintext(&sent));
}

fn check_aes_reply(line: &Json) {
    let part = &line["aes_reply"];
    let (sent, nonce) = (hex(part, "reply_hex"), text(part, "nonce"));
    let session = session(line);
    assert_eq!(session.open_reply(&sent, nonce).unwrap(), value_of(&part["value"]));
    assert!(session.open_reply(&sent, "ffffffffffffffffffffffffffffffff").is_err());

    let crypticle = Crypticle::new(&aes_key(&line["auth"], "session_key"));
    let ours = request::seal_reply(&crypticle, &value_of(&part["value"]), Some(nonce));
    let blob = |bytes: &[u8]| msgpack::decode(bytes, &Limits::REQUEST).unwrap().bytes().unwrap().to_vec();
    assert_eq!(crypticle.decrypt(&blob(&ours)).unwrap(), crypticle.decrypt(&blob(&sent)).unwrap());
    assert_eq!(ours[..3], sent[..3], "one raw string");
}

fn check_pillar_reply(line: &Json) {
    let part = &line["pillar_reply"];
    let (sent, nonce) = (hex(part, "reply_hex"), text(part, "nonce"));
    let session = session(line);
    let pillar = value_of(&part["inner"]["pillar"]);
    assert_eq!(session.open_pillar_reply(&sent, nonce).unwrap(), pillar);
    let replayed = session.open_pillar_reply(&sent, "ffffffffffffffffffffffffffffffff");
    assert!(matches!(replayed, Err(ReplyError::Crypt(_))));

    let request = Request {
        id: minion_id(),
        load: Value::Nil,
        seals: false,
        run: None,
        nonce: Some(nonce.to_owned()),
        cmd: "_pillar".to_owned(),
        enc_algo: None,
        sig_algo: None,
    };
    let ours = request::seal_pillar_reply(&pillar, &request, KEYS.minion.public(), &KEYS.master).unwrap();
    assert_eq!(ours.len(), sent.len());
    assert_eq!(session.open_pillar_reply(&ours, nonce).unwrap(), pillar);
    let stranger = request::seal_pillar_reply(&pillar, &request, KEYS.minion.public(), &KEYS.sign).unwrap();
    assert_eq!(session.open_pillar_reply(&stranger, nonce), Err(ReplyError::BadSignature));
}

fn publications(line: &Json, signed: bool) -> impl Iterator<Item = (&Json, Vec<Vec<u8>>)> {
    list(line, "publish").iter().filter(move |p| p["signed"] == signed).flat_map(|p| {
        list(p, "zmq_messages").iter().map(move |m| {
            (p, m.as_array().unwrap().iter().map(|f| hex::decode(f.as_str().unwrap()).unwrap()).collect())
        })
    })
}

fn check_publish_signed(line: &Json) {
    let mut serials = SerialGuard::new();
    let mut seen = 0;
    for (part, frames) in publications(line, true) {
        let crypticle = Crypticle::new(&aes_key(part, "aes_key"));
        let payload = frames.last().unwrap();
        let open = |serials: &mut SerialGuard| publication::open(payload, KEYS.master.public(), &crypticle, serials);
        let mut expect = value_of(&part["decrypted"]);
        let serial = expect.remove("serial").unwrap().as_u64().unwrap();
        assert_eq!(open(&mut serials).unwrap(), expect);
        assert_eq!(open(&mut serials), Err(PublicationError::Replayed(serial)));

        let ours = publication::seal(expect, serial, &crypticle, &KEYS.master, SignAlg::Pkcs1v15Sha1).unwrap();
        let (ours, sent) = (aes_parts(&ours), aes_parts(payload));
        assert_eq!(crypticle.decrypt(&ours.0).unwrap(), crypticle.decrypt(&sent.0).unwrap());
        assert_eq!(ours.1, sent.1);
        seen += 1;
    }
    assert!(seen > 1);
}

/// The blob of a publication, and the names of its fields.
fn aes_parts(bytes: &[u8]) -> (Vec<u8>, Vec<String>) {
    let envelope = msgpack::decode(bytes, &Limits::PUBLICATION).unwrap();
    let names = envelope.entries().unwrap().iter().map(|(k, _)| k.python_str()).collect();
    (envelope.get_bytes("load").unwrap().to_vec(), names)
}

fn check_publish_unsigned(line: &Json) {
    for (part, frames) in publications(line, false) {
        let crypticle = Crypticle::new(&aes_key(part, "aes_key"));
        let opened =
            publication::open(frames.last().unwrap(), KEYS.master.public(), &crypticle, &mut SerialGuard::new());
        assert_eq!(opened, Err(PublicationError::BadSignature));
    }
}

fn check_publish_topics(line: &Json) {
    for (part, frames) in publications(line, true).filter(|(_, frames)| frames.len() == 2) {
        let topics: Vec<String> = list(part, "topics")
            .iter()
            .map(|id| publication::topic(&MinionId::new(id.as_str().unwrap()).unwrap()))
            .collect();
        assert!(topics.iter().any(|t| t.as_bytes() == frames[0]));
    }
}

fn check_clear_publish(line: &Json) {
    let part = &line["clear_publish"];
    let sent = hex(part, "request_hex");
    let envelope = Envelope::decode(&sent, &Limits::ENVELOPE).unwrap();
    assert!(matches!(&envelope, Envelope::Clear { load, .. } if load.get_text("cmd") == Some("publish")));
    assert_eq!(envelope.encode(), sent);
    let reply = hex(part, "response_hex");
    assert_eq!(request::clear_reply(&msgpack::decode(&reply, &Limits::REQUEST).unwrap()), reply);
}

fn event_of(line: &Json) -> Event {
    Event { tag: text(&line["event"], "tag").to_owned(), data: value_of(&line["event"]["data"]) }
}

fn check_event_bytes(line: &Json) {
    let sent = hex(&line["event"], "event_hex");
    assert_eq!(event_of(line).encode(), sent);
    assert_eq!(Event::decode(&sent).unwrap(), event_of(line));
}

fn check_event_framing(line: &Json) {
    let (push, publish) = (hex(&line["event"], "ipc_push_hex"), hex(&line["event"], "ipc_pub_hex"));
    assert_eq!(event::frame(&event_of(line), Framing::Prefixed), push);
    let framing = if line["event"]["pub_is_length_prefixed"] == true { Framing::Prefixed } else { Framing::Bare };
    assert_eq!(event::frame(&event_of(line), framing), publish);
    for sent in [push, publish] {
        let mut decoder = FrameDecoder::default();
        decoder.buffer().extend_from_slice(&sent);
        assert_eq!(decoder.next_event().unwrap(), Some(event_of(line)));
        assert_eq!(decoder.next_event().unwrap(), None);
    }
}

fn check_tcp_frame(line: &Json) {
    let sent = hex(&line["tcp_frame"], "hex");
    let (read, len) = msgpack::decode_prefix(&sent, &Limits::REQUEST).unwrap();
    assert_eq!((read.clone(), len), (value_of(&line["tcp_frame"]["decoded"]), sent.len()));
    assert_eq!(msgpack::encode_disk(&read), sent);
}
