//! What ends a program, from before its start to after its end. The work is done by the program's supervisor, see `brine_spawn`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use brine_spawn::Control;

/// One program.
#[derive(Debug, Default)]
pub(super) struct Group(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    NotStarted,
    /// It is not wanted any more.
    Unwanted,
    Runs(Control),
    Over,
}

impl Group {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it should still be started.
    pub(super) fn wanted(&self) -> bool {
        matches!(*self.state(), State::NotStarted)
    }

    /// It is being started. Ended at once where it is not wanted any more.
    pub(super) fn started(&self, control: Control) {
        let mut state = self.state();
        match *state {
            State::Unwanted => control.end(),
            _ => *state = State::Runs(control),
        }
    }

    /// Asks all of its group to end.
    pub(super) fn terminate(&self) {
        if let State::Runs(control) = &*self.state() {
            control.terminate();
        }
    }

    /// Ends the program with all that it started, or keeps it from starting. Returns at once.
    pub(super) fn end(&self) {
        let mut state = self.state();
        match &*state {
            State::NotStarted => *state = State::Unwanted,
            State::Runs(control) => {
                control.end();
                // Should it have to be tried again, it is not.
                *state = State::Unwanted;
            }
            State::Unwanted | State::Over => {}
        }
    }

    /// Nothing is left of it.
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
