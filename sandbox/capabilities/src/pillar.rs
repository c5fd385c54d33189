//! `pillar`: read keys of this minion's pillar, with everything below them.

use crate::names::is_glob;
use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    // These modules return a master's pillar to that same master, and have no other way to send it out.
    standard: &[
        ("config", Standard::All),
        ("event", Standard::All),
        ("file", Standard::Least),
        ("match", Standard::All),
        ("mine", Standard::Names(&["mine_functions"])),
        ("pillar", Standard::All),
        ("postgres", Standard::Least),
        ("slsutil", Standard::All),
        ("state", Standard::All),
    ],
    wrong_name: |name| match is_glob(name) {
        true => Some(format!("{name:?}: keys of the pillar are named whole, without * and ?")),
        false => forms::wrong_key(name),
    },
    ..Declaration::new("pillar", "read this minion's pillar", &["brine:host/pillar"], Kind::Names)
};

/// `brine:host/pillar`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PillarOp {
    /// Returns a map with the granted keys that exist.
    Items,
    /// The same for a pillar that the master compiles for this call.
    Fetch,
    /// The same for an environment or with values of the caller.
    Compile {
        /// The environment of the pillar. None: the minion's setting.
        pillarenv: Option<String>,
        /// The environment of the file server.
        saltenv: Option<String>,
        /// One MessagePack map that the master merges over the pillar.
        overrides: Option<ByteBuf>,
    },
    /// Returns the value, nil if there is none.
    Get {
        /// The key, which may lead into nested values.
        key: String,
        /// The delimiter of the key's parts. None: `:`.
        delimiter: Option<String>,
    },
}

impl Operation for PillarOp {
    const INTERFACE: &'static str = "brine:host/pillar";

    fn size(&self) -> Size {
        match self {
            Self::Items | Self::Fetch => Size::default(),
            Self::Compile { pillarenv, saltenv, overrides } => Size {
                names: Size::optional(pillarenv.as_ref()) + Size::optional(saltenv.as_ref()),
                content: overrides.as_ref().map_or(0, |overrides| overrides.len()),
                ..Size::default()
            },
            Self::Get { key, delimiter } => Size::names(key.len() + Size::optional(delimiter.as_ref())),
        }
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        if let Self::Compile { pillarenv, saltenv, overrides } = &self {
            [pillarenv, saltenv].into_iter().flatten().try_for_each(|name| forms::environment(name))?;
            let bytes = overrides.as_ref().map_or(0, |overrides| overrides.len());
            forms::size("the values for the pillar", bytes, forms::MAX_DATA)?;
        }
        let Self::Get { key, delimiter } = &self else { return Ok(self) };
        forms::key(key, delimiter.as_deref())?;
        let parts: Vec<&str> = key.split(delimiter.as_deref().unwrap_or(":")).collect();
        let keys = granted.names(Capability::Pillar);
        if keys.holds(&parts, ':') {
            return Ok(self);
        }
        // The key in the form of the configuration, whatever the delimiter of the request.
        let key = parts.join(":");
        let what = format!("read the pillar's {key}");
        // No configuration line can name these keys.
        if is_glob(&key) || parts.iter().any(|part| part.is_empty()) {
            return Err(Refusal::NotGranted { what, lift: None, least: Least::No });
        }
        Err(Refusal::not_granted(what, Capability::Pillar, Grant::Names(keys.with(&key))))
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }

    fn shown(&self) -> Shown {
        match self {
            Self::Items | Self::Fetch | Self::Compile { .. } => Shown::Pillar,
            Self::Get { .. } => Shown::All,
        }
    }
}
