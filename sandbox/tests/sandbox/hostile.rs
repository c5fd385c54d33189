//! Components made to hurt the compiler: each dies in its cage, while other jobs answer (WASM.md C.5).

use std::time::Instant;

use brine_sandbox::InstallError;
use rmpv::Value;

use crate::components::{loops, nested, number};
use crate::support::{Home, call, wasm, within};

async fn dies_in_its_cage(bomb: Vec<u8>, memory: u64, cpu_s: u64, expect: &[&str]) {
    let mut home = Home::new();
    home.config.compile.memory = memory;
    home.config.compile.cpu_s = cpu_s;
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(&number(1)), "base").await.unwrap();
    let mut install = Box::pin(sandbox.install("bomb", &bomb, "base"));
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
    // Once is enough.
    let again = Instant::now();
    let error = within("a known bomb", sandbox.install("bomb", &bomb, "base")).await.unwrap_err();
    assert!(matches!(error, InstallError::Refused { before: true, .. }), "{error:?}");
    assert!(again.elapsed().as_secs_f32() < started.elapsed().as_secs_f32());
    assert_eq!(sandbox.names(), ["mine"]);
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_components() {
    let bomb = wasm(&nested(10, 8));
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
    dies_in_its_cage(wasm(&loops(20_000)), 512 << 20, 2, &expect).await;
}
