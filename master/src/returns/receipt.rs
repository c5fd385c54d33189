//! Receipts of returns: checked, stored with the return, and never a reason to refuse one. What is odd is told in the log and by an event
//! `brine/receipt/KIND/ID`, within the bounds of all that a minion can make the master tell.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::job::ReturnLoad;
use brine_protocol::keys::PublicKey;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map};
use brine_receipts::{Digest, Fingerprint, ReceiptError, Unproved};

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
    fn check(
        &self,
        id: &MinionId,
        receipt: &Unproved,
        (rsa, fingerprint): (&PublicKey, String),
    ) -> Result<(), ReceiptError> {
        let pair = (fingerprint, *receipt.key());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(id) == Some(&pair) {
            return Ok(());
        }
        receipt.check(rsa)?;
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(id.clone(), pair);
        Ok(())
    }
}

/// What is odd about a receipt: the kind of the event, and words.
type Odd = (&'static str, String);

/// Judges the receipt of a return: what is stored of it, if the minion signed it, and what is odd.
fn judge(
    (keys, own): (&VouchedKeys, Fingerprint),
    (id, jid): (&MinionId, Option<&Jid>),
    (receipt, ret): (&Value, &ReturnLoad),
    key: &MinionKey,
) -> (Option<Box<NewReceipt>>, Option<Odd>) {
    let Some(rsa) = &key.public else { return (None, Some(("key", ReceiptError::Unvouched.to_string()))) };
    let fingerprint = rsa.fingerprint();
    let text = receipt.text().ok_or(ReceiptError::Malformed("it is no text"));
    let read = text.and_then(|text| Unproved::from_text(text, fingerprint.parse()?));
    let read = match read {
        Ok(read) => read,
        Err(why) => return (None, Some(("bad", why.to_string()))),
    };
    if read.receipt().minion != id.as_str() {
        return (None, Some(("minion", "it is of another minion".to_owned())));
    }
    // One chain for each master that a minion names would be chains without end.
    if read.receipt().master.is_some_and(|master| master != own) {
        return (None, Some(("master", "it is about a job of another master".to_owned())));
    }
    if let Err(why) = keys.check(id, &read, (rsa, fingerprint)) {
        return (None, Some(("key", why.to_string())));
    }
    let vouched = match read.verify() {
        Ok(vouched) => vouched,
        Err(why) => return (None, Some(("bad", why.to_string()))),
    };
    let signed = &vouched.receipt;
    let said = signed.receipt();
    let odd = if jid.is_some_and(|jid| jid.as_str() != said.jid) {
        Some(("job", "it is of another job".to_owned()))
    } else if !holds(ret, said.returned, said.retcode) {
        Some(("return", "it is of another return than the one that came with it".to_owned()))
    } else {
        None
    };
    let new = NewReceipt {
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
        odd: odd.as_ref().map(|(kind, _)| (*kind).to_owned()),
        found: Arc::new(OnceLock::new()),
    };
    (Some(Box::new(new)), odd)
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
        let (new, odd) = judge((&self.vouched_keys, self.fingerprint), (id, jid), (&receipt?, ret), key);
        if let Some((kind, why)) = odd {
            self.tell_receipt(id, kind, &why, jid.map(Jid::as_str), None);
        }
        new
    }

    /// Tells what a stored receipt showed about its chain.
    pub(super) fn tell_chain(&self, id: &MinionId, jid: &str, number: i64, found: Found) {
        for (kind, why, numbers) in odd_of_chain(number, found) {
            self.tell_receipt(id, kind, why, Some(jid), Some(numbers));
        }
    }

    fn tell_receipt(&self, id: &MinionId, kind: &str, why: &str, jid: Option<&str>, numbers: Option<(i64, i64)>) {
        let mut data = vec![("id", Value::from(id)), ("error", Value::from(why))];
        data.extend(jid.map(|jid| ("jid", Value::from(jid))));
        if let Some((first, last)) = numbers {
            data.extend([("first", Value::from(first)), ("last", Value::from(last))]);
        }
        let of = jid.map(|jid| format!(" for {jid}")).unwrap_or_default();
        let numbers = match numbers {
            Some((first, last)) if first == last => format!(" (number {first})"),
            Some((first, last)) => format!(" (numbers {first} to {last})"),
            None => String::new(),
        };
        let said = format!("the receipt of {id}{of} is odd: {why}{numbers}");
        self.refusals.tell(Who::Minion(id), &said, format!("brine/receipt/{kind}/{id}"), map(data));
    }
}

/// What the receipt with this number showed about its chain: the kind of the event, words, and the first and the last number.
fn odd_of_chain(number: i64, found: Found) -> impl Iterator<Item = (&'static str, &'static str, (i64, i64))> {
    let fork = found.fork.then_some((
        "fork",
        "another receipt has its place in the chain, or it does not follow from the one before: the minion was set back to an earlier \
         state, as by a restored snapshot, or somebody else signs with its key",
        (number, number),
    ));
    let full = found.full.then_some((
        "key",
        "it begins a chain, and the minion has begun too many: it is not stored",
        (number, number),
    ));
    let gap = found
        .gap
        .map(|numbers| ("gap", "receipts before it have not come: their returns are lost or kept back", numbers));
    fork.into_iter().chain(full).chain(gap)
}

