//! The messages that each side must refuse, one case each.

use std::sync::LazyLock;

use super::*;
use crate::crypticle::AesKey;
use crate::envelope::Envelope;
use crate::ids::MinionId;
use crate::keys::{PrivateKey, PrivateOps, SignAlg};
use crate::msgpack::{self, Limits};
use crate::value::{self, Value, ValueExt};

static MASTER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::from_pem(brine_kit::keys::PEM[0]).unwrap());
static OTHER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::from_pem(brine_kit::keys::PEM[1]).unwrap());
static MINION: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::from_pem(brine_kit::keys::PEM[2]).unwrap());
static ID: LazyLock<MinionId> = LazyLock::new(|| MinionId::new("m1").unwrap());

struct Keys {
    publish: AesKey,
    session: AesKey,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| Keys { publish: AesKey::generate(), session: AesKey::generate() });

fn parse(attempt: &AuthAttempt<'_>) -> AuthRequest {
    let Envelope::Clear { load, version } = Envelope::decode(attempt.payload(), &Limits::UNAUTHENTICATED).unwrap()
    else {
        panic!("not clear")
    };
    AuthRequest::parse(&load, version, 3).unwrap()
}

fn accept(request: &AuthRequest, master: &dyn PrivateOps, sign_key: Option<&dyn PrivateOps>) -> Vec<u8> {
    let accepted = Accepted {
        publish_key: &KEYS.publish,
        publish_key_sig: &publish_key_signature(master, &KEYS.publish).unwrap(),
        session_key: &KEYS.session,
        publish_port: 4505,
        sign_key,
        offer: None,
        run: None,
    };
    request.accepted(master, &accepted).unwrap()
}

/// Changes a field of the signed part and signs it again with this key.
fn resigned(reply: &[u8], key: &PrivateKey, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut outer = msgpack::decode(reply, &Limits::UNAUTHENTICATED).unwrap();
    let mut inner = msgpack::decode(outer.get_bytes("load").unwrap(), &Limits::UNAUTHENTICATED).unwrap();
    change(&mut inner);
    let load = msgpack::encode_network(&inner);
    outer.insert("sig", value::bytes(key.sign(SignAlg::Pkcs1v15Sha1, &load).unwrap()));
    outer.insert("load", value::bytes(load));
    msgpack::encode_network(&outer)
}

fn outer(reply: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut outer = msgpack::decode(reply, &Limits::UNAUTHENTICATED).unwrap();
    change(&mut outer);
    msgpack::encode_network(&outer)
}

fn auth() -> MinionAuth<'static> {
    MinionAuth::new(&ID, &MINION)
}

fn known() -> MinionAuth<'static> {
    MinionAuth { master: Some(MASTER.public()), ..auth() }
}

fn accepted(outcome: Result<AuthOutcome, AuthError>) -> Credentials {
    match outcome {
        Ok(AuthOutcome::Accepted(credentials)) => *credentials,
        other => panic!("not accepted: {other:?}"),
    }
}

#[test]
fn first_contact_brings_the_keys_and_a_new_master_key() {
    let attempt = auth().attempt().unwrap();
    let credentials = accepted(attempt.verify_reply(&accept(&parse(&attempt), &*MASTER, None)));
    assert_eq!((credentials.publish_key, credentials.session_key), (KEYS.publish.clone(), KEYS.session.clone()));
    assert_eq!((credentials.publish_port, credentials.master_is_new), (4505, true));
    assert_eq!(&credentials.master, MASTER.public());
}

#[test]
fn later_contact_checks_the_token() {
    let attempt = known().attempt().unwrap();
    let reply = accept(&parse(&attempt), &*MASTER, None);
    assert!(!accepted(attempt.verify_reply(&reply)).master_is_new);
    for change in [
        |i: &mut Value| drop(i.remove("token")),
        |i: &mut Value| i.insert("token", value::bytes([0; 128])),
        |i: &mut Value| {
            let sealed = MINION.public().encrypt(crate::keys::EncAlg::OaepSha1, b"another token").unwrap();
            i.insert("token", value::bytes(sealed));
        },
    ] {
        let error = attempt.verify_reply(&resigned(&reply, &MASTER, change)).unwrap_err();
        assert!(matches!(error, AuthError::WrongToken), "{error}");
    }
}

#[test]
fn verdicts_are_signed() {
    let attempt = known().attempt().unwrap();
    let request = parse(&attempt);
    assert!(matches!(attempt.verify_reply(&request.pending(&*MASTER).unwrap()), Ok(AuthOutcome::Pending { .. })));
    assert!(matches!(attempt.verify_reply(&request.rejected(&*MASTER).unwrap()), Ok(AuthOutcome::Rejected)));
    assert!(matches!(attempt.verify_reply(&request.full(&*MASTER).unwrap()), Ok(AuthOutcome::Full)));
    for reply in [request.pending(&*OTHER), request.rejected(&*OTHER), request.full(&*OTHER)] {
        assert!(matches!(attempt.verify_reply(&reply.unwrap()), Err(AuthError::BadSignature)));
    }
}

