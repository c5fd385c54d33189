//! The interfaces that need a grant: the requests to the minion and the results. In memory, a type has the layout of a
//! simpler one: a record that of the tuple of its fields, bytes that of text.

mod files;
mod others;
mod process;

use crate::common::{Executor, assert_failed, forward, pack, returned};
use brine_sandbox_wire::{ByteBuf, FailKind, FromExecutor, HostError, HostOp, Outcome, ToExecutor};
use serde_json::{Value, json};

struct Case {
    interface: &'static str,
    /// `interface.function`, for the types of the guest and for refusals.
    name: &'static str,
    wat: String,
    args: Value,
    op: HostOp,
    reply: Value,
    expected: Value,
    /// Whether the guest can handle an error of the minion.
    handles: bool,
}

/// `declared`: the declarations of the interface before the function. `ty`: the type of the function there; `own`: the
/// guest's parameters and result.
struct Shape {
    declared: &'static str,
    ty: &'static str,
    lowered: &'static str,
    own: (&'static str, &'static str),
}

fn case(name: &'static str, shape: &Shape, args: Value, op: HostOp, reply: Value, expected: Value) -> Case {
    let (interface, function) = name.split_once('.').unwrap();
    let types = format!(r#"{} (export "{function}" (func {}))"#, shape.declared, shape.ty);
    let wat = forward(interface, &types, function, shape.lowered, shape.own.0, shape.own.1);
    let handles = shape.ty.contains("(error");
    Case { interface, name, wat, args, op, reply, expected, handles }
}

async fn ask(executor: &mut Executor, case: &Case, reply: Result<Vec<u8>, HostError>) -> Outcome {
    executor.ask(&case.wat, case.interface, &case.args, &case.op, reply).await
}

fn cases() -> Vec<Case> {
    [process::cases(), files::cases(), others::cases()].into_iter().flatten().collect()
}

#[tokio::test]
async fn what_guests_ask_and_get() {
    let mut executor = Executor::start().await;
    for case in cases() {
        let outcome = ask(&mut executor, &case, Ok(pack(&case.reply))).await;
        assert_eq!(returned(&outcome), case.expected, "{}", case.name);
    }
}

#[tokio::test]
async fn a_failure_is_the_guests_to_handle_and_a_refusal_ends_it_with_its_whole_text() {
    let mut executor = Executor::start().await;
    let refusal = format!("no; the owner of this host grants it by this line {} test: {{…}}", "x".repeat(1_000));
    for case in cases() {
        let outcome = ask(&mut executor, &case, Err(HostError::Failed("it went wrong".into()))).await;
        let ended = format!("test.f was stopped: {} failed: it went wrong", case.name);
        match case.handles {
            true => assert_eq!(returned(&outcome), json!([{"err": "it went wrong"}]), "{}", case.name),
            false => assert_failed(&outcome, FailKind::Host, &ended),
        }
        let outcome = ask(&mut executor, &case, Err(HostError::Denied(refusal.clone()))).await;
        assert_failed(&outcome, FailKind::Host, &format!("test.f was stopped: {} was refused: {refusal}", case.name));
    }
}

#[tokio::test]
async fn answers_of_another_shape_end_the_guest() {
    let mut executor = Executor::start().await;
    for case in cases() {
        // The results of these are not checked.
        if matches!(case.op, HostOp::Events(_) | HostOp::Mine(_) | HostOp::Progress(_) | HostOp::States(_)) {
            continue;
        }
        for reply in [vec![0xc1], vec![], vec![0xc0, 0xc0], pack(&json!(1.5)), pack(&json!({"pid": "x"}))] {
            let whole = reply.len() > 2;
            match ask(&mut executor, &case, Ok(reply)).await {
                Outcome::Failed { kind: FailKind::Host, message, .. } => {
                    assert!(message.contains("the minion's answer"), "{message}");
                }
                Outcome::Returned { .. }
                    if whole && matches!(case.op, HostOp::Config(_) | HostOp::Pillar(_) | HostOp::Policy(_)) => {}
                other => panic!("{}: {other:?}", case.name),
            }
        }
    }
}

#[tokio::test]
async fn an_answer_is_bounded() {
    let mut executor = Executor::start().await;
    let case = files::cases().remove(4);
    let module = executor.load(&case.wat).await;
    let mut run = executor.run(module, "f");
    (run.args, run.imports_granted) = (pack(&case.args), vec!["brine:host/files".into()]);
    run.limits.host_bytes = 1 << 20;
    let call = run.call;
    executor.send(ToExecutor::Run(Box::new(run))).await;
    let FromExecutor::HostCall { request, .. } = executor.next().await else { panic!("it asks") };
    let result = Ok(ByteBuf::from(pack(&json!("x".repeat(1 << 20)))));
    executor.send(ToExecutor::HostReply { call, request, result }).await;
    let line = "test.f was stopped: files.read has an answer of more than its limit of 1 MiB";
    assert_failed(&executor.done(call).await.0, FailKind::Host, line);
}

#[tokio::test]
async fn what_is_no_dict_or_value_is_not_sent() {
    let mut executor = Executor::start().await;
    let fire = others::cases().into_iter().find(|case| case.interface == "events").expect("there is one");
    let module = executor.load(&fire.wat).await;
    let mut run = executor.run(module, "f");
    run.args = pack(&json!(["tag", [1]]));
    run.imports_granted = vec!["brine:host/events".into()];
    let text = "the data of an event is a dict with text for keys: the value has another type";
    assert_eq!(returned(&executor.finish(run).await.0), json!([{"err": text}]));
}

#[tokio::test]
async fn nothing_is_there_without_its_grant() {
    let mut executor = Executor::start().await;
    for case in cases() {
        let module = executor.load(&case.wat).await;
        let mut run = executor.run(module, "f");
        run.args = pack(&case.args);
        // All except one.
        let all = [
            "process",
            "functions",
            "files",
            "http",
            "pillar",
            "events",
            "mine",
            "metadata",
            "disks",
            "policy",
            "progress",
            "config",
            "states",
        ];
        let others = all.into_iter().filter(|name| *name != case.interface);
        run.imports_granted = others.map(|name| format!("brine:host/{name}@1.0.0")).collect();
        let line = format!("module 'test' was not granted brine:host/{}, which it imports", case.interface);
        assert_failed(&executor.finish(run).await.0, FailKind::Refused, &line);
    }
}
