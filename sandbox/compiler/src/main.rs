//! Compiles modules in a cage: links Cranelift, bounded in memory, time and file size.
fn main() {}
