//! Components as text, for attacks that need raw WebAssembly.

use brine_kit::wat::component;

/// Returns a component around one core module that exports `run`, without memory or imports.
fn plain(items: &str) -> String {
    component("", items, &[("run", "(result u32)")])
}

const RUN: &str = r#"(func (export "run") (result i32) i32.const 1)"#;

/// Returns a component whose `run(text: string) -> string` is implemented by this core code, with `memory` and
/// `realloc`.
fn with_text(memory: u32, realloc: &str, run: &str) -> String {
    format!(
        r#"(component
            (core module $m
                (memory (export "memory") {memory})
                (func $realloc (export "realloc") (param i32 i32 i32 i32) (result i32) {realloc})
                (func (export "run") (param i32 i32) (result i32) {run}))
            (core instance $i (instantiate $m))
            (func (export "run") (param "text" string) (result string)
                (canon lift (core func $i "run") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))"#
    )
}

/// Faulty core WebAssembly: description, text, and the error of `run`.
pub(crate) fn wrong() -> Vec<(&'static str, String, &'static str)> {
    let cpu = "….run was stopped: its CPU limit of 500 ms is used up";
    let here = "i32.const 1024";
    vec![
        ("startloop", plain(&format!("(start $s) (func $s (loop $l (br $l))) {RUN}")), cpu),
        ("reallocloop", with_text(1, "(loop $l (br $l)) unreachable", "i32.const 0"), cpu),
        (
            "copyloop",
            plain(
                r#"(memory 500) (func (export "run") (result i32)
                    (loop $l (memory.copy (i32.const 0) (i32.const 1000000) (i32.const 30000000)) (br $l)) unreachable)"#,
            ),
            cpu,
        ),
        (
            "recursion",
            plain(r#"(func $f (export "run") (result i32) (i32.add (call $f) (i32.const 1)))"#),
            "….run trapped: stack overflow",
        ),
        (
            "reallocrecursion",
            with_text(1, "(call $realloc (local.get 0) (local.get 1) (local.get 2) (local.get 3))", here),
            "….run trapped: stack overflow",
        ),
        (
            "outofbounds",
            plain(r#"(memory 1) (func (export "run") (result i32) (i32.load (i32.const -4)))"#),
            "….run trapped: out of bounds memory access (its own stack may be used up)",
        ),
        (
            "unreachable",
            plain(r#"(func (export "run") (result i32) unreachable)"#),
            "….run trapped: it gave up (`unreachable` was executed)",
        ),
        (
            "division",
            plain(r#"(func (export "run") (result i32) (i32.div_u (i32.const 1) (i32.const 0)))"#),
            "….run trapped: integer divide by zero",
        ),
        (
            "reallocbeyond",
            with_text(1, "i32.const -16", here),
            "….run cannot go on: realloc return: beyond end of memory",
        ),
        ("realloctrap", with_text(1, "unreachable", here), "….run trapped: it gave up (`unreachable` was executed)"),
        ("unaligned", with_text(1, "i32.const 8", "i32.const 1025"), "….run cannot go on: return pointer not aligned"),
        (
            "longtext",
            with_text(1, "i32.const 8", "(i32.store (i32.const 1028) (i32.const -1)) i32.const 1024"),
            "….run cannot go on: string pointer/length out of bounds of memory",
        ),
        (
            "nottext",
            with_text(
                1,
                "i32.const 8",
                "(i32.store (i32.const 1024) (i32.const 2048)) (i32.store (i32.const 1028) (i32.const 1))
                 (i32.store8 (i32.const 2048) (i32.const 255)) i32.const 1024",
            ),
            "….run cannot go on: invalid utf-8 sequence of 1 bytes from index 0",
        ),
        (
            "largememory",
            plain(&format!("(memory 65536) {RUN}")),
            "….run was stopped: its memory limit of 64 MiB is used up",
        ),
        (
            "memories",
            copies(50, "(memory 1)"),
            "….run cannot go on: resource limit exceeded: memory count too high at …",
        ),
        (
            "tables",
            copies(99, "(table 1 funcref)"),
            "….run cannot go on: resource limit exceeded: table count too high at …",
        ),
        (
            "largetable",
            plain(&format!("(table 10000000 funcref) {RUN}")),
            "….run was stopped: its memory limit of 64 MiB is used up",
        ),
        ("instances", copies(900, ""), "….run cannot go on: resource limit exceeded: instance count too high at …"),
    ]
}

/// Returns `count` instances of a core module that contains this item.
fn copies(count: usize, item: &str) -> String {
    let instances = "(core instance (instantiate $n))".repeat(count);
    format!(
        r#"(component
            (core module $n {item})
            {instances}
            (core module $m {RUN})
            (core instance $i (instantiate $m))
            (func (export "run") (result u32) (canon lift (core func $i "run"))))"#
    )
}

/// `run() -> u32` returns the size at which a table cannot grow further.
pub(crate) fn table_grow() -> String {
    plain(
        r#"(table $t 1 funcref) (func (export "run") (result i32)
            (loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 10000)) (i32.const -1))))
            (table.size $t))"#,
    )
}

/// The same for memory, in pages.
pub(crate) fn memory_grow() -> String {
    plain(
        r#"(memory 1) (func (export "run") (result i32)
            (loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
            (memory.size))"#,
    )
}

/// `run() -> u32` creates resources endlessly.
pub(crate) fn resources() -> String {
    r#"(component
        (type $r (resource (rep i32)))
        (core func $new (canon resource.new $r))
        (core module $m
            (import "h" "new" (func $new (param i32) (result i32)))
            (func (export "run") (result i32)
                (loop $l (drop (call $new (i32.const 7))) (br $l)) unreachable))
        (core instance $i (instantiate $m (with "h" (instance (export "new" (func $new))))))
        (func (export "run") (result u32) (canon lift (core func $i "run"))))"#
        .to_owned()
}

