//! What the owner reads of this host's receipts: `salt-call --local receipts.list` and its relatives.

use std::collections::BTreeMap;
use std::path::Path;

use brine_protocol::keys::PrivateKey;
use brine_protocol::value::{Value, ValueExt as _, map};
use brine_receipts::{Asked, Chain, ChainId, Evidence, Odd, Record, SignedReceipt, Vouched, fields};

use super::files::{FILE_MAX, Lock};

/// Receipts of a page.
const PAGE: usize = 256;
/// Bound on what is said to be odd.
const ODD_MAX: usize = 1_000;

/// A page of receipts, from the newest to the oldest.
pub(crate) struct Page {
    /// The receipts.
    pub(crate) receipts: Vec<Value>,
    /// Where the next page begins; none if this is the last one.
    pub(crate) next: Option<String>,
}

/// Reads the page that begins at this place: the number of a file, a colon, and a number of bytes of it. An empty place is the newest
/// receipt. With a jid, only those of that job. With the minion's RSA key, each is a line of an export.
///
/// # Errors
/// When the folder cannot be read, or the place is none.
pub(crate) fn page(dir: &Path, place: &str, jid: &str, rsa: Option<&PrivateKey>) -> Result<Page, String> {
    let said = |e: std::io::Error| format!("the receipts in {} cannot be read: {e}", dir.display());
    let files = match brine_receipts::files(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        files => files.map_err(said)?,
    };
    let (number, end) = match place {
        "" => (u64::MAX, usize::MAX),
        place => {
            let numbers = place.split_once(':').and_then(|(file, at)| file.parse().ok().zip(at.parse().ok()));
            numbers.ok_or_else(|| format!("{place:?} is no place of a page"))?
        }
    };
    // A file that is gone meanwhile had the oldest.
    let Some(at) = files.iter().rposition(|(file, _)| *file <= number) else {
        return Ok(Page { receipts: Vec::new(), next: None });
    };
    let (file, path) = &files[at];
    let content = brine_files::read_own(path, FILE_MAX).map_err(said)?;
    let end = if *file == number { end } else { usize::MAX };
    let mut entries: Vec<(usize, Vec<u8>, Option<Asked>)> = Vec::new();
    let mut from = 0;
    while from < end
        && let Ok(Some((record, size))) = Record::read(&content[from..])
    {
        if let Record::Receipt { compact, asked } = record {
            let is_its = |compact: &[u8]| SignedReceipt::unverified(compact).is_ok_and(|(one, _)| one.jid == jid);
            if jid.is_empty() || is_its(&compact) {
                entries.push((from, compact, asked));
            }
        }
        from += size;
    }
    let taken = entries.split_off(entries.len().saturating_sub(PAGE));
    let next = match (entries.is_empty(), taken.first()) {
        (false, Some((first, ..))) => Some(format!("{file}:{first}")),
        _ => at.checked_sub(1).map(|older| format!("{}:{}", files[older].0, usize::MAX)),
    };
    let shown = taken.into_iter().rev().filter_map(|(_, compact, asked)| match rsa {
        Some(rsa) => line(&compact, rsa).map(Value::from),
        None => shown(&compact, asked.as_ref(), !jid.is_empty()),
    });
    Ok(Page { receipts: shown.collect(), next })
}

/// With `whole`, also what proves to others who asked.
fn shown(compact: &[u8], asked: Option<&Asked>, whole: bool) -> Option<Value> {
    let (receipt, _) = SignedReceipt::unverified(compact).ok()?;
    let mut shown = fields(&receipt);
    let kept = asked.map(|asked| {
        let mut kept =
            map([("signedWith", Value::from(asked.algorithm.as_str())), ("whole", Value::from(asked.blob.is_some()))]);
        let hexed = |bytes: &[u8]| Value::from(hex::encode(bytes));
        if let Some((by, blob)) = asked.by.as_ref().zip(asked.blob.as_ref()).filter(|_| whole) {
            kept.insert("message", hexed(blob));
            kept.insert("signature", hexed(&asked.signature));
            kept.insert("key", hexed(&by.key));
            kept.insert("vouch", hexed(&by.vouch));
        }
        kept
    });
    shown.insert("publicationKept", kept.unwrap_or(Value::Nil));
    Some(shown)
}

fn line(compact: &[u8], rsa: &PrivateKey) -> Option<String> {
    let receipt = SignedReceipt::from_compact(compact).ok()?;
    let vouch = Vouched::vouch(&receipt.receipt().minion, receipt.key(), rsa).ok()?;
    Some(Evidence { vouched: Vouched { receipt, vouch }, minion_key: rsa.public().to_pem() }.to_line())
}

/// Verifies all receipts of the folder. Returns their number, and what is odd.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn verify(dir: &Path) -> Result<Value, String> {
    let said = |e: std::io::Error| format!("the receipts in {} cannot be read: {e}", dir.display());
    let (mut count, mut odd) = (0_u64, Vec::new());
    let mut chains: BTreeMap<([u8; 32], ChainId), Chain> = BTreeMap::new();
    let files = if dir.exists() { brine_receipts::files(dir).map_err(said)? } else { Vec::new() };
    for (_, path) in files {
        let content = {
            // Nobody is within a write.
            let _lock = Lock::wait(dir).map_err(said)?;
            match brine_files::read_own(&path, FILE_MAX) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                content => content.map_err(said)?,
            }
        };
        let mut rest = content.as_slice();
        while let Ok(Some((record, size))) = Record::read(rest) {
            rest = &rest[size..];
            let Record::Receipt { compact, .. } = record else { continue };
            match SignedReceipt::from_compact(&compact) {
                Ok(signed) => {
                    count += 1;
                    let of = (*signed.key(), signed.receipt().chain());
                    chains.entry(of).or_default().add(signed.receipt(), signed.hash());
                }
                Err(why) => odd.push(format!("{}: a receipt does not hold: {why}", path.display())),
            }
        }
        if !rest.is_empty() {
            odd.push(format!("{}: {} bytes at its end are no receipts", path.display(), rest.len()));
        }
    }
    for ((_, of), chain) in &chains {
        let master = of.master.map_or_else(|| "the host itself".to_owned(), |master| format!("the master {master}"));
        odd.extend(chain.odd().into_iter().map(|what| match what {
            Odd::Gap(first, last) => format!("receipts {first} to {last} of jobs of {master} are missing"),
            Odd::Fork(number) => {
                format!("receipt {number} of jobs of {master} does not follow from the others: a fork")
            }
        }));
    }
    let odd: Vec<Value> = odd.into_iter().take(ODD_MAX).map(Value::from).collect();
    Ok(map([("receipts", Value::from(count)), ("odd", Value::Array(odd))]))
}
