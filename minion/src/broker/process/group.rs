//! Ends one program, before its start, while it runs or after it. The program's supervisor does the work, see
//! `brine_spawn`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use brine_spawn::Control;

/// The state of one program.
#[derive(Debug, Default)]
pub(super) struct Group(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    NotStarted,
    /// The program was ended before or while it ran.
    Unwanted,
    Runs(Control),
    Over,
}

impl Group {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the program should still be started.
    pub(super) fn wanted(&self) -> bool {
        matches!(*self.state(), State::NotStarted)
    }

    /// Records the start of the program, and ends the program if it was ended in the meantime.
    pub(super) fn started(&self, control: Control) {
        let mut state = self.state();
        match *state {
            State::Unwanted => control.end(),
            _ => *state = State::Runs(control),
        }
    }

    /// Sends SIGTERM to the program's process group.
    pub(super) fn terminate(&self) {
        if let State::Runs(control) = &*self.state() {
            control.terminate();
        }
    }

    /// Ends the program and its descendants, or prevents its start. Returns at once.
    pub(super) fn end(&self) {
        let mut state = self.state();
        match &*state {
            State::NotStarted => *state = State::Unwanted,
            State::Runs(control) => {
                control.end();
                // If the supervisor has to try the start again, the program does not start.
                *state = State::Unwanted;
            }
            State::Unwanted | State::Over => {}
        }
    }

    /// Records that no process of the program is left.
    pub(super) fn over(&self) {
        *self.state() = State::Over;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_wanted_does_not_start() {
        let group = Group::default();
        assert!(group.wanted());
        group.end();
        assert!(!group.wanted());
        group.terminate();
        group.over();
        group.end();
    }
}
