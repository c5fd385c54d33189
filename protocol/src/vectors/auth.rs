//! Authentication: the master and the minion read each case of the vectors, and reproduce it.

use super::{KEYS, aes_key, hex, lines, list, text, value_of};
use crate::auth::{
    Accepted, AuthError, AuthOutcome, AuthRefusal, AuthRequest, Credentials, MinionAuth, publish_key_signature,
};
use crate::envelope::Envelope;
use crate::ids::MinionId;
use crate::keys::PrivateOps;
use crate::msgpack::{self, Limits};
use crate::secret::Secret;
use crate::value::{Value, ValueExt};
use serde_json::Value as Json;

lines! {
    auth_first_contact: |l| accepted(l, "accepted, first contact (no token)");
    auth_master_known_with_token: |l| accepted(l, "accepted, master key known (token)");
    auth_sha224: |l| accepted(l, "accepted, SHA224");
    auth_open_mode_replaces_key: |l| accepted(l, "open_mode replaces key");
    auth_master_signed_pubkey: |l| accepted(l, "master_sign_pubkey, minion verifies");
    auth_version_2: |l| accepted(l, "accepted, protocol version 2");
    auth_version_1_is_refused_by_our_minion: check_version_1;
    auth_undecryptable_token: check_undecryptable_token;
    auth_master_signed_pubkey_not_verified: check_signed_but_not_verified;
    auth_pending: |l| verdict(l, "pending (new key)", Verdict::Pending);
    auth_pending_master_unknown: |l| verdict(l, "pending (new key), master key unknown", Verdict::Pending);
    auth_pending_again: |l| verdict(l, "pending (again)", Verdict::Pending);
    auth_pending_other_key_denied: |l| verdict(l, "pending, different key => denied", Verdict::Rejected);
    auth_rejected: |l| verdict(l, "rejected", Verdict::Rejected);
    auth_accepted_id_other_key_denied: |l| verdict(l, "accepted id, different key => denied", Verdict::Rejected);
    auth_rejected_retry: |l| verdict(l, "rejected, minion has rejected_retry", Verdict::Rejected);
    auth_invalid_id: check_invalid_id;
    auth_bad_enc_algo: |l| bad_algo(l, "bad enc algo (token present)", "bad enc algo");
    auth_bad_sig_algo: |l| bad_algo(l, "bad sig algo", "bad sig algo");
}

/// The token that the vectors' minion sent.
const TOKEN: &[u8] = b"dG9rZW4tZm9yLXZlY3RvcnM=";

enum Verdict {
    Pending,
    Rejected,
}

fn case<'a>(line: &'a Json, name: &str) -> &'a Json {
    list(&line["auth"], "cases").iter().find(|c| text(c, "name") == name).unwrap_or_else(|| panic!("no case {name}"))
}

/// The load of a case's request. Encoding its envelope again must give the same bytes.
fn load_of(case: &Json) -> (Value, u64) {
    let sent = hex(case, "request_hex");
    let envelope = Envelope::decode(&sent, &Limits::UNAUTHENTICATED).unwrap();
    assert_eq!(envelope.encode(), sent, "our envelope is Python's");
    let Envelope::Clear { load, version } = envelope else { panic!("not clear") };
    assert_eq!(load, value_of(&case["request"]["load"]));
    (load, version)
}

/// The master reads the request, and the minion would send the same one.
fn request_of(case: &Json) -> AuthRequest {
    let (load, version) = load_of(case);
    let request = AuthRequest::parse(&load, version, version).unwrap();
    assert_eq!(request.to_load(), load, "our minion's load is Python's");
    if version < 3 {
        let refused = AuthRequest::parse(&load, version, 3);
        assert!(matches!(refused, Err(AuthRefusal::Version { minimum: 3, .. })), "by default");
    }
    request
}

/// The minion reads the reply with the knowledge of the vectors' minion.
fn reply_of(case: &Json, request: &AuthRequest) -> Result<AuthOutcome, AuthError> {
    let id = MinionId::new("vec-minion").unwrap();
    let auth = MinionAuth {
        master: request.token.as_ref().map(|_| KEYS.master.public()),
        verify_key: (text(case, "name") == "master_sign_pubkey, minion verifies").then_some(&KEYS.sign_public),
        enc_algo: request.enc_algo,
        sig_algo: request.sig_algo,
        ..MinionAuth::new(&id, &KEYS.minion)
    };
    let token = request.token.as_ref().map(|_| Secret::new(TOKEN.to_vec()));
    let attempt = auth.attempt_with(request.nonce.clone(), token).unwrap();
    attempt.verify_reply(&hex(case, "response_hex"))
}

fn inner(reply: &[u8]) -> Value {
    let outer = msgpack::decode(reply, &Limits::UNAUTHENTICATED).unwrap();
    match outer.get_bytes("load") {
        Some(load) => msgpack::decode(load, &Limits::UNAUTHENTICATED).unwrap(),
        None => outer,
    }
}

