//! Content of files under an AEAD (§6.5.2), between a Brine master and a Brine minion. An answer of a Crypticle (§4) encrypts one block
//! after the other and hashes all of it besides; AES-GCM does both at several times the rate, in the buffer that goes out or came in.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};

use crate::crypticle::{AesKey, CryptError};
use crate::ids::MinionId;
use crate::msgpack::{self, Limits};
use crate::value::{Value, ValueExt};

/// The field of a request that says which form of content its sender opens.
pub const AEAD: &str = "aead";
/// The only form, and the second byte of an answer.
pub const AEAD_VERSION: u8 = 1;

/// The code that MessagePack never uses: no other answer begins so.
const FIRST: u8 = 0xc1;
const SALT_LEN: usize = 32;
const HEADER_LEN: usize = 2 + SALT_LEN;
const TAG_LEN: usize = 16;
const KEY_LEN: usize = 32;
/// The length of the answer's fields, which stands at the end.
const FIELDS_LEN: usize = 4;

/// What the key is for. It is in the name of the key and in what the encryption authenticates besides.
const LABEL: &[u8] = b"brine file content 1";
/// The direction, and the end of the label.
const ANSWER: &[u8] = b"\0answer\0";
/// Bytes of a request's MAC, which is over its nonce, its sender's id and all that it asks for.
pub(super) const MAC_LEN: usize = 32;

/// The request that an answer belongs to.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) session: &'a AesKey,
    pub(super) id: &'a MinionId,
    /// The last bytes of the request's blob.
    pub(super) mac: &'a [u8; MAC_LEN],
}

impl Asked<'_> {
    /// The key of one answer. Its salt is random, so no key is used for two answers, also where a request is answered twice.
    fn key(&self, salt: &[u8]) -> LessSafeKey {
        let mut key = [0; KEY_LEN];
        let secret = Salt::new(HKDF_SHA256, salt).extract(self.session.text().expose().as_bytes());
        secret.expand(&[LABEL], HKDF_SHA256).and_then(|okm| okm.fill(&mut key)).expect("one block of output");
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).expect("a key of 32 bytes"))
    }

    fn data(&self) -> Aad<Vec<u8>> {
        Aad::from([LABEL, ANSWER, self.mac.as_slice(), self.id.as_str().as_bytes()].concat())
    }
}

/// One key encrypts one answer, so its nonce is always the same.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// Whether a reply has this form. Nothing is checked yet.
pub(super) fn is_content(reply: &[u8]) -> bool {
    reply.first() == Some(&FIRST)
}

/// Takes the contents out of an answer to `_serve_file`: in `data` there is then their length.
fn take_contents(answer: &mut Value) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    take_data(answer, &mut contents);
    for further in further(answer) {
        take_data(further, &mut contents);
    }
    contents
}

fn further(answer: &mut Value) -> impl Iterator<Item = &mut Value> {
    let also = match answer {
        Value::Map(entries) => entries.iter_mut().find(|(key, _)| key.bytes() == Some(b"also")),
        _ => None,
    };
    let list = match also {
        Some((_, Value::Array(list))) => Some(list),
        _ => None,
    };
    list.into_iter().flatten()
}

/// The entry `data`, under a key that is text or bytes.
fn data_of(answer: &mut Value) -> Option<&mut Value> {
    let Value::Map(entries) = answer else { return None };
    entries.iter_mut().find(|(key, _)| key.bytes() == Some(b"data")).map(|(_, data)| data)
}

fn take_data(answer: &mut Value, contents: &mut Vec<Vec<u8>>) {
    let Some(data) = data_of(answer) else { return };
    if let Value::Binary(content) = data {
        let content = std::mem::take(content);
        *data = Value::from(content.len() as u64);
        contents.push(content);
    }
}

pub(super) fn seal(mut answer: Value, asked: Asked<'_>) -> Vec<u8> {
    seal_with(&mut answer, asked, rand::random())
}

pub(super) fn seal_with(answer: &mut Value, asked: Asked<'_>, salt: [u8; SALT_LEN]) -> Vec<u8> {
    let contents = take_contents(answer);
    let fields = msgpack::encode_network(answer);
    let length = contents.iter().map(Vec::len).sum::<usize>() + fields.len() + FIELDS_LEN;
    let mut out = Vec::with_capacity(HEADER_LEN + length + TAG_LEN);
    out.extend_from_slice(&[FIRST, AEAD_VERSION]);
    out.extend_from_slice(&salt);
    for content in &contents {
        out.extend_from_slice(content);
    }
    out.extend_from_slice(&fields);
    out.extend_from_slice(&u32::try_from(fields.len()).expect("an answer has few fields").to_be_bytes());
    let key = asked.key(&salt);
    let tag = key.seal_in_place_separate_tag(nonce(), asked.data(), &mut out[HEADER_LEN..]);
    out.extend_from_slice(tag.expect("less than the cipher's 64 GiB").as_ref());
    out
}

/// Opens an answer. Byte strings stay bytes. The content of the first file keeps the reply's buffer; it is not copied.
pub(super) fn open(mut reply: Vec<u8>, asked: Asked<'_>) -> Result<Value, CryptError> {
    if !is_content(&reply) || reply.get(1) != Some(&AEAD_VERSION) || reply.len() < HEADER_LEN + FIELDS_LEN + TAG_LEN {
        return Err(CryptError::Malformed("no answer with content"));
    }
    let key = asked.key(&reply[2..HEADER_LEN]);
    let opened = key.open_within(nonce(), asked.data(), &mut reply, HEADER_LEN..).map_err(|_| CryptError::BadMac)?;
    let length = opened.len();
    reply.truncate(length);
    let odd = CryptError::Malformed("its contents are not as long as it says");
    let (rest, fields_length) = reply.split_last_chunk::<FIELDS_LEN>().ok_or(odd.clone())?;
    let fields_length = usize::try_from(u32::from_be_bytes(*fields_length)).unwrap_or(usize::MAX);
    let end = rest.len().checked_sub(fields_length).ok_or(odd.clone())?;
    let mut answer = msgpack::decode_raw(&rest[end..], &Limits::REQUEST)?;
    let mut left = end;
    // From the last to the first: what remains at last is the content of the first file, in place.
    let mut all: Vec<&mut Value> = further(&mut answer).filter_map(data_of).filter(|data| data.is_u64()).collect();
    while let Some(data) = all.pop() {
        let start = data.as_u64().and_then(|n| left.checked_sub(usize::try_from(n).ok()?)).ok_or(odd.clone())?;
        *data = Value::Binary(reply[start..left].to_vec());
        left = start;
    }
    match data_of(&mut answer).filter(|data| data.is_u64()) {
        Some(data) if data.as_u64() == Some(left as u64) => {
            reply.truncate(left);
            *data = Value::Binary(reply);
        }
        None if left == 0 => {}
        _ => return Err(odd),
    }
    Ok(answer)
}

#[cfg(test)]
mod tests;
