//! `brine:host/receipts`: the receipts of this host's jobs, for functions that its owner called here.

use brine_protocol::keys::{PrivateKey, PublicKey};
use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::{Caller, HostError, ReceiptsOp};

use super::{MinionBroker, Perform};
use crate::receipts::{Page, page, verify};

impl Perform<ReceiptsOp> for MinionBroker {
    async fn perform(&self, _: &Caller, op: ReceiptsOp) -> Result<Value, HostError> {
        let (dir, pki) = (self.opts.cachedir.join("receipts"), self.opts.pki_dir.clone());
        let answer = tokio::task::spawn_blocking(move || match op {
            ReceiptsOp::Page { place, jid, evidence } => {
                let path = pki.join("minion.pem");
                let rsa = evidence.then(|| PrivateKey::load(&path)).transpose();
                let rsa = rsa.map_err(|e| format!("{} cannot vouch for the receipts: {e}", path.display()))?;
                let Page { receipts, next } = page(&dir, &place, &jid, rsa.as_ref())?;
                if place.is_empty() && receipts.is_empty() && next.is_none() && !path.exists() {
                    let path = path.display();
                    return Err(format!(
                        "there are no receipts: this host has no key of a minion ({path}) to vouch for them"
                    ));
                }
                Ok(map([("receipts", Value::Array(receipts)), ("next", next.map_or(Value::Nil, Value::from))]))
            }
            ReceiptsOp::Verify => {
                let mut verified = verify(&dir)?;
                let key = PublicKey::load(&pki.join("minion.pub")).map_or(Value::Nil, |key| key.fingerprint().into());
                verified.insert("key", key);
                Ok(verified)
            }
        });
        answer
            .await
            .unwrap_or_else(|_| Err("the minion failed to read its receipts".to_owned()))
            .map_err(HostError::Failed)
    }
}
