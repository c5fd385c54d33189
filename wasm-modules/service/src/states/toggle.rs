//! `running` and `dead`.

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run};

use super::boot::{self, Started};
use super::result::{Parts, lines};
use super::{Done, Service, delay, masking};
use crate::host;

/// What ends a state before it looks at the service; else none.
fn before(service: &Service) -> Result<Option<StateResult>, String> {
    if service.more.get("enabled").is_some() {
        return Ok(Some(StateResult::bad(format!(
            "Service {} uses non-existent option \"enabled\".  Perhaps \"enable\" option was intended?",
            service.name
        ))));
    }
    Ok(host::is_offline()?.then(|| StateResult::good("Running in OFFLINE mode. Nothing to do")))
}

/// Sets whether it starts with the host, if the state says so and it is otherwise.
fn at_boot(parts: &mut Parts, service: &Service, enable: Option<bool>, is_enabled: bool) -> Result<(), String> {
    match enable {
        Some(true) if !is_enabled => parts.update(boot::enable(service, Started::Unsaid, true)?),
        Some(false) if is_enabled => parts.update(boot::disable(service, Started::Unsaid, true)?),
        _ => {}
    }
    Ok(())
}

/// The same after the service was started or stopped.
fn after(parts: &mut Parts, service: &Service, enable: Option<bool>, runs: bool, result: bool) -> Result<(), String> {
    let started = if runs { Started::Runs } else { Started::IsDead };
    match enable {
        Some(true) => parts.update(boot::enable(service, started, result)?),
        Some(false) => parts.update(boot::disable(service, started, result)?),
        None => {}
    }
    Ok(())
}

pub(super) fn running(service: &Service, enable: Option<bool>, init_delay: Option<&Value>) -> Done {
    if let Some(result) = before(service)? {
        return Ok(result);
    }
    let name = &service.name;
    let mut parts = Parts::good();
    match service.backend.is_available(name) {
        Ok(true) => {}
        Ok(false) if is_dry_run() => {
            let comment =
                format!("Service {name} not present; if created in this state run, it would have been started");
            return Ok(Parts::new(None, comment).into());
        }
        Ok(false) => return Ok(StateResult::bad(boot::unavailable(name))),
        Err(why) => return Ok(StateResult::bad(why)),
    }
    let ran = service.status()?;
    let was_enabled = service.is_enabled()?;
    let wants_unmask = service.more.is_set("unmask");
    let unmasked = match wants_unmask {
        true => masking::unmasked(name, service.more.is_set("unmask_runtime"))?.comment,
        false => String::new(),
    };
    if ran.truthy() {
        parts.comment = lines(&[&format!("The service {name} is already running"), &unmasked]);
        at_boot(&mut parts, service, enable, was_enabled)?;
        return Ok(parts.into());
    }
    if is_dry_run() {
        let comment = lines(&[&format!("Service {name} is set to start"), &unmasked]);
        return Ok(Parts::new(None, comment).into());
    }
    match service.backend.start(name, &service.how()) {
        Ok(true) => {}
        Ok(false) => {
            parts = Parts::new(Some(false), format!("Service {name} failed to start"));
            after(&mut parts, service, enable, false, false)?;
            return Ok(parts.into());
        }
        Err(why) => return Ok(StateResult::bad(why)),
    }
    delay(init_delay);
    let runs = service.status()?;
    if was_enabled != service.is_enabled()? || ran != runs {
        parts.changes = Value::dict([(name.as_str(), runs.clone())]);
    }
    parts.comment = format!("Started service {name}");
    if !runs.truthy() {
        (parts.result, parts.comment) = (Some(false), format!("Service {name} failed to start"));
    }
    after(&mut parts, service, enable, runs.truthy(), runs.truthy())?;
    if let Some(seconds) = init_delay {
        parts.comment = format!("{}\nDelayed return for {} seconds", parts.comment, seconds.to_text());
    }
    if wants_unmask {
        parts.comment = format!("{}\n{unmasked}", parts.comment);
    }
    Ok(parts.into())
}

pub(super) fn dead(service: &Service, enable: Option<bool>, init_delay: Option<&Value>) -> Done {
    if let Some(result) = before(service)? {
        return Ok(result);
    }
    let name = &service.name;
    let mut parts = Parts::good();
    match service.backend.is_available(name) {
        Ok(true) => {}
        Ok(false) if is_dry_run() => {
            let comment =
                format!("Service {name} not present; if created in this state run, it would have been stopped");
            return Ok(Parts::new(None, comment).into());
        }
        Ok(false) => return Ok(StateResult::good(boot::unavailable(name))),
        Err(why) => return Ok(StateResult::bad(why)),
    }
    let ran = service.status()?;
    let was_enabled = service.is_enabled()?;
    if !ran.truthy() {
        parts.comment = format!("The service {name} is already dead");
        at_boot(&mut parts, service, enable, was_enabled)?;
        return Ok(parts.into());
    }
    if is_dry_run() {
        return Ok(Parts::new(None, format!("Service {name} is set to be killed")).into());
    }
    if !service.backend.stop(name, &service.how())? {
        parts = Parts::new(Some(false), format!("Service {name} failed to die"));
        after(&mut parts, service, enable, true, false)?;
        return Ok(parts.into());
    }
    delay(init_delay);
    // As in Salt, by the service alone and not by `sig`.
    let runs = service.backend.status(name, None)?;
    if was_enabled != service.is_enabled()? || ran != runs {
        parts.changes = Value::dict([(name.as_str(), runs.clone())]);
    }
    parts.comment = format!("Service {name} was killed");
    if runs.truthy() {
        (parts.result, parts.comment) = (Some(false), format!("Service {name} failed to die"));
    }
    after(&mut parts, service, enable, runs.truthy(), !runs.truthy())?;
    Ok(parts.into())
}
