//! What a watch that fired does: it restarts, reloads, starts or stops.

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run};

use super::result::Parts;
use super::{Done, Service, delay};
use crate::units::How;

/// What the state says of its watch.
pub(super) struct Asked {
    /// The state that watches.
    pub sfun: String,
    pub reload: bool,
    pub force: bool,
    pub init_delay: Option<Value>,
}

pub(super) fn fired(service: &Service, asked: &Asked) -> Done {
    let name = &service.name;
    let (verb, past, action) = match asked.sfun.as_str() {
        "dead" => match service.status()?.truthy() {
            true => ("stop", "stopped", "stop"),
            false => return Ok(StateResult::good("Service is already stopped")),
        },
        "running" => match (service.status()?.truthy(), asked.reload, asked.force) {
            (false, ..) => ("start", "started", "start"),
            (true, true, true) => ("forcefully reload", "forcefully reloaded", "force-reload"),
            (true, true, false) => ("reload", "reloaded", "reload"),
            (true, false, _) => ("restart", "restarted", "restart"),
        },
        other => return Ok(StateResult::bad(format!("Unable to trigger watch for service.{other}"))),
    };
    if is_dry_run() {
        return Ok(Parts::new(None, format!("Service is set to be {past}")).into());
    }
    let tried = match action {
        "stop" => service.backend.stop(name, &service.how()),
        "start" => {
            // What is left of it goes first.
            service.backend.stop(name, &How::default())?;
            service.backend.start(name, &service.how())
        }
        action => service.backend.act(action, name, &service.how()),
    };
    let done = match tried {
        Ok(done) => done,
        Err(why) => return Ok(StateResult::bad(why)),
    };
    delay(asked.init_delay.as_ref());
    let comment = match done {
        true => format!("Service {past}"),
        false => format!("Failed to {verb} the service"),
    };
    let changes = Value::dict([(name.as_str(), done.into())]);
    Ok(StateResult::new(Some(done), comment, changes))
}
