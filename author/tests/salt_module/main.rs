//! `salt-module` as an author runs it: the program itself, in a folder of its own, its exit codes and words.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, unreachable_pub, missing_docs)]

mod bench;
mod build;
mod examine;
mod replay;
mod run;
mod signatures;
