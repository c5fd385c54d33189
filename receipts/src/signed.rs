//! A receipt with its signature: compact to send and to store, a DSSE envelope for other tools.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::TryRng as _;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};

use crate::compact::{self, MinionKey, Unpacked};
use crate::receipt::MAX_JSON;
use crate::{Digest, Receipt, ReceiptError};

/// The payload type of in-toto statements in DSSE.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// What stands before the 32 bytes of an Ed25519 key in PKCS#8 (RFC 8410).
const PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// The private key of receipts. It does not print.
pub struct SigningKey(Ed25519KeyPair);

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({})", Digest::of(&self.public()))
    }
}

impl SigningKey {
    /// Makes a key: PKCS#8 in PEM, as `openssl pkey` reads it.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn generate() -> Result<String, ReceiptError> {
        let mut seed = [0; 32];
        SysRng.try_fill_bytes(&mut seed).map_err(|_| ReceiptError::Key)?;
        let der = STANDARD.encode([&PKCS8[..], &seed].concat());
        Ok(format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n"))
    }

    /// Reads a key in PEM.
    ///
    /// # Errors
    /// When it is no Ed25519 key.
    pub fn from_pem(pem: &str) -> Result<Self, ReceiptError> {
        let body = pem.trim().strip_prefix("-----BEGIN PRIVATE KEY-----").ok_or(ReceiptError::Key)?;
        let body = body.strip_suffix("-----END PRIVATE KEY-----").ok_or(ReceiptError::Key)?.trim();
        let der = STANDARD.decode(body).map_err(|_| ReceiptError::Key)?;
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map(Self).map_err(|_| ReceiptError::Key)
    }

    /// The public half, 32 bytes.
    pub fn public(&self) -> [u8; 32] {
        self.0.public_key().as_ref().try_into().unwrap_or_default()
    }

    /// Signs a receipt.
    pub fn sign(&self, receipt: Receipt) -> SignedReceipt {
        let json = receipt.to_json();
        let signature = self.0.sign(&pre_authentication(&json)).as_ref().try_into().unwrap_or([0; 64]);
        SignedReceipt { hash: Digest::of(&json), receipt, key: self.public(), signature }
    }
}

/// A receipt whose signature holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedReceipt {
    hash: Digest,
    receipt: Receipt,
    key: [u8; 32],
    signature: [u8; 64],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Envelope {
    payload_type: String,
    payload: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvelopeSignature {
    keyid: String,
    sig: String,
}

impl SignedReceipt {
    /// The receipt.
    pub const fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// The hash that the next receipt names.
    pub const fn hash(&self) -> Digest {
        self.hash
    }

    /// The public half of the key that signed it.
    pub const fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// The compact encoding.
    pub fn to_compact(&self) -> Vec<u8> {
        self.packed(MinionKey::Within)
    }

    pub(crate) fn packed(&self, minion_key: MinionKey) -> Vec<u8> {
        compact::encode(&self.receipt, (&self.key, &self.signature), minion_key)
    }

    /// Reads the compact encoding and verifies the signature.
    ///
    /// # Errors
    /// When it is too large, no receipt, not in its one encoding, or not signed by its key.
    pub fn from_compact(bytes: &[u8]) -> Result<Self, ReceiptError> {
        Self::proved(Self::unpacked(bytes, MinionKey::Within)?)
    }

    /// Reads the one compact encoding, and verifies nothing.
    pub(crate) fn unpacked(bytes: &[u8], minion_key: MinionKey) -> Result<Unpacked, ReceiptError> {
        let it = compact::decode(bytes, minion_key)?;
        let is_canonical = compact::encode(&it.receipt, (&it.key, &it.signature), minion_key) == bytes;
        if is_canonical { Ok(it) } else { Err(ReceiptError::NotCanonical) }
    }

    /// Verifies the signature.
    pub(crate) fn proved(it: Unpacked) -> Result<Self, ReceiptError> {
        let json = it.receipt.to_json();
        let signed = Self { hash: Digest::of(&json), receipt: it.receipt, key: it.key, signature: it.signature };
        signed.verified(&json)
    }

    /// Reads what a receipt says and by which key, without verifying the signature: for files of our own, where that was done when
    /// they were written.
    ///
    /// # Errors
    /// When it is too large or no receipt.
    pub fn unverified(bytes: &[u8]) -> Result<(Receipt, [u8; 32]), ReceiptError> {
        compact::decode(bytes, MinionKey::Within).map(|it| (it.receipt, it.key))
    }

    /// The DSSE envelope, one line of JSON.
    pub fn to_envelope(&self) -> String {
        serde_json::to_string(&self.envelope()).unwrap_or_default()
    }

    pub(crate) fn envelope(&self) -> Envelope {
        let signature =
            EnvelopeSignature { keyid: Digest::of(&self.key).to_string(), sig: STANDARD.encode(self.signature) };
        let payload = STANDARD.encode(self.receipt.to_json());
        Envelope { payload_type: PAYLOAD_TYPE.to_owned(), payload, signatures: vec![signature] }
    }

    /// Verifies an envelope with the public half of its key.
    pub(crate) fn from_envelope(envelope: &Envelope, key: [u8; 32]) -> Result<Self, ReceiptError> {
        if envelope.payload_type != PAYLOAD_TYPE {
            return Err(ReceiptError::Malformed("its payload is no in-toto statement"));
        }
        if envelope.payload.len() > MAX_JSON * 4 / 3 + 4 {
            return Err(ReceiptError::TooLarge);
        }
        let decode = |text: &str| STANDARD.decode(text).map_err(|_| ReceiptError::Malformed("base64 is wrong"));
        let json = decode(&envelope.payload)?;
        let [signature] = envelope.signatures.as_slice() else {
            return Err(ReceiptError::Malformed("it has not one signature"));
        };
        if signature.keyid != Digest::of(&key).to_string() {
            return Err(ReceiptError::Malformed("its keyid is of another key"));
        }
        let signature = decode(&signature.sig)?.try_into().map_err(|_| ReceiptError::Signature)?;
        let signed = Self { hash: Digest::of(&json), receipt: Receipt::from_json(&json)?, key, signature };
        signed.verified(&json)
    }

    fn verified(self, json: &[u8]) -> Result<Self, ReceiptError> {
        let key = UnparsedPublicKey::new(&ED25519, &self.key);
        match key.verify(&pre_authentication(json), &self.signature) {
            Ok(()) => Ok(self),
            Err(_) => Err(ReceiptError::Signature),
        }
    }
}

/// DSSE's pre-authentication encoding: what the signature is over.
fn pre_authentication(payload: &[u8]) -> Vec<u8> {
    let begin = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [begin.as_bytes(), payload].concat()
}
