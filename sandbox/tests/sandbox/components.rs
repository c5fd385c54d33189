//! Components that ask for something.

use brine_kit::wat::{component, number_with};

/// `nap(ns: u64)` sleeps by WASI's clock; `number() -> u32` returns 5.
pub(crate) const NAPS: &str = r#"(component
    (import "wasi:io/poll@0.2.0" (instance $poll
        (export "pollable" (type $pollable (sub resource)))
        (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
    (alias export $poll "pollable" (type $pollable))
    (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
        (alias outer 1 $pollable (type $pollable))
        (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
    (core func $subscribe (canon lower (func $clock "subscribe-duration")))
    (core func $block (canon lower (func $poll "[method]pollable.block")))
    (core module $m
        (import "host" "subscribe" (func $subscribe (param i64) (result i32)))
        (import "host" "block" (func $block (param i32)))
        (func (export "nap") (param i64) (call $block (call $subscribe (local.get 0))))
        (func (export "number") (result i32) i32.const 5))
    (core instance $i (instantiate $m (with "host" (instance
        (export "subscribe" (func $subscribe)) (export "block" (func $block))))))
    (func (export "nap") (param "ns" u64) (canon lift (core func $i "nap")))
    (func (export "number") (result u32) (canon lift (core func $i "number"))))"#;

/// `ask() -> bool` calls the broker (`kill` of `brine:host/jobs`) and returns its result; `spin()` never ends;
/// `number() -> u32` returns 7.
pub(crate) const ASKS: &str = r#"(component
    (import "brine:host/jobs@1.0.0" (instance $jobs (export "kill" (func (param "jid" string) (result bool)))))
    (core module $memory (memory (export "memory") 1) (data (i32.const 0) "x"))
    (core instance $memory (instantiate $memory))
    (core func $kill (canon lower (func $jobs "kill") (memory (core memory $memory "memory"))))
    (core module $m
        (import "host" "kill" (func $kill (param i32 i32) (result i32)))
        (func (export "ask") (result i32) (call $kill (i32.const 0) (i32.const 1)))
        (func (export "number") (result i32) i32.const 7)
        (func (export "spin") (loop $l (br $l))))
    (core instance $i (instantiate $m (with "host" (instance (export "kill" (func $kill))))))
    (func (export "ask") (result bool) (canon lift (core func $i "ask")))
    (func (export "number") (result u32) (canon lift (core func $i "number")))
    (func (export "spin") (canon lift (core func $i "spin"))))"#;

/// [`ASKS`] with an import that needs a grant of directories.
pub(crate) fn reaches() -> String {
    const METADATA: &str = r#"(component
    (import "brine:host/metadata@1.0.0" (instance
        (export "user-name" (func (param "uid" u32) (result (option string))))))"#;
    ASKS.replacen("(component", METADATA, 1)
}

/// `call0(what: string) -> bool` to `call9`: each uses the broker (`kill` of `brine:host/jobs`) to call a function, see
/// `support::Nesting`.
pub(crate) fn calls() -> String {
    let memory = r#"(memory (core memory $memory "memory"))"#;
    let exports: String = (0..10)
        .map(|n| {
            format!(
                r#"(func (export "call{n}") (param "what" string) (result bool)
                    (canon lift (core func $i "call") {memory} (realloc (core func $memory "realloc"))))"#
            )
        })
        .collect();
    format!(
        r#"(component
        (import "brine:host/jobs@1.0.0" (instance $jobs (export "kill" (func (param "jid" string) (result bool)))))
        (core module $memory
            (memory (export "memory") 1)
            (global $free (mut i32) (i32.const 1024))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                (global.get $free)
                (global.set $free (i32.add (global.get $free) (local.get 3)))))
        (core instance $memory (instantiate $memory))
        (core func $kill (canon lower (func $jobs "kill") {memory}))
        (core module $m
            (import "host" "kill" (func $kill (param i32 i32) (result i32)))
            (func (export "call") (param i32 i32) (result i32) (call $kill (local.get 0) (local.get 1))))
        (core instance $i (instantiate $m (with "host" (instance (export "kill" (func $kill))))))
        {exports})"#
    )
}

/// A component that imports one function of an interface and exports `number`.
pub(crate) fn importing(interface: &str) -> String {
    number_with(&format!(r#"(import "{interface}" (instance (export "f" (func))))"#), 1)
}

/// A function with many small loops over many locals: quadratic work for an optimising compiler.
pub(crate) fn loops(count: usize) -> String {
    let locals = "i32 ".repeat(1_000);
    let body: String = (0..count)
        .map(|n| {
            let local = n % 1_000;
            format!("(loop $l{n} (local.set {local} (i32.add (local.get {local}) (i32.const 1))) (br_if $l{n} (local.get {local})))")
        })
        .collect();
    let core = format!(r#"(func (export "number") (result i32) (local {locals}) {body} (local.get 0))"#);
    component("", &core, &[("number", "(result u32)")])
}
