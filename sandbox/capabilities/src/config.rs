//! `config`: the minion's settings, the public ones and those that are named.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    by_default: true,
    standard: &[("mine", Standard::Names(&["mine_functions"]))],
    wrong_name: forms::wrong_key,
    ..Declaration::new("config", "read the minion's public settings", &["brine:host/config"], Kind::Settings)
};

/// `brine:host/config`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConfigOp {
    /// One setting; answered by its value, nil where there is none or it is secret.
    Get {
        /// May lead into nested values by `:`.
        key: String,
    },
}

impl Operation for ConfigOp {
    const INTERFACE: &'static str = "brine:host/config";

    fn size(&self) -> Size {
        let Self::Get { key } = self;
        Size::names(key.len())
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        let Self::Get { key } = &self;
        forms::key(key, None)?;
        Ok(self)
    }
}

/// The grant that has this setting too, for who holds the settings. None where no line of the configuration can name it.
pub fn grant_with_setting(granted: &Grants, key: &str) -> Option<Grant> {
    let nameable = !key.contains(['*', '?', '[']) && !key.split(':').any(str::is_empty);
    nameable.then(|| Grant::Names(granted.names(Capability::Config).with(key)))
}
