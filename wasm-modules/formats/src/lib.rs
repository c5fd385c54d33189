//! Files of the host that several modules read and edit: a module of functions, and one of states.
//!
//! - [`hosts`] `/etc/hosts`
//! - [`accounts`] `/etc/passwd`
//! - [`authorized_keys`], [`known_hosts`] the files of ssh; [`key_file`], [`keyscan`] where keys come from

#![warn(missing_docs)]

pub mod accounts;
pub mod authorized_keys;
mod fingerprint;
pub mod hosts;
pub mod key_file;
pub mod keyscan;
pub mod known_hosts;
pub mod mail_aliases;
