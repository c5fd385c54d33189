//! The AES payload (§4): AES-192-CBC under HMAC-SHA256, with Salt's marker, nonce prefix and serial.

use crate::msgpack::{DecodeError, Limits};
use crate::secret::Secret;
use crate::value::Value;

/// A publish or session key: 56 random bytes, as text 76 characters of base64.
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
    /// The payload was not made with this key, or it was changed on its way.
    #[error("the payload does not authenticate: another key, or changed on its way")]
    BadMac,
    /// What was decrypted is no Salt payload.
    #[error("the payload has not Salt's form: {0}")]
    Malformed(&'static str),
    /// The reply answers another request.
    #[error("the reply does not carry the nonce of this request")]
    WrongNonce,
    /// The content does not decode.
    #[error("the payload's content does not decode: {0}")]
    Decode(#[from] DecodeError),
}

impl AesKey {
    /// A new random key.
    pub fn generate() -> Self {
        todo!()
    }

    /// A key from its text.
    ///
    /// # Errors
    /// [`CryptError::BadKey`].
    pub fn from_text(text: &str) -> Result<Self, CryptError> {
        let _ = text;
        todo!()
    }

    /// The key's text, as it travels (RSA-encrypted) and as it lies in session files.
    pub const fn text(&self) -> &Secret<String> {
        &self.text
    }
}

/// Seals and opens payloads with one key.
#[derive(Clone)]
pub struct Crypticle {
    aes: Secret<[u8; 24]>,
    mac: Secret<[u8; 32]>,
}

impl std::fmt::Debug for Crypticle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Crypticle(<secret>)")
    }
}

impl Crypticle {
    /// Opens and seals with this key.
    pub fn new(key: &AesKey) -> Self {
        let _ = key;
        todo!()
    }

    /// IV, ciphertext and MAC of the plaintext.
    pub fn encrypt(&self, plaintext: &[u8]) -> Vec<u8> {
        let _ = (plaintext, &self.aes, &self.mac);
        todo!()
    }

    /// The plaintext. The MAC is checked before anything is decrypted.
    ///
    /// # Errors
    /// [`CryptError::BadMac`]; after a good MAC [`CryptError::Malformed`].
    pub fn decrypt(&self, blob: &[u8]) -> Result<Vec<u8>, CryptError> {
        let _ = blob;
        todo!()
    }

    /// Packs (network flavour) and encrypts a value; replies carry the request's nonce.
    pub fn seal(&self, value: &Value, nonce: Option<&str>) -> Vec<u8> {
        let _ = (value, nonce);
        todo!()
    }

    /// Decrypts and unpacks; with a nonce the payload must begin with it.
    ///
    /// # Errors
    /// When it is not authentic, not Salt's form, not the nonce's, or does not decode.
    pub fn open(&self, blob: &[u8], nonce: Option<&str>, limits: &Limits) -> Result<Value, CryptError> {
        let _ = (blob, nonce, limits);
        todo!()
    }

    /// As [`Crypticle::open`] with every byte string left as bytes (for `_serve_file`).
    ///
    /// # Errors
    /// As [`Crypticle::open`].
    pub fn open_raw(&self, blob: &[u8], nonce: Option<&str>, limits: &Limits) -> Result<Value, CryptError> {
        let _ = (blob, nonce, limits);
        todo!()
    }
}

/// Remembers the highest serial seen under one publish key (§4).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SerialGuard {
    last: u64,
}

impl SerialGuard {
    /// A guard that has seen nothing.
    pub const fn new() -> Self {
        Self { last: 0 }
    }

    /// Whether the serial is new; if so it is remembered.
    pub const fn accept(&mut self, serial: u64) -> bool {
        if serial > self.last {
            self.last = serial;
            return true;
        }
        false
    }
}
