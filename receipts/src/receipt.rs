//! The fields of a receipt, and their canonical JSON, which is what is signed: the fields in the order of the types here, without white
//! space.

use serde::{Deserialize, Serialize};

use crate::{Digest, Fingerprint, ReceiptError, Time};

/// Upper bound on the bytes of a receipt in the compact encoding: 256 functions, each with its module and signers.
pub const MAX_COMPACT: usize = 128 * 1024;
/// Bytes of the JSON of a job with one function: room for it in one piece.
pub(crate) const USUAL_JSON: usize = 2048;
/// Upper bound on the bytes of the JSON.
pub(crate) const MAX_JSON: usize = 4 * MAX_COMPACT;
/// The type of in-toto statements.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The type of the predicate.
pub const PREDICATE_TYPE: &str = "urn:brine:receipt:1";
/// The version of the format.
const VERSION: u64 = 1;

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Its functions ran to their end, with success or without.
    Ran,
    /// No function of it ran.
    Refused,
    /// It was ended early: by an order, or with the minion.
    Killed,
}

/// How the return of a job goes to its master, which decides what a gap means there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Series {
    /// The host keeps it until the master has it.
    Spooled,
    /// It is sent at once and may be lost, as a refusal, or nobody gets it, as of a call on the host.
    Direct,
}

/// One chain of a minion's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId {
    /// The master whose jobs they are; none for the host's own.
    pub master: Option<Fingerprint>,
    /// Which of that master's two chains.
    pub series: Series,
}

impl ChainId {
    /// Whether the master gets all receipts of the chain. The host's own jobs return to whichever master it has.
    pub fn is_whole_at_master(self) -> bool {
        self.series == Series::Spooled && self.master.is_some()
    }

    /// For a store: the master's fingerprint, after a mark if the returns are not kept for it.
    pub fn to_bytes(self) -> Vec<u8> {
        let mark: &[u8] = if self.series == Series::Direct { b"direct" } else { b"" };
        let master = self.master.map(|master| master.0);
        [mark, master.as_ref().map_or(&[][..], |master| master)].concat()
    }
}

/// A receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Receipt {
    /// 1.
    pub version: u64,
    /// Its place in the chain, from 1. A minion has two chains for each master, and two for its own jobs: see [`Series`].
    pub number: u64,
    /// The hash of the JSON of the receipt before; none for the first.
    pub previous: Option<Digest>,
    /// The minion's id.
    pub minion: String,
    /// The fingerprint of the minion's RSA key, which vouches for the key of receipts.
    pub minion_key: Fingerprint,
    /// The fingerprint of the key of the master that asked, or whose rights a job had that the minion started by itself; none for a
    /// job of the host's own.
    pub master: Option<Fingerprint>,
    /// How its return goes to a master.
    pub series: Series,
    /// The hash of the publication's encrypted part, over which the master signed; none for a job of the host's own, and for one
    /// that an earlier run of the minion took.
    pub publication: Option<Digest>,
    /// The job.
    pub jid: String,
    /// The hash of the job's arguments as they arrived: of the list `arg` in MessagePack without the type `bin`.
    pub arguments: Digest,
    /// The functions in their order.
    pub calls: Vec<Call>,
    /// The hash of the owner's policy; none if no function was looked at.
    pub policy: Option<Digest>,
    /// The walls around the executor, such as `seccomp`.
    pub walls: Vec<String>,
    /// When the job began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// The highest return code of the functions.
    pub retcode: i64,
    /// What became of it.
    pub outcome: Outcome,
    /// The hash of the value that was returned, in MessagePack without the type `bin`.
    pub returned: Digest,
}

/// One function of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Call {
    /// Its name, cut to 128 characters.
    pub function: String,
    /// Its return code.
    pub retcode: i64,
    /// The module that was to run it; none if there is none.
    pub module: Option<Module>,
    /// What it used; none if it did not start.
    pub usage: Option<Usage>,
}

/// A module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Module {
    /// Its name.
    pub name: String,
    /// The hash of its file.
    pub sha256: Digest,
    /// Its version, if it says one.
    pub version: Option<String>,
    /// The keys that signed it and that the owner names.
    pub signers: Vec<String>,
    /// The hash of what it was granted.
    pub grants: Digest,
}

/// What a function used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Usage {
    /// Microseconds by the clock.
    pub wall_us: u64,
    /// Microseconds of the processor.
    pub cpu_us: u64,
    /// The most memory, bytes.
    pub memory_peak: u64,
    /// Calls of the host.
    pub host_calls: u64,
    /// Bytes that the host gave.
    pub bytes_in: u64,
    /// Bytes that the host took.
    pub bytes_out: u64,
}

#[derive(Serialize)]
struct StatementOut<'a> {
    #[serde(rename = "_type")]
    kind: &'static str,
    subject: [Subject; 1],
    #[serde(rename = "predicateType")]
    predicate_type: &'static str,
    predicate: &'a Receipt,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatementIn {
    #[serde(rename = "_type")]
    _kind: String,
    #[serde(rename = "subject")]
    _subject: [Subject; 1],
    #[serde(rename = "predicateType")]
    _predicate_type: String,
    predicate: Receipt,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    name: String,
    digest: SubjectDigest,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SubjectDigest {
    sha256: Digest,
}

impl Receipt {
    /// The version that this program writes.
    pub const VERSION: u64 = VERSION;

    /// The canonical JSON of the in-toto statement: what is signed.
    pub fn to_json(&self) -> Vec<u8> {
        let name = format!("return/{}/{}", self.jid, self.minion);
        let statement = StatementOut {
            kind: STATEMENT_TYPE,
            subject: [Subject { name, digest: SubjectDigest { sha256: self.returned } }],
            predicate_type: PREDICATE_TYPE,
            predicate: self,
        };
        let mut json = Vec::with_capacity(USUAL_JSON);
        // Writing to memory fails only for a time that no `Time` of this century has.
        if serde_json::to_writer(&mut json, &statement).is_err() {
            json.clear();
        }
        json
    }

    /// Reads the JSON of a statement.
    ///
    /// # Errors
    /// When it is too large, no receipt, or not in its canonical form.
    pub fn from_json(json: &[u8]) -> Result<Self, ReceiptError> {
        if json.len() > MAX_JSON {
            return Err(ReceiptError::TooLarge);
        }
        let read: StatementIn =
            serde_json::from_slice(json).map_err(|_| ReceiptError::Malformed("it is no statement of a receipt"))?;
        read.predicate.check_version()?;
        match read.predicate.to_json() == json {
            true => Ok(read.predicate),
            false => Err(ReceiptError::NotCanonical),
        }
    }

    /// The hash of the JSON: what the next receipt has as `previous`.
    pub fn hash(&self) -> Digest {
        Digest::of(&self.to_json())
    }

    /// The chain that it is in.
    pub fn chain(&self) -> ChainId {
        ChainId { master: self.master, series: self.series }
    }

    pub(crate) fn check_version(&self) -> Result<(), ReceiptError> {
        if self.version == VERSION { Ok(()) } else { Err(ReceiptError::Version(self.version)) }
    }
}
