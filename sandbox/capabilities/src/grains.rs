//! `grains`: read facts about this host.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    by_default: true,
    ..Declaration::new("grains", "read this host's grains", &["brine:host/grains"], Kind::Flag)
};

/// `brine:host/grains`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrainsOp {
    /// Returns all grains as a map.
    Items,
    /// Reads one grain. Returns its value, nil if there is none.
    Get {
        /// The key, which may lead into nested values.
        key: String,
        /// The delimiter of the key's parts. None: `:`.
        delimiter: Option<String>,
    },
}

impl Operation for GrainsOp {
    const INTERFACE: &'static str = "brine:host/grains";

    fn size(&self) -> Size {
        match self {
            Self::Items => Size::default(),
            Self::Get { key, delimiter } => Size::names(key.len() + Size::optional(delimiter.as_ref())),
        }
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        if let Self::Get { key, delimiter } = &self {
            forms::key(key, delimiter.as_deref())?;
        }
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }

    fn is_foreseeable(&self) -> bool {
        true
    }
}
