//! Attacks by a module that never runs: on the reader and the compiler in their cage.

use std::time::Duration;

use brine_kit::wat::wasm;

use crate::guests;
use crate::rig::{AT_ONCE, Rig, hostile};

/// Small limits, so that bombs do not occupy a machine for long. Without limits they would take many times as much.
const CAGE: &str = "  compile: {cpu: 4s, memory: 512MiB, wall: 30s, module: 8MiB}\n";
/// The compiler's CPU time takes longer on the clock, because it runs at low priority.
const CAGED: Duration = Duration::from_secs(25);

const NOT_WASM: &str = r#"is not WebAssembly: it does not begin with "\0asm""#;
const NO_NAME: &str = "… cannot be a module's name: lower-case letters, digits and _ only, a letter first, at most 64";

#[tokio::test(flavor = "multi_thread")]
async fn bombs() {
    // They are made before the minion is weighed: what the allocator keeps of that is the test's and not the minion's.
    let bombs = [
        ("nested components", guests::nested(10, 8)),
        ("loops", guests::loops(20_000)),
        ("functions", guests::functions(900_000)),
        ("blocks", guests::blocks(200_000)),
    ]
    .map(|(what, bomb)| (what, wasm(bomb)));
    let large = wasm(guests::straight(600_000));

    let rig = Rig::start(CAGE).await;
    let memory_or_cpu = "module bomb …s more than … to compile";
    for (what, bomb) in &bombs {
        println!("{what}: {} bytes", bomb.len());
        rig.refused("bomb", bomb, CAGED, memory_or_cpu).await;
        // The second refusal is immediate.
        rig.refused("bomb", bomb, AT_ONCE, memory_or_cpu).await;
    }
    // A large module that is no bomb: it may take its time and memory, while good jobs continue.
    let sandbox = std::sync::Arc::clone(rig.sandbox());
    let installed =
        rig.beside("a large module", CAGED, async move { sandbox.install("large", &large, None, "base").await }).await;
    if let Err(why) = installed {
        rig.said("a large module", &why.to_string(), "module large …s more than … to compile");
    }
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_modules() {
    let rig = Rig::start(CAGE).await;
    let fine = wasm(guests::fine());
    let good = hostile();
    for (what, bytes, expect) in [
        ("nothing", Vec::new(), NOT_WASM),
        ("garbage", vec![0x17; 4096], NOT_WASM),
        ("text", guests::fine().into_bytes(), NOT_WASM),
        ("elf", std::fs::read("/proc/self/exe").unwrap()[..4096].to_vec(), NOT_WASM),
        (
            "core",
            wasm("(module (func (export \"run\")))"),
            "is a core WebAssembly module, not a component (wasm-component-ld or `wasm-tools component new` make one)",
        ),
        ("cut", fine[..fine.len() - 3].to_vec(), "is not a valid component: unexpected end-of-file (at offset …)"),
        ("half", good[..good.len() / 2].to_vec(), "is not a valid component: unexpected end-of-file (at offset …)"),
        (
            "many",
            wasm(guests::many_instances(10_000)),
            "is not a valid component: instances count exceeds limit of 1000 (at offset …)",
        ),
        ("deep", guests::deep(1_000), "exports no function"),
        (
            "types",
            wasm(guests::types(12)),
            "is not a valid component: effective type size exceeds the limit of 1000000 (at offset …)",
        ),
        ("data", wasm(guests::data(45 << 20)), "has 47186076 bytes; the limit (sandbox:compile:module) is 8388608"),
    ] {
        rig.refused(what, &bytes, AT_ONCE * 2, &format!("module {what} {expect}")).await;
    }
    // Flipped bits, as after a transmission or disk error.
    for bit in (0..fine.len() * 8).step_by(41) {
        let mut bytes = fine.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let _ = rig.sandbox().install("flipped", &bytes, None, "base").await;
    }
    for name in ["", ".", "..", "../x", "a/b", "x\0", "\u{1b}[31mred", "a b", &"x".repeat(300), "test\n"] {
        rig.refused(name, &fine, AT_ONCE, NO_NAME).await;
    }
    rig.end().await;
}
