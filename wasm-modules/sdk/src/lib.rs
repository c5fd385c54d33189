//! What modules written in Rust share: the host's interfaces ([`host`]), Salt values ([`Data`]), files ([`fs`], [`path`]),
//! globs ([`fnmatch`]), and a panic hook, which every module that uses this crate has: it writes the panic's message to the
//! minion's log, where the job's return can only say that the module trapped.
//!
//! A module binds its own world and takes the host's interfaces from here:
//!
//! ```ignore
//! wit_bindgen::generate!({
//!     world: "hello",
//!     path: "wit",
//!     with: { "brine:host/job@1.0.0": brine_guest::host::job },
//! });
//! ```

#![warn(missing_docs)]

mod bindings;
mod data;
pub mod fs;
mod panic;
pub mod path;
mod value;

pub use bindings::brine::host;
pub use bindings::wasi;
pub use brine_patterns::fnmatch;
pub use data::Data;
pub use value::Value;

/// What a function returns that can fail: the error is the text of the failed return, one line that says what and why.
pub type Result<T = Data> = core::result::Result<T, String>;
