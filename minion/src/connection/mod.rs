//! The minion's connection to its master: authentication, the request channel on 4506, the publications on 4505.

mod auth;
mod channel;
mod error;
mod held_publications;
mod masters;
mod publications;
mod serial_file;

pub(crate) use auth::Patience;
pub use channel::{Channel, SignedIn};
pub use error::{ChannelError, SignInError};
pub use masters::Masters;
pub use publications::{Arrival, Publications};
