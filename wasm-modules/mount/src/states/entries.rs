//! States of the file of mounts, and swap areas.

use brine_guest::changes;
use brine_guest::path;
use brine_guest::states::{StateResult, is_dry_run};

use super::{Came, Done, known};
use crate::file::{self, FSTAB, Line};
use crate::system::Wanted;
use crate::{active, system};

/// A place without slashes at its end.
pub(super) fn place(text: &str) -> &str {
    if text == "/" { text } else { text.trim_end_matches('/') }
}

/// A device by its path, or by another of its names (`UUID`, `LABEL` …); none if it is not known.
pub(super) fn device(name: &str, by: Option<&str>) -> Result<Option<String>, String> {
    let Some(by) = by.filter(|by| !by.is_empty()) else { return Ok(Some(name.to_owned())) };
    let key = by.to_uppercase();
    if by == "device" && name.starts_with('/') || name.starts_with(&format!("{key}=")) {
        return Ok(Some(name.to_owned()));
    }
    let found = if name.starts_with('/') { active::blkid(&[name])? } else { active::blkid(&["-t", name])? };
    let [device] = &found[..] else { return Ok(None) };
    Ok(match by {
        "device" => Some(device.name.clone()),
        _ => device.field(&key).map(|value| format!("{key}={value}")),
    })
}

/// An entry is in the file.
pub(super) fn present(name: &str, line: &Line<'_>, config: Option<&str>, mounts: bool) -> Done {
    let (at, config_name) = (line.name, config.unwrap_or(FSTAB));
    let mut came = Came::new();
    if is_dry_run() {
        let word = file::set(line, config, true)?;
        (came.result, came.comment) = match word {
            "present" => (Some(true), format!("{at} entry is already in {config_name}.")),
            "new" => (None, format!("{at} entry will be written in {config_name}.")),
            _ => (None, format!("{at} entry will be updated in {config_name}.")),
        };
        if word == "new" && mounts {
            came.comment += &format!("\nWill mount {name} on {at}");
        }
        return Ok(came.into());
    }
    let word = file::set(line, config, false)?;
    match word {
        "present" => came.comment = format!("{at} entry was already in {config_name}."),
        "change" => came.comment = format!("{at} entry updated in {config_name}."),
        _ => came.comment = format!("{at} entry added in {config_name}."),
    }
    if word != "present" {
        came.changes.push(("persist", word.into()));
    }
    if word == "new" && mounts {
        let wanted = Wanted { at, device: None, makes: false, fstype: "", opts: &[], user: None };
        match system::mount(&wanted)? {
            Ok(()) => came.comment += &format!("\nMounted {name} on {at}"),
            Err(why) => {
                came.result = Some(false);
                let why = why.split_once(':').map_or(why.as_str(), |(_, why)| why);
                came.comment += &format!("\nError while mounting {why}");
            }
        }
    }
    Ok(came.into())
}

/// An entry is not in the file.
pub(super) fn absent(at: &str, device: Option<&str>, config: Option<&str>) -> Done {
    let config_name = config.unwrap_or(FSTAB);
    let mut came = Came::new();
    let is_there = known(config)?.iter().any(|(name, _)| name == at);
    if is_dry_run() {
        came.result = None;
        came.comment = match is_there {
            true => format!("{at} entry will be removed from {config_name}."),
            false => format!("{at} entry is already missing in {config_name}."),
        };
    } else if is_there {
        file::remove(at, device, config)?;
        came.changes.push(("persist", "removed".into()));
        came.comment = format!("{at} entry removed from {config_name}.");
    } else {
        came.comment = format!("{at} entry is already missing in {config_name}.");
    }
    Ok(came.into())
}

/// Removes the entry of what was unmounted.
pub(super) fn purge(came: &mut Came, name: &str, device: Option<&str>, config: Option<&str>) -> Result<(), String> {
    let entries = known(config)?;
    let Some((_, entry)) = entries.iter().find(|(known, _)| known == name) else {
        came.comment += ". fstab entry not found";
        return Ok(());
    };
    if let Some(device) = device.filter(|device| entry.0[0] != *device) {
        came.comment += &format!(". fstab entry for device {device} not found");
        return Ok(());
    }
    if is_dry_run() {
        let config = config.unwrap_or(FSTAB);
        came.result = None;
        came.comment =
            format!("Mount point {name} is unmounted but needs to be purged from {config} to be made persistent");
        return Ok(());
    }
    file::remove(name, device, config)?;
    came.comment += ". Removed target from fstab";
    came.changes.push(("persist", "purged".into()));
    Ok(())
}

/// A swap area is in use.
pub(super) fn swap(name: &str, persists: bool, config: Option<&str>) -> Done {
    let mut came = Came::new();
    let link = match name.starts_with('/') {
        true => changes::look(name, false)?.and_then(|entry| entry.target),
        false => None,
    };
    let real = match link {
        Some(target) if target.starts_with('/') => target,
        Some(target) => format!("/dev/{}", path::basename(&target)),
        None => name.to_owned(),
    };
    let mut used = system::swap(&real)?;
    let mut changes = Vec::new();
    if used.is_some() {
        came.comment = format!("Swap {name} already active");
    } else if is_dry_run() {
        came.result = None;
        came.comment = format!("Swap {name} is set to be activated");
    } else {
        system::swapon(&real, None)?;
        used = system::swap(&real)?;
        match &used {
            Some(brine_guest::Value::Dict(fields)) => {
                came.comment = format!("Swap {name} activated");
                changes.clone_from(fields);
            }
            _ => {
                came.comment = format!("Swap {name} failed to activate");
                came.result = Some(false);
            }
        }
    }
    if persists {
        let entries = known(config)?;
        if is_dry_run() {
            if !entries.iter().any(|(at, entry)| at == name || entry.0[0] == name) {
                came.result = None;
                if used.is_some() && real == name {
                    came.comment = format!("Swap {name} is set to be added to the fstab and to be activated");
                }
            }
            return Ok(came.into());
        }
        let none = entries.iter().find(|(at, _)| at == "none");
        if none.is_none_or(|(_, entry)| entry.0[0] != name || entry.0[2] == "swap") {
            let zero = || brine_guest::Value::Int(0);
            let line = Line {
                name: "none",
                device: name,
                fstype: "swap",
                opts: "defaults",
                dump: zero(),
                pass_num: zero(),
                match_on: brine_guest::Value::None,
                keeps: false,
            };
            let word = file::set(&line, config, false)?;
            if word != "present" {
                came.persisted(word);
            }
        }
    }
    let Came { result, comment, changes: more } = came;
    changes.extend(more.into_iter().map(|(name, value)| (name.into(), value)));
    Ok(StateResult::new(result, comment, brine_guest::Value::Dict(changes)))
}
