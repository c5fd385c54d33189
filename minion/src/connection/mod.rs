//! The minion's connection to its master: authentication, the request channel on 4506, the publications on 4505.

mod auth;
mod channel;
mod complaints;
mod masters;
mod publications;
mod serials;
mod undecided;

pub(crate) use auth::Patience;
pub use auth::SignInError;
pub use channel::{Channel, ChannelError, Live};
pub use masters::Masters;
pub use publications::{Arrival, Publications};
