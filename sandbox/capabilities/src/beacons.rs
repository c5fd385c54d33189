//! `beacons`: change which beacons this minion runs, and how.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[("beacons", Standard::All)],
    ..Declaration::new("beacons", "change the beacons of this minion", &["brine:host/beacons"], Kind::Flag)
};

/// Upper bound on the bytes of a beacon's name.
const MAX_NAME: usize = 128;
/// Upper bound on the bytes of a beacon's configuration.
const MAX_CONFIG: usize = 64 << 10;

/// `brine:host/beacons`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BeaconsOp {
    /// Returns a map of names to configurations.
    List {
        /// Whether those of the pillar are among them.
        pillar: bool,
        /// Whether those of the configuration are among them.
        configuration: bool,
    },
    /// Returns an array of the modules that are beacons.
    Available,
    /// Returns an array: whether the configuration can be used, and words.
    Validate {
        /// The beacon.
        name: String,
        /// One MessagePack value.
        config: ByteBuf,
    },
    /// Returns a map: `complete`, `comment`, and `beacons`, those of the configuration, as one MessagePack value.
    Change(BeaconEdit),
    /// Returns a map: `path` and `written`.
    Save,
}

/// A change of beacons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BeaconEdit {
    /// Sets a configuration.
    Put {
        /// The beacon.
        name: String,
        /// One MessagePack value.
        config: ByteBuf,
    },
    /// Removes a beacon.
    Delete {
        /// The beacon.
        name: String,
    },
    /// Turns all on or off.
    Enable(bool),
    /// Turns one on or off.
    EnableBeacon {
        /// The beacon.
        name: String,
        /// On.
        on: bool,
    },
    /// Removes all.
    Reset,
}

impl BeaconsOp {
    /// The name and the configuration in it.
    fn parts(&self) -> (Option<&String>, usize) {
        match self {
            Self::List { .. } | Self::Available | Self::Save => (None, 0),
            Self::Validate { name, config } | Self::Change(BeaconEdit::Put { name, config }) => {
                (Some(name), config.len())
            }
            Self::Change(BeaconEdit::Delete { name } | BeaconEdit::EnableBeacon { name, .. }) => (Some(name), 0),
            Self::Change(BeaconEdit::Enable(_) | BeaconEdit::Reset) => (None, 0),
        }
    }
}

/// Checks the name of a beacon. It is a part of tags and of a module's name.
fn name(name: &str) -> Result<(), Refusal> {
    forms::text("the name of a beacon", name, MAX_NAME, Form::Line)?;
    if name.contains(['/', '\\']) || name.starts_with('.') {
        return Err(malformed("the name of a beacon", "has a slash or starts with a dot"));
    }
    Ok(())
}

impl Operation for BeaconsOp {
    const INTERFACE: &'static str = "brine:host/beacons";

    fn size(&self) -> Size {
        let (name, content) = self.parts();
        Size { names: Size::optional(name), content, ..Size::default() }
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        let (named, content) = self.parts();
        named.map_or(Ok(()), |named| name(named))?;
        forms::size("the configuration of a beacon", content, MAX_CONFIG)?;
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        match self {
            Self::List { .. } | Self::Available | Self::Validate { .. } => Planned::Look(self),
            Self::Change(_) => Planned::Stop("change the beacons of this minion".to_owned()),
            Self::Save => Planned::Stop("save the beacons of this minion".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parts_of_tags() {
        let who = Asker { module: "m", minion_id: "id", ..Asker::default() };
        let delete = |name: &str| {
            BeaconsOp::Change(BeaconEdit::Delete { name: name.into() }).check(&who, &Grants::default()).is_ok()
        };
        assert!(delete("load") && delete("watch apache"));
        for odd in ["", "../x", "a/b", "..", ".hidden", "a\nb", "a\\b", &"x".repeat(MAX_NAME + 1)] {
            assert!(!delete(odd), "{odd:?}");
        }
        let config = ByteBuf::from(vec![0; MAX_CONFIG + 1]);
        assert!(BeaconsOp::Validate { name: "load".into(), config }.check(&who, &Grants::default()).is_err());
    }
}
