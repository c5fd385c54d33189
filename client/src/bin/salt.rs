//! `salt`.
fn main() {}
