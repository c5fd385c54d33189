//! The answers of the paths, a file for each family.

pub mod events;
pub mod hook;
pub mod lowstate;
pub mod session;
