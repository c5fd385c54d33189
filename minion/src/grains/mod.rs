//! Grains: facts about this host, collected natively; then those that modules found; then the owner's grains from the
//! grains file and the configuration.
//!
//! The sources (`/proc`, `/sys`, `os-release`, host names) are foreign data: every read is bounded, nothing is
//! interpreted, and a fact that cannot be read is left out.

mod blacklist;
mod boot;
mod cache;
mod collect;
mod core;
mod custom;
mod devices;
mod environment;
mod from_modules;
mod layers;
mod lookup;
mod map;
mod names;
mod network;
mod os_release;
mod resolver;
mod routes;
mod store;
mod systemd;
mod virtualization;

pub(crate) use collect::SKIP;
pub use collect::collect;
pub use custom::GrainsFileError;
pub(crate) use from_modules::FromModules;
pub use layers::MAX_GRAINS_BYTES;
pub use lookup::lookup;
pub use store::GrainsStore;
