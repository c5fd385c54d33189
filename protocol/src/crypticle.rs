//! The AES payload (§4): AES-192-CBC under HMAC-SHA256, with Salt's marker, nonce prefix and serial.

use aes::Aes192;
use aes::cipher::{BlockModeDecrypt as _, BlockModeEncrypt as _, KeyIvInit as _, block_padding::Pkcs7};
use aws_lc_rs::digest;
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use zeroize::Zeroizing;

use crate::msgpack::{self, DecodeError, Limits};
use crate::secret::Secret;
use crate::value::Value;

/// A publish key or a session key: 56 random bytes; its text has 76 characters of base64.
#[derive(Clone, PartialEq, Eq)]
pub struct AesKey {
    text: Secret<String>,
}

impl std::fmt::Debug for AesKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AesKey(<secret>)")
    }
}

/// Why a payload was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CryptError {
    /// The text is not a key.
    #[error("the text is not an AES key: 56 bytes in base64 are needed")]
    BadKey,
    /// The payload was not made with this key, or was changed in transit.
    #[error("the payload does not authenticate: another key, or changed on its way")]
    BadMac,
    /// The decrypted content is not a Salt payload.
    #[error("the payload has not Salt's form: {0}")]
    Malformed(&'static str),
    /// The reply answers another request.
    #[error("the reply does not carry the nonce of this request")]
    WrongNonce,
    /// The content does not decode.
    #[error("the payload's content does not decode: {0}")]
    Decode(#[from] DecodeError),
}

/// Key bytes: 24 for AES-192, 32 for HMAC-SHA256.
const KEY_LEN: usize = 56;
const AES_LEN: usize = 24;
const IV_LEN: usize = 16;
const MAC_LEN: usize = 32;
const NONCE_LEN: usize = 32;

/// Salt's marker before every packed value. Despite its name, nothing is pickled.
const MARKER: &[u8] = b"pickle::";

impl AesKey {
    /// A new random key.
    pub fn generate() -> Self {
        let mut raw = Zeroizing::new([0_u8; KEY_LEN]);
        rand::fill(raw.as_mut_slice());
        Self { text: Secret::new(base64::engine::general_purpose::STANDARD.encode(raw.as_slice())) }
    }

    /// Reads a key from its text; blanks around the text are ignored.
    ///
    /// # Errors
    /// [`CryptError::BadKey`].
    pub fn from_text(text: &str) -> Result<Self, CryptError> {
        let key = Self { text: Secret::new(text.trim().to_owned()) };
        key.raw()?;
        Ok(key)
    }

    /// Reads a key from the bytes of its text, as RSA decryption returns them.
    ///
    /// # Errors
    /// [`CryptError::BadKey`].
    pub fn from_bytes(text: &[u8]) -> Result<Self, CryptError> {
        Self::from_text(std::str::from_utf8(text).map_err(|_| CryptError::BadKey)?)
    }

    /// The key's text, which is sent (RSA-encrypted) and stored in session files.
    pub const fn text(&self) -> &Secret<String> {
        &self.text
    }

    /// The lowercase hex SHA-256 of the key's text, which the master signs in its auth reply (§3.3).
    pub(crate) fn digest(&self) -> String {
        hex::encode(digest::digest(&digest::SHA256, self.text.expose().as_bytes()))
    }

    fn raw(&self) -> Result<Zeroizing<[u8; KEY_LEN]>, CryptError> {
        let mut raw = Zeroizing::new([0_u8; KEY_LEN]);
        let text = self.text.expose();
        if text.len() != 76 {
            return Err(CryptError::BadKey);
        }
        let decoded = base64::engine::general_purpose::STANDARD.decode(text).map(Zeroizing::new);
        match decoded {
            Ok(bytes) if bytes.len() == KEY_LEN => raw.copy_from_slice(&bytes),
            _ => return Err(CryptError::BadKey),
        }
        Ok(raw)
    }
}

/// Seals and opens payloads with one key.
#[derive(Clone)]
pub struct Crypticle {
    aes: Secret<[u8; AES_LEN]>,
    /// It overwrites itself when it is dropped.
    mac: hmac::Key,
}

impl std::fmt::Debug for Crypticle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Crypticle(<secret>)")
    }
}

impl Crypticle {
    /// Seals and opens with this key.
    pub fn new(key: &AesKey) -> Self {
        let raw = key.raw().expect("an AesKey is checked when it is made");
        let mut aes = [0; AES_LEN];
        aes.copy_from_slice(&raw[..AES_LEN]);
        Self { aes: Secret::new(aes), mac: hmac::Key::new(HMAC_SHA256, &raw[AES_LEN..]) }
    }

