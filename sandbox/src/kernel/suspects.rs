//! Tracks modules that ended executors, while they ran or while they were loaded.
//!
//! Every module that ran when an executor died becomes a suspect, by its content: its calls go to a ward, an executor
//! that trusted modules do not share (`executors.rs`). The next death in a ward reveals the cause: a module that was
//! alone is convicted, stays in a ward, and is refused for a longer time after each further death. An innocent module
//! keeps working in the ward, and is trusted again after a minute. So a module costs the others one death, and after
//! that only itself.
//!
//! Compiled code is native code: a fault in the engine or on the disk can make it kill the process that maps it, and a
//! restart loads it again. So deaths during a load are counted by content, and a content with two of them is no longer
//! loaded. Other jobs must not wait through the pauses of a crash loop.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_sandbox_wire::Sha256Hex;

use crate::kernel::name::ModuleName;

/// Deaths during a load before a content is no longer loaded. A single death may have another cause: a guest that ran
/// meanwhile, or the kernel short of memory.
const DEATHS: u32 = 2;
/// Upper bound on remembered contents. A name has one content at a time, so more come only from installs, which are
/// rare.
const MAX_SUSPECTS: usize = 1_024;

/// How long a suspect is kept apart. A guilty module kills again with one of its next calls.
const SUSPECTED: Duration = Duration::from_secs(60);
/// The same for a convicted module, counted from its last death.
const CONVICTED: Duration = Duration::from_secs(600);
/// How long a module is refused after its second death alone. Each further death doubles the time …
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// … up to this bound.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// One content of one module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Content {
    pub(crate) name: ModuleName,
    pub(crate) sha256: Sha256Hex,
}

/// The modules that may have ended executors. Outlives the executors.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// Number of deaths while each content was being loaded.
    loading: Mutex<HashMap<Sha256Hex, u32>>,
    running: Mutex<HashMap<Content, Suspect>>,
    /// Whether `running` has entries. Usually it has none, so calls check this flag first.
    any: AtomicBool,
}

/// A module that ran when an executor died.
#[derive(Debug, Clone, Copy)]
struct Suspect {
    /// Number of deaths that no other module can have caused.
    alone: u32,
    last: Instant,
}

/// Where the calls of a module run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// In an executor that all trusted modules share.
    Trusted,
    /// In a ward, with other suspects.
    Suspected,
    /// Alone in a ward.
    Convicted,
}

/// An error: the module is not run for this long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Module {module} is not run for {} s: {deaths} times the executor it ran in died, and no other module ran there.", .left.as_secs().max(1))]
pub(crate) struct Paused {
    module: ModuleName,
    deaths: u32,
    left: Duration,
}

impl Suspect {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.last) >= if self.alone > 0 { CONVICTED } else { SUSPECTED }
    }

    /// Returns the pause after its last death. There is none after the first, which may have an outside cause, such as
    /// a kill by an operator.
    fn pause(&self) -> Duration {
        match self.alone.checked_sub(2) {
            Some(more) => (FIRST_PAUSE * 2u32.pow(more.min(16))).min(LONGEST_PAUSE),
            None => Duration::ZERO,
        }
    }
}

impl Suspects {
    fn deaths(&self) -> MutexGuard<'_, HashMap<Sha256Hex, u32>> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Content, Suspect>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that an executor died while these modules ran in it.
    pub(crate) fn died_running(&self, modules: &[Content]) {
        let (mut running, now) = (self.running(), Instant::now());
        running.retain(|_, suspect| !suspect.is_over(now));
        let known = |module: &Content| running.get(module).is_some_and(|suspect| suspect.alone > 0);
        // If exactly one of them was convicted before, it is the cause again.
        let convicted: Vec<bool> = modules.iter().map(known).collect();
        let by_one = modules.len() == 1 || convicted.iter().filter(|convicted| **convicted).count() == 1;
        for (module, convicted) in modules.iter().zip(&convicted) {
            if running.len() >= MAX_SUSPECTS && !running.contains_key(module) {
                break;
            }
            let suspect = running.entry(module.clone()).or_insert(Suspect { alone: 0, last: now });
            suspect.alone = suspect.alone.saturating_add(u32::from(by_one && (*convicted || modules.len() == 1)));
            suspect.last = now;
            let alone = suspect.alone;
            tracing::warn!(module = %module.name, sha256 = %module.sha256, alone, "an executor died while it ran: it runs apart from others for a while");
        }
        self.any.store(!running.is_empty(), Ordering::Relaxed);
    }

