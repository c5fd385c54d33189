//! `receipts.*`: the receipts that came with returns.

use std::collections::BTreeMap;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::job::ReturnLoad;
use brine_protocol::value::{Value, ValueExt, map};
use brine_receipts::{Chain, ChainId, Evidence, Odd, SignedReceipt, Vouched, fields};

use super::function::{Failure, Function, Outcome, Run, functions};
use crate::jobs::{PAGE, StoredReceipt};
use crate::returns::receipt_holds;

/// Bound on the lines of an export, and on what is odd of one minion, so that the reply stays an event of reasonable size.
const LINES_MAX: usize = 10_000;

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Returns receipts as lines of JSON that salt-receipt verify reads, of one job or of one minion, the oldest first.
    "receipts.export(jid=None, minion=None)" => export,
    /// Returns what the receipts of a job say, by minion.
    "receipts.show(jid)" => show,
    /// Verifies the receipts of one minion or of all: signatures, keys, returns and chains. Returns their number and what is odd.
    "receipts.verify(minion=None)" => verify,
};

fn jid_of(run: &Run) -> Result<Option<Jid>, Failure> {
    let Some(text) = run.find_text("jid") else { return Ok(None) };
    Jid::try_from(text.as_str()).map(Some).map_err(|_| run.wrong("jid must be the id of a job"))
}

fn minion_of(run: &Run) -> Result<Option<MinionId>, Failure> {
    let Some(text) = run.find_text("minion") else { return Ok(None) };
    MinionId::try_from(text.as_str()).map(Some).map_err(|_| run.wrong("minion must be the id of a minion"))
}

async fn show(run: Run) -> Outcome {
    let jid = jid_of(&run)?.ok_or("jid must be the id of a job")?;
    let stored = run.parts.jobs.local().receipts_of(&jid).await.map_err(|e| e.to_string())?;
    let mut shown = Vec::new();
    for one in stored {
        let mut fields = match SignedReceipt::from_compact(&one.compact) {
            Ok(signed) => fields(signed.receipt()),
            Err(why) => map([("error", why.to_string())]),
        };
        if let Some(odd) = &one.odd {
            fields.insert("odd", odd.as_str());
        }
        shown.push((Value::from(one.minion), fields));
    }
    Ok(Value::Map(shown))
}

async fn export(run: Run) -> Outcome {
    let (jid, minion) = (jid_of(&run)?, minion_of(&run)?);
    let store = run.parts.jobs.local();
    let mut lines = Vec::new();
    let mut add = |stored: &[StoredReceipt]| {
        for one in stored.iter().filter(|one| minion.as_ref().is_none_or(|minion| one.minion == minion.as_str())) {
            if let Ok(receipt) = SignedReceipt::from_compact(&one.compact) {
                let vouched = Vouched { receipt, vouch: one.vouch.clone() };
                lines.push(Value::from(Evidence { vouched, minion_key: one.pem.clone() }.to_line()));
            }
        }
        lines.len()
    };
    if let Some(jid) = &jid {
        add(&store.receipts_of(jid).await.map_err(|e| e.to_string())?);
        return Ok(Value::Array(lines));
    }
    let mut row = i64::MIN;
    loop {
        let page = store.receipts_after(minion.as_ref(), row).await.map_err(|e| e.to_string())?;
        let sum = add(&page);
        if sum > LINES_MAX {
            return Err(format!("there are more than {LINES_MAX} receipts; name a minion or a job").into());
        }
        match page.last() {
            Some(last) if page.len() == PAGE as usize => row = last.row,
            _ => return Ok(Value::Array(lines)),
        }
    }
}

/// What is found about one minion.
#[derive(Default)]
struct Verified {
    receipts: u64,
    odd: Vec<String>,
    chains: BTreeMap<([u8; 32], ChainId), Chain>,
}

