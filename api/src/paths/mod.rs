//! The answers of the paths, a file for each family.

pub mod app;
pub mod events;
pub mod hook;
pub mod jobs;
pub mod keys;
pub mod lowstate;
pub mod minions;
pub mod session;
pub mod stats;
pub mod token;
