//! Modules that ended executors, while they ran or while they were loaded.
//!
//! Who ran when an executor died is a suspect, by its content: its calls go to a ward, an executor that those who are trusted do not share
//! (`executors.rs`). There the next death shows who it was: who died alone is convicted, stays in a ward and is refused for longer each
//! time. An innocent one that ran beside it goes on in the ward as if nothing had been, and is trusted again after a minute. So a
//! module costs those that it shares an executor with one death, and then only itself.
//!
//! Compiled code is native code: where the engine or the disk failed it can kill the
//! process that maps it, and a restart loads it again. So deaths during a load are counted by content, and who did it twice
//! is set aside: everybody else's jobs must not wait through the pauses of a crash loop.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_sandbox_wire::Sha256Hex;

use crate::ModuleName;

/// One death may be somebody else's: a guest that ran meanwhile, the kernel short of memory.
const DEATHS: u32 = 2;
/// Contents remembered; a name has one at a time, so that more come only from installs, which are few.
const MAX_SUSPECTS: usize = 1_024;

/// For how long a suspect is kept from the others. An executor's death is rare; that of who kills it comes with its next calls.
const SUSPECTED: Duration = Duration::from_secs(60);
/// The same for one that is convicted, from its last death on.
const CONVICTED: Duration = Duration::from_secs(600);
/// How long one is refused that died alone for the second time; doubled with each further death …
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// … up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// One content of one module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Content {
    pub(crate) name: ModuleName,
    pub(crate) sha256: Sha256Hex,
}

/// What ended executors. Outlives them.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// How often each content was being loaded.
    loading: Mutex<HashMap<Sha256Hex, u32>>,
    running: Mutex<HashMap<Content, Suspect>>,
    /// Whether there is any that ran: nearly always there is none.
    any: AtomicBool,
}

/// Who ran when an executor died.
#[derive(Debug, Clone, Copy)]
struct Suspect {
    /// How often nobody else can have been it.
    alone: u32,
    last: Instant,
}

/// Where a module's calls run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Beside all others.
    Trusted,
    /// In a ward, with other suspects.
    Suspected,
    /// In a ward, with nobody that is not convicted too.
    Convicted,
}

/// It is not run for so long.
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

    /// From its last death on. The first one may be somebody else's doing: somebody ended the process.
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

    /// An executor died while these ran in it.
    pub(crate) fn died_running(&self, modules: &[Content]) {
        let (mut running, now) = (self.running(), Instant::now());
        running.retain(|_, suspect| !suspect.is_over(now));
        let known = |module: &Content| running.get(module).is_some_and(|suspect| suspect.alone > 0);
        // Where one did it before, it was that one.
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

    /// Where its calls run; or that they do not, for now.
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

    fn content(name: &str) -> Content {
        Content { name: name.parse().unwrap(), sha256: Sha256Hex::from([1; 32]) }
    }

    /// The same later.
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
        // Now it is known who it was, whoever else was there.
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
        // Another content is another matter, and this one is forgiven at last.
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
