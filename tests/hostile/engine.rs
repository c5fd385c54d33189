//! What a guest can do to its engine.

use crate::guests::{self, wasm};
use crate::rig::{AT_ONCE, CPU, LIMITS, Rig, fails, hostile, returns, text};

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_go_wrong() {
    let rig = Rig::start(&format!("  {LIMITS}\n")).await;
    for (name, guest, expect) in guests::wrong() {
        rig.install(name, &wasm(&guest)).await;
        let args = if guest.contains("(param \"text\"") { vec![text("some text")] } else { Vec::new() };
        let budget = if expect.contains("CPU") { CPU } else { AT_ONCE };
        rig.attack(&format!("{name}.run"), args, budget, &fails(expect)).await;
    }
    for (name, guest, expect) in [
        ("memorygrow", guests::memory_grow(), "1024"),
        ("tablegrow", guests::table_grow(), "…"),
    ] {
        rig.install(name, &wasm(&guest)).await;
        rig.attack(&format!("{name}.run"), Vec::new(), CPU, &returns(expect)).await;
    }
    rig.install("resources", &wasm(&guests::resources())).await;
    rig.attack("resources.run", Vec::new(), CPU, &fails("…")).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_guest_that_goes_wrong() {
    let rig = Rig::start(&format!("  {LIMITS}\n  modules:\n    hostile: {}\n", crate::asks::NOTHING)).await;
    rig.install("hostile", &hostile()).await;
    rig.attack("hostile.spin", vec![], CPU, &fails("hostile.spin was stopped: its CPU limit of 500 ms is used up")).await;
    rig.attack("hostile.dive", vec![0.into()], AT_ONCE, &fails("…")).await;
    rig.attack("hostile.trap", vec![text("my panic")], AT_ONCE, &fails("…")).await;
    rig.attack("hostile.grow", vec![], CPU, &returns("…MiB")).await;
    rig.attack("test.sleep", vec![3600.into()], crate::rig::WALL, &fails("…")).await;
    rig.end().await;
}
