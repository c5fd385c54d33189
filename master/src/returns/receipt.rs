//! Receipts of returns: checked, stored with the return, and never a reason to refuse one. What is odd is told in the log and by an event
//! `brine/receipt/KIND/ID`, within the bounds of all that a minion can make the master tell.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::job::ReturnLoad;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map};
use brine_receipts::{Digest, ReceiptError, Vouched};

use super::ReturnIntake;
use crate::jobs::{Found, NewReceipt};
use crate::keys::MinionKey;
use crate::refusals::Who;

/// Bound on the remembered keys: more than a master has minions.
const KNOWN_MAX: usize = 1 << 16;

/// The keys of receipts for which the RSA keys of minions have vouched: verifying that costs more than all the rest.
#[derive(Default)]
pub(crate) struct VouchedKeys(Mutex<HashMap<MinionId, (String, [u8; 32])>>);

impl VouchedKeys {
    fn check(&self, id: &MinionId, vouched: &Vouched, key: &MinionKey) -> Result<(), ReceiptError> {
        let rsa = key.public.as_ref().ok_or(ReceiptError::Unvouched)?;
        let pair = (rsa.fingerprint(), *vouched.receipt.key());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(id) == Some(&pair) && vouched.receipt.receipt().minion_key.to_string() == pair.0 {
            return Ok(());
        }
        vouched.check(rsa)?;
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(id.clone(), pair);
        Ok(())
    }
}

impl ReturnIntake {
    /// Checks the receipt of a return. Returns it to be stored if the minion signed it. `jid` is none where the master gave the job its
    /// jid, so that the minion could not know it.
    pub(super) fn check_receipt(
        &self,
        id: &MinionId,
        jid: Option<&Jid>,
        (receipt, ret): (Option<Value>, &ReturnLoad),
        key: &MinionKey,
    ) -> Option<Box<NewReceipt>> {
        let receipt = receipt?;
        let tell = |kind: &str, why: &str| self.tell_receipt(id, kind, why, jid.map(Jid::as_str), None);
        let read = receipt.text().ok_or(ReceiptError::Malformed("it is no text")).and_then(Vouched::from_text);
        let vouched = match read {
            Ok(vouched) => vouched,
            Err(why) => {
                tell("bad", &why.to_string());
                return None;
            }
        };
        let signed = &vouched.receipt;
        let said = signed.receipt();
        if said.minion != id.as_str() {
            tell("minion", "it is of another minion");
            return None;
        }
        if let Err(why) = self.vouched_keys.check(id, &vouched, key) {
            tell("key", &why.to_string());
            return None;
        }
        let odd = if jid.is_some_and(|jid| jid.as_str() != said.jid) {
            Some(("job", "it is of another job"))
        } else if !holds(ret, said.returned, said.retcode) {
            Some(("return", "it is of another return than the one that came with it"))
        } else {
            None
        };
        if let Some((kind, why)) = odd {
            tell(kind, why);
        }
        Some(Box::new(NewReceipt {
            key: *signed.key(),
            chain: said.chain().to_bytes(),
            whole: said.chain().is_whole_at_master(),
            // SQLite counts to 2^63; the first number beyond is as wrong as the last one.
            number: i64::try_from(said.number).unwrap_or(i64::MAX).min(i64::MAX - 1),
            hash: signed.hash().0,
            previous: said.previous.map(|previous| previous.0),
            compact: signed.to_compact(),
            vouch: vouched.vouch.clone(),
            pem: key.pem.clone(),
            odd: odd.map(|(kind, _)| kind.to_owned()),
            found: Arc::new(OnceLock::new()),
        }))
    }

    /// Tells what a stored receipt showed about its chain.
    pub(super) fn tell_chain(&self, id: &MinionId, jid: &str, number: i64, found: Found) {
        if found.fork {
            let why = "it does not follow from the receipts that are known: the minion was set back to an earlier state, as by a \
                       snapshot, or somebody else signs with its key";
            self.tell_receipt(id, "fork", why, Some(jid), Some((number, number)));
        }
        if let Some((first, last)) = found.gap {
            let why = "receipts before it have not come: their returns are lost or kept back";
            self.tell_receipt(id, "gap", why, Some(jid), Some((first, last)));
        }
    }

    fn tell_receipt(&self, id: &MinionId, kind: &str, why: &str, jid: Option<&str>, numbers: Option<(i64, i64)>) {
        let mut data = vec![("id", Value::from(id)), ("error", Value::from(why))];
        data.extend(jid.map(|jid| ("jid", Value::from(jid))));
        if let Some((first, last)) = numbers {
            data.extend([("first", Value::from(first)), ("last", Value::from(last))]);
        }
        let of = jid.map(|jid| format!(" for {jid}")).unwrap_or_default();
        let numbers = numbers.map(|(first, last)| format!(" (numbers {first} to {last})")).unwrap_or_default();
        let said = format!("the receipt of {id}{of} is odd: {why}{numbers}");
        self.refusals.tell(Who::Minion(id), &said, format!("brine/receipt/{kind}/{id}"), map(data));
    }
}

/// Whether a return is the one that a receipt is of.
pub(crate) fn holds(ret: &ReturnLoad, returned: Digest, retcode: i64) -> bool {
    let value = ret.get("return").unwrap_or(&Value::Nil);
    Digest::of(&msgpack::encode_network(value)) == returned && ret.retcode() == retcode
}
