//! `mine`: publish values to the mine.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[("mine", Standard::All)],
    ..Declaration::new("mine", "publish to the mine", &["brine:host/mine"], Kind::Names)
};

/// Upper bound on the bytes of a value's name in the mine.
const MAX_MINE: usize = 256;

/// `brine:host/mine`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MineOp {
    /// Puts a value into the mine. Returns true once the master has received it.
    Publish {
        /// The name by which other minions request it.
        name: String,
        /// One MessagePack value.
        data: ByteBuf,
    },
    /// Removes a value.
    Delete {
        /// Its name.
        name: String,
    },
}

impl Operation for MineOp {
    const INTERFACE: &'static str = "brine:host/mine";

    fn size(&self) -> Size {
        match self {
            Self::Publish { name, data } => Size { names: name.len(), content: data.len(), ..Size::default() },
            Self::Delete { name } => Size::names(name.len()),
        }
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        let (Self::Publish { name, .. } | Self::Delete { name }) = &self;
        forms::text("the name in the mine", name, MAX_MINE, Form::Line)?;
        if let Self::Publish { data, .. } = &self {
            forms::size("the value for the mine", data.len(), forms::MAX_DATA)?;
        }
        granted.permit_name(Capability::Mine, name, format_args!("publish {name} to the mine"))?;
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        let what = match self {
            Self::Publish { name, .. } => format!("publish {name} to the mine"),
            Self::Delete { name } => format!("delete {name} from the mine"),
        };
        Planned::Done(what, Answer::True)
    }
}