    /// Returns where the module's calls run, or an error while they do not run.
    pub(crate) fn standing(&self, name: &ModuleName, sha256: Sha256Hex) -> Result<Standing, Paused> {
        if !self.any.load(Ordering::Relaxed) {
            return Ok(Standing::Trusted);
        }
        let (mut running, now) = (self.running(), Instant::now());
        let content = Content { name: name.clone(), sha256 };
        let Some(suspect) = running.get(&content).copied() else { return Ok(Standing::Trusted) };
        if suspect.is_over(now) {
            running.remove(&content);
            self.any.store(!running.is_empty(), Ordering::Relaxed);
            return Ok(Standing::Trusted);
        }
        let left = suspect.pause().saturating_sub(now.duration_since(suspect.last));
        match suspect.alone {
            _ if left > Duration::ZERO => Err(Paused { module: content.name, deaths: suspect.alone, left }),
            0 => Ok(Standing::Suspected),
            _ => Ok(Standing::Convicted),
        }
    }

    /// Records that the executor died while it loaded this content.
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

    /// Records a successful load: earlier deaths had another cause.
    pub(crate) fn loaded(&self, module: Sha256Hex) {
        self.deaths().remove(&module);
    }

    /// Returns why this content is no longer loaded, if so.
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

    fn content(name: &str) -> Content {
        Content { name: name.parse().unwrap(), sha256: Sha256Hex::from([1; 32]) }
    }

    /// Moves the suspects' last deaths into the past.
    fn later(suspects: &Suspects, by: Duration) {
        suspects.running().values_mut().for_each(|suspect| suspect.last -= by);
    }

    #[test]
    fn who_ran_beside_the_guilty_one_is_trusted_again_and_that_one_is_refused_for_longer_each_time() {
        let (suspects, guilty, innocent) = (Suspects::default(), content("guilty"), content("innocent"));
        let standing = |content: &Content| suspects.standing(&content.name, content.sha256);
        assert_eq!(standing(&guilty), Ok(Standing::Trusted));
        let both = [guilty.clone(), innocent.clone()];
        suspects.died_running(&both);
        assert_eq!((standing(&guilty), standing(&innocent)), (Ok(Standing::Suspected), Ok(Standing::Suspected)));
        assert_eq!(standing(&content("other")), Ok(Standing::Trusted));
        suspects.died_running(&both[..1]);
        assert_eq!(standing(&guilty), Ok(Standing::Convicted));
        // The cause is now known, whatever else ran there.
        suspects.died_running(&both);
        assert_eq!(standing(&innocent), Ok(Standing::Suspected));
        let mut pauses = Vec::new();
        for _ in 0..12 {
            let paused = standing(&guilty).unwrap_err();
            pauses.push(paused.left.as_secs_f64().ceil());
            later(&suspects, paused.left);
            assert_eq!(standing(&guilty), Ok(Standing::Convicted));
            suspects.died_running(&both[..1]);
        }
        assert_eq!(pauses[..4], [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(pauses[11], LONGEST_PAUSE.as_secs_f64());
        assert_eq!(standing(&innocent), Ok(Standing::Trusted));
        // Another content of the name is trusted, and the conviction ends in time.
        assert_eq!(suspects.standing(&guilty.name, Sha256Hex::from([2; 32])), Ok(Standing::Trusted));
        later(&suspects, CONVICTED);
        assert_eq!(standing(&guilty), Ok(Standing::Trusted));
        assert!(suspects.running().is_empty() && !suspects.any.load(Ordering::Relaxed));
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
        let name = content("x").name;
        let running: Vec<_> =
            (0..3 * MAX_SUSPECTS).map(|n| Content { name: name.clone(), sha256: module(n) }).collect();
        suspects.died_running(&running);
        assert_eq!(suspects.running().len(), MAX_SUSPECTS);
    }
}
