//! The envelope of every message on 4506 (§2.1): either clear or aes.

use crate::ids::MinionId;
use crate::msgpack::{self, Limits, Pick};
use crate::value::{self, Value, ValueExt};

/// The protocol version of this implementation, and the lowest version that is accepted by default (CVE-2025-62349).
pub const VERSION: u64 = 3;

/// A request's envelope.
#[derive(Debug, Clone, PartialEq)]
pub enum Envelope {
    /// The load in clear text: `_auth` and local clients.
    Clear {
        /// The load, a map.
        load: Value,
        /// The protocol version; 0 if it is missing or not a number.
        version: u64,
    },
    /// The load, encrypted with the session key of the minion that the envelope names.
    Aes(AesEnvelope),
}

/// An encrypted request.
#[derive(Debug, Clone, PartialEq)]
pub struct AesEnvelope {
    /// The Crypticle blob.
    pub load: Vec<u8>,
    /// The protocol version; 0 when missing or no number.
    pub version: u64,
    /// The claimed sender. Only the load's MAC and token prove it.
    pub id: Option<MinionId>,
    /// The algorithm to encrypt a private reply with; checked where it is used.
    pub enc_algo: Option<String>,
    /// The algorithm to sign a private reply with; checked where it is used.
    pub sig_algo: Option<String>,
}

/// Why bytes are no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not MessagePack within the limits.
    #[error("not MessagePack: {0}")]
    Decode(#[from] crate::msgpack::DecodeError),
    /// MessagePack, but no envelope.
    #[error("bad envelope: {0}")]
    Malformed(&'static str),
    /// A clear load that is not a map.
    #[error("payload and load must be a dict")]
    LoadNotMap,
}

impl EnvelopeError {
    /// The unencrypted reply to the sender (§4.2).
    pub fn reply(&self) -> Value {
        match self {
            Self::Decode(_) => value::map([("error", "Routing error")]),
            Self::Malformed(_) => value::text("bad load"),
            Self::LoadNotMap => value::text("payload and load must be a dict"),
        }
    }
}

impl Envelope {
    /// A clear envelope of this version.
    pub const fn clear(load: Value) -> Self {
        Self::Clear { load, version: VERSION }
    }

    /// Decodes an envelope.
    ///
    /// # Errors
    /// When the bytes are not an envelope; the error knows the reply.
    pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Self, EnvelopeError> {
        let mut envelope = msgpack::decode(bytes, limits)?;
        if !matches!(envelope, Value::Map(_)) {
            return Err(EnvelopeError::Malformed("it is not a map"));
        }
        let load = envelope.remove("load").ok_or(EnvelopeError::Malformed("it has no load"))?;
        let version = version_of(envelope.get("version"));
        match envelope.get_text("enc") {
            Some("clear") if matches!(load, Value::Map(_)) => Ok(Self::Clear { load, version }),
            Some("clear") => Err(EnvelopeError::LoadNotMap),
            Some("aes") => {
                let text = |key: &str| envelope.get_text(key).map(str::to_owned);
                Ok(Self::Aes(AesEnvelope {
                    load: into_bytes(load).ok_or(EnvelopeError::Malformed("its load is not bytes"))?,
                    version,
                    id: envelope.get("id").and_then(|id| MinionId::try_from(id).ok()),
                    enc_algo: text("enc_algo"),
                    sig_algo: text("sig_algo"),
                }))
            }
            // No other envelope reaches a function (§13.2).
            _ => Err(EnvelopeError::Malformed("its enc is neither clear nor aes")),
        }
    }

    /// Encodes the envelope in the network flavour.
    pub fn encode(&self) -> Vec<u8> {
        let version = Value::from(self.version());
        msgpack::encode_network(&match self {
            Self::Clear { load, .. } => {
                value::map([("enc", Value::from("clear")), ("load", load.clone()), ("version", version)])
            }
            Self::Aes(aes) => {
                let mut envelope = value::map([
                    ("enc", Value::from("aes")),
                    ("load", Value::Binary(aes.load.clone())),
                    ("version", version),
                ]);
                if let Some(id) = &aes.id {
                    envelope.insert("id", id);
                }
                if let Some(algo) = &aes.enc_algo {
                    envelope.insert("enc_algo", algo.as_str());
                }
                if let Some(algo) = &aes.sig_algo {
                    envelope.insert("sig_algo", algo.as_str());
                }
                envelope
            }
        })
    }

    /// The protocol version.
    pub const fn version(&self) -> u64 {
        match self {
            Self::Clear { version, .. } => *version,
            Self::Aes(aes) => aes.version,
        }
    }
}

/// The parts of an envelope that can be read without decoding all of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Head {
    /// A clear load with only the picked entries.
    Clear {
        /// The load, a map.
        load: Value,
        /// As in [`Envelope::Clear`].
        version: u64,
    },
    /// An encrypted load.
    Aes,
}

