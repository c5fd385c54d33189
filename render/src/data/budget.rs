//! The bounds of work on data: lists that are shared can stand for an exponential number.

use std::cell::Cell;

use super::CallError;

/// How much may still be done, all calls together.
#[derive(Clone, Debug)]
pub struct Budget {
    values: Cell<usize>,
    steps: Cell<usize>,
}

impl Default for Budget {
    /// A million values, which take some 64 MiB; and twenty million steps, which take some tenths of a second.
    fn default() -> Self {
        Self::new(1 << 20, 20 << 20)
    }
}

impl Budget {
    /// With upper bounds on the values that are made, and on the steps.
    pub fn new(values: usize, steps: usize) -> Self {
        Self { values: Cell::new(values), steps: Cell::new(steps) }
    }

    /// Counts values before they are made.
    ///
    /// # Errors
    /// There may be no more.
    pub fn take_values(&self, count: usize) -> Result<(), CallError> {
        take(&self.values, count, "values")
    }

    /// Counts steps.
    ///
    /// # Errors
    /// There may be no more.
    pub fn take_steps(&self, count: usize) -> Result<(), CallError> {
        take(&self.steps, count, "steps")
    }
}

fn take(left: &Cell<usize>, count: usize, what: &str) -> Result<(), CallError> {
    match left.get().checked_sub(count) {
        Some(rest) => {
            left.set(rest);
            Ok(())
        }
        None => {
            left.set(0);
            Err(CallError::python(format!("the functions take more {what} than are allowed")))
        }
    }
}
