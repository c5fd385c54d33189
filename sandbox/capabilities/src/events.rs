//! `events`: fire events on the master's bus.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    // What it tells is what its caller said, and what the same master knows: grains and pillar.
    standard: &[("event", Standard::All)],
    ..Declaration::new("events", "fire events on the master's bus", &["brine:host/events"], Kind::Names)
};

/// `brine:host/events`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventsOp {
    /// Returns true once the master has received it.
    Fire {
        /// The tag; the grant says which tags are allowed.
        tag: String,
        /// One MessagePack map.
        data: ByteBuf,
    },
}

impl Operation for EventsOp {
    const INTERFACE: &'static str = "brine:host/events";

    fn size(&self) -> Size {
        let Self::Fire { tag, data } = self;
        Size { names: tag.len(), content: data.len(), ..Size::default() }
    }

    fn check(self, who: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        let Self::Fire { tag, data } = &self;
        forms::tag(tag, who.minion_id)?;
        forms::size("the event's data", data.len(), forms::MAX_DATA)?;
        granted.permit_name(Capability::Events, tag, format_args!("fire the event {tag}"))?;
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        let Self::Fire { tag, .. } = self;
        Planned::Done(format!("fire the event {tag}"), Answer::True)
    }
}
