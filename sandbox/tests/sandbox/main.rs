//! The sandbox with its two real programs: modules are installed, run, refused and removed, and executors die.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

mod components;
mod crowds;
mod deaths;
mod descriptions;
mod executors;
mod foresight;
mod hostile;
mod jobs;
mod kill;
mod lanes;
mod limits;
mod load;
mod modules;
mod nested;
mod signatures;
mod starts;
mod support;
mod updates;
