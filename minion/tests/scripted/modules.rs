//! A stand-in for the sandbox: a module `test`, and installed modules.

use std::path::{Path, PathBuf};
use std::process::Command;

use brine_minion::config::Package;

/// The standard module `test`. This has the signatures of its functions; [`crate::functions`] has their behaviour.
const TEST: &str = r#"(component
    (core module $m
        (func (export "ping") (result i32) i32.const 1)
        (func (export "kwargs") (param i32)))
    (core instance $i (instantiate $m))
    (func (export "ping") (result bool) (canon lift (core func $i "ping")))
    (func (export "mode") (result bool) (canon lift (core func $i "ping")))
    (func (export "kwargs") (param "test" bool) (canon lift (core func $i "kwargs"))))"#;

/// A module on the master's file server.
const FETCHED: &str = r#"(component
    (core module $m (func (export "fun") (result i32) i32.const 7))
    (core instance $i (instantiate $m))
    (func (export "fun") (result u32) (canon lift (core func $i "fun"))))"#;

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
    const NAME: &[u8] = b"\x04text";
    let mut wasm = wat::parse_str(FETCHED).unwrap();
    let size = u32::try_from(NAME.len() + text.len()).unwrap();
    wasm.push(0);
    // LEB128, always in five bytes.
    wasm.extend((0..4).map(|n| u8::try_from(size >> (7 * n) & 0x7f).unwrap() | 0x80));
    wasm.push(u8::try_from(size >> 28).unwrap());
    wasm.extend(NAME);
    wasm.extend(text);
    wasm
}

/// Returns the package: the two programs, and the standard module in a folder below `dir`.
pub fn package(dir: &Path) -> Package {
    let modules = dir.join("standard");
    std::fs::create_dir_all(&modules).unwrap();
    std::fs::write(modules.join("test.wasm"), wat::parse_str(TEST).unwrap()).unwrap();
    Package { executor: program("brine-executor"), compiler: program("brine-compiler"), modules }
}

/// Returns a program beside the tests or in `BRINE_LIB`, and builds it if it does not exist.
#[expect(clippy::disallowed_methods, reason = "cargo, which builds the program")]
fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder =
        std::env::var_os("BRINE_LIB").map_or_else(|| own.ancestors().nth(2).unwrap().to_owned(), PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        let built = Command::new(env!("CARGO")).args(["build", "-p", name]).status().unwrap();
        assert!(built.success() && path.exists(), "{} is missing; `make build` makes it", path.display());
    }
    path
}
