//! `salt-receipt verify`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use brine_protocol::exit;
use brine_receipts::{Chain, ChainId, Evidence, Fingerprint, MAX_LINE, Odd};

use crate::Failure;
use crate::print::{stderr, stdout};

/// Bound on the lines that are named of one file.
const NAMED_MAX: usize = 20;

/// What the files have in common.
#[derive(Default)]
struct Found {
    receipts: u64,
    bad: u64,
    /// By id and key of the minion and master.
    chains: BTreeMap<(String, Fingerprint, [u8; 32], ChainId), Chain>,
}

/// Verifies files. `expected` is the fingerprint of the minion's key.
pub(super) fn run(files: &[PathBuf], expected: Option<&str>) -> Result<(), Failure> {
    let expected: Option<Fingerprint> = expected.map(str::parse).transpose().map_err(|_| {
        Failure::new(exit::USAGE, "salt-receipt: error: --minion-key must be a fingerprint as salt-key -f prints it")
    })?;
    let mut found = Found::default();
    for path in files {
        read(path, expected, &mut found)
            .map_err(|error| Failure::new(exit::GENERIC, format!("{}: {error}", path.display())))?;
    }
    let mut forks = 0_u64;
    for ((id, key, _, _), chain) in &found.chains {
        stdout(&format!("{id}: the key {key} vouches for its receipts"));
        for odd in chain.odd() {
            match odd {
                Odd::Gap(first, last) => stdout(&format!("{id}: receipts {first} to {last} are not here")),
                Odd::Fork(number) => {
                    forks += 1;
                    stderr(&format!("{id}: receipt {number} does not follow from the others: a fork"));
                }
            }
        }
    }
    if found.receipts == 0 && found.bad == 0 {
        return Err(Failure::new(exit::GENERIC, "there are no receipts in the files"));
    }
    if found.bad > 0 || forks > 0 {
        let said = format!("{} receipts hold, {} do not, {forks} forks", found.receipts, found.bad);
        return Err(Failure::new(exit::GENERIC, said));
    }
    stdout(&format!("{} receipts hold", found.receipts));
    Ok(())
}

fn read(path: &Path, expected: Option<Fingerprint>, found: &mut Found) -> std::io::Result<()> {
    let file: Box<dyn std::io::Read> = match path.to_str() {
        Some("-") => Box::new(std::io::stdin()),
        _ => Box::new(brine_files::open_named(path)?),
    };
    let mut lines = BufReader::new(file);
    let (mut number, mut named) = (0_u64, 0);
    loop {
        let mut line = Vec::new();
        lines.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        number += 1;
        if line.len() > MAX_LINE && line.last() != Some(&b'\n') {
            return Err(std::io::Error::other(format!("line {number} is longer than any receipt")));
        }
        let proved = match std::str::from_utf8(&line).map(str::trim) {
            Ok("") => continue,
            Ok(line) => Evidence::verify(line).map_err(|why| why.to_string()),
            Err(_) => Err("it is no text".to_owned()),
        };
        let proved = proved.and_then(|proved| match expected {
            Some(key) if key != proved.by => Err(format!("another key vouches for it, {}", proved.by)),
            _ => Ok(proved),
        });
        match proved {
            Ok(proved) => {
                found.receipts += 1;
                let receipt = proved.receipt.receipt();
                let of = (receipt.minion.clone(), proved.by, *proved.receipt.key(), receipt.chain());
                found.chains.entry(of).or_default().add(receipt, proved.receipt.hash());
            }
            Err(why) => {
                found.bad += 1;
                named += 1;
                if named <= NAMED_MAX {
                    stderr(&format!("{}:{number}: {why}", path.display()));
                }
            }
        }
    }
}
