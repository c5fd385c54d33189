//! Answers that come with a call: the guest gets one if it asks exactly this, and everything counts as if it had asked.

use crate::common::{Executor, forward, pack, returned};
use brine_sandbox_wire::{
    ByteBuf, DisksOp, FailKind, Foreseen, FromExecutor, GrainsOp, HostOp, Limits, Outcome, Record, Run, ToExecutor,
    Usage,
};
use serde_json::json;

/// `f` asks for a grain.
fn grains() -> String {
    let ty =
        r#"(export "get" (func (param "key" string) (param "delimiter" (option string)) (result (option $data))))"#;
    let params = r#"(param "k" string) (param "d" (option string))"#;
    forward("grains", ty, "get", "i32 i32 i32 i32 i32", params, "(option $d)")
}

fn get(key: &str, delimiter: Option<&str>) -> HostOp {
    HostOp::Grains(GrainsOp::Get { key: key.into(), delimiter: delimiter.map(str::to_owned) })
}

fn foreseen(op: HostOp, answer: &[u8]) -> Foreseen {
    Foreseen { op, answer: ByteBuf::from(answer.to_vec()) }
}

/// The end of a call, what was asked of the minion, and the frames of its recording.
struct Ended {
    outcome: Outcome,
    usage: Usage,
    asked: Vec<HostOp>,
    frames: Vec<u8>,
}

