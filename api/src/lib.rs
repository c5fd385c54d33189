//! salt-api: Salt's REST interface, a process of its own in front of a master.
//!
//! - [`daemon`]: the process · [`settings`]: its settings
//! - [`router`]: all paths · [`table`]: a path with its description · [`paths`]: their answers · [`state`]: what all requests share
//! - [`v1`]: what the console reads
//! - [`chunk`]: calls, checked before one of them runs · [`call`]: runs them
//! - [`guard`]: what each request passes first · [`address`]: where it comes from · [`rules`]: who may speak · [`cors`]: other sites' pages
//! - [`work`]: how many requests there may be · [`places`]: bounds in all and of one address
//! - [`listen`]: connections: [`tls`], [`stream`], [`traffic`]
//! - [`body`]: what comes in, [`numbers`] · [`answer`]: what goes out, [`json`] · [`problem`]: refusals · [`credentials`]: the caller's token
//! - [`pages`]: an application of the operator's · [`console`]: the one for which there is none
//! - [`link`]: the way to the master · [`pki`]: the keys of one on another host than the master
//!
//! It holds no key of the master: each right comes from the caller's token or password, and the master decides.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod address;
pub mod answer;
pub mod batch;
pub mod body;
pub mod call;
pub mod chunk;
pub mod console;
pub mod cors;
pub mod credentials;
pub mod daemon;
pub mod guard;
pub mod job;
pub mod json;
pub mod link;
pub mod listen;
pub mod numbers;
pub mod pages;
pub mod paths;
pub mod pki;
pub mod places;
pub mod problem;
pub mod query;
pub mod router;
pub mod rules;
pub mod settings;
pub mod state;
pub mod stats;
pub mod stream;
pub mod table;
pub mod tls;
pub mod traffic;
pub mod v1;
pub mod watchers;
pub mod work;

pub use daemon::ApiDaemon;
