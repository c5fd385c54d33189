//! Nested calls: recursion, cycles, and the grants that apply.

use crate::asks::NOTHING;
use crate::rig::{AT_ONCE, Rig, WALL, fails, hostile_as, returns, text, texts};

#[tokio::test(flavor = "multi_thread")]
async fn calls_within_calls() {
    let names: Vec<String> = (0..10).map(|n| format!("deep{n}")).collect();
    let mut settings = "  limits: {wall: 6s, cpu: 500ms}\n  modules:\n".to_owned();
    for name in &names {
        let granted = NOTHING.replace("functions: []", "functions: any");
        settings += &format!("    {name}: {granted}\n");
    }
    let granted = NOTHING.replace("functions: []", "functions: [\"test.*\", \"deep0.*\", \"hostile.*\", \"poor.*\"]");
    settings += &format!("    hostile: {granted}\n    rich: {}\n", NOTHING.replace("process: []", "process: any"));
    settings += &format!("    poor: {NOTHING}\n");
    let rig = Rig::start(&settings).await;
    for name in names.iter().map(String::as_str).chain(["hostile", "rich", "poor"]) {
        rig.install(name, &hostile_as(name)).await;
    }
    rig.attack("hostile.call", vec![text("test.ping")], AT_ONCE, &returns("true")).await;
    let refused = "hostile.call was stopped: functions.call was refused: module hostile may not call cmd.run; the owner of this host \
                   grants it by this line under sandbox: modules: in the minion's configuration: hostile: {…}";
    rig.attack("hostile.call", vec![text("cmd.run"), text("id")], AT_ONCE, &fails(refused)).await;
    let other = "hostile.call was stopped: functions.call was refused: module hostile may not call …; the owner of this host grants …";
    for name in ["rich.run", "Test.ping", "hostile2.spin"] {
        rig.attack("hostile.call", vec![text(name)], AT_ONCE, &fails(other)).await;
    }
    for name in ["test", "test.", ".ping", "test..ping", "test.*"] {
        let expect = fails("the name of a function is to be as in test.ping");
        rig.attack("hostile.call", vec![text(name)], AT_ONCE, &expect).await;
    }
    for name in ["test.ping\0", "test.ping\u{1b}[31m", "test.ping\nother.ping"] {
        let expect = fails("the name of a function has control characters");
        rig.attack("hostile.call", vec![text(name)], AT_ONCE, &expect).await;
    }
    // The called function's grants apply, not its caller's.
    let refused = "poor.which was stopped: process.which was refused: module poor may not run …/id; the owner of this host grants it by this line under sandbox: modules: in the minion's \
                   configuration: poor: {…}";
    rig.attack("hostile.call", vec![text("poor.which"), text("id")], AT_ONCE, &fails(refused)).await;
    // A function that is already being called, and a chain that is too long.
    let cycle = "'hostile.chain' is already being called: hostile.chain → hostile.chain";
    rig.attack("hostile.chain", vec![texts(&["hostile"])], AT_ONCE, &fails(cycle)).await;
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let deep = "'deep7.chain' is not called: calls go 8 functions deep at most: hostile.chain → deep0.chain → …";
    rig.attack("hostile.chain", vec![texts(&all)], AT_ONCE, &fails(deep)).await;
    rig.attack("hostile.chain", vec![texts(&all[..7])], AT_ONCE, &returns("the end")).await;
    // An endless function uses up its caller's time and no more.
    rig.attack(
        "hostile.call",
        vec![text("test.sleep"), text("3600")],
        WALL,
        &fails("…was stopped: its wall clock limit of … is used up"),
    )
    .await;
    rig.attack(
        "hostile.call",
        vec![text("deep0.spin")],
        WALL,
        &fails("deep0.spin was stopped: its CPU limit of 500 ms is used up"),
    )
    .await;
    rig.end().await;
}