impl Head {
    /// Decodes the entries of a clear load that `pick` selects by their path of keys. Of several equal keys the last
    /// one counts, as in [`Envelope::decode`].
    ///
    /// # Errors
    /// As [`Envelope::decode`]; an encrypted load is not read.
    pub fn decode(bytes: &[u8], limits: &Limits, pick: &dyn Fn(&[&str]) -> Pick) -> Result<Self, EnvelopeError> {
        let head = msgpack::decode_picked(bytes, limits, &|way| match way {
            ["enc" | "version"] => Pick::Scalar,
            ["load"] => Pick::Within,
            ["load", within @ ..] => pick(within),
            _ => Pick::Skip,
        })?;
        if !matches!(head, Value::Map(_)) {
            return Err(EnvelopeError::Malformed("it is not a map"));
        }
        let load = head.get("load").ok_or(EnvelopeError::Malformed("it has no load"))?;
        match head.get_text("enc") {
            Some("clear") if matches!(load, Value::Map(_)) => {
                Ok(Self::Clear { load: load.clone(), version: version_of(head.get("version")) })
            }
            Some("clear") => Err(EnvelopeError::LoadNotMap),
            Some("aes") => Ok(Self::Aes),
            _ => Err(EnvelopeError::Malformed("its enc is neither clear nor aes")),
        }
    }
}

/// The version may be a number or a numeric text; anything else counts as 0 (§2.1).
fn version_of(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::Integer(n)) => n.as_u64().unwrap_or(0),
        Some(Value::String(text)) => text.as_str().and_then(|t| t.trim().parse().ok()).unwrap_or(0),
        _ => 0,
    }
}