/// Somebody between both sends the minion's nonce with another key or id, and the master signs that it refuses those.
#[test]
fn a_verdict_about_somebody_else_is_none() {
    for verdicts_say_who in [false, true] {
        let attempt = MinionAuth { seals: true, verdicts_say_who, ..known() }.attempt().unwrap();
        let request = parse(&attempt);
        assert!(matches!(attempt.verify_reply(&request.rejected(&*MASTER).unwrap()), Ok(AuthOutcome::Rejected)));
        let other_key = AuthRequest { pub_pem: OTHER.public().clean_pem().to_owned(), ..request.clone() };
        let other_id = AuthRequest { id: MinionId::new("m2").unwrap(), ..request.clone() };
        for other in [other_key, other_id] {
            let error = attempt.verify_reply(&other.rejected(&*MASTER).unwrap()).unwrap_err();
            assert!(matches!(error, AuthError::OtherVerdict) && !error.is_permanent(), "{error}");
        }
        // As Python's masters do, and Brine's if the request does not say that its sender may know the field.
        let unsaid = AuthRequest { seals: false, ..request };
        let outcome = attempt.verify_reply(&unsaid.rejected(&*MASTER).unwrap());
        assert_eq!(matches!(outcome, Ok(AuthOutcome::Rejected)), !verdicts_say_who, "{outcome:?}");
    }
}

/// Python's masters do not say it, and their minions are not told.
#[test]
fn a_master_says_that_it_may_be_asked_again_soon_to_who_may_know_it() {
    for seals in [false, true] {
        let attempt = MinionAuth { seals, ..known() }.attempt().unwrap();
        let reply = parse(&attempt).pending(&*MASTER).unwrap();
        let outcome = attempt.verify_reply(&reply).unwrap();
        assert!(matches!(outcome, AuthOutcome::Pending { again_soon } if again_soon == seals), "{outcome:?}");
        let odd = resigned(&reply, &MASTER, |inner| inner.insert("again_soon", 1));
        assert!(matches!(attempt.verify_reply(&odd), Ok(AuthOutcome::Pending { again_soon: false })));
    }
}

#[test]
fn cve_2022_22935_an_unsigned_or_wrongly_signed_reply_is_refused() {
    for minion in [auth(), known()] {
        let attempt = minion.attempt().unwrap();
        let reply = accept(&parse(&attempt), &*MASTER, None);
        let unsigned = outer(&reply, |o| drop(o.remove("sig")));
        let garbled = outer(&reply, |o| o.insert("sig", value::bytes([1; 128])));
        let foreign = resigned(&reply, &OTHER, |_| {});
        // The whole accept map unencrypted, as in protocol version 1.
        let first = msgpack::decode(&reply, &Limits::UNAUTHENTICATED).unwrap().get_bytes("load").unwrap().to_vec();
        for bad in [unsigned, garbled, foreign] {
            assert!(matches!(attempt.verify_reply(&bad), Err(AuthError::BadSignature)));
        }
        assert!(matches!(attempt.verify_reply(&first), Err(AuthError::Malformed(_))));
    }
    let attempt = known().attempt().unwrap();
    let unsigned = outer(&parse(&attempt).pending(&*MASTER).unwrap(), |o| drop(o.remove("sig")));
    assert!(matches!(attempt.verify_reply(&unsigned), Err(AuthError::BadSignature)));
}

#[test]
fn a_replayed_reply_is_refused() {
    let (first, second) = (known().attempt().unwrap(), known().attempt().unwrap());
    let reply = accept(&parse(&first), &*MASTER, None);
    accepted(first.verify_reply(&reply));
    assert!(matches!(second.verify_reply(&reply), Err(AuthError::WrongNonce)));
    let pending = parse(&first).pending(&*MASTER).unwrap();
    assert!(matches!(second.verify_reply(&pending), Err(AuthError::WrongNonce)));
    let without = resigned(&reply, &MASTER, |i| drop(i.remove("nonce")));
    assert!(matches!(first.verify_reply(&without), Err(AuthError::WrongNonce)));
}

#[test]
fn a_changed_master_key_is_refused_unless_configured() {
    let attempt = known().attempt().unwrap();
    let reply = accept(&parse(&attempt), &*OTHER, None);
    let error = attempt.verify_reply(&reply).unwrap_err();
    assert!(matches!(error, AuthError::MasterKeyChanged { .. }) && error.is_permanent(), "{error}");

    let open = MinionAuth { open_mode: true, ..known() }.attempt().unwrap();
    assert!(accepted(open.verify_reply(&accept(&parse(&open), &*OTHER, None))).master_is_new);
}

