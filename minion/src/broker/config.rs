//! `brine:host/config`: the minion's settings without its secrets.
//!
//! Which settings are secret cannot be known in general, since owners and modules add their own. So whatever looks like a
//! secret by its name is one, at every level; a false alarm costs a module a setting, a miss costs the owner a password.

use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{ConfigOp, HostError};

use super::checked_key;

/// A name with one of these in it is a secret's.
const PARTS: &[&str] =
    &["passw", "passphrase", "secret", "token", "credential", "apikey", "privkey", "private", "authoriz", "cookie"];
/// A name with one of these as a word (between `_`, `-`, `.`, blanks) is a secret's.
const WORDS: &[&str] = &["pass", "pwd", "pw", "key", "keys", "auth", "pem", "salt", "psk", "pin", "otp", "dsn"];
/// Settings of Salt's own that the words above would hide and that are no secrets.
const HARMLESS: &[&str] = &[
    "keysize",
    "pki_dir",
    "master_sign_key_name",
    "verify_master_pubkey_sign",
    "auth_timeout",
    "auth_tries",
    "auth_retries",
    "auth_safemode",
    "random_reauth_delay",
];
/// Nested deeper than any configuration.
const MAX_DEPTH: usize = 64;

pub(super) fn answer(opts: &Value, op: ConfigOp) -> Result<Value, HostError> {
    let ConfigOp::Get { key } = op;
    let key = checked_key(&key)?;
    if is_secret(key) || key.split(':').any(is_secret) {
        return Ok(Value::Nil);
    }
    let found = opts.get(key).or_else(|| opts.traverse(key, ":"));
    Ok(found.and_then(|value| without_secrets(value, 0)).unwrap_or(Value::Nil))
}

fn is_secret(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    if HARMLESS.contains(&name.as_str()) {
        return false;
    }
    PARTS.iter().any(|part| name.contains(part))
        || name.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word))
}

/// The value without entries that are secret by their name or their content; none where it is one itself.
fn without_secrets(value: &Value, depth: usize) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Map(entries) => Some(Value::Map(
            entries
                .iter()
                .filter(|(name, _)| !is_secret(&name.python_str()))
                .filter_map(|(name, value)| Some((name.clone(), without_secrets(value, depth + 1)?)))
                .collect(),
        )),
        Value::Array(items) => {
            Some(Value::Array(items.iter().filter_map(|item| without_secrets(item, depth + 1)).collect()))
        }
        Value::String(text) => {
            let text = text.as_str()?;
            (!text.contains("-----BEGIN") && !has_password(text)).then(|| value.clone())
        }
        other => Some(other.clone()),
    }
}

/// `scheme://user:password@host`
fn has_password(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::MAX_KEY_BYTES;
    use super::*;
    use brine_protocol::value::{list, map, text};

    fn sample() -> Value {
        map([
            ("id", text("m1")),
            ("keysize", Value::from(2048)),
            ("master_finger", text("aa:bb")),
            ("key_pass", text("hunter2")),
            ("mysql.pass", text("hunter2")),
            ("mysql.host", text("db")),
            ("api_token", text("hunter2")),
            ("proxy", text("http://user:hunter2@proxy:3128/")),
            ("cert", text("-----BEGIN RSA PRIVATE KEY-----\nhunter2")),
            (
                "app",
                map([
                    ("url", text("https://a.example/")),
                    ("PASSWORD", text("hunter2")),
                    ("peers", list([map([("host", text("b")), ("secret_key", text("hunter2"))])])),
                ]),
            ),
        ])
    }

    #[test]
    fn settings_are_read_and_secrets_are_not() {
        let get = |key: &str| answer(&sample(), ConfigOp::Get { key: key.to_owned() }).unwrap();
        for (key, expected) in [
            ("id", text("m1")),
            ("keysize", Value::from(2048)),
            ("mysql.host", text("db")),
            ("app:url", text("https://a.example/")),
            ("app:peers:0:host", text("b")),
            ("none", Value::Nil),
        ] {
            assert_eq!(get(key), expected, "{key}");
        }
        let hidden = ["key_pass", "mysql.pass", "api_token", "proxy", "cert", "app:PASSWORD", "app:peers:0:secret_key"];
        for key in hidden {
            assert_eq!(get(key), Value::Nil, "{key}");
        }
        assert!(!get("app").to_string().contains("hunter2"));
        for key in ["", ":", "app:", "app::url"] {
            assert!(!get(key).to_string().contains("hunter2"), "{key}");
        }
        assert!(answer(&sample(), ConfigOp::Get { key: "x".repeat(MAX_KEY_BYTES + 1) }).is_err());
    }
}
