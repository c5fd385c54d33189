//! A module's description has the same bound for inspection and for execution.

use std::time::Duration;

use brine_kit::programs::sandbox_program;
use brine_kit::wat::wasm;
use brine_sandbox::{CompileLimits, InstallError, examine};

use crate::support::{Home, files};

/// A component of a thousand functions with 24 parameters of long names and types. These are distinct for each
/// function, or the same for all.
fn described(distinct: bool) -> Vec<u8> {
    let function = |n: usize| {
        let name = format!("n{n}-{}", "a".repeat(if distinct { 180 } else { 60 }));
        let params: String =
            (0..24).map(|p| format!("(param \"{name}-p{p}\" (list (tuple string u64 char))) ")).collect();
        let lift = r#"(canon lift (core func $i "f") (memory $i "memory") (realloc (func $i "realloc")))"#;
        format!("(func $f{n} {params} {lift})")
    };
    let functions: String = (0..if distinct { 1_000 } else { 1 }).map(function).collect();
    let exports: String =
        (0..1_000).map(|n| format!("(export \"f{n}\" (func $f{}))", if distinct { n } else { 0 })).collect();
    wasm(format!(
        r#"(component
            (core module $m
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 0)
                (func (export "f") (param i32)))
            (core instance $i (instantiate $m))
            {functions} {exports})"#
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bound_for_who_inspects_and_who_runs_and_it_is_remembered() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    let inspected = |wasm: Vec<u8>| async move {
        let limits = CompileLimits { wall: Duration::from_secs(120), ..CompileLimits::default() };
        examine(sandbox_program("brine-compiler"), limits, &wasm, false).await.map(|(info, _)| info.functions.len())
    };
    // With a copy for each use it would be 4 MB. A component of ten kilobytes is accepted.
    let shared = described(false);
    assert!(shared.len() < 15_000, "{}", shared.len());
    assert_eq!(inspected(shared.clone()).await, Ok(1_000));
    sandbox.install("shared", &shared, None, "base").await.unwrap();
    assert_eq!(sandbox.describe("shared").unwrap().info.functions.len(), 1_000);

    let large = described(true);
    let words = inspected(large.clone()).await.unwrap_err();
    assert!(
        words.starts_with("has a description (functions, types, docs) of ")
            && words.ends_with(" bytes; the limit is 4194304"),
        "{words}"
    );
    for tried_before in [false, true] {
        match sandbox.install("large", &large, None, "base").await {
            Err(InstallError::Refused { reason, before, .. }) => {
                assert_eq!((reason, before), (words.clone(), tried_before))
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(files(&home.config.cache_dir, "refused").len(), 1);
    // A module whose description was stored is not compiled again either.
    let code = home.compiled();
    sandbox.shutdown().await;
    let (sandbox, _grip) = home.start().await;
    assert_eq!(sandbox.describe("shared").unwrap().info.functions.len(), 1_000);
    assert_eq!(home.compiled(), code);
    sandbox.shutdown().await;
}
