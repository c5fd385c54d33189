//! A large module over a slow, interrupted link: received parts are not sent again, jobs continue meanwhile, and the
//! log reports the progress.
#![allow(clippy::disallowed_methods, reason = "a test's own sockets")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brine_kit::programs::example;
use brine_kit::wait::wait_for;
use brine_kit::wat::{component, wasm};
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::json;

/// Bytes per second of the link.
const RATE: u64 = 1_000_000;
const SIZE: usize = 10 << 20;

/// Forwards connections slowly and counts the received bytes.
struct Link {
    port: u16,
    bytes: Arc<AtomicU64>,
}

impl Link {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let link = Self { port: listener.local_addr().expect("bound").port(), bytes: Arc::default() };
        let bytes = Arc::clone(&link.bytes);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let (near_too, far_too) = (near.try_clone().expect("a socket"), far.try_clone().expect("a socket"));
                let bytes = Arc::clone(&bytes);
                std::thread::spawn(move || pass(near, far, None));
                std::thread::spawn(move || pass(far_too, near_too, Some(&bytes)));
            }
        });
        link
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, bytes: Option<&AtomicU64>) {
    let mut buffer = [0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        if let Some(bytes) = bytes {
            bytes.fetch_add(n as u64, Ordering::Relaxed);
            // Simulates the link's transmission time; this is no wait for a condition.
            std::thread::sleep(Duration::from_micros(n as u64 * 1_000_000 / RATE));
        }
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

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
    let link = Link::to(master.ret_port);
    let mut minion = Minion::prepare(Kind::Brine, "web1", link.port, "autoload_dynamic_modules: True");
    master.accept(&mut minion);
    assert_eq!(master.json("web1", &["saltutil.sync_modules"]), json!([]));
    let wasm = large();
    master.serve("_modules/large.wasm", &wasm);
    let before = link.bytes.load(Ordering::Relaxed);
    let came = || link.bytes.load(Ordering::Relaxed) - before;
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
    let twice = (SIZE + SIZE / 3) as u64;
    assert!(came() < twice, "{} bytes came: it was fetched again", came());
    let log = minion.running().log_text();
    assert!(log.contains("fetching module large: ") && log.contains("%), "), "no progress:\n{log}");
}
