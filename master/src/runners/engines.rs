//! `engines.*`: what the engines of a running master do.

use super::function::{Function, functions};

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Lists the engines: their modules and tags, how they are, what became of their events, and the last error of each.
    "engines.list()" => |run| async move { Ok(run.parts.engines.list()) },
};
