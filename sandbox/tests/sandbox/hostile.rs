//! Components that attack the compiler: each is stopped in the compiler's cage, while other jobs continue.

use std::time::{Duration, Instant};

use brine_kit::wait::within;
use brine_kit::wat::{nested, number, wasm};
use brine_sandbox::InstallError;
use rmpv::Value;

use crate::components::loops;
use crate::support::{Home, call};

async fn dies_in_its_cage(bomb: Vec<u8>, memory: u64, cpu_s: u64, expect: &[&str]) {
    let mut home = Home::new();
    home.config.settings.compile.memory = memory;
    home.config.settings.compile.cpu_s = cpu_s;
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    let mut install = Box::pin(sandbox.install("bomb", &bomb, None, "base"));
    let mut answered = 0;
    let started = Instant::now();
    let error = loop {
        tokio::select! {
            biased;
            result = &mut install => break result.unwrap_err(),
            outcome = call(&sandbox, "mine.number") => {
                assert_eq!(outcome.value, Value::from(1));
                answered += 1;
            }
        }
    };
    println!("{} bytes: {error} ({:?}, {answered} jobs meanwhile)", bomb.len(), started.elapsed());
    let text = error.to_string();
    assert!(expect.iter().any(|expect| text == *expect), "{text}");
    assert!(answered > 10, "{answered}");
    // The second refusal needs no compiler.
    let again = Instant::now();
    let error = within(sandbox.install("bomb", &bomb, None, "base")).await.unwrap_err();
    assert!(matches!(error, InstallError::Refused { before: true, .. }), "{error:?}");
    assert!(again.elapsed().as_secs_f32() < started.elapsed().as_secs_f32());
    assert_eq!(sandbox.names(), ["mine"]);
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_components() {
    let bomb = wasm(nested(10, 8));
    assert!(bomb.len() < 2_000, "{}", bomb.len());
    let expect = [
        "module bomb needs more than 512 MiB of memory to compile",
        "module bomb takes more than 20 s of CPU to compile",
    ];
    dies_in_its_cage(bomb, 512 << 20, 20, &expect).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_loops() {
    let expect = [
        "module bomb takes more than 2 s of CPU to compile",
        "module bomb needs more than 512 MiB of memory to compile",
    ];
    dies_in_its_cage(wasm(loops(20_000)), 512 << 20, 2, &expect).await;
}

/// The timeout may be due to a busy machine, so a later attempt compiles the module again.
#[tokio::test(flavor = "multi_thread")]
async fn a_compiler_that_takes_too_long_is_ended_and_nothing_is_held_against_the_module() {
    let mut home = Home::new();
    home.config.settings.compile.wall = Duration::from_millis(250);
    // Restores the default limit.
    let compile = std::mem::take(&mut home.config.settings.compile);
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    sandbox.shutdown().await;
    home.config.settings.compile = compile;
    let (sandbox, _grip) = home.start().await;
    let bomb = wasm(loops(20_000));
    for _ in 0..2 {
        let error = within(sandbox.install("bomb", &bomb, None, "base")).await.unwrap_err();
        assert!(matches!(error, InstallError::Failed { .. }), "{error:?}");
        assert_eq!(error.to_string(), "module bomb was not installed: it was not compiled within 0.25 s");
    }
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    let left: Vec<_> = std::fs::read_dir(&home.config.cache_dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("compile-"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_too_large_is_refused() {
    let mut home = Home::new();
    home.config.settings.compile.file = 1 << 20;
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    let large = number(2).replace(
        "(core module $m",
        &format!(r#"(core module $m (memory 64) (data (i32.const 0) "{}")"#, "x".repeat(2 << 20)),
    );
    for again in [false, true] {
        let error = sandbox.install("mine", &wasm(&large), None, "base").await.unwrap_err();
        assert!(matches!(error, InstallError::Refused { before, .. } if before == again), "{error:?}");
        assert_eq!(error.to_string(), "module mine becomes more than 1 MiB of machine code");
    }
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    sandbox.shutdown().await;
}
