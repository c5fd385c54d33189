//! Whether a service starts with the host.

use brine_guest::Value;
use brine_guest::states::{is_dry_run, no_changes};

use super::Service;
use super::result::Update;

/// What the state did before about the service itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Started {
    Runs,
    /// Nothing: it was in the desired state.
    Unsaid,
    IsDead,
}

impl Started {
    fn after(self, what: &str) -> String {
        match self {
            Self::Runs => format!("{what}, and is running"),
            Self::Unsaid => format!("{what}, and is in the desired state"),
            Self::IsDead => format!("{what}, and is dead"),
        }
    }
}

pub(super) fn unavailable(name: &str) -> String {
    format!("The named service {name} is not available")
}

/// Whether the service is there; else what says that it is not.
pub(super) fn available(service: &Service) -> Result<(), Update> {
    match service.backend.is_available(&service.name) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Update::new(Some(false), unavailable(&service.name))),
        Err(why) => Err(Update::new(Some(false), why)),
    }
}

/// Has it start with the host. `result` is the result if nothing fails here.
pub(super) fn enable(service: &Service, started: Started, result: bool) -> Result<Update, String> {
    if let Err(missing) = available(service) {
        return Ok(missing);
    }
    let name = &service.name;
    if service.is_enabled()? {
        let update = Update::new(Some(result), started.after(&format!("Service {name} is already enabled")));
        return Ok(if started == Started::Unsaid { update.with(no_changes()) } else { update });
    }
    if is_dry_run() {
        return Ok(Update::new(None, format!("Service {name} set to be enabled")));
    }
    let why = match service.backend.set_enabled(name, true, &service.how()) {
        Ok(true) => {
            let changes = match service.is_enabled()? {
                true => Value::dict([(name.as_str(), true.into())]),
                false => no_changes(),
            };
            let comment = started.after(&format!("Service {name} has been enabled"));
            return Ok(Update::new(Some(result), comment).with(changes));
        }
        Ok(false) => String::new(),
        Err(why) => format!(". Additional information follows:\n\n{why}"),
    };
    let comment = match started {
        Started::Runs => {
            format!("Failed when setting service {name} to start at boot, but the service is running{why}")
        }
        Started::Unsaid => {
            format!("Failed when setting service {name} to start at boot, but the service was already running{why}")
        }
        Started::IsDead => format!("Failed when setting service {name} to start at boot, and the service is dead{why}"),
    };
    Ok(Update::new(Some(false), comment))
}

/// Has it not start with the host. `result` is the result if nothing fails here.
pub(super) fn disable(service: &Service, started: Started, result: bool) -> Result<Update, String> {
    let name = &service.name;
    match service.backend.is_available(name) {
        Ok(true) => {}
        Ok(false) => return Ok(Update::new(Some(true), unavailable(name))),
        Err(why) => return Ok(Update::new(Some(false), why)),
    }
    if service.backend.is_disabled(name, None)? {
        let update = Update::new(Some(result), started.after(&format!("Service {name} is already disabled")));
        return Ok(if started == Started::Unsaid { update.with(no_changes()) } else { update });
    }
    if is_dry_run() {
        return Ok(Update::new(None, format!("Service {name} set to be disabled")));
    }
    if service.backend.set_enabled(name, false, &service.how())? {
        let changes = match service.backend.is_disabled(name, None)? {
            true => Value::dict([(name.as_str(), true.into())]),
            false => no_changes(),
        };
        let comment = started.after(&format!("Service {name} has been disabled"));
        return Ok(Update::new(Some(result), comment).with(changes));
    }
    let comment = match started {
        Started::Runs => format!("Failed when setting service {name} to not start at boot, and is running"),
        Started::Unsaid => {
            format!("Failed when setting service {name} to not start at boot, but the service was already running")
        }
        Started::IsDead => {
            format!("Failed when setting service {name} to not start at boot, and the service is dead")
        }
    };
    Ok(Update::new(Some(false), comment))
}
