//! The one configuration of wasmtime that compiler and executor share. Native code made under one configuration is refused under
//! another, so neither sets anything of its own that changes code.

use wasmtime::{Config, Engine};

/// Stack of one guest. Rust guests keep a shadow stack of 1 MiB in their memory and run into that first.
pub const WASM_STACK: usize = 512 << 10;

/// Stack of the fiber a call runs on: the guest's and that of the host functions it calls. Reserved, touched only as used.
pub const ASYNC_STACK: usize = 2 << 20;

/// Settings for engines of compiler and executor. What is not set here are wasmtime's defaults, of which these are meant: Cranelift
/// at its best speed, instances allocated on demand, copy-on-write images, default reservations and guards. Off are the
/// proposals no toolchain of ours needs; SIMD, bulk memory, multi-value, reference types and extended constants are what compilers emit.
#[must_use]
pub fn config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(ASYNC_STACK)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false);
    config
}

/// An engine of [`config`].
///
/// # Errors
/// Where this host cannot run it.
pub fn engine() -> wasmtime::Result<Engine> {
    Engine::new(&config())
}
