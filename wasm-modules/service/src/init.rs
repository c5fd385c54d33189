//! Services of init scripts, on a Debian without a running systemd, as Salt's debian_service has them.

use std::collections::BTreeSet;

use brine_guest::fnmatch;
use brine_guest::program::Program;

use crate::host;

const SCRIPTS: &str = "/etc/init.d";

/// Runs a service's script, as `service NAME ACTION`. Whether it succeeded.
pub(crate) fn script(name: &str, action: &str) -> Result<bool, String> {
    Ok(Program::new(["service", name, action]).run()?.succeeded())
}

pub(crate) fn status(name: &str) -> Result<bool, String> {
    script(name, "status")
}

/// `insserv NAME && update-rc.d NAME enable`.
pub(crate) fn enable(name: &str) -> Result<bool, String> {
    if !brine_guest::program::exists("insserv")? || !Program::new(["insserv", name]).run()?.succeeded() {
        return Ok(false);
    }
    update(name, "enable")
}

pub(crate) fn disable(name: &str) -> Result<bool, String> {
    update(name, "disable")
}

fn update(name: &str, action: &str) -> Result<bool, String> {
    Ok(Program::new(["update-rc.d", name, action]).run()?.succeeded())
}

/// Services whose scripts start with this runlevel.
pub(crate) fn enabled() -> Result<BTreeSet<String>, String> {
    let runlevel = runlevel()?;
    let mut enabled = BTreeSet::new();
    for level in ["S", &runlevel] {
        let links = host::names(&format!("/etc/rc{level}.d"))?;
        enabled.extend(links.iter().filter(|link| link.starts_with('S')).map(|link| service_of(link)));
    }
    Ok(enabled)
}

pub(crate) fn all() -> Result<BTreeSet<String>, String> {
    let mut all = scripts()?;
    all.extend(enabled()?);
    Ok(all)
}

pub(crate) fn disabled() -> Result<BTreeSet<String>, String> {
    let enabled = enabled()?;
    Ok(scripts()?.into_iter().filter(|name| !enabled.contains(name)).collect())
}

fn scripts() -> Result<BTreeSet<String>, String> {
    let names = host::names(SCRIPTS)?;
    Ok(names.into_iter().filter(|name| name != "README" && fnmatch("[!.]*", name)).collect())
}

/// The runlevel as the program says it: `N 2`.
fn runlevel() -> Result<String, String> {
    if !brine_guest::program::exists("runlevel")? {
        return Ok("2".into());
    }
    let said = Program::new(["runlevel"]).merged().run()?.stdout;
    Ok(level_of(&said))
}

fn level_of(said: &str) -> String {
    let level = said.split_whitespace().nth(1).filter(|_| !said.contains("unknown"));
    // It becomes a part of a path.
    let level = level.filter(|level| level.len() == 1 && level.bytes().all(|c| c.is_ascii_alphanumeric()));
    level.unwrap_or("2").to_owned()
}

/// The service of a link such as `S01cron`: in Salt, what comes after the last digits of its name.
fn service_of(link: &str) -> String {
    link.rsplit(|c: char| c.is_ascii_digit()).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_name_services_as_in_salt() {
        // (link, re.split("\d+", link)[-1])
        for (link, expect) in [
            ("S01cron", "cron"),
            ("S01hwclock.sh", "hwclock.sh"),
            ("S01x11-common", "-common"),
            ("Sx", "Sx"),
            ("S01a2", ""),
        ] {
            assert_eq!(service_of(link), expect);
        }
    }

    #[test]
    fn an_unknown_runlevel_is_2() {
        for (said, expect) in [("N 5", "5"), ("3 2", "2"), ("unknown", "2"), ("", "2"), ("N ../5", "2"), ("N S", "S")] {
            assert_eq!(level_of(said), expect, "{said}");
        }
    }
}
