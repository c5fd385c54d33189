//! salt-api: Salt's REST interface, a process of its own in front of a master.
//!
//! - [`daemon`]: the process · [`settings`]: its settings · [`listen`]: connections, with TLS
//! - [`router`]: the table of paths · [`paths`]: their answers · [`state`]: what all requests share · [`address`]: where they come from
//! - [`chunk`]: calls, checked before one of them runs · [`call`]: runs them
//! - [`body`]: what comes in · [`answer`]: what goes out · [`problem`]: refusals · [`credentials`]: the caller's token
//! - [`link`]: the way to the master
//!
//! It holds no key of the master: each right comes from the caller's token or password, and the master decides.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod address;
pub mod answer;
pub mod body;
pub mod call;
pub mod chunk;
pub mod credentials;
pub mod daemon;
pub mod link;
pub mod listen;
pub mod paths;
pub mod problem;
pub mod router;
pub mod settings;
pub mod state;
pub mod watchers;

pub use daemon::ApiDaemon;
