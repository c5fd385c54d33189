//! `config`: read the minion's settings, the public ones and granted ones.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    by_default: true,
    standard: &[
        ("http", Standard::Names(&["http.headers", "http.url"])),
        ("mine", Standard::Names(&["mine_functions"])),
        (
            "postgres",
            Standard::Names(&[
                "returner.postgres.db",
                "returner.postgres.host",
                "returner.postgres.passwd",
                "returner.postgres.port",
                "returner.postgres.user",
            ]),
        ),
        ("rawfile_json", Standard::Names(&["rawfile_json.filename"])),
    ],
    wrong_name: forms::wrong_key,
    ..Declaration::new("config", "read the minion's public settings", &["brine:host/config"], Kind::Settings)
};

/// `brine:host/config`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConfigOp {
    /// Reads one setting. Returns its value, nil if it is missing or secret.
    Get {
        /// The key. `:` leads into nested values.
        key: String,
    },
    /// Returns a map of all settings that the module may read.
    Items,
}

impl Operation for ConfigOp {
    const INTERFACE: &'static str = "brine:host/config";

    fn size(&self) -> Size {
        match self {
            Self::Get { key } => Size::names(key.len()),
            Self::Items => Size::default(),
        }
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        if let Self::Get { key } = &self {
            forms::key(key, None)?;
        }
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }
}

/// Returns the grant with this setting added, for code that holds the settings. None if no configuration line can name
/// it.
pub fn grant_with_setting(granted: &Grants, key: &str) -> Option<Grant> {
    let nameable = !key.contains(['*', '?', '[']) && !key.split(':').any(str::is_empty);
    nameable.then(|| Grant::Names(granted.names(Capability::Config).with(key)))
}
