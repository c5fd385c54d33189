//! The executor's side: it follows the protocol until a function's name selects an attack.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use brine_sandbox_walls::Spec;
use brine_sandbox_wire::{Connection, FromExecutor, Outcome, Run, ToExecutor, Usage, VERSION};

use crate::attacks::{self, Facts};
use crate::floods;

pub(crate) fn main(args: &[String]) -> ExitCode {
    brine_sandbox_walls::close_inherited();
    // The start must reveal nothing about the host: no environment, no working directory.
    let told = (std::env::vars_os().count(), std::env::current_dir().unwrap());
    assert_eq!(told, (0, "/".into()));
    let mut spec = Spec::executor();
    for pair in args.chunks(2) {
        let taken = pair[0] == "--max-running" || spec.option(&pair[0], &pair[1]).unwrap();
        assert!(taken, "{pair:?}");
    }
    let walls = match brine_sandbox_walls::raise(&spec) {
        Ok(walls) => walls,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
        // For bytes outside the protocol.
        let raw = File::from(socket.try_clone().unwrap());
        let (mut sender, mut receiver) = Connection::from_fd(socket).unwrap().executor();
        let ready = FromExecutor::Ready { version: VERSION, pid: std::process::id(), walls };
        sender.send(&ready).await.unwrap();
        let mut code: Option<OwnedFd> = None;
        while let Ok(received) = receiver.recv().await {
            match received.message {
                ToExecutor::Load { module, .. } => {
                    code = received.file;
                    sender.send(&FromExecutor::Loaded { module }).await.unwrap();
                }
                ToExecutor::Ping { n } => sender.send(&FromExecutor::Pong { n }).await.unwrap(),
                ToExecutor::Look { n, .. } => {
                    let looked = FromExecutor::Looked { n, waits: Vec::new(), gave_back: Vec::new() };
                    sender.send(&looked).await.unwrap();
                }
                ToExecutor::Run(run) | ToExecutor::RunWithin { run, .. } => {
                    let value = match run.function.as_str() {
                        "ping" => rmp_serde::to_vec(&true).unwrap(),
                        "attacks" => attack(&run, code.as_ref()),
                        flood => match floods::run(flood, &run, &raw, &mut sender).await {
                            Some(value) => value,
                            None => continue,
                        },
                    };
                    let outcome = Outcome::Returned { value, retcode: 0 };
                    let done = FromExecutor::Done { call: run.call, outcome, usage: Usage::default() };
                    if sender.send(&done).await.is_err() {
                        break;
                    }
                }
                _ => {}
            }
        }
    });
    ExitCode::SUCCESS
}

/// Makes each attack behind the compiler's walls, including some system calls that executors need.
pub(crate) fn as_the_compiler(facts: &str) -> ExitCode {
    brine_sandbox_walls::close_inherited();
    let facts: Facts = serde_json::from_str(facts).unwrap();
    let walls = brine_sandbox_walls::raise(&Spec::compiler(1 << 20)).unwrap();
    assert!(walls.seccomp && walls.landlock > 0, "{walls:?}");
    let mut results = all(&facts, None);
    results.extend(attacks::COMPILER.iter().map(|(name, attack)| (*name, attacks::name(attack(&facts, None)))));
    println!("{}", serde_json::to_string(&results).unwrap());
    ExitCode::SUCCESS
}

fn all(facts: &Facts, code: Option<&OwnedFd>) -> BTreeMap<&'static str, String> {
    attacks::ALL.iter().map(|(name, attack)| (*name, attacks::name(attack(facts, code)))).collect()
}

/// Makes each attack. Returns the results by name.
fn attack(run: &Run, code: Option<&OwnedFd>) -> Vec<u8> {
    let facts: Facts = serde_json::from_str(&run.context.user).unwrap();
    let results = all(&facts, code);
    rmp_serde::to_vec(&results).unwrap()
}
