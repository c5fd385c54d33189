//! What this host has: whether systemd runs, directories, links, programs.

use std::collections::BTreeSet;

use brine_guest::host::changes::{self, Entry, Kind};
use brine_guest::host::{grains, process};

pub(crate) const SYSTEMCTL: &str = "systemctl";

/// Whether systemd is this host's init.
pub(crate) fn is_booted() -> Result<bool, String> {
    Ok(changes::look("/run/systemd/system", true, false)?.is_some())
}

/// Whether systemd is here and does not run, as in a container: Salt's `offline`.
pub(crate) fn is_offline() -> Result<bool, String> {
    Ok(!is_booted()? && process::which(SYSTEMCTL)?.is_some())
}

/// Whether this is one of the systems whose init scripts Salt runs by `service` where systemd does not run.
pub(crate) fn is_debian() -> bool {
    let os = grains::get("os", None).and_then(|os| os.value().ok());
    let os = os.as_ref().and_then(|os| os.text()).unwrap_or_default();
    matches!(os, "Debian" | "Raspbian" | "Devuan" | "NILinuxRT")
}

/// The names in a directory, sorted; none if it is not there.
pub(crate) fn names(dir: &str) -> Result<BTreeSet<String>, String> {
    Ok(entries(dir)?.into_iter().map(|entry| entry.name).collect())
}

/// The names in a directory and their kinds.
pub(crate) fn entries(dir: &str) -> Result<Vec<changes::Name>, String> {
    let mut found: Vec<changes::Name> = Vec::new();
    if changes::look(dir, true, false)?.is_none_or(|entry| entry.kind != Kind::Directory) {
        return Ok(found);
    }
    loop {
        let part = changes::list(dir, found.last().map(|entry| entry.name.as_str()))?;
        if part.is_empty() {
            return Ok(found);
        }
        found.extend(part);
    }
}

/// What is at a path, a link itself.
pub(crate) fn look(path: &str) -> Result<Option<Entry>, String> {
    changes::look(path, false, false)
}
