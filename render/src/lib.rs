//! Salt's renderers: from a text to a value as stock Salt makes it.
//!
//! No I/O, no clock, no threads: what a template needs of its host comes through a trait. The crate also builds for
//! wasm32-unknown-unknown, so that the master links it and a component on the minion can contain it.
//!
//! | part | content |
//! |---|---|
//! | [`value`] | Python's values, shared and changeable |
//! | [`convert`] | to and from the values of brine-protocol |
//! | [`data`] | merging, walking and copying as Salt does |
//! | [`functions`] | execution functions that only compute |
//! | [`jinja`] | Jinja2 as Salt sets it up |
//! | [`yaml`] | YAML 1.1 as Salt loads and dumps it |
//! | [`json`] | JSON as Python loads it |
//! | [`serializers`] | values as the text of a file, with Python's options |
//! | [`pipe`] | the line `#!jinja\|yaml` |
//! | [`regex`] | Python's regular expressions |
#![forbid(unsafe_code)]

#[cfg(feature = "rmpv")]
pub mod convert;
pub mod data;
#[cfg(feature = "functions")]
pub mod functions;
pub mod jinja;
pub mod json;
pub mod pipe;
pub mod regex;
pub mod serializers;
pub mod value;
pub mod yaml;

pub use value::{Dict, Key, List, Set, Value};
