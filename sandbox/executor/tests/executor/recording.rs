//! Recordings of calls, and their replay without a host.

use crate::common::{Executor, STREAMS, assert_failed, forward, pack, returned};
use brine_recording::{End, Entry, Head, MAGIC, Recording, entries, entry};
use brine_sandbox_wire::{
    ByteBuf, FailKind, FromExecutor, GrainsOp, HostOp, Limits, LogLevel, Outcome, Record, Run, Sha256Hex, ToExecutor,
};
use serde_json::json;

/// Says what the clocks and the random numbers said, in one return.
fn chance(with: &str) -> String {
    format!(
        r#"(component
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (result u64)))))
        (import "wasi:random/random@0.2.6" (instance $random (export "get-random-u64" (func (result u64)))))
        (core func $now (canon lower (func $clock "now")))
        (core func $u64 (canon lower (func $random "get-random-u64")))
        (core module $m
            (import "host" "now" (func $now (result i64)))
            (import "host" "u64" (func $u64 (result i64)))
            (func (export "f") (result i64) {with} (i64.xor (call $now) (call $u64))))
        (core instance $i (instantiate $m (with "host" (instance
            (export "now" (func $now)) (export "u64" (func $u64))))))
        (func (export "f") (result u64) (canon lift (core func $i "f"))))"#
    )
}

const GRAINS: &str =
    r#"(export "get" (func (param "key" string) (param "delimiter" (option string)) (result (option $data))))"#;

fn grains() -> String {
    let params = r#"(param "k" string) (param "d" (option string))"#;
    forward("grains", GRAINS, "get", "i32 i32 i32 i32 i32", params, "(option $d)")
}

/// The end of a call, and the frames of its recording.
struct Kept {
    outcome: Outcome,
    frames: Vec<u8>,
}

/// Records a call, whose requests to the broker all get this answer.
async fn keep(executor: &mut Executor, mut run: Run, bytes: u64, reply: &[u8]) -> Kept {
    run.record = Some(Record::Keep { bytes });
    let mut frames = Vec::new();
    executor.send(ToExecutor::Run(Box::new(run))).await;
    loop {
        match executor.next().await {
            FromExecutor::HostCall { call, request, .. } => {
                let result = Ok(ByteBuf::from(reply.to_vec()));
                executor.send(ToExecutor::HostReply { call, request, result }).await;
            }
            FromExecutor::Recorded { part, .. } => frames.extend_from_slice(&part),
            FromExecutor::Done { outcome, .. } => return Kept { outcome, frames },
            other => panic!("{other:?}"),
        }
    }
}

impl Kept {
    /// The file that a minion makes of it.
    fn file(&self, run: &Run) -> Vec<u8> {
        let head = Head {
            module: "test".into(),
            sha256: run.module,
            function: run.function.clone(),
            args: ByteBuf::from(run.args.clone()),
            kwargs: ByteBuf::from(run.kwargs.clone()),
            context: run.context.clone(),
            limits: run.limits.clone(),
            time: 0,
            brine: String::new(),
            secrets: 0,
        };
        let end = entry(&Entry::End(Box::new(End { outcome: self.outcome.clone(), hidden: Vec::new() })));
        [MAGIC, &entry(&Entry::Head(Box::new(head))), &self.frames, &end].concat()
    }
}

/// A difference: how many calls were the same, and the names of what was recorded and asked.
type Difference = (u64, Option<String>, Option<String>);

/// Replays a call; nothing may be asked of the minion.
async fn replay(executor: &mut Executor, mut run: Run, file: Vec<u8>) -> (Outcome, Option<Difference>) {
    run.record = Some(Record::Replay { recording: ByteBuf::from(file) });
    let mut difference = None;
    executor.send(ToExecutor::Run(Box::new(run))).await;
    loop {
        match executor.next().await {
            FromExecutor::Differs { at, recorded, asked, .. } => {
                difference = Some((at, recorded.map(|(name, _)| name), asked.map(|(name, _)| name)));
            }
            FromExecutor::Done { outcome, .. } => return (outcome, difference),
            other => panic!("{other:?}"),
        }
    }
}

fn again(executor: &mut Executor, run: &Run, module: Sha256Hex) -> Run {
    let call = executor.run(module, "f").call;
    Run { call, module, ..run.clone() }
}

