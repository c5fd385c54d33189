//! How much modules write to the log, over time.
//!
//! Each call has a budget of its own, but whoever may start calls may start them without end. So the lines of a module, and those of all
//! modules together, have a bound in each minute too. It counts only what the log has at its level.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brine_sandbox_wire::LogLevel;
use brine_text::{LogLimit, Turn};
use tracing::{Level, enabled};

const WINDOW: Duration = Duration::from_secs(60);
/// What a module writes in that time: as much as so many calls that use up their limit.
const CALLS: u64 = 4;
/// What all modules write in that time, unless a call may write more.
const ALL: u64 = 1 << 20;
/// Counted for each line beside its text: the log adds time, level, job and function.
const OVERHEAD: u64 = 100;
/// Upper bound on the modules that are remembered.
const MAX_MODULES: usize = 1_024;

/// What the modules have written.
#[derive(Debug, Default)]
pub(crate) struct ModuleLines(Mutex<Written>);

#[derive(Debug)]
struct Written {
    modules: HashMap<String, LogLimit>,
    all: LogLimit,
}

impl Default for Written {
    fn default() -> Self {
        Self { modules: HashMap::new(), all: LogLimit::within(ALL, WINDOW) }
    }
}

/// Whether to write a line, and how many were left out before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Counted {
    /// Of this module.
    pub(super) own: Turn,
    /// Of all modules, where each was within its own bound.
    pub(super) all: Turn,
}

impl ModuleLines {
    /// Counts a line of a module whose calls may write `call` bytes each.
    pub(super) fn count(&self, module: &str, message: &str, call: u64, now: Instant) -> Counted {
        let size = OVERHEAD.saturating_add(message.len() as u64);
        let most = call.saturating_mul(CALLS);
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever brings that many modules has no more of it: the bound of all holds.
        if written.modules.len() >= MAX_MODULES && !written.modules.contains_key(module) {
            written.modules.clear();
        }
        let own = match written.modules.get_mut(module) {
            Some(limit) => limit,
            None => written.modules.entry(module.to_owned()).or_insert(LogLimit::within(most, WINDOW)),
        };
        own.set_most(most);
        let own = own.count(size, now);
        let all = if own.say {
            written.all.set_most(ALL.max(most));
            written.all.count(size, now)
        } else {
            Turn { say: false, unsaid: 0 }
        };
        Counted { own, all }
    }
}

/// Whether the log has lines of this level. Those that it does not have cost nothing.
pub(super) fn is_logged(level: LogLevel) -> bool {
    match level {
        LogLevel::Trace => enabled!(Level::TRACE),
        LogLevel::Debug => enabled!(Level::DEBUG),
        LogLevel::Info => enabled!(Level::INFO),
        LogLevel::Warning => enabled!(Level::WARN),
        LogLevel::Error => enabled!(Level::ERROR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: u64 = 64 << 10;

    /// Calls without end, each with its whole budget.
    fn flood(lines: &ModuleLines, module: &str, from: Instant) -> usize {
        let line = "x".repeat(1_000);
        let mut written = 0;
        for second in 0..60 * 60_u64 {
            for _ in 0..60 {
                let counted = lines.count(module, &line, CALL, from + Duration::from_secs(second));
                written += if counted.all.say { line.len() } else { 0 };
            }
        }
        written
    }

    #[test]
    fn a_module_that_is_called_without_end_writes_little() {
        let written = flood(&ModuleLines::default(), "flood", Instant::now());
        assert!(written < 17_000_000, "{written}");
    }

    #[test]
    fn a_thousand_modules_write_no_more_than_a_few() {
        let (lines, now, line) = (ModuleLines::default(), Instant::now(), "x".repeat(1_000));
        let mut written = 0;
        for module in 0..2_000 {
            let name = format!("m{module}");
            written += (0..60).filter(|_| lines.count(&name, &line, CALL, now).all.say).count();
        }
        assert!(written as u64 <= ALL / 1_100, "{written}");
    }

    #[test]
    fn what_was_left_out_is_said_and_other_modules_are_not_concerned() {
        let (lines, now, line) = (ModuleLines::default(), Instant::now(), "x".repeat(1_000));
        for _ in 0..1_000 {
            lines.count("flood", &line, CALL, now);
        }
        assert!(!lines.count("flood", "a word", CALL, now).own.say);
        assert!(lines.count("other", &line, CALL, now).all.say);
        let later = lines.count("flood", &line, CALL, now + WINDOW + Duration::from_millis(1));
        assert_eq!(later.own, Turn { say: true, unsaid: 763 });
    }

    /// Where the owner raised the limit of a call, a call may use it up.
    #[test]
    fn a_raised_limit_counts() {
        let (lines, now, line) = (ModuleLines::default(), Instant::now(), "x".repeat(1 << 20));
        let said = (0..8).filter(|_| lines.count("chatty", &line, 8 << 20, now).all.say).count();
        assert_eq!(said, 8);
    }
}