#[test]
fn the_fingerprint_decides_at_first_contact() {
    let finger = MASTER.public().fingerprint().to_uppercase();
    let attempt = MinionAuth { master_finger: &finger, ..auth() }.attempt().unwrap();
    accepted(attempt.verify_reply(&accept(&parse(&attempt), &*MASTER, None)));
    let error = attempt.verify_reply(&accept(&parse(&attempt), &*OTHER, None)).unwrap_err();
    assert!(matches!(error, AuthError::WrongFinger { .. }), "{error}");
}

#[test]
fn the_publish_key_must_be_signed_by_the_master() {
    let attempt = auth().attempt().unwrap();
    let reply = accept(&parse(&attempt), &*MASTER, None);
    let of_other = publish_key_signature(&*OTHER, &KEYS.publish).unwrap();
    let of_another_key = publish_key_signature(&*MASTER, &AesKey::generate()).unwrap();
    for sig in [of_other, of_another_key, vec![], vec![0; 128]] {
        let bad = resigned(&reply, &MASTER, |i| i.insert("sig", value::bytes(sig)));
        assert!(matches!(attempt.verify_reply(&bad), Err(AuthError::BadKeySignature)));
    }
    let missing = resigned(&reply, &MASTER, |i| drop(i.remove("sig")));
    assert!(matches!(attempt.verify_reply(&missing), Err(AuthError::BadKeySignature)));
}

#[test]
fn a_signed_master_key_and_its_verification_go_together() {
    let verifying = MinionAuth { verify_key: Some(OTHER.public()), ..auth() };
    let attempt = verifying.attempt().unwrap();
    let request = parse(&attempt);
    accepted(attempt.verify_reply(&accept(&request, &*MASTER, Some(&*OTHER))));
    for reply in [accept(&request, &*MASTER, None), accept(&request, &*MASTER, Some(&*MINION))] {
        assert!(matches!(attempt.verify_reply(&reply), Err(AuthError::PubSig(_))));
    }
    let plain = auth().attempt().unwrap();
    let reply = accept(&parse(&plain), &*MASTER, Some(&*OTHER));
    assert!(matches!(plain.verify_reply(&reply), Err(AuthError::PubSig(_))));

    // A new key of the master with a valid signature replaces the cached one.
    let moved = MinionAuth { verify_key: Some(OTHER.public()), ..known() }.attempt().unwrap();
    assert!(accepted(moved.verify_reply(&accept(&parse(&moved), &*MINION, Some(&*OTHER)))).master_is_new);
}

#[test]
fn keys_for_someone_else_are_no_use() {
    let attempt = auth().attempt().unwrap();
    let reply = accept(&parse(&attempt), &*MASTER, None);
    for field in ["aes", "session"] {
        let bad = resigned(&reply, &MASTER, |i| i.insert(field, value::bytes([9; 128])));
        assert!(matches!(attempt.verify_reply(&bad), Err(AuthError::Key(_))), "{field}");
        let missing = resigned(&reply, &MASTER, |i| drop(i.remove(field)));
        assert!(matches!(attempt.verify_reply(&missing), Err(AuthError::Malformed(_))), "{field}");
    }
    for port in [Value::from(0), Value::from(70_000), Value::Nil, value::text("4505")] {
        let bad = resigned(&reply, &MASTER, |i| i.insert("publish_port", port));
        assert!(matches!(attempt.verify_reply(&bad), Err(AuthError::Malformed(_))));
    }
}

