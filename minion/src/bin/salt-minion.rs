//! `salt-minion`.
fn main() {}
