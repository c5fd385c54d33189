//! `masked` and `unmasked`.

use brine_guest::Value;
use brine_guest::states::is_dry_run;

use super::result::Parts;
use crate::backend::{Backend, checked};
use crate::{host, units};

/// Whether units can be masked here: init scripts alone cannot.
fn has_units() -> Result<bool, String> {
    Ok(Backend::of_host()? == Backend::Systemd || host::is_offline()?)
}

fn unable() -> Parts {
    Parts::new(Some(false), "Service masking not available on this minion")
}

fn changes(kind: &str, old: bool) -> Value {
    Value::dict([(kind, Value::dict([("old", old.into()), ("new", (!old).into())]))])
}

pub(super) fn masked(name: &str, runtime: bool) -> Result<Parts, String> {
    set(name, runtime, true, if runtime { "runtime masked" } else { "masked" })
}

pub(super) fn unmasked(name: &str, runtime: bool) -> Result<Parts, String> {
    set(name, runtime, false, if runtime { "runtime unmasked" } else { "unmasked" })
}

fn set(name: &str, runtime: bool, to: bool, done: &str) -> Result<Parts, String> {
    if !has_units()? {
        return Ok(unable());
    }
    let tried = checked(name).and_then(|name| attempt(name, runtime, to, done));
    Ok(tried.unwrap_or_else(|why| Parts::new(Some(false), why)))
}

fn attempt(name: &str, runtime: bool, to: bool, done: &str) -> Result<Parts, String> {
    let kind = if runtime { "runtime masked" } else { "masked" };
    if units::is_masked(name, runtime, None)? == to {
        let verb = if to { "is" } else { "was" };
        return Ok(Parts::new(Some(true), format!("Service {name} {verb} already {done}")));
    }
    if is_dry_run() {
        let parts = Parts::new(None, format!("Service {name} would be {done}"));
        return Ok(Parts { changes: changes(kind, !to), ..parts });
    }
    match to {
        true => units::mask(name, runtime, None)?,
        false => units::unmask(name, runtime, None)?,
    };
    Ok(match units::is_masked(name, runtime, None)? == to {
        true => Parts { changes: changes(kind, !to), ..Parts::new(Some(true), format!("Service {name} was {done}")) },
        // As in Salt, this is no failure of the state.
        false => Parts::new(Some(true), format!("Failed to {} service {name}", if to { "mask" } else { "unmask" })),
    })
}
