//! Returns: from a finished job to the master's acknowledgement.
//!
//! A return is in the spool (`spool`) before it is sent (`sender`, in the order of `queue`), and stays there until the master has
//! acknowledged it. A return that has no room in the spool waits in memory (`unspooled`).

mod queue;
mod sender;
mod spool;
mod unspooled;

pub(crate) use sender::AS_JID;
pub use sender::{Kept, ReturnSender};
pub use spool::{Spool, SpoolError, SpooledReturn, Unsynced};
