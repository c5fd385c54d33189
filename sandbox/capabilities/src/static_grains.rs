//! `static_grains`: write this host's static grains.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    // `grains.setval` and its relatives write them, as in Salt.
    standard: &[("grains", Standard::All)],
    ..Declaration::new(
        "static_grains",
        "write this host's static grains (the file grains beside the configuration)",
        &["brine:host/static-grains"],
        Kind::Names,
    )
};

/// The minion's own account of its sandbox. Nobody else writes it.
pub const WALLS: &str = "sandbox";
/// Upper bound on the grains of one call.
const MAX_CHANGES: usize = 1_000;
/// Upper bound on the bytes of a grain's name.
const MAX_NAME: usize = 256;

/// `brine:host/static-grains`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StaticGrainsOp {
    /// Changes the file and collects the grains again. Returns true.
    Write {
        /// Names, each with one MessagePack value, or none to remove the grain.
        changes: Vec<(String, Option<ByteBuf>)>,
        /// Whether to request the pillar afterwards.
        refresh_pillar: bool,
    },
}

impl Operation for StaticGrainsOp {
    const INTERFACE: &'static str = "brine:host/static-grains";

    fn size(&self) -> Size {
        let Self::Write { changes, .. } = self;
        Size {
            names: changes.iter().map(|(name, _)| name.len() + Size::NAME).sum(),
            content: changes.iter().filter_map(|(_, value)| value.as_ref()).map(|value| value.len()).sum(),
            ..Size::default()
        }
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        let Self::Write { changes, .. } = &self;
        if changes.len() > MAX_CHANGES {
            return Err(malformed("the list of grains", &format!("has more than {MAX_CHANGES} items")));
        }
        let bytes = changes.iter().filter_map(|(_, value)| value.as_ref()).map(|value| value.len()).sum();
        forms::size("the values of the grains", bytes, forms::MAX_DATA)?;
        for (name, _) in changes {
            forms::text("the name of a grain", name, MAX_NAME, Form::Line)?;
            if name == WALLS {
                return Err(Refusal::Never(format!("the grain {WALLS} is the minion's own account of its sandbox")));
            }
            granted.permit_name(Capability::StaticGrains, name, format_args!("write the static grain {name}"))?;
        }
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        let Self::Write { changes, .. } = self;
        let names: Vec<&str> = changes.iter().map(|(name, _)| name.as_str()).collect();
        Planned::Done(format!("write the static grains {}", names.join(", ")), Answer::True)
    }
}
