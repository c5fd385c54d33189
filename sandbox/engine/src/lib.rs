//! The configuration of wasmtime that compiler and executor share. The engine refuses native code of another
//! configuration, so neither program changes a setting that affects code.

use wasmtime::{Config, Engine};

/// Bytes of the stack of one guest. Rust guests keep a shadow stack of 1 MiB in their memory and exhaust that first.
pub const WASM_STACK: usize = 512 << 10;

/// Bytes of the stack of a call's fiber: for the guest and for the host functions that it calls. It is reserved address
/// space; only used pages take memory.
pub const ASYNC_STACK: usize = 2 << 20;

/// The settings for the engines of compiler and executor. Other settings keep wasmtime's defaults, of which these
/// matter: Cranelift optimises for speed, instances are allocated on demand, memories have copy-on-write images,
/// reservations and guards have their default sizes. Proposals that no supported toolchain needs are off; compilers
/// emit SIMD, bulk memory, multi-value, reference types and extended constants.
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

/// Makes an engine with [`config`].
///
/// # Errors
/// When this host cannot run the engine.
pub fn engine() -> wasmtime::Result<Engine> {
    Engine::new(&config())
}
