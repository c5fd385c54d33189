//! This host's accounts, for the modules `user`, `group` and `shadow`: looks into `/etc/passwd`, `/etc/group` and
//! `/etc/shadow` and into the name service behind them, and the programs of the package shadow that change them.
//!
//! Local files are read first, as `files` comes first in `nsswitch.conf`; what they lack is asked of `getent`. A dry run
//! looks in the same way.
//!
//! - [`users`], [`groups`], [`shadow`]: what there is; of the latter two also the changes
//! - [`membership`]: who is in which group
//! - [`useradd`]: changes of users
//! - [`hash`]: hashes of passwords
//! - [`values`]: arguments as Python takes them

#![warn(missing_docs)]

mod files;
pub mod groups;
pub mod hash;
pub mod membership;
mod programs;
pub mod shadow;
pub mod useradd;
pub mod users;
pub mod values;

pub use programs::is_directory;