async fn run(executor: &mut Executor, run: Run, reply: &[u8]) -> Ended {
    let (mut asked, mut frames) = (Vec::new(), Vec::new());
    executor.send(ToExecutor::Run(Box::new(run))).await;
    loop {
        match executor.next().await {
            FromExecutor::HostCall { call, request, op } => {
                asked.push(op);
                let result = Ok(ByteBuf::from(reply.to_vec()));
                executor.send(ToExecutor::HostReply { call, request, result }).await;
            }
            FromExecutor::Recorded { part, .. } => frames.extend_from_slice(&part),
            FromExecutor::Done { outcome, usage, .. } => return Ended { outcome, usage, asked, frames },
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_foreseen_answer_is_as_good_as_one_that_was_asked_for() {
    let mut executor = Executor::start().await;
    let module = executor.load(&grains()).await;
    let mut call = |foreseen: Vec<Foreseen>, limits: Limits| {
        let mut run = executor.run(module, "f");
        run.args = pack(&json!(["os", null]));
        run.imports_granted = vec!["brine:host/grains".into()];
        (run.foreseen, run.limits, run.record) = (foreseen, limits, Some(Record::Keep { bytes: 1 << 20 }));
        run
    };
    let (there, malformed, large) = (pack(&json!("Debian")), vec![0xc1], pack(&json!("x".repeat(2_000))));
    let (all, few_bytes) = (Limits::default(), Limits { host_bytes: 1_000, ..Limits::default() });
    let no_calls = Limits { host_calls: 0, ..Limits::default() };
    let mut calls = Vec::new();
    for (answer, limits) in [(&there, &all), (&malformed, &all), (&large, &few_bytes), (&there, &no_calls)] {
        let asked = call(Vec::new(), limits.clone());
        let came = call(vec![foreseen(get("os", None), answer)], limits.clone());
        calls.push((asked, came, answer));
    }
    for (asked, came, answer) in calls {
        let limits = asked.limits.clone();
        let (asked, came) = (run(&mut executor, asked, answer).await, run(&mut executor, came, answer).await);
        assert_eq!((&asked.outcome, &asked.frames), (&came.outcome, &came.frames));
        assert_eq!((asked.usage.host_calls, asked.usage.bytes_in), (came.usage.host_calls, came.usage.bytes_in));
        let admitted = limits.host_calls > 0;
        assert_eq!((asked.asked.len(), came.asked.len()), (usize::from(admitted), 0));
        assert_eq!((asked.usage.foreseen, came.usage.foreseen), (0, u32::from(admitted)));
        match asked.outcome {
            Outcome::Returned { .. } => assert_eq!(returned(&came.outcome), json!("Debian")),
            Outcome::Failed { kind, .. } => assert_eq!(kind, FailKind::Host),
        }
    }
}

#[tokio::test]
async fn an_answer_to_another_question_is_thrown_away() {
    let mut executor = Executor::start().await;
    let module = executor.load(&grains()).await;
    let wrong = pack(&json!("wrong"));
    for ops in [
        vec![get("os", Some(":"))],
        vec![get("osx", None)],
        vec![HostOp::Grains(GrainsOp::Items)],
        vec![HostOp::Disks(DisksOp::Mounts), get("os", None)],
    ] {
        let mut call = executor.run(module, "f");
        call.args = pack(&json!(["os", null]));
        call.imports_granted = vec!["brine:host/grains".into()];
        call.foreseen = ops.into_iter().map(|op| foreseen(op, &wrong)).collect();
        let ended = run(&mut executor, call, &pack(&json!("right"))).await;
        assert_eq!((ended.asked, returned(&ended.outcome)), (vec![get("os", None)], json!("right")));
        assert_eq!((ended.usage.host_calls, ended.usage.foreseen), (1, 0));
    }
    // A function that asks nothing: the answer counts nowhere.
    let silent = executor.load(&crate::common::pings()).await;
    let mut call = executor.run(silent, "ping");
    call.foreseen = vec![foreseen(get("os", None), &wrong)];
    let ended = run(&mut executor, call, &[]).await;
    assert_eq!((ended.usage.host_calls, ended.usage.bytes_in, ended.usage.foreseen), (0, 2, 0));
}

/// `f` asks for something that the executor itself answers.
fn own_answer(interface: &str, function: &str, result: (&str, &str)) -> String {
    format!(
        r#"(component
            (import "{interface}" (instance $host (export "{function}" (func (result {}) ))))
            (core func $function (canon lower (func $host "{function}")))
            (core module $m
                (import "host" "function" (func $function (result {})))
                (func (export "f") (result i32) (drop (call $function)) (i32.const 1)))
            (core instance $i (instantiate $m (with "host" (instance (export "function" (func $function))))))
            (func (export "f") (result bool) (canon lift (core func $i "f"))))"#,
        result.0, result.1
    )
}

/// A call that knew or told more than its answers cannot stand for another one.
#[tokio::test]
async fn a_call_that_knew_only_the_answers_is_repeatable() {
    let mut executor = Executor::start().await;
    let asks = executor.load(&grains()).await;
    let answer = pack(&json!("Debian"));
    for (came, repeatable) in [(vec![foreseen(get("os", None), &answer)], true), (Vec::new(), false)] {
        let mut call = executor.run(asks, "f");
        call.args = pack(&json!(["os", null]));
        call.imports_granted = vec!["brine:host/grains".into()];
        call.foreseen = came;
        assert_eq!(run(&mut executor, call, &answer).await.usage.repeatable, repeatable);
    }
    let called_by = r#"(export "called-by" (func (result (option string))))"#;
    for (wat, function, repeatable) in [
        (crate::common::pings(), "ping", true),
        (own_answer("wasi:clocks/monotonic-clock@0.2.0", "now", ("u64", "i64")), "f", false),
        (own_answer("wasi:random/random@0.2.6", "get-random-u64", ("u64", "i64")), "f", false),
        (forward("job", called_by, "called-by", "", "", "(option string)"), "f", false),
        (crate::common::logger("x", r#"(func (export "f") (call $say))"#), "f", false),
    ] {
        let module = executor.load(&wat).await;
        let call = executor.run(module, function);
        let (outcome, usage) = executor.finish(call).await;
        assert!(matches!(outcome, Outcome::Returned { .. }), "{outcome:?}");
        assert_eq!(usage.repeatable, repeatable, "{wat}");
    }
}
