//! The time zone: by systemd's `timedatectl`, or in files.

use brine_guest::changes::{self, Kind, Owner, Put};
use brine_guest::program::{self, Program};

use crate::{assign, family, timedatectl, unparsed};

/// The zone of the host: a link into [`ZONES`], or a copy.
const LOCAL: &str = "/etc/localtime";
const ZONES: &str = "/usr/share/zoneinfo";
/// The zone's name, on Debian.
const NAME: &str = "/etc/timezone";
/// The zone's name, on hosts with `/etc/sysconfig`.
const CLOCK: &str = "/etc/sysconfig/clock";

/// The time zone's name.
pub(crate) fn get() -> Result<String, String> {
    if let Some(said) = timedatectl()? {
        return stated(&said).ok_or_else(|| unparsed(&said));
    }
    let family = family()?;
    match family.as_str() {
        "RedHat" | "Suse" => {
            let text = changes::read_text(CLOCK)?.unwrap_or_default();
            configured(&text).ok_or_else(|| format!("Unable to get timezone from {CLOCK}"))
        }
        "Debian" | "Gentoo" => match changes::read_text(NAME)? {
            Some(text) => Ok(text.trim().to_owned()),
            None => Err(format!("Problem reading timezone file {NAME}: No such file or directory")),
        },
        "Slackware" => {
            let entry = changes::look(LOCAL, false)?.ok_or_else(|| format!("{LOCAL} does not exist"))?;
            let target = entry.target.as_deref().and_then(|target| target.rsplit_once("zoneinfo/"));
            target.map(|(_, zone)| zone.to_owned()).ok_or_else(|| "Unable to determine timezone".into())
        }
        _ => Err("Unable to get timezone".into()),
    }
}

/// The zone in what `timedatectl` says: `Time zone: Europe/Berlin (CEST, +0200)`.
fn stated(said: &str) -> Option<String> {
    let zone = |line: &str| {
        let line = line.trim();
        let rest = line.strip_prefix("Time zone:").or_else(|| line.strip_prefix("Timezone:"))?;
        rest.split_whitespace().next().map(str::to_owned)
    };
    said.lines().find_map(zone)
}

/// The zone in a file of `/etc/sysconfig`.
fn configured(text: &str) -> Option<String> {
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#') && line.contains("ZONE"));
    let zone = lines.find_map(|line| line.rsplit_once('=').map(|(_, zone)| zone))?;
    let zone = zone.trim_matches(['\'', '"']);
    Some(if zone.is_empty() { "UTC".into() } else { zone.to_owned() })
}

/// The file of a zone; none for what is no zone's name.
fn file(zone: &str) -> Option<String> {
    let is_name = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
    };
    zone.split('/').all(is_name).then(|| format!("{ZONES}/{zone}"))
}

/// Whether this is the host's zone: by its name, or where that is not known, by what the files have in them.
pub(crate) fn is(zone: &str) -> Result<bool, String> {
    if let Ok(name) = get() {
        return Ok(name == zone);
    }
    let missing = || format!("Can't find a local timezone \"{zone}\"");
    let unread = || format!("Failed to read {LOCAL} to determine current timezone: No such file or directory");
    let local = changes::look_with_hash(&changes::realpath(LOCAL)?, false)?.ok_or_else(unread)?;
    let zone = changes::look_with_hash(&file(zone).ok_or_else(missing)?, true)?.ok_or_else(missing)?;
    let are_files = local.kind == Kind::Regular && zone.kind == Kind::Regular;
    Ok(are_files && local.sha256 == zone.sha256)
}

/// Makes a zone the host's. The inner error says that there is no such zone.
pub(crate) fn set(zone: &str) -> Result<Result<(), String>, String> {
    let missing = || format!("Zone does not exist: {ZONES}/{zone}");
    let Some(file) = file(zone) else { return Ok(Err(missing())) };
    if program::exists("timedatectl")? {
        // What it cannot do is done below.
        Program::new(["timedatectl", "set-timezone", zone]).run()?;
    }
    if changes::look(&file, true)?.is_none() {
        return Ok(Err(missing()));
    }
    link(&file)?;
    match family()?.as_str() {
        "RedHat" => assign(CLOCK, "ZONE", &format!("\"{zone}\""))?,
        "Suse" => assign(CLOCK, "TIMEZONE", &format!("\"{zone}\""))?,
        "Debian" | "Gentoo" => {
            Put::new(NAME).text(&format!("{zone}\n"))?;
        }
        _ => {}
    }
    Ok(Ok(()))
}

/// Links to the host's zone again.
pub(crate) fn link_again() -> Result<String, String> {
    let zone = get()?;
    let file = file(&zone).unwrap_or_default();
    if file.is_empty() || changes::look(&file, true)?.is_none() {
        return Err(format!("Zone '{ZONES}/{zone}' does not exist"));
    }
    link(&file)?;
    Ok(zone)
}

fn link(file: &str) -> Result<(), String> {
    changes::symlink(LOCAL, file, &Owner { user: None, group: None }, true).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_read_and_checked() {
        let said = "               Local time: Tue 2024-05-07 10:00:00 CEST\n                Time zone: Europe/Berlin (CEST, +0200)\n";
        assert_eq!(stated(said).as_deref(), Some("Europe/Berlin"));
        assert_eq!(stated("      Timezone: UTC (UTC, +0000)").as_deref(), Some("UTC"));
        assert_eq!(configured("# ZONE=x\nUTC=true\nZONE=\"America/Denver\"\n").as_deref(), Some("America/Denver"));
        assert_eq!(configured("TIMEZONE=\"\"\n").as_deref(), Some("UTC"));
        assert_eq!(file("Etc/GMT+3").as_deref(), Some("/usr/share/zoneinfo/Etc/GMT+3"));
        for bad in ["", "/etc/shadow", "../../../etc/shadow", "a//b", "-x", "a b", "Etc/.."] {
            assert_eq!(file(bad), None, "{bad}");
        }
    }
}
