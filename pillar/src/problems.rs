//! What goes wrong in a compilation.

use std::cell::RefCell;
use std::rc::Rc;

/// Bound on the errors of one pillar.
pub(crate) const ERRORS_MAX: usize = 100;

/// What went wrong so far: what the minion is told, and what the log says.
#[derive(Debug, Default, Clone)]
pub(crate) struct Problems {
    pub(crate) causes: Rc<RefCell<Vec<String>>>,
}

impl Problems {
    pub(crate) fn cause(&self, cause: impl Into<String>) {
        let mut causes = self.causes.borrow_mut();
        if causes.len() < ERRORS_MAX {
            causes.push(cause.into());
        }
    }
}
