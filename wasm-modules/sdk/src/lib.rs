//! The common part of modules written in Rust, and a panic hook for every module that uses this crate. The hook writes the
//! panic's message to the minion's log, because the job's return only says that the module trapped.
//!
//! - [`host`] the host's interfaces · [`Data`], [`Value`] Salt's values · [`lookup`] paths into values, and merging
//! - [`fs`], [`path`] files · [`changes`] changes of files · [`diff`] differences of texts · [`fnmatch`] globs
//! - `hash` hashes by name, `json` values as JSON: features
//! - [`salt_files`] many files of the master at once
//! - [`keywords`] arguments by name
//! - [`program`] programs of the host · [`words`] the words of a line
//! - [`beacons`] configurations and answers of beacons
//! - [`states`] results of states · [`url`] URLs in sentences
//! - `template` Salt's templates, `compute` functions that only compute, `wire` the renderer's values: the feature `render`
//!
//! A module binds its own world and uses the host's interfaces from this crate:
//!
//! ```ignore
//! wit_bindgen::generate!({
//!     world: "hello",
//!     path: "wit",
//!     with: { "brine:host/job@1.0.0": brine_guest::host::job },
//! });
//! ```

#![warn(missing_docs)]

pub mod beacons;
mod bindings;
pub mod changes;
#[cfg(feature = "render")]
pub mod compute;
mod data;
pub mod diff;
pub mod fs;
#[cfg(feature = "hash")]
pub mod hash;
#[cfg(feature = "json")]
pub mod json;
pub mod keywords;
pub mod lookup;
mod panic;
pub mod path;
pub mod program;
pub mod salt_files;
pub mod states;
#[cfg(feature = "render")]
pub mod template;
pub mod url;
mod value;
#[cfg(feature = "render")]
pub mod wire;
pub mod words;

pub use bindings::brine::host;
pub use bindings::wasi;
pub use brine_patterns::fnmatch;
pub use brine_text::docstring;
pub use data::Data;
pub use value::Value;

/// The result of a function that can fail. The error is the text of the failed return: one line that says what failed and
/// why.
pub type Result<T = Data> = core::result::Result<T, String>;
