//! The locale of the system: by systemd's `localectl`, or in a file of the distribution.

use brine_guest::changes;
use brine_guest::program::{self, Program};

use crate::{Host, checked, edit};

const LOCALE_CONF: &str = "/etc/locale.conf";

/// The file with the locale, and the name of the variable.
fn file(host: &Host) -> Option<(&'static str, &'static str)> {
    Some(match host.text("os_family") {
        "Suse" => ("/etc/sysconfig/language", "RC_LANG"),
        "RedHat" => ("/etc/sysconfig/i18n", "LANG"),
        "Debian" => ("/etc/default/locale", "LANG"),
        _ => return None,
    })
}

/// Suse's packages write over what `localectl` set.
fn is_old_suse(host: &Host) -> bool {
    host.is_family("Suse") && host.release() == 12
}

/// The system's locale; empty if none is set.
pub(crate) fn get(host: &Host) -> Result<String, String> {
    if host.has_systemd() && !is_old_suse(host) {
        return Ok(variables()?
            .into_iter()
            .find(|(name, _)| name == "LANG")
            .map(|(_, value)| value)
            .unwrap_or_default());
    }
    let Some((path, variable)) = file(host) else {
        return Err(format!("Error: \"{}\" is unsupported!", host.text("oscodename")));
    };
    Ok(assigned(&changes::read_text(path)?.unwrap_or_default(), variable))
}

/// The first value of a variable in a file; empty if there is none.
fn assigned(text: &str, variable: &str) -> String {
    let value = |line: &str| Some(line.strip_prefix(variable)?.strip_prefix('=')?.split('=').next()?.replace('"', ""));
    text.lines().find_map(value).map(|value| value.trim_end().to_owned()).unwrap_or_default()
}

/// The variables of the system's locale, by `localectl`.
fn variables() -> Result<Vec<(String, String)>, String> {
    if !program::exists("localectl")? {
        return Err("Unable to find \"localectl\"".into());
    }
    let said = Program::new(["localectl", "status"]).run()?;
    if said.stderr.contains("Failed to connect to bus: No such file or directory") {
        return Err("Command \"localectl\" is in a degraded state.".into());
    }
    system_locale(&said.stdout).ok_or_else(|| "Unable to parse result of \"localectl\"".into())
}

/// What `localectl status` says of the system's locale; none if it says nothing at all.
fn system_locale(said: &str) -> Option<Vec<(String, String)>> {
    let (mut key, mut found, mut any) = (String::new(), Vec::new(), false);
    for line in said.trim().lines() {
        let value = match line.split_once(": ") {
            Some((name, value)) => {
                key = name.trim().to_lowercase();
                value
            }
            None => line.trim(),
        };
        any |= !key.is_empty() && !value.is_empty();
        if let Some((name, value)) = value.split_once('=').filter(|_| key == "system locale") {
            found.push((name.to_owned(), value.to_owned()));
        }
    }
    any.then_some(found)
}

/// Sets the system's locale.
pub(crate) fn set(host: &Host, locale: &str) -> Result<(), String> {
    let locale = checked(locale)?;
    let is_new_debian = host.is_family("Debian") && host.release() >= 13;
    if host.has_systemd() && !is_old_suse(host) && !is_new_debian {
        let mut variables = variables()?;
        match variables.iter_mut().find(|(name, _)| name == "LANG") {
            Some((_, value)) => *value = locale.to_owned(),
            None => variables.push(("LANG".into(), locale.to_owned())),
        }
        let variables = variables.iter().map(|(name, value)| format!("{name}={value}"));
        if Program::new(["localectl", "set-locale"]).args(variables).run()?.succeeded() {
            return Ok(());
        }
        // In a container without its service; `localectl` reads this file.
        edit::make(LOCALE_CONF)?;
        return edit::replace(LOCALE_CONF, "^LANG=.*", &format!("LANG={locale}"));
    }
    let (path, variable) = file(host).ok_or("Error: Unsupported platform!")?;
    if host.is_family("Debian") {
        if !program::exists("update-locale")? {
            return Err("Cannot set locale: \"update-locale\" was not found.".into());
        }
        // It makes the file.
        Program::new(["update-locale"]).run()?;
    } else {
        edit::make(path)?;
    }
    edit::replace(path, &format!("^{variable}=.*"), &format!("{variable}=\"{locale}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_locale_is_found() {
        assert_eq!(assigned("#LANG=x\nLANG=\"de_DE.UTF-8\"\n", "LANG"), "de_DE.UTF-8");
        assert_eq!(assigned("LANGUAGE=x\n", "LANG"), "");
        let said = "   System Locale: LANG=de_DE.UTF-8\n                  LC_TIME=C\n       VC Keymap: n/a\n      X11 Layout: a=b\n";
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(system_locale(said), Some(vec![variable("LANG", "de_DE.UTF-8"), variable("LC_TIME", "C")]));
        assert_eq!(system_locale("System Locale: n/a\n"), Some(vec![]));
        assert_eq!(system_locale("\n"), None);
    }
}
