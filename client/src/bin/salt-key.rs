//! `salt-key`.
fn main() {}
