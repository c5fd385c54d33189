//! Values, keys, the Crypticle, jids and arguments.

use super::{KEYS, aes_key, hex, lines, list, shown, text, value_of};
use crate::crypticle::{CryptError, Crypticle, SerialGuard};
use crate::ids::{Jid, MinionId};
use crate::keys::PrivateOps as _;
use crate::msgpack::{self, Limits};
use crate::value::{self, Value, ValueExt};
use serde_json::Value as Json;

lines! {
    msgpack_network: check_msgpack_network;
    msgpack_disk: check_msgpack_disk;
    rsa_signatures: check_rsa_signatures;
    rsa_oaep: check_rsa_oaep;
    rsa_x931: check_rsa_x931;
    fingerprint: check_fingerprint;
    crypticle_payloads: check_crypticle_payloads;
    crypticle_serial: check_crypticle_serial;
    crypticle_tampered: check_crypticle_tampered;
    jid_valid: check_jid_valid;
    jid_start_time: check_jid_start_time;
    minion_id_valid: check_minion_id_valid;
    minion_id_topic: check_minion_id_topic;
    parse_input: check_parse_input;
}

/// The value of a case. JSON cannot express the type of a key.
fn case_value(case: &Json) -> Value {
    match text(case, "name") {
        "int key" => Value::Map(vec![(Value::from(1), value::text("x"))]),
        "bytes key" => Value::Map(vec![(value::bytes(*b"k"), value::bytes(*b"v"))]),
        _ => value_of(&case["value"]),
    }
}

fn check_msgpack_network(line: &Json) {
    for case in list(line, "msgpack") {
        let (name, sent) = (text(case, "name"), hex(case, "network_hex"));
        assert_eq!(msgpack::encode_network(&case_value(case)), sent, "{name}");
        let read = msgpack::decode(&sent, &Limits::REQUEST).unwrap();
        assert_eq!(shown(&read), case["network_loads"], "{name}");
        assert_eq!(msgpack::encode_network(&read), sent, "{name}: again");
        let raw = msgpack::decode_raw(&sent, &Limits::REQUEST).unwrap();
        assert_eq!(shown(&raw), case["network_loads_raw"], "{name}: raw");
    }
}

fn check_msgpack_disk(line: &Json) {
    for case in list(line, "msgpack") {
        let (name, sent) = (text(case, "name"), hex(case, "disk_hex"));
        assert_eq!(msgpack::encode_disk(&case_value(case)), sent, "{name}");
        let read = msgpack::decode_disk(&sent, &Limits::DISK).unwrap();
        assert_eq!(shown(&read), case["disk_loads_utf8"], "{name}");
        assert_eq!(msgpack::encode_disk(&read), sent, "{name}: again");
    }
}

fn check_rsa_signatures(line: &Json) {
    let message = hex(&line["rsa"], "message_hex");
    for (alg, signature) in line["rsa"]["sign"].as_object().unwrap() {
        let (alg, signature) = (alg.parse().unwrap(), hex::decode(signature.as_str().unwrap()).unwrap());
        assert_eq!(KEYS.master.sign(alg, &message).unwrap(), signature);
        assert!(KEYS.master.public().verify(alg, &message, &signature));
        assert!(!KEYS.minion.public().verify(alg, &message, &signature));
    }
}

fn check_rsa_oaep(line: &Json) {
    for (alg, case) in line["rsa"]["oaep_to_minion"].as_object().unwrap() {
        let alg = alg.parse().unwrap();
        let plaintext = hex(case, "plaintext_hex");
        assert_eq!(KEYS.minion.decrypt(alg, &hex(case, "ciphertext_hex")).unwrap(), plaintext);
        let ours = KEYS.minion.public().encrypt(alg, &plaintext).unwrap();
        assert_eq!(KEYS.minion.decrypt(alg, &ours).unwrap(), plaintext);
    }
}

