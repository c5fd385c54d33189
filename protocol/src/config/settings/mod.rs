//! The table of settings. A row has a setting's name, type, range, unit, default on each daemon, whether SIGHUP applies
//! it, whether every requester may read it, and one line of documentation. The rows define the defaults and checks
//! ([`Config::get`]), the report after SIGHUP, the result of `config.get`, `docs/settings.md` and the sample files in
//! `pkg/`.
//!
//! To add a setting, write one row into the file of its area and read it with `config.get(settings::NAME)`.

mod define;
#[cfg(test)]
mod generated;
mod read;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use super::{Config, ConfigError, Role, yaml};
use crate::value::{self, Value, ValueExt};

use define::*;
pub(super) use read::scalar_text;
pub use read::{Folders, Typed};

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The key in the configuration file; `a:b` is the key `b` of the mapping `a`.
    pub name: &'static str,
    /// Type, unit and range.
    pub kind: SettingKind,
    /// The setting on a master. None: masters do not have it.
    pub master: Option<Side>,
    /// The setting on a minion. None: minions do not have it.
    pub minion: Option<Side>,
    /// Whether a job, a runner or the wheel may read it without a grant.
    pub public: bool,
    /// One line of documentation.
    pub doc: &'static str,
}

/// A setting on one of the daemons.
#[derive(Debug, Clone, Copy)]
pub struct Side {
    /// The default in YAML. `null` is shown as null, empty text is not shown.
    pub default: &'static str,
    /// Whether SIGHUP applies it. Otherwise it takes effect at the next start.
    pub live: bool,
    /// Whether the daemon or a command on its host reads it. Others are accepted because Salt's configuration files
    /// have them.
    pub used: bool,
}

/// The values that a setting accepts.
#[derive(Debug, Clone, Copy)]
pub enum SettingKind {
    /// True or false.
    Boolean,
    /// True or false by Python's rules: 0, empty text, empty lists and null are false.
    Truth,
    /// A whole number. `i64::MAX` stands for no upper bound.
    Integer {
        /// What it counts. Empty if the name makes it clear.
        unit: &'static str,
        /// The smallest value.
        min: i64,
        /// The largest value.
        max: i64,
    },
    /// A TCP port.
    Port,
    /// A time; fractions are allowed.
    Time {
        /// The name of the unit.
        unit: &'static str,
        /// The unit in seconds.
        seconds: f64,
        /// The smallest value, in the unit.
        min: i64,
        /// The largest value, in the unit.
        max: i64,
    },
    /// A number of bytes, or text with a unit as in `64MiB`. Only the sandbox reads these.
    Size {
        /// The smallest value, in bytes.
        min: u64,
        /// The largest value, in bytes.
        max: u64,
    },
    /// A number of seconds, or text with a unit as in `60s`, from 10 ms to a day. Only the sandbox reads these.
    Span,
    /// Text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A file or folder below `root_dir`.
    Path,
    /// A list of texts. A single text is a list of one.
    List,
    /// A map of environments to lists of folders.
    Folders,
    /// A mapping, checked by its reader.
    Mapping,
    /// Several forms, checked by the reader.
    Any,
}

/// A row with the type of its value.
#[derive(Debug)]
pub struct Setting<T> {
    /// The row.
    pub row: Row,
    read_as: PhantomData<fn() -> T>,
}

impl<T> Clone for Setting<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Setting<T> {}

/// Related rows, which make one chapter of `docs/settings.md`.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    /// The chapter's title.
    pub title: &'static str,
    /// Its rows.
    pub rows: &'static [&'static Row],
}

