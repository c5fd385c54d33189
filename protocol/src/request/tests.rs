//! Requests that a master must refuse, and replies that a minion must not accept, one case each.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;

use super::*;
use crate::auth::Credentials;
use crate::crypticle::{AesKey, CryptError, Crypticle};
use crate::envelope::{AesEnvelope, Envelope};
use crate::ids::MinionId;
use crate::keys::{EncAlg, PrivateKey, PrivateOps as _, SignAlg};
use crate::msgpack::{self, Limits};
use crate::value::{Value, ValueExt as _, bytes, list, map, text};

static MASTER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::from_pem(brine_kit::keys::PEM[0]).unwrap());
static MINION: LazyLock<Arc<PrivateKey>> =
    LazyLock::new(|| Arc::new(PrivateKey::from_pem(brine_kit::keys::PEM[1]).unwrap()));
static OTHER: LazyLock<Arc<PrivateKey>> =
    LazyLock::new(|| Arc::new(PrivateKey::from_pem(brine_kit::keys::PEM[2]).unwrap()));
static CREDENTIALS: LazyLock<Credentials> = LazyLock::new(|| Credentials {
    publish_key: AesKey::generate(),
    session_key: AesKey::generate(),
    publish_port: 4505,
    master: MASTER.public().clone(),
    master_is_new: false,
    offer: None,
    run: None,
});

const NONCE: &str = "0123456789abcdef0123456789abcdef";

fn id(name: &str) -> MinionId {
    MinionId::new(name).unwrap()
}

fn session_of(name: &str, key: &Arc<PrivateKey>) -> Session {
    Session::new(&id(name), Arc::clone(key), &CREDENTIALS, EncAlg::default(), SignAlg::default()).unwrap()
}

fn session() -> Session {
    session_of("m1", &MINION)
}

fn crypticle() -> Crypticle {
    Crypticle::new(&CREDENTIALS.session_key)
}

fn load() -> Value {
    map([("cmd", text("_return")), ("id", text("m1")), ("return", Value::from(true))])
}

fn policy() -> RequestPolicy {
    RequestPolicy { minimum_version: 3, ttl: 0, now: 1_000_000, limits: Limits::REQUEST }
}

fn open(envelope: &AesEnvelope) -> Result<Request, RequestRefusal> {
    open_with(envelope, &policy())
}

fn open_with(envelope: &AesEnvelope, policy: &RequestPolicy) -> Result<Request, RequestRefusal> {
    open_request(envelope, &crypticle(), policy, |_| Some(MINION.public().clone()))
}

fn envelope(payload: &[u8]) -> AesEnvelope {
    match Envelope::decode(payload, &Limits::ENVELOPE).unwrap() {
        Envelope::Aes(envelope) => envelope,
        Envelope::Clear { .. } => panic!("clear"),
    }
}

/// A request whose plaintext was changed before sealing.
fn with(change: impl FnOnce(&mut Value)) -> AesEnvelope {
    let mut e = envelope(&session().seal_with(load(), NONCE.to_owned(), 1_000_000).unwrap().payload);
    let mut inner = crypticle().open(&e.load, None, &Limits::REQUEST).unwrap();
    change(&mut inner);
    e.load = crypticle().seal(&inner, None);
    e
}

#[test]
fn a_request_proves_its_sender() {
    let sealed = session().seal_request(load()).unwrap();
    let request = open(&envelope(&sealed.payload)).unwrap();
    assert_eq!((request.id, request.cmd.as_str(), request.nonce), (id("m1"), "_return", Some(sealed.nonce.clone())));
    assert_eq!(request.enc_algo.as_deref(), Some("OAEP-SHA1"));
    assert!(!request.load.has("tok") && !request.load.has("nonce") && request.load.has("ts"));

    let reply = seal_reply(&crypticle(), &text("ok"), Some(&sealed.nonce));
    assert_eq!(session().open_reply(&reply, &sealed.nonce), Ok(text("ok")));
}

#[test]
fn cve_2025_62349_an_old_version_is_refused() {
    for version in 0..3 {
        let old = AesEnvelope { version, ..with(|_| ()) };
        assert_eq!(open(&old).unwrap_err(), RequestRefusal::Version { version, minimum: 3 });
    }
}

#[test]
fn cve_2024_38822_a_minion_cannot_speak_for_another() {
    // The sender's own session and token, with another minion's id in the load.
    let e = with(|l| l.insert("id", "m2"));
    assert_eq!(open(&e).unwrap_err(), RequestRefusal::IdMismatch { id: id("m1") });
    let e = with(|l| drop(l.remove("id")));
    assert_eq!(open(&e).unwrap_err(), RequestRefusal::IdMismatch { id: id("m1") });
    // Another minion's id in the envelope, so the session key is a different one.
    let e = AesEnvelope { id: Some(id("m2")), ..with(|_| ()) };
    let other = Crypticle::new(&AesKey::generate());
    let refused = open_request(&e, &other, &policy(), |_| Some(MINION.public().clone())).unwrap_err();
    assert_eq!(refused, RequestRefusal::Crypt { id: id("m2"), why: CryptError::BadMac });
    let e = AesEnvelope { id: None, ..with(|_| ()) };
    assert_eq!(open(&e).unwrap_err(), RequestRefusal::UnknownMinion);
    // The session key was stolen, but not the private key.
    let e = envelope(&session_of("m1", &OTHER).seal_request(load()).unwrap().payload);
    assert_eq!(open(&e).unwrap_err(), RequestRefusal::Token { id: id("m1") });
}

