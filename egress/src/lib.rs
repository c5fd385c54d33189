//! What modules reach of the network by way of their daemon, a minion or a master: names, resolved once to addresses
//! that were checked, and HTTP requests. Connections to these addresses are the executor's.
//!
//! - `names.rs` which addresses a module may connect to
//! - `http/`    HTTP requests
#![forbid(unsafe_code)]

mod http;
mod names;

pub use http::Http;
pub use names::{Resolver, SystemResolver, resolve};
