//! Runs module instances: wasmtime's runtime, no compiler, no privileges.
fn main() {}
