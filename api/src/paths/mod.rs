//! The answers of the paths, a file for each family.

pub mod lowstate;
pub mod session;
