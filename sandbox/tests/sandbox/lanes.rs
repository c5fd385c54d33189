//! While a large module is compiled, only jobs that need it wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_kit::wait::{until, within};
use brine_kit::wat::{number, wasm};
use brine_sandbox::{Broker, Installed, Preparing, SMALL_MODULE, Sandbox, StartError};
use rmpv::Value;

use crate::components::loops;
use crate::support::{Home, Nesting, call};

/// A module on which the compiler works until its cage ends it.
fn large() -> Vec<u8> {
    let size = usize::try_from(SMALL_MODULE).unwrap();
    let data = format!(r#"(core module $d (memory 32) (data (i32.const 0) "{}"))"#, "x".repeat(size));
    wasm(loops(20_000).replacen("(component", &format!("(component {data}"), 1))
}

#[tokio::test(flavor = "multi_thread")]
async fn small_modules_do_not_wait_for_a_large_one() {
    let home = Home::new().standard("test", &number(1));
    let (sandbox, _grip) = home.start().await;
    assert_eq!(call(&sandbox, "test.number").await.value, Value::from(1));
    let compilers = || {
        let stages = std::fs::read_dir(&home.config.cache_dir).unwrap();
        stages.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("compile-")).count()
    };
    let install = |name: &'static str, wasm: Vec<u8>| {
        let sandbox = Arc::clone(&sandbox);
        tokio::spawn(async move { sandbox.install(name, &wasm, None, "base").await })
    };
    let one = install("one", large());
    until("the large one is compiled", || compilers() == 1).await;
    // Another large module waits for it. Its content differs, because the same content is compiled only once.
    let mut other = large();
    let data = other.windows(4).position(|window| window == b"xxxx").unwrap();
    other[data] = b'y';
    let two = install("two", other);

    for (name, n) in [("mine", 2), ("yours", 3)] {
        let started = Instant::now();
        let installed = within(sandbox.install(name, &wasm(number(n)), None, "base")).await.unwrap();
        assert_eq!(installed, Installed::New);
        assert_eq!(call(&sandbox, &format!("{name}.number")).await.value, Value::from(n));
        println!("{name}: first call after {:?}", started.elapsed());
    }
    // An update and a removal of a small module do not wait either.
    let updated = within(sandbox.install("mine", &wasm(number(4)), None, "base")).await.unwrap();
    assert_eq!(updated, Installed::Updated);
    within(sandbox.remove("yours")).await.unwrap();
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        let started = Instant::now();
        assert_eq!(call(&sandbox, "test.number").await.value, Value::from(1));
        slowest = slowest.max(started.elapsed());
    }
    println!("the slowest of 50 jobs of another module took {slowest:?}");
    assert!(!one.is_finished() && !two.is_finished());
    assert_eq!(compilers(), 1);
    sandbox.shutdown().await;
}

/// After an update of the engine, the start waits for small modules. Only jobs that name a large module wait for that
/// one.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_does_not_wait_for_large_modules() {
    let mut home = Home::new().standard("test", &number(1));
    home.config.settings.compile.cpu_s = 3;
    let (sandbox, _grip) = home.start().await;
    sandbox.shutdown().await;
    let size = usize::try_from(SMALL_MODULE).unwrap();
    let data = format!(r#"(component (core module $d (memory 32) (data (i32.const 0) "{}"))"#, "x".repeat(size));
    let big = wasm(number(7).replacen("(component", &data, 1));
    for (name, wasm) in [("big", big), ("bomb", large()), ("mine", wasm(number(2)))] {
        std::fs::write(home.config.modules_dir.join(format!("{name}.wasm")), wasm).unwrap();
    }
    let started = Instant::now();
    let (sandbox, _grip) = within(home.start()).await;
    println!("up within {:?}", started.elapsed());
    assert_eq!(sandbox.names(), ["mine", "test"]);
    for (function, n) in [("test.number", 1), ("mine.number", 2)] {
        assert_eq!(call(&sandbox, function).await.value, Value::from(n));
    }
    let waits = Arc::clone(&sandbox);
    let waits = tokio::spawn(async move { call(&waits, "big.number").await });
    // The other large module is compiled before or after it, and the cage ends its compiler.
    let list = sandbox.report(brine_sandbox::PolicyOp::Check).await.unwrap().to_string();
    assert!(list.contains("is compiled right now; try again in a moment"), "{list}");
    let outcome = within(waits).await.unwrap();
    assert_eq!(outcome.value, Value::from(7), "{outcome:?}");
    sandbox.shutdown().await;
}

/// What needs no broker is done before there is one: a new minion makes its key meanwhile. A start that is given up starts nothing.
#[tokio::test(flavor = "multi_thread")]
async fn standard_modules_are_compiled_before_the_broker_comes() {
    let names = ["one", "two", "three", "four", "five"];
    let home = names.iter().zip(1..).fold(Home::new(), |home, (name, n)| home.standard(name, &number(n)));
    let home = home.standard("broken", "(component (import \"no\" (func)))");
    let (give, given) = tokio::sync::oneshot::channel::<Arc<dyn Broker>>();
    let coming = async { given.await.ok() };
    let starting =
        tokio::spawn(Sandbox::start_before(home.config.clone(), coming, home.restarts.clone(), Preparing::First));
    until("all are compiled", || home.config.cache_dir.exists() && home.compiled().len() == names.len()).await;
    assert!(!starting.is_finished());
    assert!(give.send(Arc::new(Nesting::default())).is_ok());
    let sandbox = within(starting).await.unwrap().unwrap();
    for (name, n) in names.iter().zip(1..) {
        assert_eq!(call(&sandbox, &format!("{name}.number")).await.value, Value::from(n));
    }
    // One that cannot be used is left out, and the others stay.
    assert_eq!(sandbox.names(), ["five", "four", "one", "three", "two"]);
    sandbox.shutdown().await;

    let given_up =
        Sandbox::start_before(home.config.clone(), std::future::ready(None), home.restarts.clone(), Preparing::First);
    assert!(matches!(within(given_up).await, Err(StartError::GivenUp)));
}
