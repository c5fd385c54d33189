//! Python's patterns, for both sides of the sandbox: globs as `fnmatch` has them, and the syntax of `re`.
//!
//! No dependencies: the execution modules are built with this crate too.
//!
//! ```
//! assert!(brine_patterns::fnmatch("web[0-9]*", "web1.example.com"));
//! ```

mod glob;
mod regex;

pub use glob::{Glob, fnmatch};
pub use regex::{Dialect, Flags, Rewritten, rewrite};
