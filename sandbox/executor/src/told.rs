//! Which refusals of a call the minion was told.

use std::collections::HashSet;

use brine_sandbox_wire::Wanted;

/// Different refusals of one call that are told. The minion counts them too (`MAX_REFUSED` in `sandbox/src/kernel/link/requests.rs`).
const MAX_REFUSED: usize = 64;

/// The refusals that were told.
#[derive(Debug, Default)]
pub(crate) struct Told(HashSet<Wanted>);

impl Told {
    /// Whether the minion is to be told of this one.
    pub(crate) fn is_new(&mut self, wanted: &Wanted) -> bool {
        self.0.len() < MAX_REFUSED && self.0.insert(wanted.clone())
    }
}

#[cfg(test)]
mod tests {
    use brine_sandbox_wire::PathAccess;

    use super::*;

    #[test]
    fn each_is_told_once_and_not_without_end() {
        let mut told = Told::default();
        let wanted = |nth: usize| Wanted::Path { path: format!("/{nth}"), access: PathAccess::Read };
        assert!(told.is_new(&wanted(0)) && !told.is_new(&wanted(0)));
        assert_eq!((0..10_000).filter(|nth| told.is_new(&wanted(*nth))).count(), MAX_REFUSED - 1);
    }
}
