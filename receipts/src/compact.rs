//! The compact encoding: what is sent and stored. The JSON, which is signed, is made of it again.
//!
//! It is MessagePack with arrays for structures. All hashes, the key and the signature are one string of bytes. What most receipts have
//! in common is a number: the usual walls, how the return goes, what became of the job. A return has even less: its master knows the
//! fingerprint of the minion's RSA key, by which it also knows the minion.

use std::fmt;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::receipt::MAX_COMPACT;
use crate::{Call, Digest, Fingerprint, Module, Outcome, Receipt, ReceiptError, Series, Time, Usage};

/// The walls that have a number, which is their place here.
const WALLS: [&str; 5] = ["user", "no_new_privs", "hidden", "seccomp", "cgroup"];
/// `landlock N` has this number and N.
const LANDLOCK: u64 = 16;
/// Upper bound on that N.
const LANDLOCK_MAX: u64 = 111;
/// Bytes of the receipt of a job with one function: room for it in one piece.
const USUAL: usize = 768;
/// Digits of a usual jid, two in a byte.
const JID_DIGITS: usize = 20;

const PREVIOUS: u8 = 1;
const MASTER: u8 = 1 << 1;
const PUBLICATION: u8 = 1 << 2;
const POLICY: u8 = 1 << 3;
const DIRECT: u8 = 1 << 4;
const OUTCOME: u8 = 5;

/// A receipt as it was read: nothing is proved.
pub(crate) struct Unpacked {
    pub(crate) receipt: Receipt,
    pub(crate) key: [u8; 32],
    pub(crate) signature: [u8; 64],
}

/// Whether the fingerprint of the minion's RSA key is in the bytes.
#[derive(Clone, Copy)]
pub(crate) enum MinionKey {
    /// It is.
    Within,
    /// The reader knows it.
    Known(Fingerprint),
}

#[derive(Serialize, Deserialize)]
struct Packed<'a> {
    version: u64,
    flags: u8,
    number: u64,
    minion: &'a str,
    #[serde(borrow)]
    jid: Word<'a>,
    #[serde(borrow)]
    walls: Vec<Word<'a>>,
    start: i64,
    /// Nanoseconds from the start to the end.
    took: i64,
    retcode: i64,
    #[serde(borrow)]
    calls: Vec<PackedCall<'a>>,
    #[serde(with = "serde_bytes")]
    bytes: &'a [u8],
}

#[derive(Serialize, Deserialize)]
struct PackedCall<'a> {
    function: &'a str,
    retcode: i64,
    #[serde(borrow)]
    module: Option<PackedModule<'a>>,
    usage: Option<Usage>,
}

#[derive(Serialize, Deserialize)]
struct PackedModule<'a> {
    /// None if the function's name begins with it.
    name: Option<&'a str>,
    version: Option<&'a str>,
    #[serde(borrow)]
    signers: Vec<&'a str>,
}

/// What has a short form.
#[derive(Clone, Copy)]
enum Word<'a> {
    Number(u64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl Serialize for Word<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => to.serialize_u64(*number),
            Self::Text(text) => to.serialize_str(text),
            Self::Bytes(bytes) => to.serialize_bytes(bytes),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Word<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text or bytes")
            }

            fn visit_u64<E>(self, number: u64) -> Result<Word<'de>, E> {
                Ok(Word::Number(number))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Word<'de>, E> {
                Ok(Word::Text(text))
            }

            fn visit_borrowed_bytes<E: serde::de::Error>(self, bytes: &'de [u8]) -> Result<Word<'de>, E> {
                // More is no jid, and hex of it would be twice as long.
                if bytes.len() == JID_DIGITS / 2 { Ok(Word::Bytes(bytes)) } else { Err(E::custom("no digits")) }
            }
        }

        from.deserialize_any(Any).map_err(D::Error::custom)
    }
}