#[test]
fn every_request_needs_the_token_of_an_accepted_key() {
    for change in [
        |l: &mut Value| drop(l.remove("tok")),
        |l: &mut Value| l.insert("tok", Value::Nil),
        |l: &mut Value| l.insert("tok", bytes([0; 128])),
        |l: &mut Value| l.insert("tok", bytes([])),
        |l: &mut Value| l.insert("tok", bytes(MINION.x931_sign(b"pepper").unwrap())),
    ] {
        assert_eq!(open(&with(change)).unwrap_err(), RequestRefusal::Token { id: id("m1") });
    }
    let removed = open_request(&with(|_| ()), &crypticle(), &policy(), |_| None);
    assert_eq!(removed.unwrap_err(), RequestRefusal::Token { id: id("m1") });
}

#[test]
fn cve_2024_38823_a_request_grows_old() {
    let at = |ts: Value| with(|l| l.insert("ts", ts));
    let strict = RequestPolicy { ttl: 60, ..policy() };
    assert!(open_with(&at(Value::from(1_000_000 - 60)), &strict).is_ok());
    assert!(open_with(&at(Value::from(1_000_000 + 600)), &strict).is_ok(), "clocks differ");
    for old in [Value::from(1_000_000 - 61), Value::from(0), Value::from(i64::MIN), Value::Nil, text("now")] {
        assert_eq!(
            open_with(&at(old.clone()), &strict).unwrap_err(),
            RequestRefusal::Expired { id: id("m1") },
            "{old}"
        );
    }
    assert!(open(&at(Value::Nil)).is_ok(), "off by default, as in Salt");
}

#[test]
fn malformed_loads_get_salts_answers() {
    let seal = |v: &Value| AesEnvelope { load: crypticle().seal(v, None), ..with(|_| ()) };
    for (load, answer) in [
        (text("x"), "payload and load must be a dict"),
        (list([1]), "payload and load must be a dict"),
        (map([("id", text("m\0"))]), "bad load: id contains a null byte"),
        (map([("id", 5)]), "bad load: id 5 is not a string"),
        (map([("id", text("m1"))]), "bad load"),
    ] {
        assert_eq!(open(&seal(&load)).unwrap_err().reply(), text(answer), "{load}");
    }
    for nonce in [text("short"), text("é".repeat(16)), Value::from(5), text("x".repeat(64))] {
        assert_eq!(open(&with(|l| l.insert("nonce", nonce))).unwrap_err(), RequestRefusal::Nonce { id: id("m1") });
    }
    assert_eq!(open(&with(|l| drop(l.remove("nonce")))).unwrap().nonce, None);
}

#[test]
fn a_reply_to_another_request_is_refused() {
    let s = session();
    let reply = seal_reply(&crypticle(), &text("ok"), Some(NONCE));
    assert_eq!(s.open_reply(&reply, NONCE), Ok(text("ok")));
    let other = "f".repeat(32);
    assert_eq!(s.open_reply(&reply, &other), Err(ReplyError::Crypt(CryptError::WrongNonce)));
    let without = seal_reply(&crypticle(), &text("ok"), None);
    assert_eq!(s.open_reply(&without, NONCE), Err(ReplyError::Crypt(CryptError::WrongNonce)));
    let foreign = seal_reply(&Crypticle::new(&AesKey::generate()), &text("ok"), Some(NONCE));
    let error = s.open_reply(&foreign, NONCE).unwrap_err();
    assert_eq!(error, ReplyError::Crypt(CryptError::BadMac));
    assert!(error.wants_reauth());
}

#[test]
fn refusals_in_words_are_passed_on() {
    let s = session();
    for (reply, said) in [
        (text("bad load"), "bad load"),
        (map([("error", "Routing error")]), "Routing error"),
        (map([("msg", "bad load")]), "bad load"),
        (text("a\nb\u{202e}"), "a\\nb\\u202e"),
        (text("x".repeat(1000)), ("x".repeat(200) + "…").as_str()),
    ] {
        let reply = clear_reply(&reply);
        assert_eq!(s.open_reply(&reply, NONCE), Err(ReplyError::Text(said.to_owned())));
        assert_eq!(s.open_pillar_reply(&reply, NONCE), Err(ReplyError::Text(said.to_owned())));
    }
    for reply in [Value::Nil, Value::from(true), list([1]), map([("a", 1)])] {
        assert!(matches!(s.open_reply(&clear_reply(&reply), NONCE), Err(ReplyError::Malformed(_))), "{reply}");
    }
}

