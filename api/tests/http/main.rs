//! salt-api's HTTP against strangers, with a scripted master behind it.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub, reason = "tests")]

mod bounds;
mod http2;
mod kit;
mod log_ins;
mod pages;
mod shapes;