fn wall(name: &str) -> Word<'_> {
    let known = || WALLS.iter().position(|wall| *wall == name).map(|place| place as u64);
    let landlock = || {
        let digits = name.strip_prefix("landlock ")?;
        // Another spelling of the same number stays as it is.
        let is_usual = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
        let version: u64 = digits.parse().ok()?;
        (is_usual && version <= LANDLOCK_MAX).then_some(LANDLOCK + version)
    };
    known().or_else(landlock).map_or(Word::Text(name), Word::Number)
}

fn wall_name(number: u64) -> Option<String> {
    let known = usize::try_from(number).ok().and_then(|place| WALLS.get(place));
    let landlock = || number.checked_sub(LANDLOCK).filter(|version| *version <= LANDLOCK_MAX);
    known.map(|wall| (*wall).to_owned()).or_else(|| landlock().map(|version| format!("landlock {version}")))
}

/// What the names of a module's functions begin with.
fn module_of(function: &str) -> &str {
    function.split_once('.').map_or(function, |(module, _)| module)
}

/// Encodes. The bytes are for [`decode`] with the same `minion_key`.
pub(crate) fn encode(receipt: &Receipt, (key, signature): (&[u8; 32], &[u8; 64]), minion_key: MinionKey) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL);
    let mut put = |hash: Option<[u8; 32]>| bytes.extend(hash.into_iter().flatten());
    put(receipt.previous.map(|hash| hash.0));
    put(receipt.master.map(|fingerprint| fingerprint.0));
    put(receipt.publication.map(|hash| hash.0));
    put(receipt.policy.map(|hash| hash.0));
    put(matches!(minion_key, MinionKey::Within).then_some(receipt.minion_key.0));
    put(Some(receipt.arguments.0));
    put(Some(receipt.returned.0));
    for module in receipt.calls.iter().filter_map(|call| call.module.as_ref()) {
        put(Some(module.sha256.0));
        put(Some(module.grants.0));
    }
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(signature);
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    let outcome = match receipt.outcome {
        Outcome::Ran => 0,
        Outcome::Refused => 1,
        Outcome::Killed => 2,
    };
    let mut digits = [0; JID_DIGITS / 2];
    let is_usual = receipt.jid.bytes().all(|byte| byte.is_ascii_digit())
        && hex::decode_to_slice(&receipt.jid, &mut digits).is_ok();
    let packed = Packed {
        version: receipt.version,
        flags: flag(receipt.previous.is_some(), PREVIOUS)
            | flag(receipt.master.is_some(), MASTER)
            | flag(receipt.publication.is_some(), PUBLICATION)
            | flag(receipt.policy.is_some(), POLICY)
            | flag(receipt.series == Series::Direct, DIRECT)
            | outcome << OUTCOME,
        number: receipt.number,
        minion: &receipt.minion,
        jid: if is_usual { Word::Bytes(&digits) } else { Word::Text(&receipt.jid) },
        walls: receipt.walls.iter().map(|name| wall(name)).collect(),
        start: receipt.start.0,
        took: receipt.end.0.wrapping_sub(receipt.start.0),
        retcode: receipt.retcode,
        calls: receipt.calls.iter().map(pack_call).collect(),
        bytes: &bytes,
    };
    let mut out = Vec::with_capacity(USUAL);
    // Writing to memory does not fail.
    let _ = rmp_serde::encode::write(&mut out, &packed);
    out
}

fn pack_call(call: &Call) -> PackedCall<'_> {
    let module = call.module.as_ref().map(|module| PackedModule {
        name: (module.name != module_of(&call.function)).then_some(module.name.as_str()),
        version: module.version.as_deref(),
        signers: module.signers.iter().map(String::as_str).collect(),
    });
    PackedCall { function: &call.function, retcode: call.retcode, module, usage: call.usage }
}

/// Takes hashes from the front of the bytes.
struct Hashes<'a>(&'a [u8]);

