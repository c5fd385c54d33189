//! A large module over a slow, interrupted link: received parts are not sent again, jobs continue meanwhile, and the
//! log reports the progress.

use brine_kit::programs::example;
use brine_kit::wait::wait_for;
use brine_kit::wat::{component, wasm};
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::json;

use crate::link::Link;

/// Bytes per second of each connection: slow enough that the log says how far the file is.
const RATE: u64 = 500_000;
const SIZE: usize = 10 << 20;

/// Returns an incompressible component of this size with a function that returns 7.
fn large() -> Vec<u8> {
    let mut state = 1u32;
    let data: String = (0..SIZE)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'0' + (state >> 24) as u8 % 64)
        })
        .map(|c| if c == '"' || c == '\\' { '_' } else { c })
        .collect();
    let core =
        format!(r#"(memory 200) (data (i32.const 0) "{data}") (func (export "number") (result i32) i32.const 7)"#);
    wasm(component("", &core, &[("number", "(result u32)")]))
}

#[test]
fn a_large_module_comes_once_over_a_slow_link_that_breaks() {
    let mut master = Master::start("");
    let link = Link::to(master.ret_port, Some(RATE));
    let mut minion = Minion::prepare(Kind::Brine, "web1", link.port, "autoload_dynamic_modules: True");
    master.accept(&mut minion);
    assert_eq!(master.json("web1", &["saltutil.sync_modules"]), json!([]));
    let wasm = large();
    master.serve("_modules/large.wasm", &wasm);
    let before = link.bytes();
    let came = || link.bytes() - before;
    master.start_job(&["web1", "saltutil.sync_modules"]);
    wait_for("a part of it", || (came() > 3 << 20).then_some(()));
    // A job that needs another new module does not wait for the large one.
    master.serve("_modules/hello.wasm", &std::fs::read(example("hello")).expect("an example"));
    assert_eq!(master.json("web1", &["hello.world", "you"]), json!("Hello, you! This is web1."));
    assert_eq!(master.json("web1", &["test.ping"]), json!(true));
    assert!(came() < SIZE as u64, "the large one was there already");

    master.kill();
    master.up();
    wait_for("the large module", || {
        // The minion has signed in again and has the whole module.
        let called = master.salt(&["--out=json", "--static", "-t", "2", "web1", "large.number"]);
        called.stdout.contains(": 7").then_some(())
    });
    println!("{} bytes came for {SIZE}", came());
    // What was under way when the link broke: about a second of the work of its three connections. All anew would be a third more.
    let most = (SIZE + SIZE / 16) as u64 + 3 * RATE;
    assert!(came() < most, "{} bytes came: too much of it was fetched again", came());
    let log = minion.running().log_text();
    assert!(log.contains("fetching module large: ") && log.contains("%), "), "no progress:\n{log}");
}
