//! The receipts that this host keeps, read from the minion's files.

use brine_protocol::exit;
use brine_protocol::keys::PrivateKey;
use brine_receipts::{Asked, Evidence, Record, SignedReceipt, Vouched};

use super::Host;
use crate::Failure;
use crate::print::{stderr, stdout};

/// Upper bound on one file; the minion makes them of 4 MiB.
const MAX_FILE: u64 = 16 << 20;

/// Calls `take` with each receipt, the oldest first, and with the publication that is kept beside it.
pub(super) fn each(
    host: &Host,
    mut take: impl FnMut(SignedReceipt, Option<Asked>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let dir = host.cachedir.join("receipts");
    let fail = |error: std::io::Error| Failure::new(exit::GENERIC, format!("{}: {error}", dir.display()));
    for (_, path) in brine_receipts::files(&dir).map_err(fail)? {
        let fail = |error: std::io::Error| Failure::new(exit::GENERIC, format!("{}: {error}", path.display()));
        let content = brine_files::read_named(&path, MAX_FILE).map_err(fail)?;
        let mut rest = content.as_slice();
        loop {
            match Record::read(rest) {
                Ok(Some((record, size))) => {
                    rest = &rest[size..];
                    let Record::Receipt { compact, asked } = record else { continue };
                    match SignedReceipt::from_compact(&compact) {
                        Ok(signed) => take(signed, asked)?,
                        Err(why) => stderr(&format!("{}: a receipt does not hold: {why}", path.display())),
                    }
                }
                Ok(None) if rest.is_empty() => break,
                Ok(None) | Err(_) => {
                    stderr(&format!("{}: {} bytes at its end are no receipts", path.display(), rest.len()));
                    break;
                }
            }
        }
    }
    Ok(())
}

/// `show`: the fields of a job's receipts as JSON, and who asked.
pub(super) fn show(host: &Host, jid: &str) -> Result<(), Failure> {
    let mut shown = 0;
    each(host, |signed, asked| {
        if signed.receipt().jid != jid {
            return Ok(());
        }
        shown += 1;
        stdout(&String::from_utf8_lossy(&signed.receipt().to_json()));
        match asked {
            Some(asked) => {
                let kept = if asked.blob.is_some() {
                    "the publication is kept"
                } else {
                    "the publication was too large to keep"
                };
                stdout(&format!(
                    "signed by its master with {} ({} bytes); {kept}",
                    asked.algorithm,
                    asked.signature.len()
                ));
            }
            None => stdout("no publication is kept beside it"),
        }
        Ok(())
    })?;
    if shown == 0 {
        return Err(Failure::new(exit::GENERIC, format!("there is no receipt of the job {jid} here")));
    }
    Ok(())
}

/// `export`: the minion's key vouches anew, so that the lines need nothing else.
pub(super) fn export(host: &Host) -> Result<(), Failure> {
    let path = host.pki_dir.join("minion.pem");
    let fail = |error: &dyn std::fmt::Display| Failure::new(exit::GENERIC, format!("{}: {error}", path.display()));
    let rsa = PrivateKey::load(&path).map_err(|error| fail(&error))?;
    let minion_key = rsa.public().to_pem();
    let mut known: Option<(String, [u8; 32], Vec<u8>)> = None;
    each(host, |receipt, _| {
        let (minion, key) = (receipt.receipt().minion.clone(), *receipt.key());
        let vouch = match &known {
            Some((of, by, vouch)) if (of, by) == (&minion, &key) => vouch.clone(),
            _ => Vouched::vouch(&minion, &key, &rsa).map_err(|error| fail(&error))?,
        };
        known = Some((minion, key, vouch.clone()));
        stdout(&Evidence { vouched: Vouched { receipt, vouch }, minion_key: minion_key.clone() }.to_line());
        Ok(())
    })
}
