//! The one check of an operation: a pure function of the caller, the grants and the request.
//!
//! It checks the interface, then the form of each argument, then the names in them. Its result is what is performed:
//! names are in the form that was checked.

use std::fmt;

use crate::grants::{Grant, Grants};
use crate::names::is_glob;
use crate::{Capability, HostOp};

/// The caller, as recorded by the minion when it started the call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asker<'a> {
    /// The module of the calling instance.
    pub module: &'a str,
    /// This minion's id.
    pub minion_id: &'a str,
    /// Whether it is this host's module that runs states for jobs: the standard `state`, or what the owner let replace it.
    pub runs_states: bool,
    /// Whether the job is a master's, and not this host's own.
    pub from_master: bool,
    /// Whether the job is a call that was typed on this host.
    pub typed: bool,
    /// The chain of functions from the job's own to this one.
    pub chain: &'a [String],
}

impl Asker<'_> {
    /// Checks whether an operator called exactly this function on this host. False for a master's job, for one of the
    /// schedule (a state that a master wrote may have put it there, in a `salt-call state.apply`), and for a nested call,
    /// whose caller chose the arguments (`mine.update` takes them from the pillar, which the master writes).
    pub fn is_typed_here(&self, function: &str) -> bool {
        self.typed && !self.from_master && *self.chain == [function]
    }
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// An argument has a form that nothing can grant or use.
    Malformed(String),
    /// No grant allows this.
    Never(String),
    /// The module may not do this.
    NotGranted {
        /// `run /bin/true`
        what: String,
        /// The grant that would allow it. None if no configuration line can name it.
        lift: Option<Box<(Capability, Grant)>>,
        /// What of it a line may say that is not made by a person, but from what was wanted.
        least: Least,
    },
}

/// The grant that allows what was wanted and nothing beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Least {
    /// The one that people are told of.
    AsTold,
    /// This one: people are told of a wider one, which they would write.
    Of(Box<Grant>),
    /// None: each that allows it allows more.
    No,
}

impl Refusal {
    pub(crate) fn not_granted(what: impl Into<String>, capability: Capability, grant: Grant) -> Self {
        Self::NotGranted { what: what.into(), lift: Some(Box::new((capability, grant))), least: Least::AsTold }
    }

    pub(crate) fn with_least(self, least: Least) -> Self {
        match self {
            Self::NotGranted { what, lift, .. } => Self::NotGranted { what, lift, least },
            other => other,
        }
    }
}

/// Checks one operation. Returns it in the form to perform: a program by its granted path, a URL in its normal form.
///
/// # Errors
///
/// Why it is refused.
pub fn check(who: &Asker<'_>, granted: &Grants, op: HostOp) -> Result<HostOp, Refusal> {
    if granted.allows(op.interface()) {
        return op.checked(who, granted);
    }
    let capability = op.capability();
    Err(Refusal::not_granted(capability.words(), capability, capability.least()))
}

impl Grants {
    /// Refuses a name that is not granted. `what` describes the operation.
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
        // In the configuration a name is a pattern: the suggested name must not match more than one character at any
        // place.
        let refusal =
            Refusal::not_granted(what.to_string(), capability, Grant::Names(names.with(&name.replace('*', "?"))));
        // One character at each place is other names too.
        Err(if is_glob(name) { refusal.with_least(Least::No) } else { refusal })
    }
}
