//! What changes names, owners, modes and whole files.
//!
//! - `mode.rs`, `owner.rs` modes and owners as Salt's users write them
//! - `permissions.rs`      what has to be set of them, and setting it
//! - `directories.rs`      making directories, and walking through them
//! - `names.rs`            moving, copying, times; `rmdir.rs` removing empty directories
//! - `backups.rs`          what files were before; `functions.rs` the functions of all this

pub(crate) mod backups;
pub(crate) mod directories;
pub(crate) mod functions;
pub(crate) mod mode;
pub(crate) mod names;
pub(crate) mod owner;
pub(crate) mod permissions;
pub(crate) mod rmdir;