    /// Encrypts the plaintext into IV, ciphertext and MAC.
    pub fn encrypt(&self, plaintext: &[u8]) -> Vec<u8> {
        self.seal_with(rand::random(), plaintext.len(), |out| out.extend_from_slice(plaintext))
    }

    /// Writes the plaintext after the space for the IV and encrypts it in place.
    pub(crate) fn seal_with(&self, iv: [u8; IV_LEN], len_hint: usize, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::with_capacity(IV_LEN + len_hint + 16 + MAC_LEN);
        out.extend_from_slice(&iv);
        write(&mut out);
        let len = out.len() - IV_LEN;
        out.resize(IV_LEN + len + 16 - len % 16, 0);
        cbc::Encryptor::<Aes192>::new(self.aes.expose().into(), (&iv).into())
            .encrypt_padded::<Pkcs7>(&mut out[IV_LEN..], len)
            .expect("the buffer was grown to whole blocks");
        let mac = hmac::sign(&self.mac, &out);
        out.extend_from_slice(mac.as_ref());
        out
    }

    /// Whether the payload was made with this key. Only the MAC is checked.
    pub fn made(&self, blob: &[u8]) -> bool {
        let Some(at) = blob.len().checked_sub(MAC_LEN) else { return false };
        let (sealed, tag) = blob.split_at(at);
        hmac::verify(&self.mac, sealed, tag).is_ok()
    }

    /// Decrypts a payload after checking its MAC.
    ///
    /// # Errors
    /// [`CryptError::BadMac`]; after a good MAC [`CryptError::Malformed`].
    pub fn decrypt(&self, blob: &[u8]) -> Result<Vec<u8>, CryptError> {
        let at = blob.len().checked_sub(MAC_LEN).ok_or(CryptError::BadMac)?;
        let (sealed, tag) = blob.split_at(at);
        hmac::verify(&self.mac, sealed, tag).map_err(|_| CryptError::BadMac)?;
        let (iv, ciphertext) = sealed.split_at_checked(IV_LEN).ok_or(CryptError::Malformed("no IV"))?;
        let iv: &[u8; IV_LEN] = iv.try_into().map_err(|_| CryptError::Malformed("no IV"))?;
        let mut plaintext = ciphertext.to_vec();
        let len = cbc::Decryptor::<Aes192>::new(self.aes.expose().into(), iv.into())
            .decrypt_padded::<Pkcs7>(&mut plaintext)
            .map_err(|_| CryptError::Malformed("wrong padding"))?
            .len();
        plaintext.truncate(len);
        Ok(plaintext)
    }

    /// Packs (network flavour) and encrypts a value. A reply carries the nonce of its request.
    pub fn seal(&self, value: &Value, nonce: Option<&str>) -> Vec<u8> {
        let room = MARKER.len() + NONCE_LEN + msgpack::room(value);
        self.seal_with(rand::random(), room, |out| write_plaintext(value, nonce, out))
    }

    /// Decrypts and unpacks a value. With a nonce, the payload must begin with the nonce.
    ///
    /// # Errors
    /// When the payload is not authentic, malformed, has another nonce, or does not decode.
    pub fn open(&self, blob: &[u8], nonce: Option<&str>, limits: &Limits) -> Result<Value, CryptError> {
        let plaintext = self.decrypt(blob)?;
        Ok(msgpack::decode(content(&plaintext, nonce)?, limits)?)
    }

    /// As [`Crypticle::open`] with every byte string left as bytes (for `_serve_file`).
    ///
    /// # Errors
    /// As [`Crypticle::open`].
    pub fn open_raw(&self, blob: &[u8], nonce: Option<&str>, limits: &Limits) -> Result<Value, CryptError> {
        let plaintext = self.decrypt(blob)?;
        Ok(msgpack::decode_raw(content(&plaintext, nonce)?, limits)?)
    }
}

fn write_plaintext(value: &Value, nonce: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(MARKER);
    if let Some(nonce) = nonce {
        out.extend_from_slice(nonce.as_bytes());
    }
    msgpack::encode_network_into(value, out);
}

fn content<'a>(plaintext: &'a [u8], nonce: Option<&str>) -> Result<&'a [u8], CryptError> {
    let packed = plaintext.strip_prefix(MARKER).ok_or(CryptError::Malformed("no marker"))?;
    let Some(nonce) = nonce else { return Ok(packed) };
    if nonce.len() != NONCE_LEN {
        return Err(CryptError::WrongNonce);
    }
    packed.strip_prefix(nonce.as_bytes()).ok_or(CryptError::WrongNonce)
}

