//! Checks each call from a guest with `brine_capabilities::check`, and adds to a refusal the configuration line that
//! would grant the call.

use std::net::IpAddr;

use brine_capabilities::{Asker, Capability, Grant, Least, Refusal};
use brine_sandbox_wire::{HostError, HostOp, Wanted};

use super::{Broker, Caller, RefusedCall};

/// Checks one call. Returns it in the form to perform: a program by its granted path, a URL in its normal form.
///
/// # Errors
///
/// Why it is refused, and how the owner would grant it.
pub fn check(caller: &Caller, op: HostOp) -> Result<HostOp, HostError> {
    brine_capabilities::check(&caller.asker(), &caller.grants, op).map_err(|refusal| caller.refuse(refusal))
}

/// As [`check`], for what nobody has asked for yet: None if it is refused.
pub(crate) fn permitted(caller: &Caller, op: HostOp) -> Option<HostOp> {
    brine_capabilities::check(&caller.asker(), &caller.grants, op).ok()
}

/// As [`check`], and has the broker take note of a refusal.
///
/// # Errors
///
/// As [`check`].
pub fn check_and_tell(broker: &dyn Broker, caller: &Caller, op: HostOp) -> Result<HostOp, HostError> {
    brine_capabilities::check(&caller.asker(), &caller.grants, op).map_err(|refusal| tell(broker, caller, refusal))
}

/// Has the broker take note of what an executor refused by itself.
pub(crate) fn tell_of(broker: &dyn Broker, caller: &Caller, wanted: Wanted) {
    if let Some(refusal) = wanted.refusal(&caller.grants) {
        tell(broker, caller, refusal);
    }
}

/// Has the broker take note of a refusal. Returns it for the guest.
fn tell(broker: &dyn Broker, caller: &Caller, refusal: Refusal) -> HostError {
    let (what, least) = match &refusal {
        Refusal::NotGranted { what, lift, least } => {
            let of = |told: &(Capability, Grant)| match least {
                Least::AsTold => Some(told.clone()),
                Least::Of(grant) => Some((told.0, Grant::clone(grant))),
                Least::No => None,
            };
            (what, lift.as_deref().and_then(of))
        }
        Refusal::Never(what) => (what, None),
        Refusal::Malformed(_) => return caller.refuse(refusal),
    };
    let line = || {
        let (capability, grant) = least.clone()?;
        caller.remedy.as_ref()?.line(capability, grant)
    };
    let module = caller.module.as_str();
    broker.refused(&RefusedCall { job: &caller.job, module, what, line: &line });
    caller.refuse(refusal)
}

/// Checks whether a caller may reach a host (a name or an address) at this port: for redirects. Has the broker take note of a refusal.
///
/// # Errors
///
/// Why it may not, and how the owner would grant it.
pub fn check_host(broker: &dyn Broker, caller: &Caller, host: &str, port: u16) -> Result<(), HostError> {
    brine_capabilities::check_host(&caller.grants, host, port).map_err(|refusal| tell(broker, caller, refusal))
}

/// Has the broker take note of a special address, such as this host itself, that a caller may not reach: only where the address itself was
/// granted. The port is none for the look-up of a name.
pub fn tell_of_special(broker: &dyn Broker, caller: &Caller, address: IpAddr, port: Option<u16>) {
    if let Err(refusal) = brine_capabilities::check_address(&caller.grants, address, port) {
        tell(broker, caller, refusal);
    }
}

impl Caller {
    fn asker(&self) -> Asker<'_> {
        Asker {
            module: self.module.as_str(),
            minion_id: &self.job.minion_id,
            runs_states: self.runs_states,
            from_master: self.job.master.is_some(),
            typed: self.job.typed,
            chain: &self.chain,
        }
    }

    /// Checks whether an operator called exactly this function on this host: see [`Asker::is_typed_here`].
    pub fn is_typed_here(&self, function: &str) -> bool {
        self.asker().is_typed_here(function)
    }

    fn refuse(&self, refusal: Refusal) -> HostError {
        match refusal {
            Refusal::Malformed(why) => HostError::Failed(why),
            Refusal::Never(why) => HostError::Denied(why),
            Refusal::NotGranted { what, lift, .. } => {
                let how = lift.map(|lift| self.line(lift.0, lift.1)).unwrap_or_default();
                HostError::Denied(format!("module {} may not {what}{how}", self.module))
            }
        }
    }

    /// Returns the end of a refusal's message. Empty if nothing can explain how to grant it.
    fn line(&self, capability: Capability, grant: Grant) -> String {
        self.remedy.as_ref().map(|remedy| remedy.sentence(capability, grant)).unwrap_or_default()
    }

    /// Returns the end of a refusal of this setting, for the code that holds the settings. Empty if no line can name
    /// the setting.
    pub fn setting_line(&self, key: &str) -> String {
        let grant = brine_capabilities::grant_with_setting(&self.grants, key);
        grant.map(|grant| self.line(Capability::Config, grant)).unwrap_or_default()
    }

    /// Returns the line that would grant reading this file, or this directory with what is in it, and nothing beside it. None
    /// if no line can name it.
    pub fn reading_line(&self, path: &str) -> Option<String> {
        let grant = brine_capabilities::grant_with_directory(&self.grants, path, false)?;
        self.remedy.as_ref()?.line(Capability::Filesystem, grant)
    }

    /// Returns the end of a refusal of this directory, for the code that reads files for modules. Empty if no line can
    /// name the directory.
    pub fn directory_line(&self, path: &str, writable: bool) -> String {
        let grant = brine_capabilities::grant_with_directory(&self.grants, path, writable);
        grant.map(|grant| self.line(Capability::Filesystem, grant)).unwrap_or_default()
    }
}