#[test]
fn a_raw_reply_keeps_bytes() {
    let reply = seal_reply(&crypticle(), &map([("data", bytes(*b"abc")), ("dest", text("x"))]), Some(NONCE));
    let raw = session().open_raw_reply(&reply, NONCE).unwrap();
    assert_eq!(raw, Value::Map(vec![(bytes(*b"data"), bytes(*b"abc")), (bytes(*b"dest"), bytes(*b"x"))]));
    assert_eq!(raw.get_bytes("data"), Some(&b"abc"[..]));
}

fn pillar_request() -> Request {
    open(&with(|_| ())).unwrap()
}

#[test]
fn cve_2022_22934_a_pillar_is_signed_and_bound_to_its_request() {
    let s = session();
    let pillar = map([("secret", "x")]);
    let seal = |key: &PrivateKey, request: &Request| seal_pillar_reply(&pillar, request, MINION.public(), key).unwrap();
    let good = seal(&MASTER, &pillar_request());
    assert_eq!(s.open_pillar_reply(&good, NONCE), Ok(pillar.clone()));
    assert_eq!(s.open_pillar_reply(&seal(&OTHER, &pillar_request()), NONCE), Err(ReplyError::BadSignature));
    let other = Request { nonce: Some("f".repeat(32)), ..pillar_request() };
    assert_eq!(s.open_pillar_reply(&seal(&MASTER, &other), NONCE), Err(ReplyError::Crypt(CryptError::WrongNonce)));
    let nonceless = Request { nonce: None, ..pillar_request() };
    assert_eq!(
        s.open_pillar_reply(&seal(&MASTER, &nonceless), NONCE),
        Err(ReplyError::Text("Nonce not included in request".to_owned()))
    );
}

#[test]
fn a_pillar_cannot_be_put_under_another_key() {
    // Anyone who knows the minion's public key can make the outer parts. The signed part contains the key that the
    // master chose.
    let reply = seal_pillar_reply(&map([("a", 1)]), &pillar_request(), MINION.public(), &*MASTER).unwrap();
    let reply = msgpack::decode(&reply, &Limits::REQUEST).unwrap();
    let key = MINION.decrypt(EncAlg::OaepSha1, reply.get_bytes("key").unwrap()).unwrap();
    let key = AesKey::from_bytes(&key).unwrap();
    let mut moved = reply.clone();
    let sealed = MINION.public().encrypt(EncAlg::OaepSha1, key.text().expose().as_bytes()).unwrap();
    moved.insert("key", bytes(sealed));
    assert_eq!(session().open_pillar_reply(&clear_reply(&moved), NONCE), Err(ReplyError::BadSignature));
    for field in ["key", "pillar"] {
        let mut bad = reply.clone();
        bad.remove(field);
        assert!(session().open_pillar_reply(&clear_reply(&bad), NONCE).is_err());
        bad.insert(field, bytes([7; 128]));
        assert!(session().open_pillar_reply(&clear_reply(&bad), NONCE).is_err());
    }
}

#[test]
fn a_load_can_be_signed() {
    let request = open(&envelope(&session().signing(true).seal_request(load()).unwrap().payload)).unwrap();
    let alg = SignAlg::default();
    assert_eq!(verify_load_signature(&request.load, MINION.public(), alg), Some(true));
    assert_eq!(verify_load_signature(&request.load, OTHER.public(), alg), Some(false));
    let mut changed = request.load;
    changed.insert("return", false);
    assert_eq!(verify_load_signature(&changed, MINION.public(), alg), Some(false));
    changed.remove("sig");
    assert_eq!(verify_load_signature(&changed, MINION.public(), alg), None);
}

#[test]
fn a_session_does_not_print_its_keys() {
    let shown = format!("{:?}", session());
    assert!(!shown.contains(CREDENTIALS.session_key.text().expose()));
    let token = format!("{:?}", MINION.x931_sign(TOKEN).unwrap());
    assert!(!shown.contains(&token), "the token opens doors too");
    assert!(shown.contains("<secret>"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn hostile_replies_do_not_open(b in proptest::collection::vec(any::<u8>(), 0..200)) {
        let s = session();
        for reply in [b.clone(), msgpack::encode_network_bytes(&b), clear_reply(&map([("key", bytes(b.clone())), ("pillar", bytes(b))]))] {
            prop_assert!(s.open_reply(&reply, NONCE).is_err());
            prop_assert!(s.open_raw_reply(&reply, NONCE).is_err());
            prop_assert!(s.open_pillar_reply(&reply, NONCE).is_err());
        }
    }

    #[test]
    fn hostile_loads_do_not_panic(b in proptest::collection::vec(any::<u8>(), 0..200)) {
        let e = AesEnvelope { load: b.clone(), ..with(|_| ()) };
        prop_assert!(open(&e).is_err());
        let mut plaintext = b"pickle::".to_vec();
        plaintext.extend(b);
        let e = AesEnvelope { load: crypticle().encrypt(&plaintext), ..with(|_| ()) };
        prop_assert!(open(&e).is_err());
    }
}
