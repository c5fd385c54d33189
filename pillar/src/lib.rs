//! The pillar: what a master tells each minion alone (PROTOCOL.md §6.4), compiled as Salt's master does: in the master, and in a minion
//! that has none.
//!
//! | file | content |
//! |---|---|
//! | `roots` | environments and their files, with their bounds |
//! | `template`, `failure` | renders one file; says why one does not render |
//! | `top`, `sls` | top files; the files that they name |
//! | `compile` | one pillar, from the top files to the last merge |
//! | `compiler`, `settings` | the above by one set of settings |
//! | `ext/`, `fetch` | `ext_pillar`: other sources, and how they fetch documents |
//!
//! A compilation blocks and needs a large stack ([`STACK`]). A pillar holds secrets: no type with one prints it, and no text for the log
//! has a value of one.

mod compile;
mod compiler;
mod ext;
mod failure;
mod fetch;
mod opts;
mod problems;
mod roots;
mod settings;
mod sls;
mod template;
#[cfg(test)]
mod tests;
mod top;

pub use compile::{Compiled, Subject, failed};
pub use compiler::PillarCompiler;
pub use fetch::HttpFetch;
pub use opts::{CacheOpts, PillarOpts};
pub use settings::PillarSettings;

/// Bytes of stack that a compilation may need: for files that include each other, and for templates of `render_max_depth`.
pub const STACK: usize = 16 << 20;
