//! A line of an export: an envelope, the public half of its key, and the RSA key that vouches.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_protocol::keys::PublicKey;
use serde::{Deserialize, Serialize};

use crate::receipt::MAX_JSON;
use crate::signed::Envelope;
use crate::{Fingerprint, ReceiptError, SignedReceipt, Vouched};

/// Upper bound on the bytes of a line.
pub const MAX_LINE: usize = 2 * MAX_JSON;

/// The line as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Line {
    envelope: Envelope,
    /// The 32 bytes of the Ed25519 key, base64.
    key: String,
    /// The minion's RSA key, PEM.
    minion_key: String,
    /// The RSA signature, base64.
    vouch: String,
}

/// A receipt with all that proves whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The receipt and the RSA key's word.
    pub vouched: Vouched,
    /// The minion's RSA key in PEM.
    pub minion_key: String,
}

/// What a line proves, and by which key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proved {
    /// The receipt.
    pub receipt: SignedReceipt,
    /// The fingerprint of the RSA key: who trusts that it is the minion's can trust the receipt.
    pub by: Fingerprint,
}

impl Evidence {
    /// The line, without its end.
    pub fn to_line(&self) -> String {
        let line = Line {
            envelope: self.vouched.receipt.envelope(),
            key: STANDARD.encode(self.vouched.receipt.key()),
            minion_key: self.minion_key.clone(),
            vouch: STANDARD.encode(&self.vouched.vouch),
        };
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// Verifies a line: the receipt's signature, and that the RSA key vouches for it.
    ///
    /// # Errors
    /// When one of them does not hold.
    pub fn verify(line: &str) -> Result<Proved, ReceiptError> {
        if line.len() > MAX_LINE {
            return Err(ReceiptError::TooLarge);
        }
        let line: Line =
            serde_json::from_str(line).map_err(|_| ReceiptError::Malformed("it is no line of an export"))?;
        let decode = |text: &str| STANDARD.decode(text).map_err(|_| ReceiptError::Malformed("base64 is wrong"));
        let key = decode(&line.key)?.try_into().map_err(|_| ReceiptError::Malformed("a key has not 32 bytes"))?;
        let receipt = SignedReceipt::from_envelope(&line.envelope, key)?;
        let rsa = PublicKey::from_pem(&line.minion_key).map_err(|_| ReceiptError::Unvouched)?;
        let vouched = Vouched { receipt, vouch: decode(&line.vouch)? };
        vouched.check(&rsa)?;
        Ok(Proved { by: vouched.receipt.receipt().minion_key, receipt: vouched.receipt })
    }
}
