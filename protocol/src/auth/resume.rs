//! Resumption (§3.10): a minion whose session the master still knows gets the present keys under that session.
//!
//! The request proves the minion as every encrypted request does, and only the master can answer it. So nobody needs an
//! RSA private operation: after a rotation of the publish key, a fleet is back as fast as it can ask.

use super::minion::publish_port;
use super::{AuthError, Credentials, MasterRun, OFFER, RUN};
use crate::crypticle::AesKey;
use crate::sealed::{Epoch, SealOffer, epoch_id};
use crate::value::{Value, ValueExt as _, map};

/// The command.
pub const RESUME: &str = "_resume";

/// The load of a minion's request.
pub fn resume_request() -> Value {
    map([("cmd", RESUME)])
}

/// The master's answer, which is sealed with the session's key; with its run if the session is of an earlier one.
pub fn resumed(
    publish_key: &AesKey,
    epoch: &Epoch,
    publish_port: u16,
    offer: &SealOffer,
    run: Option<&MasterRun>,
) -> Value {
    let mut answer = map([
        ("aes", Value::from(publish_key.text().expose().as_str())),
        ("epoch", Value::Binary(epoch.word().to_vec())),
        ("publish_port", Value::from(publish_port)),
        (OFFER, offer.to_value()),
    ]);
    if let Some(run) = run {
        answer.insert(RUN, Value::Binary(run.to_vec()));
    }
    answer
}

/// The run that a master told.
pub(super) fn run(answer: &Value) -> Option<MasterRun> {
    answer.get_bytes(RUN)?.try_into().ok()
}

impl Credentials {
    /// Takes over the keys of an answer to [`resume_request`], which was opened with this session.
    ///
    /// # Errors
    /// When the answer is none, or its keys are not those of the master of this session. The minion then authenticates.
    pub fn resume(&self, answer: &Value) -> Result<Self, AuthError> {
        let text = answer.get_text("aes").ok_or(AuthError::Malformed("it has no publish key"))?;
        let publish_key = AesKey::from_text(text)?;
        let told = answer.get(OFFER).ok_or(AuthError::NotSealed)?;
        // Mostly the one that was verified before, which saves the RSA operation.
        let known = self.offer.as_ref().filter(|offer| offer.to_value() == *told).cloned();
        let offer = known.or_else(|| SealOffer::from_value(told, &self.master)).ok_or(AuthError::BadOffer)?;
        if !answer.get_bytes("epoch").is_some_and(|word| offer.is_epoch(&epoch_id(&publish_key), word)) {
            return Err(AuthError::BadKeySignature);
        }
        Ok(Self {
            publish_key,
            session_key: self.session_key.clone(),
            publish_port: publish_port(answer)?,
            master: self.master.clone(),
            master_is_new: false,
            offer: Some(offer),
            run: run(answer),
        })
    }
}
