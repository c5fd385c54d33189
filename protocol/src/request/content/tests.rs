//! Content under an AEAD: what opens, and what is refused.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;

use super::*;
use crate::auth::Credentials;
use crate::crypticle::Crypticle;
use crate::envelope::{AesEnvelope, Envelope};
use crate::keys::{EncAlg, PrivateKey, SignAlg};
use crate::request::{ReplyError, SealedRequest, Session, seal_content_reply, seal_reply};
use crate::value::map;

static KEY: LazyLock<Arc<PrivateKey>> =
    LazyLock::new(|| Arc::new(PrivateKey::from_pem(brine_kit::keys::PEM[1]).unwrap()));

fn session(name: &str, key: &AesKey) -> Session {
    let credentials = Credentials {
        publish_key: AesKey::generate(),
        session_key: key.clone(),
        publish_port: 4505,
        master: KEY.public().clone(),
        master_is_new: false,
        offer: None,
        run: None,
    };
    let id = MinionId::new(name).unwrap();
    Session::new(&id, Arc::clone(&KEY), &credentials, EncAlg::default(), SignAlg::default()).unwrap()
}

fn request(session: &Session, path: &str, loc: u64) -> (SealedRequest, AesEnvelope) {
    let load = map([("cmd", Value::from("_serve_file")), ("path", Value::from(path)), ("loc", Value::from(loc))]);
    let sealed = session.seal_request(load).unwrap();
    let Envelope::Aes(envelope) = Envelope::decode(&sealed.payload, &Limits::ENVELOPE).unwrap() else { panic!() };
    (sealed, envelope)
}

fn file(content: &[u8]) -> Value {
    map([("data", Value::Binary(content.to_vec())), ("dest", Value::from("a"))])
}

/// An answer about several files, of which one is missing and one has to be asked for alone.
fn several() -> Value {
    let mut answer = file(b"first");
    let missing = map([("data", ""), ("dest", "")]);
    let also = vec![file(b"second"), missing, Value::Nil, file(b""), file(&[0xc1; 100])];
    answer.insert("also", Value::Array(also));
    answer
}

fn open(session: &Session, reply: &[u8], asked: &SealedRequest) -> Result<Value, ReplyError> {
    session.open_content(Bytes::copy_from_slice(reply), &asked.nonce, &asked.mac)
}

#[test]
fn contents_come_as_they_were_in_order() {
    let key = AesKey::generate();
    let minion = session("web1", &key);
    let (asked, envelope) = request(&minion, "a", 0);
    for answer in [several(), file(b""), file(&vec![7; 300_000]), map([("data", ""), ("dest", "")]), Value::Nil] {
        let reply = seal_content_reply(&key, answer.clone(), &envelope).unwrap();
        let opened = open(&minion, &reply, &asked).unwrap();
        // Byte strings stay bytes, as the raw form of a Crypticle's answer has them.
        let raw = msgpack::decode_raw(&msgpack::encode_network(&answer), &Limits::REQUEST).unwrap();
        assert_eq!(opened, raw);
    }
}

#[test]
fn a_changed_or_truncated_answer_is_refused() {
    let key = AesKey::generate();
    let minion = session("web1", &key);
    let (asked, envelope) = request(&minion, "a", 0);
    let reply = seal_content_reply(&key, several(), &envelope).unwrap();
    for at in 0..reply.len() {
        for bit in [1, 0x80] {
            let mut changed = reply.clone();
            changed[at] ^= bit;
            assert!(open(&minion, &changed, &asked).is_err(), "byte {at}");
        }
        assert!(open(&minion, &reply[..at], &asked).is_err(), "{at} bytes");
    }
    assert!(open(&minion, &[reply.as_slice(), b"x"].concat(), &asked).is_err());
    let mut changed = reply;
    changed[HEADER_LEN] ^= 1;
    assert_eq!(open(&minion, &changed, &asked), Err(ReplyError::Crypt(CryptError::BadMac)));
}

#[test]
fn an_answer_to_another_request_is_refused() {
    let key = AesKey::generate();
    let minion = session("web1", &key);
    let (one, envelope_one) = request(&minion, "a", 0);
    let (two, envelope_two) = request(&minion, "a", 1);
    let answers = [&envelope_one, &envelope_two].map(|to| seal_content_reply(&key, file(b"x"), to).unwrap());
    let refused = Err(ReplyError::Crypt(CryptError::BadMac));
    assert!(open(&minion, &answers[0], &one).is_ok() && open(&minion, &answers[1], &two).is_ok());
    // Swapped among two requests that are under way.
    assert_eq!(open(&minion, &answers[0], &two), refused);
    assert_eq!(open(&minion, &answers[1], &one), refused);
    // Replayed, when the minion asks for the same again.
    let (again, _) = request(&minion, "a", 0);
    assert_eq!(open(&minion, &answers[0], &again), refused);
}

#[test]
fn an_answer_for_another_minion_or_of_another_session_is_refused() {
    let (key, other) = (AesKey::generate(), AesKey::generate());
    let minion = session("web1", &key);
    let (asked, envelope) = request(&minion, "a", 0);
    let refused = Err(ReplyError::Crypt(CryptError::BadMac));
    let of_other_session = seal_content_reply(&other, file(b"x"), &envelope).unwrap();
    assert_eq!(open(&minion, &of_other_session, &asked), refused);
    let to_other = AesEnvelope { id: Some(MinionId::new("web2").unwrap()), ..envelope };
    assert_eq!(open(&minion, &seal_content_reply(&key, file(b"x"), &to_other).unwrap(), &asked), refused);
}

