//! The pillar: this minion's data from its master.

mod own;
mod refresh;
mod store;
mod told;
mod wanted;

pub(crate) use own::OwnPillar;
pub use refresh::{PillarError, Refresh};
pub use store::{PillarStore, Taken};
pub(crate) use wanted::Wanted;
