//! Keys, and how minions and masters prove who they are.

use std::path::PathBuf;
use std::time::Duration;

use super::*;

const SIGN: &[&str] = &["PKCS1v15-SHA1", "PKCS1v15-SHA224"];

settings! { AREA = "Keys and authentication";
    /// Size of the RSA keys that the daemon makes for itself.
    KEYSIZE: usize = integer("keysize", both("2048"), "bits", 2_048..=8_192);
    /// Hash of fingerprints and of files on the file server.
    HASH_TYPE: String =
        choice("hash_type", both("sha256"), &["sha224", "sha256", "sha384", "sha512"]).unused_on(Role::Minion);
    /// Accept every new key. Only `true` turns it on.
    AUTO_ACCEPT: bool = flag("auto_accept", master("false")).live();
    /// Master: let every minion in, whatever key it has. Minion: trust a master whose key changed. Only `true` turns it on.
    OPEN_MODE: bool = flag("open_mode", both("false")).live_on(Role::Master);
    /// File of minion ids (globs, expressions) whose keys are accepted at once.
    AUTOSIGN_FILE: PathBuf = path("autosign_file", master("/etc/salt/autosign.conf")).live();
    /// File of minion ids (globs, expressions) whose keys are rejected at once.
    AUTOREJECT_FILE: PathBuf = path("autoreject_file", master("/etc/salt/autoreject.conf")).live();
    /// Age at which an id in `pki_dir/minions_autosign` does not count any more.
    AUTOSIGN_TIMEOUT: Duration = minutes("autosign_timeout", master("120"), MINUTES).live();
    /// Folder with one file for each grain: a new key is accepted if the minion sends a value that the file lists.
    AUTOSIGN_GRAINS_DIR: PathBuf = path("autosign_grains_dir", master("null")).live();
    /// Allow the group of `pki_dir` to write it, and of the files that decide which keys are accepted.
    PERMISSIVE_PKI_ACCESS: bool = flag("permissive_pki_access", master("false")).live();
    /// Put an event on the bus for each authentication.
    AUTH_EVENTS: bool = flag("auth_events", master("true"));
    /// Results of an authentication (`accept`, `pend`, …) whose events carry the grains that the minion sent with it.
    AUTH_EVENTS_AUTOSIGN_GRAINS: Vec<String> = list("auth_events_autosign_grains", master("[]"));
    /// Oldest version of the authentication protocol that is accepted. Older ones do not prove who a minion is.
    MINIMUM_AUTH_VERSION: u64 = integer("minimum_auth_version", master("3"), "", ANY);
    /// Age at which a request counts as replayed; 0 accepts any age. It needs clocks that agree.
    REQUEST_SERVER_TTL: u64 = seconds("request_server_ttl", master("0"), TIME);
    /// Age at which session keys are replaced.
    PUBLISH_SESSION: Duration = seconds("publish_session", master("86400"), TIME);
    /// Replace the key of publications when a minion's key is deleted or rejected.
    ROTATE_AES_KEY: bool = flag("rotate_aes_key", master("true"));
    /// Send all minions a `test.ping` when that key was replaced, so that they fetch the new one at once.
    PING_ON_ROTATE: bool = flag("ping_on_rotate", master("false"));
    /// Algorithm that signs publications.
    PUBLISH_SIGNING_ALGORITHM: String = choice("publish_signing_algorithm", master("PKCS1v15-SHA1"), SIGN);
    /// Publish jobs for Brine minions so that only the minions that are meant can read them; `shared` publishes as Salt does, readable by all.
    PUBLICATIONS: String = choice("publications", master("sealed"), &["sealed", "shared"]);
    /// Take only jobs that no other minion can read, and only a Brine master that publishes them so.
    REQUIRE_SEALED: bool = flag("require_sealed", minion("false"));
    /// Sign the master's public key with a second key, which minions verify with `verify_master_pubkey_sign`.
    MASTER_SIGN_PUBKEY: bool = flag("master_sign_pubkey", master("false"));
    /// Name of the second key's files in `pki_dir`: `NAME.pem` and `NAME.pub`.
    MASTER_SIGN_KEY_NAME: String = text("master_sign_key_name", both("master_sign"));
    /// Name of the file in `pki_dir` that `salt-key --gen-signature` writes; without it, `ID_pubkey_signature`.
    MASTER_PUBKEY_SIGNATURE: String = text("master_pubkey_signature", master("null"));
    /// Refuse returns that are not signed.
    REQUIRE_MINION_SIGN_MESSAGES: bool = flag("require_minion_sign_messages", master("false"));
    /// Refuse returns whose signature is wrong.
    DROP_MESSAGES_SIGNATURE_FAIL: bool = flag("drop_messages_signature_fail", master("true"));
    /// Let a minion ask for the removal of its own key.
    ALLOW_MINION_KEY_REVOKE: bool = flag("allow_minion_key_revoke", master("true"));
    /// Sign returns and events.
    MINION_SIGN_MESSAGES: bool = flag("minion_sign_messages", minion("false"));
    /// Algorithm that encrypts the keys of a session.
    ENCRYPTION_ALGORITHM: String =
        choice("encryption_algorithm", minion("OAEP-SHA1"), &["OAEP-SHA1", "OAEP-SHA224"]);
    /// Algorithm that signs what the minion sends.
    SIGNING_ALGORITHM: String = choice("signing_algorithm", minion("PKCS1v15-SHA1"), SIGN);
    /// Accept a master only if its key is signed by the second key, `pki_dir/master_sign.pub`.
    VERIFY_MASTER_PUBKEY_SIGN: bool = flag("verify_master_pubkey_sign", minion("false"));
    /// Fingerprint of the master's key, as `salt-key -F master` shows it. A master with another key is refused.
    MASTER_FINGER: String = text("master_finger", minion("''"));
    /// Wait between attempts while the key is not accepted.
    ACCEPTANCE_WAIT_TIME: Duration = seconds("acceptance_wait_time", minion("10"), TIME);
    /// Longest such wait: it doubles up to here; 0 keeps it as it is.
    ACCEPTANCE_WAIT_TIME_MAX: Duration = seconds("acceptance_wait_time_max", minion("0"), TIME);
    /// Try again after the master rejected the key. Otherwise the minion ends.
    REJECTED_RETRY: bool = flag("rejected_retry", minion("false"));
    /// Time that the master may take to answer an authentication.
    AUTH_TIMEOUT: Duration = seconds("auth_timeout", minion("5"), TIME);
    /// Attempts of one authentication while no answer comes.
    AUTH_TRIES: u32 = integer("auth_tries", minion("7"), "attempts", 1..=1_000_000);
    /// Longest random wait before the minion authenticates again because the master replaced its key; never more than a second.
    RANDOM_REAUTH_DELAY: Duration = seconds("random_reauth_delay", minion("10"), TIME);
    /// Grains that are sent with a new key, for `autosign_grains_dir`.
    AUTOSIGN_GRAINS: Vec<String> = list("autosign_grains", minion("[]"));
}
