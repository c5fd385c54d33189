//! What a job's receipt says, before it has its number.

use std::sync::Arc;

use brine_protocol::job::worst_retcode;
use brine_protocol::msgpack;
use brine_protocol::receiver::Signed;
use brine_protocol::sealed::SealOffer;
use brine_protocol::value::{Value, ValueExt};
use brine_receipts::{Asked, AskedBy, Call, Digest, Fingerprint, Head, Outcome, Receipt, Series, Time};
use serde_bytes::ByteBuf;

/// Upper bound on a publication that is kept beside its receipt: the jobs of every day, not those with files in their arguments.
const MAX_KEPT: usize = 16 * 1024;

/// A publication as its master signed it.
#[derive(Debug)]
pub struct SignedPublication {
    hash: Digest,
    asked: Option<Asked>,
}

impl SignedPublication {
    /// Of a publication that was verified.
    pub fn of(signed: Signed) -> Self {
        let Signed { algorithm, signature, message, offer } = signed;
        let hash = Digest::of(&message);
        let blob = (message.len() <= MAX_KEPT).then(|| ByteBuf::from(message));
        let by = offer.map(|SealOffer { key, vouch }| AskedBy { key: key.to_vec(), vouch });
        Self { hash, asked: Some(Asked { algorithm: algorithm.to_owned(), signature, blob, by }) }
    }
}

/// What is known of a job when it has ended. The fields are those of [`Receipt`].
#[allow(missing_docs, reason = "the receipt documents its fields")]
pub struct Draft {
    pub master: Option<Fingerprint>,
    pub publication: Option<Arc<SignedPublication>>,
    pub jid: String,
    pub arguments: Digest,
    pub calls: Vec<Call>,
    pub policy: Option<Digest>,
    pub walls: Vec<String>,
    pub start: Time,
    pub end: Time,
    pub outcome: Outcome,
}

impl Draft {
    /// The receipt after `last`, of the job with this return.
    pub(super) fn receipt(
        &self,
        minion: &str,
        minion_key: Fingerprint,
        (series, last): (Series, Option<Head>),
        load: &Value,
    ) -> Receipt {
        Receipt {
            version: Receipt::VERSION,
            number: last.map_or(1, |head| head.number + 1),
            previous: last.map(|head| head.hash),
            minion: minion.to_owned(),
            minion_key,
            master: self.master,
            series,
            publication: self.publication.as_ref().map(|publication| publication.hash),
            jid: self.jid.clone(),
            arguments: self.arguments,
            calls: self.calls.clone(),
            policy: self.policy,
            walls: self.walls.clone(),
            start: self.start,
            end: self.end,
            retcode: worst_retcode(load),
            outcome: self.outcome,
            returned: load.get("return").map_or_else(|| hash(&Value::Nil), hash),
        }
    }

    pub(super) fn asked(&self) -> Option<&Asked> {
        self.publication.as_ref()?.asked.as_ref()
    }
}

/// The hash of a value as receipts have it.
pub(crate) fn hash(value: &Value) -> Digest {
    Digest::of(&msgpack::encode_network(value))
}
