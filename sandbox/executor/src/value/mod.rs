//! Conversion between Salt's values and component values by the function's type (DESIGN.md §3.2). Nothing here touches
//! an instance.
//!
//! - [`msgpack`]: a reader for hostile input and a writer with a bound
//! - [`ty`]: the types of a function, read once when its module is loaded
//! - [`signature`]: parameters and their arguments
//! - [`lower`]: MessagePack to component values
//! - [`lift`]: component values to MessagePack
//! - [`show`]: a value in an error message

pub mod lift;
pub mod lower;
pub mod msgpack;
pub mod show;
pub mod signature;
pub mod ty;

#[cfg(test)]
mod tests;