/// Returns a component that imports one function of an interface.
pub(crate) fn importing(interface: &str) -> String {
    format!(r#"(component (import "{interface}" (instance (export "f" (func)))) {})"#, &inner())
}

/// `run() -> u32` hands content to the minion without end, and has it put nowhere: a thousand times a mebibyte.
pub(crate) fn staging() -> String {
    r#"(component
        (import "brine:host/changes@1.0.0" (instance $changes
            (export "stage" (func (param "stage" (option u64)) (param "data" (list u8)) (result (result u64 (error string)))))))
        (core module $memory
            (memory (export "memory") 18)
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 2048))
        (core instance $mem (instantiate $memory))
        (core func $stage (canon lower (func $changes "stage")
            (memory (core memory $mem "memory")) (realloc (core func $mem "realloc"))))
        (core module $m
            (import "m" "memory" (memory 18))
            (import "h" "stage" (func $stage (param i32 i64 i32 i32 i32)))
            (func (export "run") (result i32) (local $times i32)
                (call $stage (i32.const 0) (i64.const 0) (i32.const 65536) (i32.const 1048576) (i32.const 1024))
                (loop $more
                    (if (i32.load8_u (i32.const 1024)) (then unreachable))
                    (call $stage (i32.const 1) (i64.load (i32.const 1032)) (i32.const 65536) (i32.const 1048576) (i32.const 1024))
                    (br_if $more (i32.lt_u (local.tee $times (i32.add (local.get $times) (i32.const 1))) (i32.const 1000))))
                local.get $times))
        (core instance $i (instantiate $m
            (with "m" (instance $mem))
            (with "h" (instance (export "stage" (func $stage))))))
        (func (export "run") (result u32) (canon lift (core func $i "run"))))"#
        .to_owned()
}

/// Returns the part of a component that `plain` generates.
fn inner() -> String {
    let whole = plain(RUN);
    let inner = whole.strip_prefix("(component").and_then(|rest| rest.strip_suffix(')'));
    inner.expect("it is one component").to_owned()
}

/// `run() -> u32` returns 1.
pub(crate) fn fine() -> String {
    plain(RUN)
}

/// Returns a component with this many instances of an inner component.
pub(crate) fn many_instances(count: usize) -> String {
    format!("(component (component $c) {} {})", "(instance (instantiate $c))".repeat(count), inner())
}

/// Returns nested components, each level instantiated `width` times.
pub(crate) fn nested(width: usize, levels: usize) -> String {
    let mut text = String::new();
    for level in 0..levels {
        let below = match level {
            0 => String::new(),
            _ => "(instance (instantiate $c))".repeat(width),
        };
        text = format!("{} {below}", if level == 0 { String::new() } else { format!("(component $c {text})") });
    }
    format!("(component (component $c {text}) {} {})", "(instance (instantiate $c))".repeat(width), inner())
}

/// Returns components nested this deep.
pub(crate) fn deep(levels: usize) -> Vec<u8> {
    // Built from bytes, because a parser of text would fail first.
    let mut component: Vec<u8> = b"\0asm\x0d\0\x01\0".to_vec();
    for _ in 0..levels {
        let mut outer = b"\0asm\x0d\0\x01\0".to_vec();
        outer.push(4);
        leb(component.len(), &mut outer);
        outer.extend(component);
        component = outer;
    }
    component
}

fn leb(mut number: usize, out: &mut Vec<u8>) {
    loop {
        let byte = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        if number == 0 {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

/// Returns types of which each is the square of the one before.
pub(crate) fn types(levels: usize) -> String {
    let mut text = r"(type $t0 (tuple u8 u8))".to_owned();
    for level in 1..=levels {
        let below = format!("$t{}", level - 1);
        text += &format!("(type $t{level} (tuple {below} {below} {below} {below} {below} {below} {below} {below}))");
    }
    format!(r#"(component {text} (import "f" (func (param "a" $t{levels}))) {})"#, inner())
}

/// Returns one function with this many loops over a thousand locals.
pub(crate) fn loops(count: usize) -> String {
    let body = "(loop $l (local.set 3 (i32.add (local.get 3) (local.get 7))) (br_if $l (local.get 3)))".repeat(count);
    plain(&format!(r#"(func (export "run") (result i32) (local {}) {body} i32.const 1)"#, "i32 ".repeat(1_000)))
}

/// Returns this many empty functions.
pub(crate) fn functions(count: usize) -> String {
    plain(&format!("{} {RUN}", "(func)".repeat(count)))
}

/// Returns one function with this many additions and no branch.
pub(crate) fn straight(count: usize) -> String {
    let body = "(local.set 0 (i32.mul (i32.add (local.get 0) (i32.const 77777)) (local.get 0)))".repeat(count);
    plain(&format!(r#"(func (export "run") (result i32) (local i32) {body} local.get 0)"#))
}

/// Returns one function with this many blocks over two thousand locals.
pub(crate) fn blocks(count: usize) -> String {
    let body = "(block $b (br_if $b (local.get 5)) (local.set 6 (local.get 9)))".repeat(count);
    plain(&format!(r#"(func (export "run") (result i32) (local {}) {body} i32.const 1)"#, "i32 ".repeat(2_000)))
}

/// Returns a component whose memory is full from the start.
pub(crate) fn data(bytes: usize) -> String {
    plain(&format!(r#"(memory {}) (data (i32.const 0) "{}") {RUN}"#, bytes / 65_536 + 1, "x".repeat(bytes)))
}
