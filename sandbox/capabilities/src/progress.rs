//! `progress`: report a job's progress. The minion writes the tag, so nothing is granted by name.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    by_default: true,
    ..Declaration::new("progress", "say how far its job is", &["brine:host/progress"], Kind::Flag)
};

/// Upper bound on the bytes of one value, which a person or a progress bar shows.
const MAX_VALUE: usize = 16 << 10;

/// `brine:host/progress`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgressOp {
    /// Returns true once the master has received it.
    Report {
        /// One MessagePack value.
        value: ByteBuf,
    },
}

impl Operation for ProgressOp {
    const INTERFACE: &'static str = "brine:host/progress";

    fn size(&self) -> Size {
        let Self::Report { value } = self;
        Size { content: value.len(), ..Size::default() }
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        let Self::Report { value } = &self;
        forms::size("the progress", value.len(), MAX_VALUE)?;
        Ok(self)
    }

    /// Progress is what the job says of itself to who asked for it.
    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }
}
