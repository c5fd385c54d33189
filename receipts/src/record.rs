//! A receipt as the host keeps it.

use serde::{Deserialize, Serialize};

use crate::{ChainId, Digest, Fingerprint, Receipt, ReceiptError, Series};

/// Upper bound on the bytes of a record: a receipt and a publication.
const MAX_RECORD: usize = 1 << 20;

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Whose chain: of the master with this fingerprint, or of the host's own jobs.
    pub master: Option<Fingerprint>,
    /// Which of the two.
    pub series: Series,
    /// The number of the last receipt.
    pub number: u64,
    /// Its hash.
    pub hash: Digest,
}

impl Head {
    /// Of the chain whose last receipt this is.
    pub fn of(receipt: &Receipt, hash: Digest) -> Self {
        Self { master: receipt.master, series: receipt.series, number: receipt.number, hash }
    }

    /// The chain.
    pub fn chain(&self) -> ChainId {
        ChainId { master: self.master, series: self.series }
    }
}

/// The publication that asked, as its master signed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The name of the algorithm of the master's signature, such as `PKCS1v15-SHA224`.
    pub algorithm: String,
    /// The signature.
    #[serde(with = "serde_bytes")]
    pub signature: Vec<u8>,
    /// What it is over: the encrypted part of a publication for all minions, the text of a sealed one. None if it was too large to keep.
    pub blob: Option<serde_bytes::ByteBuf>,
    /// The key that signed a sealed publication; none if the master's RSA key signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AskedBy>,
}

/// The key that signed a sealed publication, and the master's RSA key's word for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedBy {
    /// The Ed25519 key.
    #[serde(with = "serde_bytes")]
    pub key: Vec<u8>,
    /// The RSA signature (docs/PROTOCOL.md §5.5).
    #[serde(with = "serde_bytes")]
    pub vouch: Vec<u8>,
}

/// One entry of a host's file of receipts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// The ends of all chains, at the begin of a file, since earlier files may be gone.
    Heads {
        /// The public half of the key of receipts.
        key: Digest,
        /// The ends.
        heads: Vec<Head>,
    },
    /// A receipt.
    Receipt {
        /// In the compact encoding.
        #[serde(with = "serde_bytes")]
        compact: Vec<u8>,
        /// Who asked; none for a job of the host's own.
        asked: Option<Asked>,
    },
}

/// A [`Record::Receipt`] whose parts somebody else owns, to write it.
#[derive(Serialize)]
enum Borrowed<'a> {
    Receipt {
        #[serde(with = "serde_bytes")]
        compact: &'a [u8],
        asked: Option<&'a Asked>,
    },
}

/// In the first byte of an entry: its sum is CRC-32. Without it the sum is the first four bytes of SHA-256, as Brine wrote them before.
const CRC: u32 = 1 << 24;

/// The bytes of an entry: its length with [`CRC`], and its sum, four bytes each, then its content. The sum tells an entry that a crash
/// left torn, or a bad disk. Who changed one is told by the signatures in it.
fn entry(content: &impl Serialize, room: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + room);
    out.resize(8, 0);
    // Writing to memory does not fail.
    let _ = rmp_serde::encode::write(&mut out, content);
    let (head, content) = out.split_at_mut(8);
    // A length that has no place is over the bound, and so is what stands for it here.
    let length = u32::try_from(content.len()).unwrap_or(CRC - 1).min(CRC - 1);
    head[..4].copy_from_slice(&(CRC | length).to_be_bytes());
    head[4..].copy_from_slice(&crc32fast::hash(content).to_be_bytes());
    out
}

impl Record {
    /// The bytes of this entry.
    pub fn to_bytes(&self) -> Vec<u8> {
        entry(self, 0)
    }

    /// The bytes of the entry of a receipt in the compact encoding.
    pub fn receipt_to_bytes(compact: &[u8], asked: Option<&Asked>) -> Vec<u8> {
        let blob = asked.and_then(|asked| asked.blob.as_ref()).map_or(0, |blob| blob.len());
        let room = compact.len() + asked.map_or(0, |asked| asked.signature.len()) + blob + 64;
        entry(&Borrowed::Receipt { compact, asked }, room)
    }

    /// Reads the entry at the begin of these bytes, and returns it with its size. None at the end, and where a crash left an entry torn.
    ///
    /// # Errors
    /// When the entry is whole and no record.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, ReceiptError> {
        let Some((head, rest)) = bytes.split_at_checked(8) else { return Ok(None) };
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let (is_crc, length) = (length & CRC != 0, (length & !CRC) as usize);
        if length == 0 || length > MAX_RECORD {
            return Ok(None);
        }
        let Some(content) = rest.get(..length) else { return Ok(None) };
        let is_whole = match is_crc {
            true => crc32fast::hash(content).to_be_bytes() == head[4..],
            false => Digest::of(content).0[..4] == head[4..],
        };
        if !is_whole {
            return Ok(None);
        }
        let record = rmp_serde::from_slice(content).map_err(|_| ReceiptError::Malformed("a record does not decode"))?;
        Ok(Some((record, length + 8)))
    }
}
