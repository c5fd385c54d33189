//! Salt's values and the component's, DESIGN.md §3.2, both ways by the function's type. Nothing here touches an instance.
//!
//! - [`msgpack`]: a reader that cannot be led astray and a writer with a bound
//! - [`ty`]: a function's types, read once when its module is loaded
//! - [`signature`]: parameters, and which argument is whose
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