#[tokio::test]
async fn clocks_and_randomness_are_the_recorded_ones() {
    let mut executor = Executor::start().await;
    let module = executor.load(&chance("")).await;
    let run = executor.run(module, "f");
    let kept = keep(&mut executor, run.clone(), 1 << 20, &[]).await;
    let file = kept.file(&run);
    let names: Vec<String> = Recording::from_bytes(&file).unwrap().calls.into_iter().map(|call| call.name).collect();
    assert_eq!(names, ["wasi:clocks/monotonic-clock.now", "wasi:random/random.get-random-u64"]);
    for _ in 0..3 {
        let run = again(&mut executor, &run, module);
        assert_eq!(replay(&mut executor, run, file.clone()).await, (kept.outcome.clone(), None));
    }
    // Another module: it asks for a number first, or for less.
    let changed = executor.load(&chance("(drop (call $u64))")).await;
    let run = again(&mut executor, &run, changed);
    let (outcome, difference) = replay(&mut executor, run.clone(), file.clone()).await;
    assert_failed(&outcome, FailKind::Host, "it asks something else than in the recording");
    assert_eq!(difference, Some((0, Some(names[0].clone()), Some(names[1].clone()))));
    let silent = executor.load(&chance("(return (i64.const 1))")).await;
    let run = again(&mut executor, &run, silent);
    let (outcome, difference) = replay(&mut executor, run.clone(), file.clone()).await;
    assert_eq!(returned(&outcome), json!(1));
    assert_eq!(difference, Some((0, Some(names[0].clone()), None)));
    let longer = executor.load(&chance("(drop (call $now)) (drop (call $u64))")).await;
    let run = again(&mut executor, &run, longer);
    let (_, difference) = replay(&mut executor, run, file).await;
    assert_eq!(difference, Some((2, None, Some(names[0].clone()))));
}

/// A recording from anybody: its answers are not of the types that the functions have.
#[tokio::test]
async fn damaged_answers_end_the_call_only() {
    let mut executor = Executor::start().await;
    let module = executor.load(&chance("")).await;
    let run = executor.run(module, "f");
    let kept = keep(&mut executor, run.clone(), 1 << 20, &[]).await;
    let recording = Recording::from_bytes(&kept.file(&run)).unwrap();
    for told in [vec![], vec![0xc0], pack(&json!({"Ok": "no number"})), pack(&json!({"Code": "busy"})), vec![0xdd; 5]] {
        let mut damaged = recording.clone();
        damaged.calls[0].told = ByteBuf::from(told.clone());
        let run = again(&mut executor, &run, module);
        let (outcome, _) = replay(&mut executor, run, damaged.to_bytes()).await;
        let line = "test.f was stopped: the replay failed: the recording's answer of wasi:clocks/monotonic-clock.now is damaged";
        assert_failed(&outcome, FailKind::Host, line);
    }
    executor.still_works().await;
}

#[tokio::test]
async fn the_brokers_answers_are_replayed_without_a_broker() {
    let mut executor = Executor::start().await;
    let module = executor.load(&grains()).await;
    let mut run = executor.run(module, "f");
    run.args = pack(&json!(["os", null]));
    run.imports_granted = vec!["brine:host/grains".into()];
    let kept = keep(&mut executor, run.clone(), 1 << 20, &pack(&json!("Debian"))).await;
    assert_eq!(returned(&kept.outcome), json!("Debian"));
    let file = kept.file(&run);
    let calls = Recording::from_bytes(&file).unwrap().calls;
    assert_eq!((calls.len(), calls[0].name.as_str()), (1, "grains.get"));
    let asked: HostOp = brine_recording::unpack(&calls[0].asked).unwrap();
    assert_eq!(asked, HostOp::Grains(GrainsOp::Get { key: "os".into(), delimiter: None }));
    let same = again(&mut executor, &run, module);
    assert_eq!(replay(&mut executor, same, file.clone()).await, (kept.outcome.clone(), None));
    let mut other = again(&mut executor, &run, module);
    other.args = pack(&json!(["kernel", null]));
    let (_, difference) = replay(&mut executor, other, file.clone()).await;
    assert_eq!(difference, Some((0, Some("grains.get".into()), Some("grains.get".into()))));
    // A recording that cannot be read fails the call and nothing else.
    let cut = again(&mut executor, &run, module);
    let (outcome, _) = replay(&mut executor, cut, file[..file.len() - 1].to_vec()).await;
    let line = "the recording is cut off: it ends after 1 calls of the host, without the end of the call";
    assert_failed(&outcome, FailKind::Refused, line);
    executor.still_works().await;
}

