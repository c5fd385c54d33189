//! `/v1/…`: what the console reads. Each path is a query that the master answers in its reply, from what it has; the
//! master checks rights and arguments.
//!
//! - `reads.rs`    the paths, and how their parameters become arguments
//! - `problem.rs`  refusals as JSON

mod problem;
mod reads;

pub use problem::as_json;
pub use reads::add;
