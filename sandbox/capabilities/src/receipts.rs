//! `receipts`: read the receipts that this host keeps of its jobs. They say what each master had run here, so they are shown on the host
//! itself only.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[("receipts", Standard::All)],
    ..Declaration::new("receipts", "see the receipts of this host's jobs", &["brine:host/receipts"], Kind::Flag)
};

/// Upper bound on the bytes of a place: two numbers.
const MAX_PLACE: usize = 64;

/// `brine:host/receipts`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReceiptsOp {
    /// Returns a map: `receipts`, an array of maps or of texts, the newest first; `next`, a text or nil.
    Page {
        /// Where the page begins, as the page before says it; empty for the newest.
        place: String,
        /// Only the receipts of this job; empty for all.
        jid: String,
        /// As lines of an export instead of maps.
        evidence: bool,
    },
    /// Returns a map: `receipts`, `key`, `odd`.
    Verify,
}

impl Operation for ReceiptsOp {
    const INTERFACE: &'static str = "brine:host/receipts";

    fn size(&self) -> Size {
        match self {
            Self::Page { place, jid, .. } => Size::names(place.len() + jid.len()),
            Self::Verify => Size::default(),
        }
    }

    fn check(self, who: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        if let Self::Page { place, jid, .. } = &self {
            for (what, text, most) in [("the place", place, MAX_PLACE), ("the jid", jid, forms::MAX_WORD)] {
                if !text.is_empty() {
                    forms::text(what, text, most, Form::Line)?;
                }
            }
        }
        // In a nested call, a pillar may have chosen what is called and where the answer goes.
        match who {
            Asker { from_master: false, typed: true, chain: [_], .. } => Ok(self),
            _ => Err(Refusal::Never(
                "the receipts of this host are shown on the host itself, not to a master nor within another function; its owner can \
                 run `salt-call --local receipts.list` there"
                    .to_owned(),
            )),
        }
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }
}