#[test]
fn refusals_in_words_are_passed_on() {
    let attempt = auth().attempt().unwrap();
    for (reply, text) in [
        (value::text("bad load"), "bad load"),
        (value::map([("error", "Routing error")]), "Routing error"),
        (value::map([("enc", value::text("clear")), ("load", value::map([("ret", "bad enc algo")]))]), "bad enc algo"),
        (value::text("two\nlines"), "two\\nlines"),
    ] {
        match attempt.verify_reply(&msgpack::encode_network(&reply)) {
            Err(AuthError::Refused(said)) => assert_eq!(said, text),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn cve_2025_62349_an_old_protocol_version_is_refused() {
    let attempt = auth().attempt().unwrap();
    let load = parse(&attempt).to_load();
    for version in 0..3 {
        let refusal = AuthRequest::parse(&load, version, 3).unwrap_err();
        assert_eq!(refusal, AuthRefusal::Version { version, minimum: 3 });
        assert_eq!(refusal.reply(&*MASTER).unwrap(), msgpack::encode_network(&value::text("bad load")));
    }
}

#[test]
fn malformed_requests_are_answered() {
    let good = parse(&auth().attempt().unwrap()).to_load();
    let with = |key: &str, v: Value| {
        let mut load = good.clone();
        load.insert(key, v);
        AuthRequest::parse(&load, 3, 3).unwrap_err()
    };
    let without = |key: &str| {
        let mut load = good.clone();
        load.remove(key);
        AuthRequest::parse(&load, 3, 3).unwrap_err()
    };
    assert!(matches!(with("id", value::text("a/b")), AuthRefusal::InvalidId { .. }));
    assert!(matches!(with("id", value::text("")), AuthRefusal::InvalidId { .. }));
    assert_eq!(with("id", value::text("a\0b")), AuthRefusal::NulId);
    assert_eq!(with("id", Value::from(5)).to_string(), "bad load: id 5 is not a string");
    assert!(matches!(with("enc_algo", value::text("OAEP-MD5")), AuthRefusal::EncAlgo(_)));
    assert!(matches!(with("sig_algo", Value::Nil), AuthRefusal::SigAlgo(_)));
    assert!(matches!(with("nonce", Value::Nil), AuthRefusal::Malformed(_)));
    for nonce in ["", &"0".repeat(31), &"0".repeat(33), &"x".repeat(32), &"é".repeat(16), &"0".repeat(113)] {
        assert!(matches!(with("nonce", value::text(nonce)), AuthRefusal::Malformed(_)), "{nonce}");
    }
    assert!(matches!(with("pub", value::bytes([0xff])), AuthRefusal::Malformed(_)));
    for key in ["id", "nonce", "pub"] {
        let refusal = without(key);
        assert!(matches!(refusal, AuthRefusal::Malformed(_)), "{key}");
        assert!(!refusal.reply(&*MASTER).unwrap().is_empty());
    }
    for key in ["enc_algo", "sig_algo"] {
        let mut load = good.clone();
        load.remove(key);
        assert!(AuthRequest::parse(&load, 3, 3).is_ok(), "{key} has a default");
    }
}

/// A hostile minion knows the publish key. What the master signs for a stranger must not be a publication under it, whatever the nonce.
#[test]
fn no_nonce_makes_a_publication_of_an_answer() {
    let good = parse(&auth().attempt().unwrap()).to_load();
    let answers = (0..=1_000).filter_map(|len| {
        let mut load = good.clone();
        load.insert("nonce", "0".repeat(len));
        // Whoever has no valid id gets a signed answer too.
        load.insert("id", "a/b");
        match AuthRequest::parse(&load, 3, 3) {
            Err(refusal @ AuthRefusal::InvalidId { .. }) => Some(refusal.reply(&*MASTER).unwrap()),
            _ => None,
        }
    });
    let answers: Vec<Vec<u8>> = answers.collect();
    assert_eq!(answers.len(), 1, "nonces of one length are taken");
    let answer = msgpack::decode(&answers[0], &Limits::UNAUTHENTICATED).unwrap();
    let signed = answer.get_bytes("load").unwrap();
    assert!(signed.len() < 16 + 16 + 32, "{} bytes have room for an IV, a block and a MAC", signed.len());
}

#[test]
fn a_key_that_is_none_is_not_accepted() {
    let mut request = parse(&auth().attempt().unwrap());
    request.pub_pem = "garbage".to_owned();
    assert!(request.key().is_err());
    let accepted = Accepted {
        publish_key: &KEYS.publish,
        publish_key_sig: &[],
        session_key: &KEYS.session,
        publish_port: 1,
        sign_key: None,
        offer: None,
        run: None,
    };
    assert!(request.accepted(&*MASTER, &accepted).is_err());
}

#[test]
fn credentials_do_not_print_their_keys() {
    let attempt = auth().attempt().unwrap();
    let credentials = accepted(attempt.verify_reply(&accept(&parse(&attempt), &*MASTER, None)));
    let shown = format!("{credentials:?} {attempt:?}");
    assert!(!shown.contains(KEYS.publish.text().expose()) && !shown.contains(KEYS.session.text().expose()));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn hostile_replies_do_not_panic(b in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let attempt = auth().attempt().unwrap();
        proptest::prop_assert!(attempt.verify_reply(&b).is_err());
        let wrapped = value::map([("load", value::bytes(b.clone())), ("sig", value::bytes(b.clone()))]);
        proptest::prop_assert!(attempt.verify_reply(&msgpack::encode_network(&wrapped)).is_err());
        let keyed = value::map([("pub_key", value::bytes(b)), ("aes", Value::Nil)]);
        let wrapped = value::map([("load", value::bytes(msgpack::encode_network(&keyed)))]);
        proptest::prop_assert!(attempt.verify_reply(&msgpack::encode_network(&wrapped)).is_err());
    }
}
