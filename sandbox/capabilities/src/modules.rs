//! `modules`: list, describe and sync modules, and refresh grains and pillar.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    // `mine.valid` leaves out functions that are not there.
    standard: &[
        ("mine", Standard::All),
        ("module", Standard::All),
        ("saltutil", Standard::All),
        ("schedule", Standard::All),
        ("state", Standard::All),
        ("sys", Standard::All),
    ],
    ..Declaration::new(
        "modules",
        "list, describe and refresh modules, have grains and pillar refreshed",
        &["brine:host/modules"],
        Kind::Flag,
    )
};

/// Upper bound on the environments in one call.
const MAX_ENVIRONMENTS: usize = 32;

/// `brine:host/modules`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModulesOp {
    /// Returns a sorted array of names.
    Names,
    /// Returns a map with the fields of WIT's `module` record (parameters are maps of name, type, optional and rest),
    /// or nil.
    Describe {
        /// The module.
        name: String,
    },
    /// Returns an array of a module's states, with the fields of WIT's `function` record; empty if there is no such
    /// module.
    States {
        /// The module.
        name: String,
    },
    /// Returns an array of the names that changed, as `modules.NAME`.
    Sync {
        /// Environments of the master's file server. None: `base`.
        saltenv: Option<Vec<String>>,
    },
    /// Returns true when it is done.
    RefreshFacts {
        /// Whether to collect the grains again.
        grains: bool,
        /// Whether to request the pillar from the master, with the grains.
        pillar: bool,
    },
    /// Requests the pillar. Returns whether it was complete in time.
    RefreshPillar {
        /// Whether the master compiles it anew if it caches pillars.
        clean_cache: bool,
        /// The time to wait. None: as long as the job may take.
        timeout_ms: Option<u64>,
    },
}

impl Operation for ModulesOp {
    const INTERFACE: &'static str = "brine:host/modules";

    fn size(&self) -> Size {
        match self {
            Self::Names | Self::RefreshFacts { .. } | Self::RefreshPillar { .. } => Size::default(),
            Self::Describe { name } | Self::States { name } => Size::names(name.len()),
            Self::Sync { saltenv } => Size::names(Size::list(saltenv.as_deref().unwrap_or_default())),
        }
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        match &self {
            Self::Names | Self::RefreshFacts { .. } | Self::RefreshPillar { .. } => {}
            Self::Describe { name } | Self::States { name } => forms::module(name)?,
            Self::Sync { saltenv } => {
                let environments = saltenv.as_deref().unwrap_or_default();
                if environments.len() > MAX_ENVIRONMENTS {
                    let why = format!("has more than {MAX_ENVIRONMENTS} items");
                    return Err(forms::malformed("the list of environments", &why));
                }
                environments.iter().try_for_each(|environment| forms::environment(environment))?;
            }
        }
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        match self {
            Self::Sync { .. } => Planned::Done("fetch the master's modules".to_owned(), Answer::Nothing),
            Self::RefreshFacts { .. } => Planned::Done("refresh grains and pillar".to_owned(), Answer::True),
            look => Planned::Look(look),
        }
    }
}