async fn verify(run: Run) -> Outcome {
    let minion = minion_of(&run)?;
    let store = run.parts.jobs.local();
    let mut found: BTreeMap<String, Verified> = BTreeMap::new();
    let mut row = i64::MIN;
    loop {
        let page = store.receipts_after(minion.as_ref(), row).await.map_err(|e| e.to_string())?;
        for one in &page {
            let of = found.entry(one.minion.clone()).or_default();
            of.receipts += 1;
            let ret = match (Jid::try_from(one.jid.as_str()), MinionId::try_from(one.minion.as_str())) {
                (Ok(jid), Ok(id)) => store.one_return(&jid, &id).await.map_err(|e| e.to_string())?,
                _ => None,
            };
            let loads = ret.map(|ret| (ret.load(), &one.minion));
            if let Err(why) = judge(one, loads.map(|(load, _)| load), &mut of.chains)
                && of.odd.len() < LINES_MAX
            {
                of.odd.push(format!("{}: {why}", one.jid));
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE as usize => row = last.row,
            _ => break,
        }
    }
    Ok(map(found.into_iter().map(|(minion, mut of)| {
        of.odd.extend(odd_of_chains(&of.chains));
        let odd = of.odd.into_iter().take(LINES_MAX).map(Value::from).collect();
        (minion, map([("receipts", Value::from(of.receipts)), ("odd", Value::Array(odd))]))
    })))
}

/// What is odd of chains. Only of some has this master each receipt.
fn odd_of_chains(chains: &BTreeMap<([u8; 32], ChainId), Chain>) -> impl Iterator<Item = String> {
    let all = chains.iter().flat_map(|((_, chain), links)| links.odd().into_iter().map(|odd| (*chain, odd)));
    all.filter_map(|(chain, odd)| match odd {
        Odd::Gap(..) if !chain.is_whole_at_master() => None,
        Odd::Gap(first, last) => Some(format!("receipts {first} to {last} are missing")),
        Odd::Fork(number) => Some(format!("receipt {number} does not follow from the others: a fork")),
    })
}

/// Verifies one receipt with its return, and adds it to its chain.
fn judge(
    one: &StoredReceipt,
    load: Option<Value>,
    chains: &mut BTreeMap<([u8; 32], ChainId), Chain>,
) -> Result<(), String> {
    let signed = SignedReceipt::from_compact(&one.compact).map_err(|why| why.to_string())?;
    let vouched = Vouched { receipt: signed, vouch: one.vouch.clone() };
    let rsa = brine_protocol::keys::PublicKey::from_pem(&one.pem).map_err(|why| why.to_string())?;
    vouched.check(&rsa).map_err(|why| why.to_string())?;
    let (signed, receipt) = (&vouched.receipt, vouched.receipt.receipt());
    let chain = chains.entry((*signed.key(), receipt.chain())).or_default();
    chain.add(receipt, signed.hash());
    let id = MinionId::try_from(one.minion.as_str()).map_err(|why| why.to_string())?;
    let ret = load.map(|load| ReturnLoad::parse(load, &id));
    if ret.is_some_and(|ret| !receipt_holds(&ret, receipt.returned, receipt.retcode)) {
        return Err("it is of another return than the one that is stored".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use brine_protocol::keys::PrivateKey;
    use brine_protocol::msgpack;
    use brine_receipts::{Digest, Fingerprint, Outcome as JobOutcome, Receipt, Series, SigningKey, Time};

    use super::*;

    fn receipt(number: u64, series: Series, rsa: &PrivateKey) -> Receipt {
        Receipt {
            version: Receipt::VERSION,
            number,
            previous: (number > 1).then_some(Digest([9; 32])),
            minion: "m1".to_owned(),
            minion_key: rsa.public().fingerprint().parse().unwrap(),
            master: Some(Fingerprint([2; 32])),
            series,
            publication: None,
            jid: "20261120134740245008".to_owned(),
            arguments: Digest([3; 32]),
            calls: Vec::new(),
            policy: None,
            walls: Vec::new(),
            start: Time(1),
            end: Time(2),
            retcode: 0,
            outcome: JobOutcome::Ran,
            returned: Digest::of(&msgpack::encode_network(&Value::from(true))),
        }
    }

    fn key() -> SigningKey {
        SigningKey::from_pem(&SigningKey::generate().unwrap()).unwrap()
    }

    #[test]
    fn a_stored_receipt_is_judged_with_its_keys_and_its_return() {
        let [rsa, other] = [(); 2].map(|()| PrivateKey::generate(1024).unwrap());
        let signs = key();
        let stored = |vouched_by: &PrivateKey, shown: &PrivateKey| StoredReceipt {
            row: 1,
            jid: "20261120134740245008".to_owned(),
            minion: "m1".to_owned(),
            compact: signs.sign(receipt(1, Series::Spooled, &rsa)).to_compact(),
            vouch: Vouched::vouch("m1", &signs.public(), vouched_by).unwrap(),
            pem: shown.public().to_pem(),
            odd: None,
        };
        let load = |value: bool| Some(map([("return", Value::from(value)), ("retcode", Value::from(0))]));
        let judged = |one: &StoredReceipt, load: Option<Value>| {
            let mut chains = BTreeMap::new();
            (judge(one, load, &mut chains).err(), chains.len())
        };
        assert_eq!(judged(&stored(&rsa, &rsa), load(true)), (None, 1));
        assert_eq!(judged(&stored(&rsa, &rsa), None), (None, 1), "its return may be gone");
        let another = Some("it is of another return than the one that is stored".to_owned());
        assert_eq!(judged(&stored(&rsa, &rsa), load(false)), (another, 1));
        for foreign in [stored(&other, &rsa), stored(&rsa, &other), stored(&other, &other)] {
            let (why, chains) = judged(&foreign, load(true));
            assert!(why.is_some() && chains == 0, "{why:?}");
        }
        let mut bent = stored(&rsa, &rsa);
        *bent.compact.last_mut().unwrap() ^= 1;
        assert!(judged(&bent, load(true)).0.is_some());
    }

    #[test]
    fn only_chains_that_come_whole_have_gaps() {
        let rsa = PrivateKey::generate(1024).unwrap();
        let signs = key();
        let odd = |series: Series, numbers: &[u64]| {
            let mut chain = Chain::default();
            for number in numbers {
                let signed = signs.sign(receipt(*number, series, &rsa));
                chain.add(signed.receipt(), signed.hash());
            }
            let id = receipt(1, series, &rsa).chain();
            odd_of_chains(&BTreeMap::from([((signs.public(), id), chain)])).collect::<Vec<_>>()
        };
        assert_eq!(odd(Series::Spooled, &[1, 4]), ["receipts 2 to 3 are missing"]);
        assert_eq!(odd(Series::Direct, &[1, 4]), Vec::<String>::new());
        for series in [Series::Spooled, Series::Direct] {
            assert_eq!(odd(series, &[1, 2]), ["receipt 2 does not follow from the others: a fork"]);
        }
    }
}
