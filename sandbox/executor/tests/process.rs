//! The executor as a process: its start, its end, and the code that it accepts.
#![allow(clippy::unwrap_used, reason = "it is test code")]
#![allow(clippy::disallowed_methods, reason = "the test starts the program that may start nothing")]

#[path = "executor/common/mod.rs"]
mod common;

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Command, Stdio};

use brine_kit::files::file;
use brine_kit::wat::wasm;
use brine_sandbox_wire::{FromExecutor, Sha256Hex, ToExecutor, frame};
use common::{Executor, assert_failed, bare, command, compile, pings, returned};
use serde_json::json;

fn output(stdin: impl Into<Stdio>, args: &[&str]) -> (Option<i32>, String) {
    let output = command(stdin).args(args).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn without_the_minion_it_says_so() {
    let datagram: OwnedFd = UnixDatagram::pair().unwrap().0.into();
    let udp: OwnedFd = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into();
    for stdin in [Stdio::null(), datagram.into(), udp.into(), file(b"").into()] {
        let (code, said) = output(stdin, &[]);
        assert_eq!(code, Some(64));
        assert!(said.starts_with("brine-executor: fd 0 is not the minion's socket: "), "{said}");
        assert!(said.ends_with("; salt-minion starts this program, it is of no use by itself\n"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn unknown_options_are_refused() {
    let cases: [(&[&str], &str); 5] = [
        (
            &["--what"],
            "unknown option '--what'; it takes --guest-threads N, --max-running N, --read-only DIR, --read-write DIR, \
             --connect-port N or LOW-HIGH, --processes N and --memory BYTES",
        ),
        (&["--read-only", "etc"], "--read-only must be an absolute path without . and .., got 'etc'"),
        (&["--max-running"], "--max-running needs a number"),
        (&["--max-running", "0"], "--max-running must be a number from 1 to 4096, got '0'"),
        (&["--guest-threads", "many"], "--guest-threads must be a number from 1 to 4096, got 'many'"),
    ];
    for (args, text) in cases {
        assert_eq!(output(Stdio::null(), args), (Some(64), format!("brine-executor: {text}\n")));
    }
}

#[tokio::test]
async fn malformed_frames_end_it_cleanly() {
    let framed = |body: &[u8]| [&u32::try_from(body.len()).unwrap().to_be_bytes(), body].concat();
    let mut pong = Vec::new();
    frame::encode(&FromExecutor::Pong { n: 1 }, &mut pong).unwrap();
    let mut load = Vec::new();
    frame::encode(
        &ToExecutor::Load { module: Sha256Hex::from([0; 32]), name: "x".into(), imports_granted: None },
        &mut load,
    )
    .unwrap();
    let cases: [(Vec<u8>, &str); 5] = [
        (vec![0xff; 4], "the minion's socket: a message of 4294967295 bytes is over the limit of 33554432"),
        (framed(b"hello"), "the minion's socket: a malformed message: "),
        (framed(&[0x91; 100_000]), "the minion's socket: a malformed message: "),
        (pong, "the minion's socket: a malformed message: "),
        (load, "the minion's socket: a message that needs an open file came without one"),
    ];
    for (bytes, text) in cases {
        let (mut here, there) = UnixStream::pair().unwrap();
        let child = command(OwnedFd::from(there)).spawn().unwrap();
        std::io::Write::write_all(&mut here, &bytes).unwrap();
        let end = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
        let output = brine_kit::wait::within(end).await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(65), "{said}");
        assert!(said.starts_with(&format!("brine-executor: {text}")) && said.lines().count() == 1, "{said}");
        drop(here);
    }
}

#[tokio::test]
async fn a_call_number_used_twice_ends_it() {
    let mut executor = Executor::start().await;
    let spin = executor.load(&bare(r#"(func (export "f") (loop br 0))"#)).await;
    let run = executor.run(spin, "f");
    executor.send(ToExecutor::Run(Box::new(run.clone()))).await;
    executor.send(ToExecutor::Run(Box::new(run))).await;
    let (code, said) = executor.ended().await;
    assert_eq!(
        (code, said.as_str()),
        (Some(65), "brine-executor: the minion's socket: a malformed message: call 1 runs already\n")
    );
}

#[tokio::test]
async fn only_code_of_this_engine_is_taken() {
    let mut executor = Executor::start().await;
    let code = compile(&pings());
    let component = wasm(pings());
    let without_epochs = wasmtime::Engine::new(brine_engine::config().epoch_interruption(false)).unwrap();
    let other_memory = wasmtime::Engine::new(brine_engine::config().memory_reservation(1 << 20)).unwrap();
    let core = brine_engine::engine().unwrap().precompile_module(&wasm("(module)")).unwrap();
    let mut other_version = code.clone();
    // The length of the frame, and "48".
    let version = other_version.windows(3).position(|text| text == b"\x0248").unwrap();
    other_version[version + 1] = b'3';
    let cases: [(&str, Vec<u8>); 10] = [
        ("empty", vec![]),
        ("text", b"(component)".to_vec()),
        ("the wasm itself", component.clone()),
        ("garbage", vec![0x5a; 10_000]),
        ("an ELF header", b"\x7fELF\x02\x01\x01".to_vec()),
        ("cut short", code[..code.len() / 2].to_vec()),
        ("no epochs", without_epochs.precompile_component(&component).unwrap()),
        ("other memory", other_memory.precompile_component(&component).unwrap()),
        ("a core module", core),
        ("another version", other_version.clone()),
    ];
    for (what, code) in cases {
        let error = executor.load_code(&code).await.expect_err(what);
        assert!(!error.is_empty() && error.lines().count() == 1 && error.len() < 500, "{what}: {error}");
        assert!(!error.contains("/proc"), "{what}: {error}");
    }
    let error = executor.load_code(&other_version).await.unwrap_err();
    assert!(error.contains("38"), "{error}");
    let error = executor.load_code(&without_epochs.precompile_component(&component).unwrap()).await.unwrap_err();
    assert!(error.contains("epoch interruption"), "{error}");
    executor.still_works().await;
}

#[tokio::test]
async fn loading_again_replaces_and_a_failed_load_leaves_nothing() {
    let mut executor = Executor::start().await;
    let module = executor.load(&pings()).await;
    let load = ToExecutor::Load { module, name: "test".into(), imports_granted: None };
    executor.sender.send_with_file(&load, file(b"garbage").into()).await.unwrap();
    assert!(matches!(executor.next().await, FromExecutor::LoadFailed { .. }));
    let outcome = executor.call(module, "ping", &json!([]), &json!({})).await;
    assert_failed(&outcome, brine_sandbox_wire::FailKind::Unknown, &format!("no module {module} is loaded"));
    executor.sender.send_with_file(&load, file(&compile(&pings())).into()).await.unwrap();
    assert!(matches!(executor.next().await, FromExecutor::Loaded { .. }));
    let outcome = executor.call(module, "ping", &json!([]), &json!({})).await;
    assert_eq!(returned(&outcome), json!(true));
}

#[tokio::test]
async fn an_unloaded_module_finishes_what_it_runs() {
    let mut executor = Executor::start().await;
    let spin = executor.load(&bare(r#"(func (export "f") (loop br 0))"#)).await;
    let mut run = executor.run(spin, "f");
    run.limits.wall_ms = 300;
    let call = run.call;
    executor.send(ToExecutor::Run(Box::new(run))).await;
    executor.send(ToExecutor::Unload { module: spin }).await;
    let (outcome, _) = executor.done(call).await;
    assert_failed(
        &outcome,
        brine_sandbox_wire::FailKind::Wall,
        "test.f was stopped: its wall clock limit of 300 ms is used up",
    );
}

/// The shipped executor is built without dev-dependencies. Its own dependencies must not include a compiler.
#[test]
fn it_links_no_compiler() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--offline", "-p", "brine-executor", "-e", "normal", "--prefix", "none"]);
    let output = tree.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let crates = String::from_utf8(output.stdout).unwrap();
    assert!(crates.contains("wasmtime v48."), "{crates}");
    for unwanted in ["cranelift-codegen", "cranelift-frontend", "winch", "wasmtime-internal-cranelift", "wat ", "wast "]
    {
        assert!(!crates.lines().any(|line| line.starts_with(unwanted)), "{unwanted} is in:\n{crates}");
    }
}
