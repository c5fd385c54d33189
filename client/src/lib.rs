//! Clients of a master on the same host: [`LocalClient`], [`RunnerClient`] and [`WheelClient`].
//!
//! * [`opts`]: the clients' options, from the master's configuration
//! * [`local`]: publish a job and receive its returns (PROTOCOL.md §7.2, §9.4)
//! * [`runner`]: run a runner in the master (§7.3)
//! * [`wheel`]: call a wheel function of the master (§7.3)
//! * [`login`]: log-ins and tokens · [`bus`]: the event bus · [`request`]: requests to the master
//!
//! A client subscribes to the event bus before it sends a request to the master, so that no return is missed.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use brine_client::{ClientOpts, Job, LocalClient};
//! use brine_protocol::config::{Config, Role};
//!
//! let config = Config::load(Path::new("/etc/salt/master"), Role::Master)?;
//! let client = LocalClient::new(ClientOpts::new(&config)?);
//! for (id, pong) in client.cmd(&Job::new("web*", "test.ping", Vec::new())).await? {
//!     println!("{id}: {pong}");
//! }
//! # Ok(())
//! # }
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod bus;
mod error;
pub mod local;
mod local_key;
pub mod login;
pub mod opts;
mod presence;
pub mod request;
pub mod runner;
pub mod user;
pub mod wheel;

pub use error::ClientError;
pub use local::{
    Batch, BatchEvent, BatchOptions, BatchSize, Job, JobEvent, LocalClient, MinionReturn, News, Published, Returns,
    Slots, Step, Waiter, no_response,
};
pub use login::LogIn;
pub use opts::ClientOpts;
pub use runner::{RunnerClient, RunnerEvent};
pub use wheel::WheelClient;
