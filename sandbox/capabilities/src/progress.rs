//! `progress`: say how far a job is. The tag is the minion's own to write, so nothing of it is granted by name.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    by_default: true,
    ..Declaration::new("progress", "say how far its job is", &["brine:host/progress"], Kind::Flag)
};

/// Bytes of one value: what a person or a bar is to see of it.
const MAX_VALUE: usize = 16 << 10;

/// `brine:host/progress`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgressOp {
    /// Answered by true once the master has it.
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
}
