//! The one configuration of wasmtime that compiler and executor share.
