//! What is odd about the numbers and hashes of one chain.

use std::collections::BTreeMap;

use crate::{Digest, Receipt};

/// Something odd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Odd {
    /// Receipts with these numbers, the first and the last, are missing.
    Gap(u64, u64),
    /// Two receipts have this number, or one does not follow from the one before: the minion signed two continuations. So does a host
    /// that was set back to an earlier state.
    Fork(u64),
}

/// Receipts of one chain, given in any order.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    /// By number: the own hash and that of the one before.
    links: BTreeMap<u64, (Digest, Option<Digest>)>,
    forks: Vec<u64>,
}

impl Chain {
    /// Adds a receipt whose signature holds; the same one twice counts once.
    pub fn add(&mut self, receipt: &Receipt, hash: Digest) {
        match self.links.get(&receipt.number) {
            Some((known, _)) if *known != hash => self.forks.push(receipt.number),
            Some(_) => {}
            None => drop(self.links.insert(receipt.number, (hash, receipt.previous))),
        }
    }

    /// Everything odd, by number. What comes before the first receipt here is not judged: it may have been removed with its age.
    pub fn odd(&self) -> Vec<Odd> {
        let mut odd: Vec<Odd> = self.forks.iter().map(|number| Odd::Fork(*number)).collect();
        let mut before: Option<(u64, Digest)> = None;
        for (number, (hash, previous)) in &self.links {
            match before {
                Some((last, _)) if *number > last + 1 => odd.push(Odd::Gap(last + 1, number - 1)),
                Some((_, last)) if *previous != Some(last) => odd.push(Odd::Fork(*number)),
                None if (*number <= 1) != previous.is_none() => odd.push(Odd::Fork(*number)),
                _ => {}
            }
            before = Some((*number, *hash));
        }
        odd
    }
}