#[tokio::test]
async fn the_bound_ends_the_recording_and_not_the_call() {
    let mut executor = Executor::start().await;
    let module = executor.load(&chance("")).await;
    let run = executor.run(module, "f");
    let kept = keep(&mut executor, run.clone(), 100, &[]).await;
    assert!(matches!(kept.outcome, Outcome::Returned { .. }));
    let mut seen = Vec::new();
    entries(&kept.frames, |_, entry| {
        seen.push(entry);
        Ok(())
    })
    .unwrap();
    assert!(matches!(&seen[..], [Entry::Call(_), Entry::Full]), "{seen:?}");
    let line = "the recording of this call ends here: it has reached its largest size";
    assert_eq!(executor.log, [(run.call, LogLevel::Warning, line.to_owned())]);
    let file = kept.file(&run);
    let run = again(&mut executor, &run, module);
    let (outcome, difference) = replay(&mut executor, run, file).await;
    assert_failed(&outcome, FailKind::Host, "the recording ends here, because it reached its bound");
    assert_eq!(difference, Some((1, None, None)));
}

/// A guest that gives up after it wrote to its standard error: the failure names the line.
#[tokio::test]
async fn the_last_words_are_the_same() {
    let wat = format!(
        r#"(component
            {STREAMS}
            (alias export $streams "output-stream" (type $stream))
            (import "wasi:cli/stderr@0.2.0" (instance $cli
                (alias outer 1 $stream (type $stream'))
                (export "output-stream" (type $s (eq $stream')))
                (export "get-stderr" (func (result (own $s))))))
            (core module $memory (memory (export "memory") 1) (data (memory 0) (i32.const 64) "no way\0a"))
            (core instance $memory (instantiate $memory))
            (core func $get (canon lower (func $cli "get-stderr")))
            (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
                (memory (core memory $memory "memory"))))
            (core module $m
                (import "host" "get" (func $get (result i32)))
                (import "host" "write" (func $write (param i32 i32 i32 i32)))
                (func (export "f")
                    (call $write (call $get) (i32.const 64) (i32.const 7) (i32.const 0))
                    unreachable))
            (core instance $i (instantiate $m (with "host" (instance
                (export "get" (func $get)) (export "write" (func $write))))))
            (func (export "f") (canon lift (core func $i "f"))))"#
    );
    let mut executor = Executor::start().await;
    let module = executor.load(&wat).await;
    let run = executor.run(module, "f");
    let kept = keep(&mut executor, run.clone(), 1 << 20, &[]).await;
    let line = "test.f trapped: it gave up (`unreachable` was executed); its last log line: no way";
    assert_failed(&kept.outcome, FailKind::Trap, line);
    let file = kept.file(&run);
    let run = again(&mut executor, &run, module);
    assert_eq!(replay(&mut executor, run, file).await, (kept.outcome, None));
}

/// A call that waits when its time is up: its question has no answer.
#[tokio::test]
async fn a_call_that_was_stopped_while_it_waited_is_the_same() {
    let mut executor = Executor::start().await;
    let module = executor.load(&grains()).await;
    let mut run = executor.run(module, "f");
    run.args = pack(&json!(["os", null]));
    run.imports_granted = vec!["brine:host/grains".into()];
    run.limits = Limits { wall_ms: 50, ..Limits::default() };
    run.record = Some(Record::Keep { bytes: 1 << 20 });
    executor.send(ToExecutor::Run(Box::new(run.clone()))).await;
    assert!(matches!(executor.next().await, FromExecutor::HostCall { .. }));
    let outcome = executor.done(run.call).await.0;
    assert_failed(&outcome, FailKind::Wall, "test.f was stopped: its wall clock limit of 50 ms is used up");
    let kept = Kept { outcome, frames: Vec::new() };
    let file = kept.file(&run);
    let run = again(&mut executor, &run, module);
    assert_eq!(replay(&mut executor, run, file).await, (kept.outcome, None));
}
