//! What changes the text of files.
//!
//! - [`lines`]: the lines of a text, by Python's rules
//! - [`pattern`]: Python's regular expressions over bytes
//! - [`replace`], [`line`], [`block`], [`comment`], [`keyvalue`], [`append`]: from a content to the new one, without a host
//! - [`patch`]: patches, of a file or of the files below a directory
//! - [`place`]: reads and writes the file
//! - [`run`]: edits of a file, for functions and states
//! - [`serialize`]: values as text; [`stamp`]: the time in a name

pub(crate) mod append;
mod block;
pub(crate) mod comment;
pub(crate) mod keyvalue;
mod line;
pub(crate) mod lines;
pub(crate) mod patch;
pub(crate) mod pattern;
pub(crate) mod place;
mod replace;
pub(crate) mod run;
pub(crate) mod serialize;
pub(crate) mod stamp;