/// The master's accept reply equals Python's where it is not random, and has the same form where it is.
fn our_accept_reply(line: &Json, case: &Json, request: &AuthRequest) {
    let publish_key = aes_key(&line["auth"], "aes_key");
    let python = hex(case, "response_hex");
    let signed = inner(&python).has("pub_sig");
    let accepted = Accepted {
        publish_key: &publish_key,
        publish_key_sig: &publish_key_signature(&KEYS.master, &publish_key).unwrap(),
        session_key: &aes_key(&line["auth"], "session_key"),
        publish_port: 4505,
        sign_key: signed.then_some(&KEYS.sign as &dyn PrivateOps),
        offer: None,
        run: None,
    };
    let ours = request.accepted(&KEYS.master, &accepted).unwrap();
    assert_eq!(ours.len(), python.len());
    let (ours, python) = (inner(&ours), inner(&python));
    let keys = |v: &Value| v.entries().unwrap().iter().map(|(k, _)| k.python_str()).collect::<Vec<_>>();
    assert_eq!(keys(&ours), keys(&python));
    for field in ["enc", "pub_key", "publish_port", "pub_sig", "sig", "nonce"] {
        assert_eq!(ours.get(field), python.get(field), "{field}");
    }
    for (field, text) in case["decrypted"].as_object().unwrap() {
        let plaintext = KEYS.minion.decrypt(request.enc_algo, ours.get_bytes(field).unwrap()).unwrap();
        assert_eq!(plaintext, text.as_str().unwrap().as_bytes(), "{field}");
    }
}

fn check_credentials(line: &Json, credentials: &Credentials) {
    assert_eq!(credentials.publish_key, aes_key(&line["auth"], "aes_key"));
    assert_eq!(credentials.session_key, aes_key(&line["auth"], "session_key"));
    assert_eq!(credentials.publish_port, 4505);
    assert_eq!(&credentials.master, KEYS.master.public());
}

fn accepted(line: &Json, name: &str) {
    let case = case(line, name);
    let request = request_of(case);
    match reply_of(case, &request) {
        Ok(AuthOutcome::Accepted(credentials)) => {
            check_credentials(line, &credentials);
            assert_eq!(credentials.master_is_new, request.token.is_none());
        }
        other => panic!("{other:?}"),
    }
    our_accept_reply(line, case, &request);
}

fn check_version_1(line: &Json) {
    let case = case(line, "accepted, protocol version 1 (unsigned)");
    let request = request_of(case);
    assert!(matches!(reply_of(case, &request), Err(AuthError::Malformed(_))), "it is not signed");
    our_accept_reply(line, case, &request);
}

fn check_undecryptable_token(line: &Json) {
    let case = case(line, "undecryptable token");
    let request = request_of(case);
    assert!(matches!(reply_of(case, &request), Err(AuthError::WrongToken)));
    our_accept_reply(line, case, &request);
}

fn check_signed_but_not_verified(line: &Json) {
    let case = case(line, "master_sign_pubkey, minion does not verify");
    let request = request_of(case);
    assert!(matches!(reply_of(case, &request), Err(AuthError::PubSig(_))));
    our_accept_reply(line, case, &request);
}

fn verdict(line: &Json, name: &str, verdict: Verdict) {
    let case = case(line, name);
    let request = request_of(case);
    let ours = match (verdict, reply_of(case, &request).unwrap()) {
        (Verdict::Pending, AuthOutcome::Pending { .. }) => request.pending(&KEYS.master),
        (Verdict::Rejected, AuthOutcome::Rejected) => request.rejected(&KEYS.master),
        (_, other) => panic!("{other:?}"),
    };
    assert_eq!(ours.unwrap(), hex(case, "response_hex"), "our reply is Python's, to the bit");
}

fn check_invalid_id(line: &Json) {
    let case = case(line, "invalid id");
    let (load, version) = load_of(case);
    let refusal = AuthRequest::parse(&load, version, 3).unwrap_err();
    assert!(matches!(refusal, AuthRefusal::InvalidId { .. }));
    assert_eq!(refusal.reply(&KEYS.master).unwrap(), hex(case, "response_hex"));
}

fn bad_algo(line: &Json, name: &str, said: &str) {
    let case = case(line, name);
    let (load, version) = load_of(case);
    let refusal = AuthRequest::parse(&load, version, 3).unwrap_err();
    assert_eq!(refusal.reply(&KEYS.master).unwrap(), hex(case, "response_hex"));
    let id = MinionId::new("vec-minion").unwrap();
    let attempt = MinionAuth::new(&id, &KEYS.minion).attempt().unwrap();
    match attempt.verify_reply(&hex(case, "response_hex")) {
        Err(AuthError::Refused(text)) => assert_eq!(text, said),
        other => panic!("{other:?}"),
    }
}
