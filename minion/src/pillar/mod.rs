//! The pillar: this minion's data from its master.

mod refresh;
mod store;
mod wanted;

pub use refresh::{PillarError, Refresh};
pub use store::{PillarStore, Taken};
pub(crate) use wanted::Wanted;
