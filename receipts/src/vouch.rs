//! The word of a minion's RSA key for its key of receipts. It goes with each return, so that a master needs no memory to check one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_protocol::keys::{KeyError, PrivateOps, PublicKey, SignAlg};
use serde::{Deserialize, Serialize};

use crate::compact::{MinionKey, Unpacked};
use crate::receipt::MAX_COMPACT;
use crate::{Fingerprint, Receipt, ReceiptError, SignedReceipt};

/// Upper bound on the bytes of an RSA signature: a key of 16,384 bits.
const MAX_SIGNATURE: usize = 2048;
const ALG: SignAlg = SignAlg::Pkcs1v15Sha224;

/// A receipt as a return carries it: base64 of the compact encoding and of the RSA signature that vouches for its key. The fingerprint
/// of the RSA key is not in it: who reads a return knows the minion's key, and the receipt's signature is over the fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vouched {
    /// The receipt.
    pub receipt: SignedReceipt,
    /// The RSA signature, see [`Vouched::vouch`].
    pub vouch: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    #[serde(with = "serde_bytes", borrow)]
    receipt: &'a [u8],
    #[serde(with = "serde_bytes", borrow)]
    vouch: &'a [u8],
}

fn statement(minion: &str, key: &[u8; 32]) -> Vec<u8> {
    format!("brine receipts key 1\n{minion}\n{}\n", hex::encode(key)).into_bytes()
}

impl Vouched {
    /// The minion's RSA key vouches: PKCS#1 v1.5 with SHA-224 over three lines, `brine receipts key 1`, the minion's id and the key in
    /// hex.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn vouch(minion: &str, key: &[u8; 32], rsa: &dyn PrivateOps) -> Result<Vec<u8>, KeyError> {
        rsa.sign(ALG, &statement(minion, key))
    }

    /// The text in a return's `receipt`.
    pub fn to_text(&self) -> String {
        let compact = self.receipt.packed(MinionKey::Known(self.receipt.receipt().minion_key));
        let mut wire = Vec::with_capacity(compact.len() + self.vouch.len() + 16);
        // Writing to memory does not fail.
        let _ = rmp_serde::encode::write(&mut wire, &Wire { receipt: &compact, vouch: &self.vouch });
        STANDARD.encode(wire)
    }

    /// Reads a return's `receipt`, of the minion whose RSA key has this fingerprint, and verifies the signature of the receipt. Who
    /// vouches is for [`Vouched::check`].
    ///
    /// # Errors
    /// As [`SignedReceipt::from_compact`].
    pub fn from_text(text: &str, minion_key: Fingerprint) -> Result<Self, ReceiptError> {
        Unproved::from_text(text, minion_key)?.verify()
    }

    /// Checks that this RSA key of the minion vouches for the key that signed the receipt, and that the receipt names it.
    ///
    /// # Errors
    /// When it does not.
    pub fn check(&self, rsa: &PublicKey) -> Result<(), ReceiptError> {
        let receipt = self.receipt.receipt();
        if rsa.fingerprint().parse() != Ok::<Fingerprint, _>(receipt.minion_key) {
            return Err(ReceiptError::OtherMinionKey);
        }
        check(rsa, (&receipt.minion, self.receipt.key()), &self.vouch)
    }
}

/// A return's `receipt` as it was read: neither its signature nor the RSA key's word is verified.
pub struct Unproved {
    it: Unpacked,
    vouch: Vec<u8>,
}

impl Unproved {
    /// Reads a return's `receipt`, of the minion whose RSA key has this fingerprint.
    ///
    /// # Errors
    /// When it is too large, no receipt, or not in its one encoding.
    pub fn from_text(text: &str, minion_key: Fingerprint) -> Result<Self, ReceiptError> {
        if text.len() > (MAX_COMPACT + MAX_SIGNATURE) * 4 / 3 {
            return Err(ReceiptError::TooLarge);
        }
        let bytes = STANDARD.decode(text).map_err(|_| ReceiptError::Malformed("base64 is wrong"))?;
        let wire: Wire<'_> =
            rmp_serde::from_slice(&bytes).map_err(|_| ReceiptError::Malformed("it does not decode"))?;
        let is_canonical = rmp_serde::to_vec(&wire).is_ok_and(|again| again == bytes);
        let it = SignedReceipt::unpacked(wire.receipt, MinionKey::Known(minion_key))?;
        if is_canonical { Ok(Self { it, vouch: wire.vouch.to_vec() }) } else { Err(ReceiptError::NotCanonical) }
    }

    /// What it says.
    pub const fn receipt(&self) -> &Receipt {
        &self.it.receipt
    }

    /// The public half of the key that is to have signed it.
    pub const fn key(&self) -> &[u8; 32] {
        &self.it.key
    }

    /// Checks that this RSA key of the minion vouches for the key.
    ///
    /// # Errors
    /// When it does not.
    pub fn check(&self, rsa: &PublicKey) -> Result<(), ReceiptError> {
        check(rsa, (&self.it.receipt.minion, &self.it.key), &self.vouch)
    }

    /// Verifies the signature.
    ///
    /// # Errors
    /// When it does not hold.
    pub fn verify(self) -> Result<Vouched, ReceiptError> {
        Ok(Vouched { receipt: SignedReceipt::proved(self.it)?, vouch: self.vouch })
    }
}

fn check(rsa: &PublicKey, (minion, key): (&str, &[u8; 32]), vouch: &[u8]) -> Result<(), ReceiptError> {
    if rsa.verify(ALG, &statement(minion, key), vouch) { Ok(()) } else { Err(ReceiptError::Unvouched) }
}
