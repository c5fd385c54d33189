//! What the owner of this host is told of refusals, and how he grants by a line.
//!
//! - `refusals.rs` what was refused, counted; `journal.rs` its file
//! - `suggest.rs`  the lines that would have let it be; `risk/` a sentence on what each can be used for
//! - `running.rs`  what runs now, and what it uses
//! - `line.rs`     a line of configuration and its place; `value.rs` entries added and taken away
//! - `edit.rs`     changes the text of a configuration file and keeps its comments; `conf.rs` grants and revokes
//!
//! Nothing here grants by itself: `conf.rs` is called for `sandbox.grant` and `sandbox.revoke` alone, which the sandbox lets through for
//! a call that was typed on this host.

pub(crate) mod conf;
mod edit;
mod journal;
mod line;
mod refusals;
mod risk;
pub(crate) mod running;
pub(crate) mod suggest;
mod value;

pub(crate) use refusals::Refusals;