fn check_rsa_x931(line: &Json) {
    for case in list(&line["rsa"], "x931") {
        let key = if text(case, "key") == "master" { &KEYS.master } else { &KEYS.minion };
        let (message, signature) = (hex(case, "message_hex"), hex(case, "sig_hex"));
        assert_eq!(key.x931_sign(&message).unwrap(), signature);
        assert_eq!(key.public().x931_recover(&signature), Some(message));
    }
}

fn check_fingerprint(line: &Json) {
    assert_eq!(KEYS.minion.public().fingerprint(), text(&line["fingerprint_sha256"], "minion_pub_by_path"));
}

fn check_crypticle_payloads(line: &Json) {
    let part = &line["crypticle"];
    let crypticle = Crypticle::new(&aes_key(part, "key"));
    for case in list(part, "cases") {
        let (blob, plaintext) = (hex(case, "blob_hex"), hex(case, "padded_prefix_plaintext_hex"));
        let (nonce, expect) = (case["nonce"].as_str(), value_of(&case["value"]));
        assert_eq!(crypticle.decrypt(&blob).unwrap(), plaintext);
        assert_eq!(crypticle.open(&blob, nonce, &Limits::REQUEST).unwrap(), expect);
        let iv = blob[..16].try_into().unwrap();
        assert_eq!(crypticle.seal_with(iv, 0, |out| out.extend_from_slice(&plaintext)), blob);
        let ours = crypticle.seal(&expect, nonce);
        assert_eq!(crypticle.decrypt(&ours).unwrap(), plaintext);
        if nonce.is_some() {
            let other = crypticle.open(&blob, Some("ffffffffffffffffffffffffffffffff"), &Limits::REQUEST);
            assert_eq!(other, Err(CryptError::WrongNonce));
        }
    }
}

fn check_crypticle_serial(line: &Json) {
    let part = &line["crypticle"];
    let crypticle = Crypticle::new(&aes_key(part, "key"));
    let mut guard = SerialGuard::new();
    let mut load = crypticle.open(&hex(&part["serial"], "blob_hex"), None, &Limits::REQUEST).unwrap();
    let serial = load.remove("serial").unwrap().as_u64().unwrap();
    assert!(guard.accept(serial));
    assert_eq!(shown(&load), part["serial"]["first_loads"]);
    assert!(!guard.accept(serial), "Salt: {}", part["serial"]["replayed_loads"]);
}

fn check_crypticle_tampered(line: &Json) {
    let part = &line["crypticle"];
    let crypticle = Crypticle::new(&aes_key(part, "key"));
    assert_eq!(crypticle.decrypt(&hex(part, "tampered_hex")), Err(CryptError::BadMac));
}

fn check_jid_valid(line: &Json) {
    for (text, valid) in line["jid"]["is_jid"].as_object().unwrap() {
        assert_eq!(Jid::new(text.as_str()).is_ok(), valid.as_bool().unwrap(), "{text}");
    }
    assert!(Jid::new(text(&line["jid"], "generated")).is_ok());
    assert!(Jid::new(text(&line["jid"], "unique_jid")).is_ok());
}

fn check_jid_start_time(line: &Json) {
    for (jid, shown) in line["jid"]["to_time"].as_object().unwrap() {
        if let Ok(jid) = Jid::new(jid.as_str()) {
            assert_eq!(jid.start_time(), shown.as_str().unwrap());
        }
    }
}

fn check_minion_id_valid(line: &Json) {
    for (id, valid) in line["valid_id"].as_object().unwrap() {
        assert_eq!(MinionId::new(id.as_str()).is_ok(), valid.as_bool().unwrap(), "{id:?}");
    }
}

fn check_minion_id_topic(line: &Json) {
    for (id, topic) in line["topic_sha1"].as_object().unwrap() {
        assert_eq!(MinionId::new(id.as_str()).unwrap().topic(), topic.as_str().unwrap());
    }
}

fn check_parse_input(line: &Json) {
    for case in list(line, "parse_input") {
        let words: Vec<String> = list(case, "argv").iter().map(|w| w.as_str().unwrap().to_owned()).collect();
        assert_eq!(Value::Array(crate::args::parse_input(&words)), value_of(&case["arg"]), "{words:?}");
    }
}
