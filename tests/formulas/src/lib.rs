//! Compiles cases of public formulas as stock Salt did when the answers in `answers/` were made.
//!
//! | module | content |
//! |---|---|
//! | [`json`] | between JSON as the answers have it and values |
//! | [`tape`] | what functions answered that look at the machine |
//! | [`tree`] | a host over folders: the file server of a case |
//! | [`case`] | compiles one case |
#![forbid(unsafe_code)]

pub mod case;
pub mod json;
pub mod tape;
pub mod tree;
