//! Modules whose loading ends the executor. Compiled code is native code: where the engine or the disk failed it can kill the
//! process that maps it, and a restart loads it again. So deaths during a load are counted by content, and who did it twice
//! is set aside: everybody else's jobs must not wait through the pauses of a crash loop.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use brine_sandbox_wire::Sha256Hex;

/// One death may be somebody else's: a guest that ran meanwhile, the kernel short of memory.
const DEATHS: u32 = 2;
/// Contents remembered; a name has one at a time, so that more come only from installs, which are few.
const MAX_SUSPECTS: usize = 1_024;

/// How often each content was being loaded when the executor died. Outlives the executors.
#[derive(Debug, Default)]
pub(crate) struct Suspects(Mutex<HashMap<Sha256Hex, u32>>);

impl Suspects {
    fn deaths(&self) -> MutexGuard<'_, HashMap<Sha256Hex, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The executor died while it loaded this.
    pub(crate) fn died_loading(&self, module: Sha256Hex) {
        let mut deaths = self.deaths();
        if deaths.len() >= MAX_SUSPECTS && !deaths.contains_key(&module) {
            deaths.retain(|_, count| *count >= DEATHS);
        }
        if deaths.len() < MAX_SUSPECTS || deaths.contains_key(&module) {
            let count = deaths.entry(module).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// It was loaded: what killed the executor before was something else.
    pub(crate) fn loaded(&self, module: Sha256Hex) {
        self.deaths().remove(&module);
    }

    /// Why it is not to be loaded any more.
    pub(crate) fn set_aside(&self, module: Sha256Hex) -> Option<String> {
        let count = self.deaths().get(&module).copied().filter(|count| *count >= DEATHS)?;
        Some(format!(
            "it is set aside, because the executor died {count} times while it was loaded; it is tried again with another \
             content, or when the minion starts again"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_deaths_without_a_success_between_them() {
        let (suspects, module) = (Suspects::default(), Sha256Hex::from([1; 32]));
        suspects.died_loading(module);
        assert_eq!(suspects.set_aside(module), None);
        suspects.loaded(module);
        suspects.died_loading(module);
        assert_eq!(suspects.set_aside(module), None);
        suspects.died_loading(module);
        assert!(suspects.set_aside(module).is_some());
        assert_eq!(suspects.set_aside(Sha256Hex::from([2; 32])), None);
    }

    #[test]
    fn they_are_bounded() {
        let suspects = Suspects::default();
        let module = |n: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&n.to_be_bytes());
            Sha256Hex::from(bytes)
        };
        suspects.died_loading(module(0));
        suspects.died_loading(module(0));
        (1..3 * MAX_SUSPECTS).for_each(|n| suspects.died_loading(module(n)));
        assert!(suspects.deaths().len() <= MAX_SUSPECTS);
        assert!(suspects.set_aside(module(0)).is_some());
    }
}
