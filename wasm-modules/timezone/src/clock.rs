//! What the hardware clock shows: UTC or the local time.

use brine_guest::changes;
use brine_guest::program::{self, Program};

use crate::{assign, family, timedatectl, unparsed, zone};

const ADJUSTED: &str = "/etc/adjtime";
/// Debian's old place for it.
const OF_INIT: &str = "/etc/default/rcS";
const CLOCK: &str = "/etc/sysconfig/clock";

/// What the clock shows; none where there is no clock.
pub(crate) fn get() -> Result<Option<String>, String> {
    if let Some(said) = timedatectl()? {
        let shown = said.lines().find(|line| line.to_lowercase().contains("rtc in local tz"));
        let shown = shown.ok_or_else(|| unparsed(&said))?;
        let is_local = shown.rsplit(':').next().is_some_and(|value| value.trim().eq_ignore_ascii_case("yes"));
        return Ok(Some(if is_local { "localtime" } else { "UTC" }.into()));
    }
    if family()? == "Debian"
        && let Some(is_utc) = changes::read_text(OF_INIT)?.as_deref().and_then(is_utc)
    {
        return Ok(Some(if is_utc { "UTC" } else { "localtime" }.into()));
    }
    adjusted()
}

/// Whether Debian's old file says that the clock shows UTC; none if it does not say.
fn is_utc(text: &str) -> Option<bool> {
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let value = lines.find(|line| line.contains("UTC="))?.rsplit('=').next()?;
    Some(value.eq_ignore_ascii_case("yes"))
}

/// The last line of the file that `hwclock` keeps.
fn adjusted() -> Result<Option<String>, String> {
    match changes::read_text(ADJUSTED)? {
        Some(text) => Ok(Some(text.lines().last().unwrap_or_default().trim_end().to_owned())),
        None if changes::look("/dev/rtc", false)?.is_some() => {
            Err(format!("Unable to get hwclock timezone from {ADJUSTED}"))
        }
        None => Ok(None),
    }
}

/// Says what the clock shows, and returns whether that was done.
pub(crate) fn set(clock: &str) -> Result<bool, String> {
    if program::exists("timedatectl")? {
        let local = if clock == "localtime" { "true" } else { "false" };
        return Ok(Program::new(["timedatectl", "set-local-rtc", local]).run()?.code == 0);
    }
    let zone = zone::link_again()?;
    match (family()?.as_str(), clock) {
        ("RedHat", _) => assign(CLOCK, "ZONE", &format!("\"{zone}\""))?,
        ("Suse", _) => assign(CLOCK, "TIMEZONE", &format!("\"{zone}\""))?,
        ("Debian", "UTC") => assign(OF_INIT, "UTC", "yes")?,
        ("Debian", "localtime") => assign(OF_INIT, "UTC", "no")?,
        ("Gentoo" | "Slackware", "UTC" | "localtime") => {}
        ("Gentoo" | "Slackware", _) => return Err("Only 'UTC' and 'localtime' are allowed".into()),
        _ => {}
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::is_utc;

    #[test]
    fn debians_old_file_is_read() {
        assert_eq!(is_utc("#UTC=no\nUTC=yes\n"), Some(true));
        assert_eq!(is_utc("UTC=no\n"), Some(false));
        assert_eq!(is_utc("FSCKFIX=no\n"), None);
    }
}
