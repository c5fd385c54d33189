//! The pillar: what a master tells each minion alone (PROTOCOL.md §6.4), compiled as Salt's master does.
//!
//! | file | content |
//! |---|---|
//! | `roots` | environments and their files, with their bounds |
//! | `template`, `failure` | renders one file; says why one does not render |
//! | `top`, `sls` | top files; the files that they name |
//! | `compile` | one pillar, from the top files to the last merge |
//! | `ext/` | `ext_pillar`: other sources |
//! | `cache`, `fetch`, `workers` | what keeps pillars, fetches documents, and runs compilations |
//! | `service` | the above for requests and runners |
//!
//! A pillar holds secrets: no type with one prints it, and no text for the log has a value of one.

mod cache;
mod compile;
mod ext;
mod failure;
mod fetch;
mod opts;
mod roots;
mod service;
mod sls;
mod template;
#[cfg(test)]
mod tests;
mod top;
mod workers;

pub(crate) use compile::{Subject, failed};
pub(crate) use opts::PillarOpts;
pub(crate) use service::{Caching, Pillars};
