//! The module `timezone`: the time zone of this host. The functions, the state and their documentation are in
//! `wit/world.wit`.
//!
//! - [`zone`]: the time zone · [`clock`]: the hardware clock

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "timezone",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod clock;
mod zone;

use brine_guest::Value;
use brine_guest::changes;
use brine_guest::host::grains;
use brine_guest::program::{self, Program};
use brine_guest::states::{StateResult, is_dry_run, no_changes};

struct Module;

impl Guest for Module {
    fn get_zone() -> Result<String, String> {
        zone::get()
    }

    fn get_zonecode() -> Result<String, String> {
        date("+%Z")
    }

    fn get_offset() -> Result<String, String> {
        date("+%z")
    }

    fn set_zone(timezone: String) -> Result<Data, String> {
        // A sentence where there is no such zone: as in Salt.
        Ok(zone::set(&timezone)?.map_or_else(|why| why.into(), |()| true.into()))
    }

    fn zone_compare(timezone: String) -> Result<bool, String> {
        zone::is(&timezone)
    }

    fn get_hwclock() -> Result<Data, String> {
        clock::get().map(Data::from)
    }

    fn set_hwclock(clock: String) -> Result<bool, String> {
        clock::set(&clock)
    }
}

impl exports::states::Guest for Module {
    fn system(name: String, utc: Option<Data>) -> Result<StateResult, String> {
        let wanted = utc.map_or(Ok(Value::Bool(true)), |utc| utc.value())?;
        let utc = wanted.truthy();
        let is_zone = match zone::is(&name) {
            Ok(is_zone) => is_zone,
            Err(why) => {
                let comment = format!("Unable to compare desired timezone '{name}' to system timezone: {why}");
                return Ok(StateResult::bad(comment));
            }
        };
        let is_utc = clock::get()?.as_deref() != Some("localtime");
        let sets_clock = utc && !is_utc;
        if is_zone && !sets_clock {
            let already = if utc { format!(", UTC already set to {name}") } else { String::new() };
            return Ok(StateResult::good(format!("Timezone {name} already set{already}")));
        }
        let told = wanted.to_text();
        let mut said = Vec::new();
        if is_dry_run() {
            said.extend((!is_zone).then(|| format!("Timezone {name} needs to be set")));
            said.extend(sets_clock.then(|| format!("UTC needs to be set to {told}")));
            return Ok(StateResult::would(said.join(", "), no_changes()));
        }
        let (mut changes, mut done) = (Vec::new(), true);
        if !is_zone {
            done = match zone::set(&name)? {
                Ok(()) => {
                    changes.push(("timezone", name.as_str().into()));
                    said.push(format!("Set timezone {name}"));
                    true
                }
                Err(why) => {
                    said.push(format!("Failed to set timezone: {why}"));
                    false
                }
            };
        }
        if sets_clock {
            done = clock::set("UTC")?;
            if done {
                changes.push(("utc", wanted));
            }
            said.push(format!("{} UTC to {told}", if done { "Set" } else { "Failed to set" }));
        }
        Ok(StateResult::new(Some(done), said.join(", "), Value::dict(changes)))
    }
}

fn date(format: &str) -> Result<String, String> {
    Ok(Program::new(["date", format]).merged().run()?.stdout)
}

/// What systemd says of the time; none on a host without its program.
fn timedatectl() -> Result<Option<String>, String> {
    if !program::exists("timedatectl")? {
        return Ok(None);
    }
    let said = Program::new(["timedatectl"]).run()?;
    match said.code {
        0 => Ok(Some(said.stdout)),
        _ => Err(format!("timedatectl failed: {}", said.stderr)),
    }
}

fn unparsed(said: &str) -> String {
    format!("Failed to parse timedatectl output: {said}\nPlease file an issue with SaltStack")
}

/// The family of this host's distribution.
fn family() -> Result<String, String> {
    Ok(grains::items().value()?.get("os_family").map(Value::to_text).unwrap_or_default())
}

/// Gives each line of a file that begins with `NAME=` another value; the file before it stays as `PATH.bak`. Nothing happens
/// where there is no such file.
fn assign(path: &str, name: &str, value: &str) -> Result<(), String> {
    let Some(old) = changes::read_text(path)? else { return Ok(()) };
    let line = |line: &str| match line.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')) {
        true => format!("{name}={value}{}", if line.ends_with('\n') { "\n" } else { "" }),
        false => line.to_owned(),
    };
    let new: String = old.split_inclusive('\n').map(line).collect();
    if new == old { Ok(()) } else { changes::edit(path, &old, &new) }
}

#[cfg(target_family = "wasm")]
export!(Module);
