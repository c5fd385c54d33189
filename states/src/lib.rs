//! Salt's states without I/O: from SLS files to low chunks as stock Salt makes them, and the machine that runs the chunks.
//!
//! No clock, no threads: files, functions and state modules come through a [`Host`]; the machine is told results and says
//! what is next. The crate also builds for wasm32-unknown-unknown.
//!
//! | module | content |
//! |---|---|
//! | [`Compiler`] | the compile in each form that Salt shows or runs: top, high data, low chunks |
//! | `top` | top files: which SLS files the minion is given |
//! | `files`, `template` | what the file server has, and what renderers make of a file |
//! | `high` | high data: SLS files with what they include, merged and checked |
//! | `requisites` | `exclude`, `extend`, and what states give others (`require_in`, `use`) |
//! | `low`, `graph` | chunks and their order |
//! | `reaction` | SLS files of the reactor, to low chunks |
//! | [`run`] | the run of the chunks |
//! | `python` | Python's operations, with its exceptions |
//!
//! Wanted differences from Salt:
//!
//! - A renderer that is not here (`#!py`, `stateconf`) is an error that names it, also one that nobody has; Salt's answer to the
//!   latter is no states.
//! - An argument that a state function does not take fails that state; in Salt the exception ends the whole run, and what ran
//!   before is lost. The same holds for a return without `changes`.
//! - `unless` and `onlyif` with functions are asked again by each attempt of `retry`; Salt forgets the function after the first.
//! - Names of failed requisites are in the order of the requisites; Python's order changes from run to run.
//! - All is bounded by [`Limits`].
//!
//! Values are those of brine-render, shared and changeable: an anchor that two ids share is one list here too.
#![forbid(unsafe_code)]

mod compile;
mod fault;
mod files;
mod graph;
mod high;
mod host;
mod keywords;
mod limits;
mod low;
mod options;
mod python;
mod reaction;
mod requisites;
pub mod run;
mod template;
mod top;

pub use compile::{Compiled, Compiler, Start};
pub use fault::Fault;
pub use host::{File, Host, Parameters};
pub use keywords::{Requisite, is_internal};
pub use limits::Limits;
pub use options::Options;
