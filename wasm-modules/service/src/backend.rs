//! What manages the services of this host.

use std::collections::BTreeSet;

use brine_guest::{Value, fnmatch};

use crate::units::How;
use crate::{host, init, processes, units};

/// systemd or init scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Systemd,
    Init,
}

/// A name that is an argument of programs and a part of paths: it is no option, and no path.
pub(crate) fn checked(name: &str) -> Result<&str, String> {
    let is_odd = name.is_empty() || name.starts_with(['-', '.']) || name.contains(|c: char| c == '/' || c.is_control());
    match is_odd {
        true => Err(format!("{name:?} is no name of a service")),
        false => Ok(name),
    }
}

impl Backend {
    pub(crate) fn of_host() -> Result<Self, String> {
        Ok(match !host::is_booted()? && host::is_debian() {
            true => Self::Init,
            false => Self::Systemd,
        })
    }

    pub(crate) fn is_available(self, name: &str) -> Result<bool, String> {
        match self {
            Self::Init => Ok(init::all()?.contains(name)),
            Self::Systemd => units::is_available(checked(name)?),
        }
    }

    pub(crate) fn all(self, root: Option<&str>) -> Result<BTreeSet<String>, String> {
        match self {
            Self::Init => init::all(),
            Self::Systemd => units::all(root),
        }
    }

    pub(crate) fn start(self, name: &str, how: &How) -> Result<bool, String> {
        self.act("start", name, how)
    }

    pub(crate) fn stop(self, name: &str, how: &How) -> Result<bool, String> {
        match self {
            Self::Init => init::script(checked(name)?, "stop"),
            Self::Systemd => units::attempt("stop", checked(name)?, how),
        }
    }

    /// `start`, `restart`, `reload` or `force-reload`.
    pub(crate) fn act(self, action: &str, name: &str, how: &How) -> Result<bool, String> {
        match self {
            Self::Init => init::script(checked(name)?, action),
            Self::Systemd => units::act(action, checked(name)?, how),
        }
    }

    /// Whether it runs; of a pattern, a dict of all that match. With `sig`, whether such a process is there, which only
    /// the tools of init scripts look for.
    pub(crate) fn status(self, name: &str, sig: Option<&Value>) -> Result<Value, String> {
        if let Some(sig) = sig.filter(|sig| sig.truthy() && self == Self::Init) {
            return Ok(processes::has(&sig.to_text())?.into());
        }
        let of = |name: &str| match self {
            Self::Init => init::status(checked(name)?),
            Self::Systemd => units::is_active(checked(name)?),
        };
        if !is_pattern(name) {
            return Ok(of(name)?.into());
        }
        let mut found = Vec::new();
        for service in self.all(None)?.iter().filter(|service| fnmatch(name, service)) {
            found.push((service.as_str().into(), of(service)?.into()));
        }
        Ok(Value::Dict(found))
    }

    pub(crate) fn set_enabled(self, name: &str, enabled: bool, how: &How) -> Result<bool, String> {
        match self {
            Self::Init if enabled => init::enable(checked(name)?),
            Self::Init => init::disable(checked(name)?),
            Self::Systemd => units::set_enabled(checked(name)?, enabled, how),
        }
    }

    pub(crate) fn is_enabled(self, name: &str, root: Option<&str>) -> Result<bool, String> {
        match self {
            Self::Init => Ok(init::enabled()?.contains(name)),
            Self::Systemd => units::is_enabled(checked(name)?, root),
        }
    }

    pub(crate) fn is_disabled(self, name: &str, root: Option<&str>) -> Result<bool, String> {
        match self {
            Self::Init => Ok(init::disabled()?.contains(name)),
            Self::Systemd => Ok(!units::is_enabled(checked(name)?, root)?),
        }
    }
}

/// Salt's `\*|\?|\[.+\]`.
fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?'])
        || name.find('[').is_some_and(|at| name[at + 1..].char_indices().any(|(n, c)| c == ']' && n > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_neither_options_nor_paths() {
        for name in ["cron", "x@1", "systemd-journald.service", "hwclock.sh", "a b"] {
            assert_eq!(checked(name), Ok(name));
        }
        for name in ["", "-H", "--root=/x", "../../tmp/x", "/tmp/x", ".", "a\nb"] {
            assert!(checked(name).is_err(), "{name}");
        }
    }

    #[test]
    fn patterns_are_salts() {
        for (name, expect) in
            [("ssh*", true), ("ss?", true), ("s[sh]", true), ("s[]", false), ("s[", false), ("ssh", false)]
        {
            assert_eq!(is_pattern(name), expect, "{name}");
        }
    }
}
