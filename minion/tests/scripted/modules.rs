//! A stand-in for the sandbox: a module `test`, and installed modules.

use std::path::Path;

use brine_kit::programs::sandbox_program;
use brine_kit::wat::{add_section, component, wasm};
use brine_minion::config::Package;

/// The standard module `test`. This has the signatures of its functions; [`crate::functions`] has their behaviour.
const TEST: &str = r#"
    (func (export "ping") (result i32) i32.const 1)
    (func (export "mode") (result i32) i32.const 1)
    (func (export "kwargs") (param i32))"#;
const FUNCTIONS: [(&str, &str); 3] =
    [("ping", "(result bool)"), ("mode", "(result bool)"), ("kwargs", r#"(param "test" bool)"#)];

/// A module on the master's file server.
const FETCHED: &str = r#"(func (export "fun") (result i32) i32.const 7)"#;

/// Returns the bytes of a module with this text in it.
pub fn module(text: &str) -> Vec<u8> {
    with_section(text.as_bytes())
}

/// Returns a module of exactly this size.
pub fn module_of_size(size: usize) -> Vec<u8> {
    let text: Vec<u8> = (0..size - module("").len()).map(|n| u8::try_from(n % 251).unwrap()).collect();
    with_section(&text)
}

/// Returns the component with a custom section of this content.
fn with_section(text: &[u8]) -> Vec<u8> {
    let mut wasm = wasm(component("", FETCHED, &[("fun", "(result u32)")]));
    add_section(&mut wasm, "text", text);
    wasm
}

/// Returns the package: the two programs, and the standard module in a folder below `dir`.
pub fn package(dir: &Path) -> Package {
    let modules = dir.join("standard");
    std::fs::create_dir_all(&modules).unwrap();
    std::fs::write(modules.join("test.wasm"), wasm(component("", TEST, &FUNCTIONS))).unwrap();
    Package { executor: sandbox_program("brine-executor"), compiler: sandbox_program("brine-compiler"), modules }
}
