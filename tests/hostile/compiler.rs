//! What a module can do before it ever runs: to the reader and to the compiler, in their cage.

use std::time::Duration;

use crate::guests::{self, wasm};
use crate::rig::{AT_ONCE, Rig, hostile};

/// Small, so that bombs do not keep a machine busy for long: what they would take is many times as much.
const CAGE: &str = "  compile: {cpu: 4s, memory: 512MiB, wall: 30s, module: 8MiB}\n";
/// The compiler's seconds of CPU are longer on the clock: it steps back behind everything else.
const CAGED: Duration = Duration::from_secs(12);

#[tokio::test(flavor = "multi_thread")]
async fn bombs() {
    let rig = Rig::start(CAGE).await;
    let memory_or_cpu = "module bomb …s more than … to compile";
    for (what, bomb) in [
        ("nested components", guests::nested(10, 8)),
        ("loops", guests::loops(20_000)),
        ("functions", guests::functions(900_000)),
        ("blocks", guests::blocks(200_000)),
        ("straight", guests::straight(300_000)),
    ] {
        let bomb = wasm(&bomb);
        println!("{what}: {} bytes", bomb.len());
        rig.refused("bomb", &bomb, CAGED, memory_or_cpu).await;
        // Once is enough.
        rig.refused("bomb", &bomb, AT_ONCE, memory_or_cpu).await;
    }
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_modules() {
    let rig = Rig::start(CAGE).await;
    let fine = wasm(&guests::fine());
    let good = hostile();
    for (what, bytes, expect) in [
        ("nothing", Vec::new(), "…"),
        ("garbage", vec![0x17; 4096], "…"),
        ("text", guests::fine().into_bytes(), "…"),
        ("core", wasm("(module (func (export \"run\")))"), "…"),
        ("cut", fine[..fine.len() - 3].to_vec(), "…"),
        ("half", good[..good.len() / 2].to_vec(), "…"),
        ("many", wasm(&guests::many_instances(10_000)), "…"),
        ("deep", guests::deep(1_000), "…"),
        ("types", wasm(&guests::types(12)), "…"),
        ("data", wasm(&guests::data(45 << 20)), "…"),
        ("elf", std::fs::read("/proc/self/exe").unwrap()[..4096].to_vec(), "…"),
    ] {
        println!("{what}");
        rig.refused("bad", &bytes, AT_ONCE * 2, expect).await;
    }
    // Bits that the wire or a disk lost.
    for bit in (0..fine.len() * 8).step_by(41) {
        let mut bytes = fine.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let _ = rig.runtime().install("flipped", &bytes, None, "base").await;
    }
    for name in ["", ".", "..", "../x", "a/b", "x\0", "\u{1b}[31mred", "a b", &"x".repeat(300), "test\n"] {
        rig.refused(name, &fine, AT_ONCE, "…").await;
    }
    rig.end().await;
}
