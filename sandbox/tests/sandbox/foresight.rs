//! Answers that come with a call: the module sees no difference.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brine_kit::wait::within;
use brine_kit::wat::wasm;
use brine_kit_sandbox::{job, policy};
use brine_sandbox::{Broker, Caller, HostError, HostOp, JobContext, JobOutcome, Limits, LogLevel, Sandbox};
use futures_util::future::BoxFuture;
use rmpv::Value;
use serde_json::json;

use crate::support::{Home, failure};

/// Answers each request with its number.
#[derive(Default)]
struct Numbers(AtomicU64);

impl Broker for Numbers {
    fn host_call<'a>(&'a self, _: &'a Caller, _: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        Box::pin(async move { Ok(Value::from(number)) })
    }

    fn log(&self, _: &JobContext, _: LogLevel, _: &str) {}
}

impl Numbers {
    fn answers(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// `ask(times: u32, ns: u64) -> u32` sleeps so long, asks for the grains so often, and returns the last answer, a small
/// number.
const ASKS: &str = r#"(component
    (import "brine:host/types@1.0.0" (instance $types
        (type $d' (record (field "msgpack" (list u8)))) (export "data" (type (eq $d')))))
    (alias export $types "data" (type $data))
    (import "brine:host/grains@1.0.0" (instance $grains
        (alias outer 1 $data (type $data'))
        (export "data" (type $data (eq $data')))
        (export "items" (func (result $data)))))
    (import "wasi:io/poll@0.2.0" (instance $poll
        (export "pollable" (type $pollable (sub resource)))
        (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
    (alias export $poll "pollable" (type $pollable))
    (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
        (alias outer 1 $pollable (type $pollable))
        (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
    (core module $memory
        (memory (export "memory") 1)
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024))
    (core instance $memory (instantiate $memory))
    (core func $items (canon lower (func $grains "items")
        (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
    (core func $subscribe (canon lower (func $clock "subscribe-duration")))
    (core func $block (canon lower (func $poll "[method]pollable.block")))
    (core module $m
        (import "host" "memory" (memory 1))
        (import "host" "items" (func $items (param i32)))
        (import "host" "subscribe" (func $subscribe (param i64) (result i32)))
        (import "host" "block" (func $block (param i32)))
        (func (export "ask") (param $times i32) (param $ns i64) (result i32)
            (if (i64.ne (local.get $ns) (i64.const 0)) (then (call $block (call $subscribe (local.get $ns)))))
            (loop $again
                (if (local.get $times) (then
                    (call $items (i32.const 512))
                    (local.set $times (i32.sub (local.get $times) (i32.const 1)))
                    (br $again))))
            (if (result i32) (i32.load (i32.const 512))
                (then (i32.load8_u (i32.load (i32.const 512))))
                (else (i32.const 0)))))
    (core instance $i (instantiate $m (with "host" (instance
        (export "memory" (memory $memory "memory")) (export "items" (func $items))
        (export "subscribe" (func $subscribe)) (export "block" (func $block))))))
    (func (export "ask") (param "times" u32) (param "ns" u64) (result u32) (canon lift (core func $i "ask"))))"#;

async fn ask(sandbox: &Sandbox, times: u64, ns: u64) -> JobOutcome {
    let context = job("20261120000000000001", "mine.ask");
    within(sandbox.run(context, "mine.ask", vec![Value::from(times), Value::from(ns)], vec![])).await
}

async fn started(home: &Home) -> (Arc<Sandbox>, Arc<Numbers>) {
    let broker = Arc::new(Numbers::default());
    let sandbox = home.try_start_with(Arc::<Numbers>::clone(&broker)).await.unwrap_or_else(|error| panic!("{error}"));
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    (sandbox, broker)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_gets_a_new_answer_and_the_second_is_asked_for() {
    let (sandbox, broker) = started(&Home::new()).await;
    let mut asked = 0;
    for times in [1, 2, 3] {
        let mut usages = Vec::new();
        for nth in 0..6 {
            let outcome = ask(&sandbox, times, 0).await;
            asked += times;
            assert_eq!((outcome.value, broker.answers()), (Value::from(asked), asked), "{times} {nth}");
            usages.push(outcome.usage.unwrap());
        }
        // It counts as what was asked.
        assert!(usages.iter().all(|usage| (usage.host_calls, usage.bytes_in) == (times, usages[0].bytes_in)));
        let foreseen: Vec<u32> = usages.iter().map(|usage| usage.foreseen).collect();
        assert_eq!(foreseen[..2], [0, 0]);
        assert!(foreseen[2..].contains(&1) && foreseen.iter().all(|used| *used <= 1), "{foreseen:?}");
    }
    sandbox.shutdown().await;
}

/// A guest that sleeps before it asks sees what is then.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_asks_late_gets_a_late_answer() {
    let (sandbox, broker) = started(&Home::new()).await;
    for _ in 0..4 {
        let outcome = ask(&sandbox, 1, 250_000_000).await;
        assert_eq!(outcome.value, Value::from(broker.answers()), "the last answer");
        assert_eq!(outcome.usage.unwrap().foreseen, 0);
    }
    assert_eq!(broker.answers(), 5, "one of them was made in vain");
    sandbox.shutdown().await;
}

/// A job's limit on calls of the host counts what came with it.
#[tokio::test(flavor = "multi_thread")]
async fn the_limit_on_host_calls_counts_foreseen_answers() {
    let mut home = Home::new();
    home.config.settings.limits.host_calls = 2;
    let (sandbox, _) = started(&home).await;
    for times in [2, 2, 2, 2] {
        assert!(ask(&sandbox, times, 0).await.success);
    }
    for _ in 0..4 {
        let outcome = ask(&sandbox, 3, 0).await;
        assert!(failure(&outcome).contains("limit of 2 calls to the host"), "{outcome:?}");
    }
    home.config.settings.limits.host_calls = 0;
    sandbox.shutdown().await;
    let (sandbox, broker) = started(&home).await;
    for _ in 0..4 {
        assert!(!ask(&sandbox, 1, 0).await.success);
    }
    assert_eq!(broker.answers(), 0);
    sandbox.shutdown().await;
}

/// The owner takes the grant away: the next call is refused, whatever the calls before it asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_changes_holds_for_the_next_call() {
    let home = Home::new();
    let (sandbox, broker) = started(&home).await;
    for _ in 0..4 {
        assert!(ask(&sandbox, 1, 0).await.success);
    }
    let refused = policy(&json!({ "modules": { "mine": { "grains": true }, "mine.ask": { "grains": false } } }));
    sandbox.reload(refused, Limits::default()).await;
    for _ in 0..4 {
        let outcome = ask(&sandbox, 1, 0).await;
        assert!(
            failure(&outcome).contains("imports brine:host/grains@1.0.0, which is not granted to it"),
            "{outcome:?}"
        );
    }
    assert_eq!(broker.answers(), 4);
    sandbox.reload(policy(&json!({})), Limits::default()).await;
    for expected in [5, 6, 7, 8] {
        assert_eq!(ask(&sandbox, 1, 0).await.value, Value::from(expected));
    }
    sandbox.shutdown().await;
}

/// Answers as long as nothing changes the number.
#[derive(Default)]
struct Constant {
    number: AtomicU64,
    asked: AtomicU64,
}

impl Broker for Constant {
    fn host_call<'a>(&'a self, _: &'a Caller, _: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let number = self.number.load(Ordering::SeqCst);
        Box::pin(async move { Ok(Value::from(number)) })
    }

    fn log(&self, _: &JobContext, _: LogLevel, _: &str) {}
}

/// What a beacon asks is asked at each look, and its instance is made when an answer is another one. A job of the same code has an
/// instance each time, and so has a look that slept: it knows the clock.
#[tokio::test(flavor = "multi_thread")]
async fn a_beacon_that_would_see_the_same_has_no_instance() {
    let lifted = r#"(func $ask (param "times" u32) (param "ns" u64) (result u32) (canon lift (core func $i "ask")))
        (instance $beacons (export "beacon" (func $ask)))
        (export "ask" (func $ask)) (export "beacons" (instance $beacons)))"#;
    let at = ASKS.rfind(r#"(func (export "ask")"#).expect("its export");
    let (home, broker) = (Home::new(), Arc::new(Constant::default()));
    let sandbox = home.try_start_with(Arc::<Constant>::clone(&broker)).await.unwrap_or_else(|error| panic!("{error}"));
    sandbox.install("mine", &wasm(format!("{}{lifted}", &ASKS[..at])), None, "base").await.unwrap();
    let look = async |ns: u64| {
        let given = vec![("times".to_owned(), Value::from(1)), ("ns".to_owned(), Value::from(ns))];
        let looked = sandbox.beacon(job("20261120000000000001", "mine.beacons.beacon"), "mine.beacons.beacon", given);
        let outcome = within(looked).await;
        (outcome.value, outcome.usage.unwrap().host_calls)
    };
    broker.number.store(7, Ordering::SeqCst);
    let mut instances = 0;
    for _ in 0..8 {
        let (value, made) = look(0).await;
        assert_eq!(value, Value::from(7));
        instances += made;
    }
    assert_eq!((instances, broker.asked.load(Ordering::SeqCst)), (3, 8));
    broker.number.store(8, Ordering::SeqCst);
    assert_eq!([look(0).await, look(0).await], [(Value::from(8), 1), (Value::from(8), 0)]);
    for _ in 0..6 {
        assert_eq!(ask(&sandbox, 1, 0).await.usage.unwrap().host_calls, 1, "a job");
        assert_eq!(look(1_000_000).await, (Value::from(8), 1), "a look that knows the clock");
    }
    sandbox.shutdown().await;
}
