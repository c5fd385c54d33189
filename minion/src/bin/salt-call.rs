//! `salt-call`.
fn main() {}
