//! Functions to write the rows of settings.

use std::marker::PhantomData;
use std::ops::RangeInclusive;

use super::{Folders, Role, Row, Setting, SettingKind, Side};
use crate::value::Value;

/// The defaults of a row on master and minion.
pub(super) type Defaults = (Option<&'static str>, Option<&'static str>);

/// No default.
pub(super) const NONE: &str = "";
/// No upper bound.
pub(super) const ANY: RangeInclusive<i64> = 0..=i64::MAX;
/// Positive integers without an upper bound.
pub(super) const POSITIVE: RangeInclusive<i64> = 1..=i64::MAX;
/// Times up to about 30 years in seconds, 11 days in milliseconds.
pub(super) const TIME: RangeInclusive<i64> = 0..=1_000_000_000;
/// Times up to about 19 years in minutes.
pub(super) const MINUTES: RangeInclusive<i64> = 0..=10_000_000;

pub(super) const fn master(default: &'static str) -> Defaults {
    (Some(default), None)
}

pub(super) const fn minion(default: &'static str) -> Defaults {
    (None, Some(default))
}

pub(super) const fn both(default: &'static str) -> Defaults {
    (Some(default), Some(default))
}

pub(super) const fn each(master: &'static str, minion: &'static str) -> Defaults {
    (Some(master), Some(minion))
}

pub(super) const fn setting<T>(name: &'static str, defaults: Defaults, kind: SettingKind) -> Setting<T> {
    const fn side(default: Option<&'static str>) -> Option<Side> {
        match default {
            Some(default) => Some(Side { default, live: false, used: true }),
            None => None,
        }
    }
    let row = Row { name, kind, master: side(defaults.0), minion: side(defaults.1), public: true, doc: "" };
    Setting { row, read_as: PhantomData }
}

pub(super) const fn flag(name: &'static str, defaults: Defaults) -> Setting<bool> {
    setting(name, defaults, SettingKind::Boolean)
}

pub(super) const fn truth(name: &'static str, defaults: Defaults) -> Setting<bool> {
    setting(name, defaults, SettingKind::Truth)
}

pub(super) const fn integer<T>(
    name: &'static str,
    defaults: Defaults,
    unit: &'static str,
    range: RangeInclusive<i64>,
) -> Setting<T> {
    setting(name, defaults, SettingKind::Integer { unit, min: *range.start(), max: *range.end() })
}

pub(super) const fn port(name: &'static str, defaults: Defaults) -> Setting<u16> {
    setting(name, defaults, SettingKind::Port)
}

pub(super) const fn seconds<T>(name: &'static str, defaults: Defaults, range: RangeInclusive<i64>) -> Setting<T> {
    time(name, defaults, "seconds", 1.0, range)
}

pub(super) const fn milliseconds<T>(name: &'static str, defaults: Defaults, range: RangeInclusive<i64>) -> Setting<T> {
    time(name, defaults, "milliseconds", 0.001, range)
}

pub(super) const fn minutes<T>(name: &'static str, defaults: Defaults, range: RangeInclusive<i64>) -> Setting<T> {
    time(name, defaults, "minutes", 60.0, range)
}

const fn time<T>(
    name: &'static str,
    defaults: Defaults,
    unit: &'static str,
    seconds: f64,
    range: RangeInclusive<i64>,
) -> Setting<T> {
    setting(name, defaults, SettingKind::Time { unit, seconds, min: *range.start(), max: *range.end() })
}

pub(super) const fn text(name: &'static str, defaults: Defaults) -> Setting<String> {
    setting(name, defaults, SettingKind::Text)
}

pub(super) const fn choice(name: &'static str, defaults: Defaults, words: &'static [&'static str]) -> Setting<String> {
    setting(name, defaults, SettingKind::Choice(words))
}

pub(super) const fn path<T>(name: &'static str, defaults: Defaults) -> Setting<T> {
    setting(name, defaults, SettingKind::Path)
}

pub(super) const fn list(name: &'static str, defaults: Defaults) -> Setting<Vec<String>> {
    setting(name, defaults, SettingKind::List)
}

pub(super) const fn folders(name: &'static str, defaults: Defaults) -> Setting<Folders> {
    setting(name, defaults, SettingKind::Folders)
}

pub(super) const fn mapping(name: &'static str, defaults: Defaults) -> Setting<Value> {
    setting(name, defaults, SettingKind::Mapping)
}

pub(super) const fn any(name: &'static str, defaults: Defaults) -> Setting<Value> {
    setting(name, defaults, SettingKind::Any)
}

impl<T> Setting<T> {
    pub(super) const fn described(mut self, doc: &'static str) -> Self {
        self.row.doc = doc;
        self
    }

    /// Marks the setting as applied by SIGHUP.
    pub(super) const fn live(self) -> Self {
        self.live_on(Role::Master).live_on(Role::Minion)
    }

    /// Marks the setting as applied by SIGHUP on this daemon.
    pub(super) const fn live_on(mut self, role: Role) -> Self {
        match (role, &mut self.row.master, &mut self.row.minion) {
            (Role::Master, Some(side), _) | (Role::Minion, _, Some(side)) => side.live = true,
            _ => {}
        }
        self
    }

    /// Marks the setting as possibly secret.
    pub(super) const fn private(mut self) -> Self {
        self.row.public = false;
        self
    }

    /// Marks the setting as accepted without effect on this daemon.
    pub(super) const fn unused_on(mut self, role: Role) -> Self {
        match (role, &mut self.row.master, &mut self.row.minion) {
            (Role::Master, Some(side), _) | (Role::Minion, _, Some(side)) => side.used = false,
            _ => {}
        }
        self
    }

    /// Marks the setting as accepted without effect.
    pub(super) const fn unused(self) -> Self {
        self.unused_on(Role::Master).unused_on(Role::Minion)
    }
}
