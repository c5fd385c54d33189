//! `salt-run`.
fn main() {}
