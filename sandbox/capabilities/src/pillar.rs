//! `pillar`: keys of this minion's pillar, with what is below them.

use crate::names::is_glob;
use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    // What the master sent, returned to that master: they have no other way out.
    standard: &[("pillar", Standard::All), ("config", Standard::All), ("mine", Standard::Names(&["mine_functions"]))],
    wrong_name: |name| match is_glob(name) {
        true => Some(format!("{name:?}: keys of the pillar are named whole, without * and ?")),
        false => forms::wrong_key(name),
    },
    ..Declaration::new("pillar", "read this minion's pillar", &["brine:host/pillar"], Kind::Names)
};

/// `brine:host/pillar`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PillarOp {
    /// Answered by a map with the granted keys that there are.
    Items,
    /// The same of a pillar that the master makes for this call.
    Fetch,
    /// Answered by the value, nil where there is none.
    Get {
        /// May lead into nested values.
        key: String,
        /// Between the key's parts, `:` unless given.
        delimiter: Option<String>,
    },
}

impl Operation for PillarOp {
    const INTERFACE: &'static str = "brine:host/pillar";

    fn size(&self) -> Size {
        match self {
            Self::Items | Self::Fetch => Size::default(),
            Self::Get { key, delimiter } => Size::names(key.len() + Size::optional(delimiter.as_ref())),
        }
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        let Self::Get { key, delimiter } = &self else { return Ok(self) };
        forms::key(key, delimiter.as_deref())?;
        let parts: Vec<&str> = key.split(delimiter.as_deref().unwrap_or(":")).collect();
        let keys = granted.names(Capability::Pillar);
        if keys.holds(&parts, ':') {
            return Ok(self);
        }
        // As the owner would write it, whatever stands between its parts here.
        let key = parts.join(":");
        let what = format!("read the pillar's {key}");
        // No line can name these.
        if is_glob(&key) || parts.iter().any(|part| part.is_empty()) {
            return Err(Refusal::NotGranted { what, lift: None });
        }
        Err(Refusal::not_granted(what, Capability::Pillar, Grant::Names(keys.with(&key))))
    }

    fn shown(&self) -> Shown {
        match self {
            Self::Items | Self::Fetch => Shown::Pillar,
            Self::Get { .. } => Shown::All,
        }
    }
}
