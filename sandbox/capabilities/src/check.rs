//! The one check of an operation: a pure function of who asks, what was granted, and what is asked.
//!
//! In this order: the interface, the form of each argument, the names in it. What comes out is what is done: names are in the one form
//! that was checked.

use std::fmt;

use crate::grants::{Grant, Grants};
use crate::{Capability, HostOp};

/// Who asks: what the minion wrote down when it started the call.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// The module whose instance it is.
    pub module: &'a str,
    /// The host's id.
    pub minion_id: &'a str,
    /// Whether it is a job of a master, and not of this host's own.
    pub from_master: bool,
    /// The functions from the job's own to this one, each called by the one before it.
    pub chain: &'a [String],
}

impl Asker<'_> {
    /// Whether somebody called just this function on this host itself: no master's job, and nothing that another function calls with
    /// arguments of its own choice (`mine.update` does with those of the pillar, which is the master's word).
    pub fn is_typed_here(&self, function: &str) -> bool {
        !self.from_master && *self.chain == [function]
    }
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// An argument has no form that could be granted, or that anything could be done with.
    Malformed(String),
    /// No grant allows this.
    Never(String),
    /// The module may not do this.
    NotGranted {
        /// `run /bin/true`
        what: String,
        /// The grant with which it may; none where no line of the configuration can name it.
        lift: Option<Box<(Capability, Grant)>>,
    },
}

impl Refusal {
    pub(crate) fn not_granted(what: impl Into<String>, capability: Capability, grant: Grant) -> Self {
        Self::NotGranted { what: what.into(), lift: Some(Box::new((capability, grant))) }
    }
}

/// Checks one operation. Comes back as it is to be done: a program by its granted path, a URL in its plain form.
///
/// # Errors
/// Why it is refused.
pub fn check(who: &Asker<'_>, granted: &Grants, op: HostOp) -> Result<HostOp, Refusal> {
    if granted.allows(op.interface()) {
        return op.checked(who, granted);
    }
    let capability = op.capability();
    Err(Refusal::not_granted(capability.words(), capability, capability.least()))
}

impl Grants {
    /// Refuses a name that is not among those granted: `what` is what is done with it.
    pub(crate) fn permit_name(
        &self,
        capability: Capability,
        name: &str,
        what: fmt::Arguments<'_>,
    ) -> Result<(), Refusal> {
        let names = self.names(capability);
        if names.matches(name) {
            return Ok(());
        }
        // A name is a pattern where the owner writes it: nothing in it may stand for more than one character.
        Err(Refusal::not_granted(what.to_string(), capability, Grant::Names(names.with(&name.replace('*', "?")))))
    }
}