#[test]
fn what_goes_the_other_way_is_no_answer() {
    let key = AesKey::generate();
    let minion = session("web1", &key);
    let (asked, envelope) = request(&minion, "a", 0);
    // The request itself, as it is and as content.
    assert!(open(&minion, &asked.payload, &asked).is_err());
    let about = Asked { session: &key, id: minion.id(), mac: &asked.mac };
    let mut reflected = [[FIRST, AEAD_VERSION].as_slice(), &[5; SALT_LEN], b"data", &[0; 4]].concat();
    let other_way = Aad::from([LABEL, b"\0request\0", asked.mac.as_slice(), b"web1"].concat());
    let sealing = about.key(&[5; SALT_LEN]);
    let tag = sealing.seal_in_place_separate_tag(nonce(), other_way, &mut reflected[HEADER_LEN..]).unwrap();
    reflected.extend_from_slice(tag.as_ref());
    assert_eq!(open(&minion, &reflected, &asked), Err(ReplyError::Crypt(CryptError::BadMac)));
    // A request without a MAC has no answer.
    assert_eq!(seal_content_reply(&key, file(b"x"), &AesEnvelope { load: vec![0; 31], ..envelope }), None);
}

#[test]
fn one_request_that_is_answered_twice_does_not_reuse_a_key() {
    let key = AesKey::generate();
    let minion = session("web1", &key);
    let (_, envelope) = request(&minion, "a", 0);
    let [one, two] = [0, 0].map(|_| seal_content_reply(&key, file(&[0; 64]), &envelope).unwrap());
    assert_ne!(one[2..HEADER_LEN], two[2..HEADER_LEN], "the salts");
    assert_ne!(one[HEADER_LEN..HEADER_LEN + 64], two[HEADER_LEN..HEADER_LEN + 64], "the same content");
}

#[test]
fn lengths_that_do_not_fit_are_refused_even_under_the_right_key() {
    let key = AesKey::generate();
    let minion = session("web1", &key);
    let (asked, _) = request(&minion, "a", 0);
    let about = Asked { session: &key, id: minion.id(), mac: &asked.mac };
    let said = |data: u64| map([("data", Value::from(data)), ("dest", Value::from("a"))]);
    let mut two = said(0);
    two.insert("also", Value::Array(vec![said(u64::MAX), said(1)]));
    for mut answer in [said(1), said(u64::MAX), two] {
        let reply = seal_with(&mut answer, about, [1; SALT_LEN]);
        let error = open(&minion, &reply, &asked).unwrap_err();
        assert!(error.to_string().contains("not as long as it says"), "{error}");
    }
    // More content than any file has, and fields longer than all.
    for plain in [b"x\xc0\0\0\0\x01".as_slice(), b"\0\0\0\x09", b"\xff\xff\xff\xff", b"\0\0\0\0"] {
        let mut reply = [[FIRST, AEAD_VERSION].as_slice(), &[1; SALT_LEN], plain].concat();
        let sealing = about.key(&[1; SALT_LEN]);
        let tag = sealing.seal_in_place_separate_tag(nonce(), about.data(), &mut reply[HEADER_LEN..]).unwrap();
        reply.extend_from_slice(tag.as_ref());
        assert!(open(&minion, &reply, &asked).is_err(), "{plain:?}");
    }
}

#[test]
fn a_master_that_does_not_know_the_form_answers_as_ever() {
    let key = AesKey::generate();
    let minion = session("web1", &key);
    let (asked, _) = request(&minion, "a", 0);
    let reply = seal_reply(&Crypticle::new(&key), &file(b"x"), Some(&asked.nonce));
    assert_eq!(open(&minion, &reply, &asked).unwrap().get_bytes("data"), Some(&b"x"[..]));
    let (other, _) = request(&minion, "a", 0);
    assert!(open(&minion, &reply, &other).is_err(), "its nonce is checked as ever");
}

/// Made by another implementation, `tests/make_content.py`.
#[test]
fn an_answer_of_another_implementation_opens() {
    let vector: serde_json::Value = serde_json::from_str(include_str!("../../../tests/content.json")).unwrap();
    let text = |name: &str| vector[name].as_str().unwrap();
    let bytes = |name: &str| hex::decode(text(name)).unwrap();
    let (key, id) = (AesKey::from_text(text("session_key")).unwrap(), MinionId::new(text("id")).unwrap());
    let mac = bytes("mac").try_into().unwrap();
    let asked = Asked { session: &key, id: &id, mac: &mac };
    let opened = super::open(bytes("answer"), asked).unwrap();
    assert_eq!(opened.get_bytes("data").unwrap(), bytes("first"));
    assert_eq!(opened.get_list("also").unwrap()[0].get_bytes("data").unwrap(), bytes("second"));
    // Ours is the same to the last byte.
    let mut answer = map([("data", Value::Binary(bytes("first"))), ("dest", Value::from("a/b"))]);
    answer.insert(
        "also",
        Value::Array(vec![map([("data", Value::Binary(bytes("second"))), ("dest", Value::from("c"))])]),
    );
    assert_eq!(seal_with(&mut answer, asked, bytes("salt").try_into().unwrap()), bytes("answer"));
}
