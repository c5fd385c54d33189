//! The pillar: this minion's data from its master.

mod refresh;
mod store;

pub use refresh::{PillarError, Refresh};
pub use store::PillarStore;