/// Makes a constant of each row, and the area of all of them. A row's doc comment is its line of documentation.
macro_rules! settings {
    ($area:ident = $title:literal; $($(#[doc = $doc:literal])+ $name:ident: $type:ty = $setting:expr;)+) => {
        $($(#[doc = $doc])+ pub const $name: Setting<$type> = $setting.described(concat!($($doc),+));)+
        pub(super) const $area: Area = Area { title: $title, rows: &[$(&$name.row),+] };
    };
}

mod access;
mod api;
mod commands;
mod files;
mod jobs;
mod keys;
mod limits;
mod minion;
mod network;
mod pillar;
mod process;
mod reactor;
mod returners;
mod sandbox;
mod unused;

pub use access::*;
pub use api::*;
pub use commands::*;
pub use files::*;
pub use jobs::*;
pub use keys::*;
pub use limits::*;
pub use minion::*;
pub use network::*;
pub use pillar::*;
pub use process::*;
pub use reactor::*;
pub use returners::*;
pub use sandbox::*;
pub use unused::*;

/// Every area, in the order of `docs/settings.md`.
pub const AREAS: [Area; 15] = [
    process::AREA,
    network::AREA,
    limits::AREA,
    keys::AREA,
    access::AREA,
    api::AREA,
    jobs::AREA,
    returners::AREA,
    files::AREA,
    pillar::AREA,
    reactor::AREA,
    minion::AREA,
    sandbox::AREA,
    commands::AREA,
    unused::AREA,
];

/// Returns all rows.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    AREAS.into_iter().flat_map(|area| area.rows.iter().copied())
}

/// Returns the row of a top-level setting.
pub(super) fn row(name: &str) -> Option<&'static Row> {
    static ROWS: LazyLock<HashMap<&str, &Row>> =
        LazyLock::new(|| rows().filter(|row| row.is_top_level()).map(|row| (row.name, row)).collect());
    ROWS.get(name).copied()
}

/// Checks whether SIGHUP applies this setting on this daemon.
pub fn is_live(name: &str, role: Role) -> bool {
    row(name).and_then(|row| row.on(role)).is_some_and(|side| side.live)
}

/// Returns the defaults of a role.
pub(super) fn defaults(role: Role) -> Value {
    let mut defaults = value::empty_map();
    for row in rows() {
        let side = row.on(role).filter(|side| !side.default.is_empty() && row.is_top_level());
        if let Some(side) = side {
            defaults.insert(row.name, side.value());
        }
    }
    defaults
}

impl Row {
    /// Returns the setting's properties on a daemon.
    pub const fn on(&self, role: Role) -> Option<Side> {
        match role {
            Role::Master => self.master,
            Role::Minion => self.minion,
        }
    }

    /// Checks that it is a separate setting: not a key of a mapping, and not read together with others of the same
    /// prefix.
    pub(super) fn is_top_level(&self) -> bool {
        !self.name.contains(':') && !self.name.starts_with(RETURNER_PREFIX)
    }
}

impl Side {
    /// Returns the default as a value.
    ///
    /// # Panics
    /// Never: a test reads the default of each row.
    pub fn value(&self) -> Value {
        yaml::load(self.default).expect("a default is YAML, which a test checks")
    }
}

impl Config {
    /// Returns the value of a setting, or its default if the configuration has none, null or empty text.
    ///
    /// # Errors
    /// The value has a wrong type or is out of range, or there is no default.
    pub fn get<T: Typed>(&self, setting: Setting<T>) -> Result<T, ConfigError> {
        if let Some(value) = self.find(setting)? {
            return Ok(value);
        }
        let row = setting.row;
        let default = row.on(self.role()).map(|side| match (row.kind, side.value()) {
            (SettingKind::Path, Value::String(path)) => self.below_root(path.as_str().unwrap_or_default()).into(),
            (_, default) => default,
        });
        let read = default.and_then(|default| T::read(&default, row.kind, self.dir()));
        read.ok_or_else(|| self.wrong(row.name, row.kind.to_string()))
    }

    /// Returns the value of a setting. None if it is missing, null or empty text.
    ///
    /// # Errors
    /// The value has a wrong type or is out of range.
    pub fn find<T: Typed>(&self, setting: Setting<T>) -> Result<Option<T>, ConfigError> {
        let row = setting.row;
        let is_given = |value: &&Value| value.text() != Some("") || matches!(row.kind, SettingKind::Truth);
        let Some(value) = self.value(row.name).filter(is_given) else { return Ok(None) };
        T::read(value, row.kind, self.dir()).map(Some).ok_or_else(|| self.wrong(row.name, row.kind.to_string()))
    }

    /// Returns the value of a choice, parsed to its type, or the default as in [`Config::get`].
    ///
    /// # Errors
    /// The value is none of the words.
    pub fn get_parsed<T: std::str::FromStr>(&self, setting: Setting<String>) -> Result<T, ConfigError> {
        let row = setting.row;
        self.get(setting)?.parse().map_err(|_| self.wrong(row.name, row.kind.to_string()))
    }
}

/// Prefix of the names of returners' settings.
const RETURNER_PREFIX: &str = "returner.";
