//! What only looks.
//!
//! - `fs.rs`               files, by whichever grant opens them
//! - `stats.rs`, `hash.rs` metadata and hashes of a file
//! - `find.rs`, `grep.rs`, `glob.rs` searches over many files
//! - `text.rs`, `lines.rs`, `pattern.rs` the content of one file

pub(crate) mod find;
pub(crate) mod fs;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod hash;
pub(crate) mod lines;
pub(crate) mod pattern;
pub(crate) mod stats;
pub(crate) mod text;