/// Whether a return is the one that a receipt is of.
pub(crate) fn holds(ret: &ReturnLoad, returned: Digest, retcode: i64) -> bool {
    let value = ret.get("return").unwrap_or(&Value::Nil);
    Digest::of(&msgpack::encode_network(value)) == returned && ret.retcode() == retcode
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use brine_protocol::keys::PrivateKey;
    use brine_receipts::{Outcome, Receipt, Series, SignedReceipt, SigningKey, Time, Vouched};

    use super::*;

    static RSA: LazyLock<[PrivateKey; 2]> = LazyLock::new(|| [(); 2].map(|()| PrivateKey::generate(1024).unwrap()));
    static SIGNS: LazyLock<[SigningKey; 2]> =
        LazyLock::new(|| [(); 2].map(|()| SigningKey::from_pem(&SigningKey::generate().unwrap()).unwrap()));
    const OWN: Fingerprint = Fingerprint([2; 32]);
    const JID: &str = "20261120134740245008";

    fn value() -> Value {
        Value::from("hello")
    }

    /// The receipt of the return of [`judged`].
    fn receipt() -> Receipt {
        Receipt {
            version: Receipt::VERSION,
            number: 1,
            previous: None,
            minion: "m1".to_owned(),
            minion_key: RSA[0].public().fingerprint().parse().unwrap(),
            master: Some(OWN),
            series: Series::Spooled,
            publication: None,
            jid: JID.to_owned(),
            arguments: Digest([3; 32]),
            calls: Vec::new(),
            policy: None,
            walls: Vec::new(),
            start: Time::now(),
            end: Time::now(),
            retcode: 0,
            outcome: Outcome::Ran,
            returned: Digest::of(&msgpack::encode_network(&value())),
        }
    }

    /// In a return, with the word of the first RSA key for the key that signed it.
    fn vouched(receipt: SignedReceipt) -> Value {
        let vouch = Vouched::vouch("m1", receipt.key(), &RSA[0]).unwrap();
        Vouched { receipt, vouch }.to_text().into()
    }

    /// Judges a receipt that comes with a return of m1: the kind of what is odd, and whether it is stored.
    fn judged(receipt: &Value) -> (Option<&'static str>, bool) {
        let (keys, id, jid) = (VouchedKeys::default(), MinionId::new("m1").unwrap(), Jid::new(JID).unwrap());
        let load = map([("jid", Value::from(JID)), ("return", value()), ("retcode", Value::from(0))]);
        let ret = ReturnLoad::parse(load, &id);
        let key = MinionKey { pem: RSA[0].public().to_pem(), public: Some(RSA[0].public().clone()) };
        let judge = || {
            let (new, odd) = judge((&keys, OWN), (&id, Some(&jid)), (receipt, &ret), &key);
            assert_eq!(
                new.as_ref().and_then(|new| new.odd.as_deref()),
                odd.as_ref().map(|(kind, _)| *kind).filter(|_| new.is_some())
            );
            (odd.map(|(kind, _)| kind), new.is_some())
        };
        let first = judge();
        assert_eq!(judge(), first, "as well when the key is known");
        first
    }

    #[test]
    fn each_oddity_has_its_kind() {
        let sign = |receipt: Receipt| vouched(SIGNS[0].sign(receipt));
        assert_eq!(judged(&sign(receipt())), (None, true));
        for (odd, kind, stored) in [
            (Receipt { minion: "m2".to_owned(), ..receipt() }, "minion", false),
            // The master has the fingerprint of another key than the one that the signature is over.
            (Receipt { minion_key: RSA[1].public().fingerprint().parse().unwrap(), ..receipt() }, "bad", false),
            (Receipt { master: Some(Fingerprint([9; 32])), ..receipt() }, "master", false),
            (Receipt { jid: "20261120134740245009".to_owned(), ..receipt() }, "job", true),
            (Receipt { returned: Digest([9; 32]), ..receipt() }, "return", true),
            (Receipt { retcode: 1, ..receipt() }, "return", true),
            (Receipt { version: 2, ..receipt() }, "bad", false),
        ] {
            assert_eq!(judged(&sign(odd)), (Some(kind), stored));
        }
        for bad in [Value::Nil, Value::from(7), Value::from(""), Value::from("AAAA"), Value::from("x".repeat(1 << 20))]
        {
            assert_eq!(judged(&bad), (Some("bad"), false));
        }
    }

    #[test]
    fn a_valid_signature_over_other_bytes_is_bad() {
        let texts =
            [1, 2].map(|number| vouched(SIGNS[0].sign(Receipt { number, end: Time(0), start: Time(0), ..receipt() })));
        let [one, other] = texts.each_ref().map(|text| text.text().unwrap());
        // They differ in one number and the signature; the number is in the first half.
        assert_eq!(one.len(), other.len());
        let (half, _) = one.split_at(one.len() / 4);
        let mixed = Value::from(format!("{half}{}", &other[half.len()..]));
        assert_ne!((mixed.text(), mixed.text()), (Some(one), Some(other)));
        assert_eq!(judged(&texts[0]), (None, true));
        assert_eq!(judged(&mixed), (Some("bad"), false));
    }

    #[test]
    fn another_minions_keys_prove_nothing() {
        // Signed by a key for which the minion's RSA key never vouched.
        let strange = SIGNS[1].sign(receipt());
        let vouch = Vouched::vouch("m1", &SIGNS[0].public(), &RSA[0]).unwrap();
        assert_eq!(judged(&Vouched { receipt: strange, vouch }.to_text().into()), (Some("key"), false));
        // Vouched for by another minion's RSA key.
        let stolen = SIGNS[1].sign(receipt());
        let vouch = Vouched::vouch("m1", &SIGNS[1].public(), &RSA[1]).unwrap();
        assert_eq!(judged(&Vouched { receipt: stolen, vouch }.to_text().into()), (Some("key"), false));
    }

    /// What was vouched for once is remembered for this minion, this RSA key and this key of receipts together.
    #[test]
    fn a_known_key_is_known_for_its_minion_and_its_rsa_key() {
        let (keys, ids) = (VouchedKeys::default(), ["m1", "m2"].map(|id| MinionId::new(id).unwrap()));
        let print = |rsa: usize| RSA[rsa].public().fingerprint();
        let unproved = |signs: usize, vouched: usize| {
            let vouch = Vouched::vouch("m1", &SIGNS[vouched].public(), &RSA[0]).unwrap();
            let text = Vouched { receipt: SIGNS[signs].sign(receipt()), vouch }.to_text();
            Unproved::from_text(&text, print(0).parse().unwrap()).unwrap()
        };
        let check =
            |id: usize, rsa: usize, receipt: &Unproved| keys.check(&ids[id], receipt, (RSA[rsa].public(), print(rsa)));
        for _ in 0..2 {
            assert_eq!(check(0, 0, &unproved(0, 0)), Ok(()));
            // The operator accepted another RSA key; the minion signs with another key of receipts.
            assert_eq!(check(0, 1, &unproved(0, 0)), Err(ReceiptError::Unvouched));
            assert_eq!(check(0, 0, &unproved(1, 0)), Err(ReceiptError::Unvouched));
            assert_eq!(check(1, 1, &unproved(0, 0)), Err(ReceiptError::Unvouched));
        }
    }

    #[test]
    fn the_known_keys_are_bounded() {
        let keys = VouchedKeys::default();
        let fill = |nth: usize| (MinionId::new(format!("f{nth}")).unwrap(), (String::new(), [0; 32]));
        keys.0.lock().unwrap().extend((0..KNOWN_MAX).map(fill));
        let text = vouched(SIGNS[0].sign(receipt()));
        let print = RSA[0].public().fingerprint();
        let unproved = Unproved::from_text(text.text().unwrap(), print.parse().unwrap()).unwrap();
        keys.check(&MinionId::new("m1").unwrap(), &unproved, (RSA[0].public(), print)).unwrap();
        assert!(keys.0.lock().unwrap().len() <= KNOWN_MAX);
    }

    #[test]
    fn each_oddity_of_a_chain_is_told() {
        let kinds = |found: Found| odd_of_chain(7, found).map(|(kind, _, numbers)| (kind, numbers)).collect::<Vec<_>>();
        assert_eq!(kinds(Found::default()), []);
        assert_eq!(kinds(Found { fork: true, ..Found::default() }), [("fork", (7, 7))]);
        assert_eq!(kinds(Found { full: true, ..Found::default() }), [("key", (7, 7))]);
        assert_eq!(kinds(Found { gap: Some((2, 5)), fork: true, full: false }), [("fork", (7, 7)), ("gap", (2, 5))]);
    }

    #[test]
    fn only_whole_chains_have_gaps() {
        let stored = |receipt: Receipt| {
            let (keys, id) = (VouchedKeys::default(), MinionId::new("m1").unwrap());
            let ret = ReturnLoad::parse(map([("return", value())]), &id);
            let key = MinionKey { pem: RSA[0].public().to_pem(), public: Some(RSA[0].public().clone()) };
            let new = judge((&keys, OWN), (&id, None), (&vouched(SIGNS[0].sign(receipt)), &ret), &key).0.unwrap();
            (new.chain, new.whole)
        };
        let all = [
            receipt(),
            Receipt { series: Series::Direct, ..receipt() },
            Receipt { master: None, ..receipt() },
            Receipt { master: None, series: Series::Direct, ..receipt() },
        ]
        .map(stored);
        assert_eq!(all.each_ref().map(|(_, whole)| *whole), [true, false, false, false]);
        let chains: std::collections::HashSet<_> = all.iter().map(|(chain, _)| chain).collect();
        assert_eq!(chains.len(), 4, "each has a chain of its own");
    }
}
