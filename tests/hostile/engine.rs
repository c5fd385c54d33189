//! Attacks of a guest on its engine.

use brine_kit::wat::wasm;

use crate::guests;
use crate::rig::{AT_ONCE, CPU, LIMITS, Rig, WALL, fails, hostile, returns, text};

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_go_wrong() {
    let rig = Rig::start(&format!("  {LIMITS}\n")).await;
    for (name, guest, expect) in guests::wrong() {
        rig.install(name, &wasm(&guest)).await;
        let args = if guest.contains("(param \"text\"") { vec![text("some text")] } else { Vec::new() };
        let budget = if expect.contains("CPU") { CPU } else { AT_ONCE };
        rig.attack(&format!("{name}.run"), args, budget, &fails(expect)).await;
    }
    for (name, guest, expect) in
        [("memorygrow", guests::memory_grow(), "1024"), ("tablegrow", guests::table_grow(), "4190001")]
    {
        rig.install(name, &wasm(&guest)).await;
        rig.attack(&format!("{name}.run"), Vec::new(), CPU, &returns(expect)).await;
    }
    rig.install("resources", &wasm(guests::resources())).await;
    rig.attack(
        "resources.run",
        Vec::new(),
        CPU,
        &fails("resources.run was stopped: its limit of 1000 handles is used up"),
    )
    .await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_guest_that_goes_wrong() {
    let rig = Rig::start(&format!("  {LIMITS}\n  modules:\n    hostile: {}\n", crate::asks::NOTHING)).await;
    rig.install("hostile", &hostile()).await;
    rig.attack("hostile.spin", vec![], CPU, &fails("hostile.spin was stopped: its CPU limit of 500 ms is used up"))
        .await;
    rig.attack(
        "hostile.dive",
        vec![0.into()],
        AT_ONCE,
        &fails("hostile.dive trapped: out of bounds memory access (its own stack may be used up)"),
    )
    .await;
    let said =
        "hostile.trap trapped: it gave up (`unreachable` was executed); its last log line: panicked at …: my panic";
    rig.attack("hostile.trap", vec![text("my panic")], AT_ONCE, &fails(said)).await;
    rig.attack("hostile.grow", vec![], CPU, &returns("…MiB")).await;
    let wall = "test.sleep was stopped: its wall clock limit of 6 s is used up";
    rig.attack("test.sleep", vec![3600.into()], WALL, &fails(wall)).await;
    rig.end().await;
}
