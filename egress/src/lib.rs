//! What modules reach of the network by way of their daemon, a minion or a master: names, resolved once to addresses
//! that were checked, and HTTP requests. Connections to these addresses are the executor's.
//!
//! - `names.rs` which addresses a module may connect to
//! - `http/`    HTTP requests
//! - `shares.rs` places for requests, of which no module gets all
//! - [`netlink`]  what the kernel tells of this host's network: among others, its own addresses
#![forbid(unsafe_code)]

mod http;
mod names;
pub mod netlink;
mod shares;

pub use http::Http;
pub use names::{Found, Resolver, SystemResolver, resolve};
pub use shares::{Share, Shares};