impl Hashes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ReceiptError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(ReceiptError::Malformed("a hash is missing"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn take_if(&mut self, is_there: bool) -> Result<Option<[u8; 32]>, ReceiptError> {
        if is_there { self.take().map(Some) } else { Ok(None) }
    }
}

/// Decodes. That the bytes are the one encoding is for the caller to check.
///
/// # Errors
/// When it is too large or no receipt.
pub(crate) fn decode(bytes: &[u8], minion_key: MinionKey) -> Result<Unpacked, ReceiptError> {
    if bytes.len() > MAX_COMPACT {
        return Err(ReceiptError::TooLarge);
    }
    let packed: Packed<'_> = rmp_serde::from_slice(bytes).map_err(|_| ReceiptError::Malformed("it does not decode"))?;
    if packed.version != Receipt::VERSION {
        return Err(ReceiptError::Version(packed.version));
    }
    let mut hashes = Hashes(packed.bytes);
    let mut optional = |flag: u8| hashes.take_if(packed.flags & flag != 0);
    let (previous, master) = (optional(PREVIOUS)?.map(Digest), optional(MASTER)?.map(Fingerprint));
    let (publication, policy) = (optional(PUBLICATION)?.map(Digest), optional(POLICY)?.map(Digest));
    let minion_key = match minion_key {
        MinionKey::Within => Fingerprint(hashes.take()?),
        MinionKey::Known(known) => known,
    };
    let (arguments, returned) = (Digest(hashes.take()?), Digest(hashes.take()?));
    let calls = packed.calls.into_iter().map(|call| unpack_call(call, &mut hashes)).collect::<Result<_, _>>()?;
    let (key, signature) = (hashes.take()?, hashes.take()?);
    if !hashes.0.is_empty() {
        return Err(ReceiptError::Malformed("it has more hashes than places for them"));
    }
    let receipt = Receipt {
        version: packed.version,
        number: packed.number,
        previous,
        minion: packed.minion.to_owned(),
        minion_key,
        master,
        series: if packed.flags & DIRECT == 0 { Series::Spooled } else { Series::Direct },
        publication,
        jid: match packed.jid {
            Word::Text(text) => text.to_owned(),
            Word::Bytes(digits) => hex::encode(digits),
            Word::Number(_) => return Err(ReceiptError::Malformed("a jid is no number")),
        },
        arguments,
        calls,
        policy,
        walls: packed.walls.into_iter().map(unpack_wall).collect::<Result<_, _>>()?,
        start: Time(packed.start),
        end: Time(packed.start.wrapping_add(packed.took)),
        retcode: packed.retcode,
        outcome: match packed.flags >> OUTCOME {
            0 => Outcome::Ran,
            1 => Outcome::Refused,
            2 => Outcome::Killed,
            _ => return Err(ReceiptError::Malformed("its outcome is none")),
        },
        returned,
    };
    Ok(Unpacked { receipt, key, signature })
}

fn unpack_wall(wall: Word<'_>) -> Result<String, ReceiptError> {
    match wall {
        Word::Text(text) => Ok(text.to_owned()),
        Word::Number(number) => wall_name(number).ok_or(ReceiptError::Malformed("a wall has no such number")),
        Word::Bytes(_) => Err(ReceiptError::Malformed("a wall is no string of bytes")),
    }
}

fn unpack_call(call: PackedCall<'_>, hashes: &mut Hashes<'_>) -> Result<Call, ReceiptError> {
    let mut module = |module: PackedModule<'_>| {
        Ok::<_, ReceiptError>(Module {
            name: module.name.unwrap_or_else(|| module_of(call.function)).to_owned(),
            sha256: Digest(hashes.take()?),
            version: module.version.map(str::to_owned),
            signers: module.signers.into_iter().map(str::to_owned).collect(),
            grants: Digest(hashes.take()?),
        })
    };
    Ok(Call {
        function: call.function.to_owned(),
        retcode: call.retcode,
        module: call.module.map(&mut module).transpose()?,
        usage: call.usage,
    })
}