/// Takes the bytes of a text or byte string without copying them.
pub(crate) fn into_bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::Binary(bytes) => Some(bytes),
        Value::String(text) => Some(text.into_bytes()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::{bytes, list, map, text};

    fn decode(value: &Value) -> Result<Envelope, EnvelopeError> {
        Envelope::decode(&msgpack::encode_network(value), &Limits::UNAUTHENTICATED)
    }

    #[test]
    fn only_clear_and_aes_exist() {
        let load = || map([("cmd", "ping")]);
        for enc in [text("pub"), text(""), text("CLEAR"), text("clear "), Value::Nil, bytes([0xff]), list(["aes"])] {
            let error = decode(&map([("enc", enc.clone()), ("load", load())])).unwrap_err();
            assert_eq!(error.reply(), text("bad load"), "{enc}");
        }
        assert!(decode(&map([("enc", text("clear")), ("load", load())])).is_ok());
    }

    #[test]
    fn what_is_no_envelope_gets_salts_answer() {
        let cases = [
            (text("x"), text("bad load")),
            (map([("enc", "clear")]), text("bad load")),
            (map([("load", "x")]), text("bad load")),
            (map([("enc", text("clear")), ("load", list([1]))]), text("payload and load must be a dict")),
            (map([("enc", text("aes")), ("load", map([("a", 1)]))]), text("bad load")),
        ];
        for (sent, answer) in cases {
            assert_eq!(decode(&sent).unwrap_err().reply(), answer, "{sent}");
        }
        let garbage = Envelope::decode(&[0xc1], &Limits::UNAUTHENTICATED).unwrap_err();
        assert_eq!(garbage.reply(), map([("error", "Routing error")]));
    }

    /// Entries that are not picked take no memory; picked scalars replace lists and maps by empty ones; and both
    /// decoders agree.
    #[test]
    fn a_head_has_what_was_picked_and_reads_as_the_whole_does() {
        let pick = |way: &[&str]| match way {
            ["cmd" | "key"] | ["kwargs", "token"] => Pick::Scalar,
            ["kwargs"] => Pick::Within,
            _ => Pick::Skip,
        };
        let read = |value: &Value| Head::decode(&msgpack::encode_network(value), &Limits::UNAUTHENTICATED, &pick);
        let kwargs = map([("token", text("t")), ("other", list([1, 2]))]);
        let load = map([("cmd", text("publish")), ("arg", list([1, 2])), ("key", list([1])), ("kwargs", kwargs)]);
        let head = read(&map([("enc", text("clear")), ("load", load), ("version", Value::from("3"))])).unwrap();
        let empty = Value::Array(Vec::new());
        let picked = map([("cmd", text("publish")), ("key", empty), ("kwargs", map([("token", "t")]))]);
        assert_eq!(head, Head::Clear { load: picked, version: 3 });
        // Of equal keys the last one counts in every decoder.
        let twice = Value::Map(vec![(text("cmd"), text("ping")), (text("cmd"), text("publish"))]);
        let sent = Value::Map(vec![
            (text("enc"), text("aes")),
            (text("load"), map([("cmd", "x")])),
            (text("load"), twice),
            (text("enc"), text("clear")),
        ]);
        let Ok(Envelope::Clear { load: whole, .. }) = decode(&sent) else { panic!() };
        let Ok(Head::Clear { load: head, .. }) = read(&sent) else { panic!() };
        assert_eq!((head.get_text("cmd"), whole.get_text("cmd")), (Some("publish"), Some("publish")));
        for sent in [
            text("x"),
            map([("enc", "clear")]),
            map([("load", "x")]),
            map([("enc", text("clear")), ("load", list([1]))]),
            map([("enc", text("pub")), ("load", map([("cmd", "ping")]))]),
        ] {
            assert_eq!(read(&sent).unwrap_err(), decode(&sent).unwrap_err(), "{sent}");
        }
    }

    #[test]
    fn the_version_is_a_number_or_nothing() {
        for (sent, read) in [
            (Value::from(3), 3),
            (text("3"), 3),
            (text("x"), 0),
            (Value::Nil, 0),
            (Value::from(-1), 0),
            (Value::F64(3.0), 0),
            (list([3]), 0),
        ] {
            let envelope = map([("enc", text("clear")), ("load", map([("cmd", "x")])), ("version", sent)]);
            assert_eq!(decode(&envelope).unwrap().version(), read);
        }
    }

    #[test]
    fn an_invalid_id_names_nobody() {
        let envelope = map([("enc", text("aes")), ("load", bytes([1])), ("id", text("../x"))]);
        let Envelope::Aes(aes) = decode(&envelope).unwrap() else { panic!("not aes") };
        assert_eq!(aes.id, None);
    }

    proptest! {
        #[test]
        fn hostile_bytes_do_not_panic(b in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Envelope::decode(&b, &Limits::UNAUTHENTICATED);
        }

        #[test]
        fn hostile_fields_do_not_panic(enc in "(clear|aes|x)", load in proptest::collection::vec(any::<u8>(), 0..60), n in any::<u64>()) {
            let envelope = map([("enc", text(enc)), ("load", bytes(load)), ("version", Value::from(n))]);
            let _ = decode(&envelope);
        }
    }
}