/// Remembers the highest serial seen under one publish key (§4).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SerialGuard {
    last: u64,
}

impl SerialGuard {
    /// A guard that has seen no serial.
    pub const fn new() -> Self {
        Self { last: 0 }
    }

    /// The highest serial seen; 0 if there was none.
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// Whether the serial is new; a new one is remembered.
    pub const fn accept(&mut self, serial: u64) -> bool {
        if serial > self.last {
            self.last = serial;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::map;

    fn crypticle() -> Crypticle {
        Crypticle::new(&AesKey::generate())
    }

    #[test]
    fn what_is_sealed_opens() {
        let (c, nonce) = (crypticle(), "0123456789abcdef0123456789abcdef");
        for len in 0..50 {
            let plain = vec![7; len];
            let blob = c.encrypt(&plain);
            assert_eq!(blob.len(), 16 + (len / 16 + 1) * 16 + 32);
            assert_eq!(c.decrypt(&blob).unwrap(), plain);
        }
        let value = map([("a", 1)]);
        assert_eq!(c.open(&c.seal(&value, Some(nonce)), Some(nonce), &Limits::REQUEST).unwrap(), value);
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_found_by_the_mac() {
        let c = crypticle();
        let blob = c.seal(&map([("a", 1)]), None);
        for at in 0..blob.len() {
            let mut bad = blob.clone();
            bad[at] ^= 1;
            assert_eq!(c.decrypt(&bad), Err(CryptError::BadMac), "byte {at}");
            assert_eq!(c.decrypt(&blob[..at]), Err(CryptError::BadMac), "cut at {at}");
        }
        assert_eq!(crypticle().decrypt(&blob), Err(CryptError::BadMac));
    }

    #[test]
    fn the_mac_comes_before_the_padding() {
        // The ciphertext is not a whole number of blocks. With a wrong MAC, the error must not reveal that.
        let c = crypticle();
        let sealed = vec![0; 16 + 5];
        let mut blob = sealed.clone();
        blob.extend_from_slice(&[0; 32]);
        assert_eq!(c.decrypt(&blob), Err(CryptError::BadMac));
        let mut blob = sealed.clone();
        blob.extend_from_slice(hmac::sign(&c.mac, &sealed).as_ref());
        assert_eq!(c.decrypt(&blob), Err(CryptError::Malformed("wrong padding")));
        assert_eq!(c.decrypt(hmac::sign(&c.mac, b"").as_ref()), Err(CryptError::Malformed("no IV")));
    }

    #[test]
    fn a_reply_without_its_nonce_is_refused() {
        let (c, nonce) = (crypticle(), "0123456789abcdef0123456789abcdef");
        let open = |blob: &[u8], nonce| c.open(blob, Some(nonce), &Limits::REQUEST);
        assert_eq!(open(&c.seal(&map([("a", 1)]), None), nonce), Err(CryptError::WrongNonce));
        assert_eq!(
            open(&c.seal(&Value::Nil, Some("ffffffffffffffffffffffffffffffff")), nonce),
            Err(CryptError::WrongNonce)
        );
        // A shorter nonce must not pass as a prefix of a longer one, nor an empty one as any.
        assert_eq!(open(&c.seal(&Value::Nil, Some(nonce)), ""), Err(CryptError::WrongNonce));
        assert_eq!(open(&c.seal(&Value::Nil, Some(nonce)), &nonce[..16]), Err(CryptError::WrongNonce));
    }

    #[test]
    fn keys_do_not_print_and_are_checked() {
        let key = AesKey::generate();
        let shown = format!("{key:?} {:?} {}", Crypticle::new(&key), key.text());
        assert!(!shown.contains(&key.text().expose()[..8]), "{shown}");
        assert_eq!(key.text().expose().len(), 76);
        assert_eq!(AesKey::from_text(key.text().expose()).unwrap(), key);
        for bad in ["", "abc", &"A".repeat(75), &"!".repeat(76), &"A".repeat(76)] {
            assert!(AesKey::from_text(bad).is_err() || bad.starts_with('A'), "{bad}");
        }
    }

    #[test]
    fn serials_only_go_up() {
        let mut guard = SerialGuard::new();
        assert!(guard.accept(5));
        assert!(!guard.accept(5));
        assert!(!guard.accept(4));
        assert!(!guard.accept(0));
        assert!(guard.accept(6));
    }
}
