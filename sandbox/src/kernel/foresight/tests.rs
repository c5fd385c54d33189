//! What is kept of questions, and which answers are made of it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use brine_sandbox_wire::{DisksOp, GrainsOp, HostError, JobContext, JobsOp, LogLevel, Sha256Hex};
use futures_util::future::BoxFuture;
use rmpv::Value;

use super::*;
use crate::kernel::broker::{Plan, RefusedCall};
use crate::kernel::loadable::Loadable;
use crate::testing::{caller, name, policy};

/// Answers with the number of answers so far, or with a text, or never.
#[derive(Default)]
struct Counter {
    answers: AtomicUsize,
    refused: Mutex<Vec<String>>,
    text: Mutex<Option<String>>,
    waits: Mutex<bool>,
}

impl Broker for Counter {
    fn host_call<'a>(&'a self, _: &'a Caller, _: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        let count = self.answers.fetch_add(1, Ordering::SeqCst) + 1;
        if *self.waits.lock().unwrap() {
            return Box::pin(std::future::pending());
        }
        let value = self.text.lock().unwrap().clone().map_or_else(|| Value::from(count), Value::from);
        Box::pin(async move { Ok(value) })
    }

    fn log(&self, _: &JobContext, _: LogLevel, _: &str) {}

    fn refused(&self, refused: &RefusedCall<'_>) {
        self.refused.lock().unwrap().push(refused.what.to_owned());
    }
}

impl Counter {
    fn answers(&self) -> usize {
        self.answers.load(Ordering::SeqCst)
    }
}

const NOTHING: (&[u8], &[u8]) = (&[0x90], &[0x80]);

fn grains() -> HostOp {
    HostOp::Grains(GrainsOp::Items)
}

fn grain(key: &str) -> HostOp {
    HostOp::Grains(GrainsOp::Get { key: key.into(), delimiter: None })
}

fn disks() -> HostOp {
    HostOp::Disks(DisksOp::FileSystems)
}

fn kill() -> HostOp {
    HostOp::Jobs(JobsOp::Kill { jid: "1".into() })
}

fn who() -> Caller {
    caller(&policy("modules:\n  mine: {grains: true}\n"), "mine", "f", None)
}

/// A call of a module that asks these, one after the other. Returns the questions whose answers came with it.
fn call_with(
    foresight: &Arc<Foresight>,
    broker: &Counter,
    who: &Caller,
    arguments: (&[u8], &[u8]),
    asks: &[HostOp],
) -> Vec<HostOp> {
    let mut watch = foresight.watch(0, arguments, who).unwrap();
    let came: Vec<HostOp> =
        foresee(&mut watch, broker, who, &Limits::default()).into_iter().map(|foreseen| foreseen.op).collect();
    // As the executor does: the answers are used in their order, until the module asks something else.
    let used = came.iter().zip(asks).take_while(|(came, asked)| came == asked).count();
    asks[used..].iter().for_each(|op| watch.asks(op));
    assert_eq!(ended(watch, u32::try_from(used).unwrap()), came[..used]);
    came
}

/// The answers that a job's call gets are there at once.
fn foresee(watch: &mut Watch, broker: &Counter, who: &Caller, limits: &Limits) -> Vec<Foreseen> {
    watch.foresee(broker, who, limits).now_or_never().unwrap()
}

fn ended(watch: Watch, used: u32) -> Vec<HostOp> {
    watch.ended(&returned(), &Usage { foreseen: used, ..Usage::default() })
}

fn returned() -> Outcome {
    Outcome::Returned { value: vec![0xc0], retcode: 0 }
}

fn call(foresight: &Arc<Foresight>, broker: &Counter, asks: &[HostOp]) -> Vec<HostOp> {
    call_with(foresight, broker, &who(), NOTHING, asks)
}

#[test]
fn what_two_calls_asked_first_comes_with_the_next_and_is_made_for_it() {
    let (foresight, broker) = (Arc::new(Foresight::default()), Counter::default());
    let asks = [grains(), grain("os")];
    for nth in 0..6 {
        let came = call(&foresight, &broker, &asks);
        assert_eq!(came, if nth < 2 { [].as_slice() } else { &asks });
        assert_eq!(broker.answers(), 2 * usize::saturating_sub(nth, 1));
    }
}

#[test]
fn only_what_comes_first_and_once_is_foreseen() {
    let more: Vec<HostOp> = (0..9).map(|n| grain(&n.to_string())).collect();
    for (asks, expected) in [
        // The second answer of two has to be another one.
        (vec![grains(), grains()], vec![grains()]),
        (vec![grains(), grain("os"), grains()], vec![grains(), grain("os")]),
        // What changes something, and what comes after it.
        (vec![kill(), grains()], vec![]),
        (vec![grains(), kill(), grain("os")], vec![grains()]),
        (more.clone(), more[..MAX_ANSWERS].to_vec()),
        (vec![grain(&"x".repeat(MAX_NAMES + 1)), grains()], vec![]),
        (vec![], vec![]),
    ] {
        let (foresight, broker) = (Arc::new(Foresight::default()), Counter::default());
        for _ in 0..2 {
            assert_eq!(call(&foresight, &broker, &asks), []);
        }
        for _ in 0..3 {
            assert_eq!(call(&foresight, &broker, &asks), expected, "{asks:?}");
        }
    }
}

/// A module that changes its question, and one that asks no more: nothing is made that nobody asks for, but once.
#[test]
fn what_a_module_asks_no_more_is_foreseen_no_more() {
    let (foresight, broker) = (Arc::new(Foresight::default()), Counter::default());
    let teach = |asks: &[HostOp]| (0..3).map(|_| call(&foresight, &broker, asks).len()).collect::<Vec<_>>();
    assert_eq!(teach(&[grains()]), [0, 0, 1]);
    assert_eq!(call(&foresight, &broker, &[grain("os")]), [grains()]);
    assert_eq!(call(&foresight, &broker, &[grain("os")]), []);
    assert_eq!(call(&foresight, &broker, &[grain("os")]), [grain("os")]);
    let before = broker.answers();
    assert_eq!(call(&foresight, &broker, &[]), [grain("os")]);
    for _ in 0..9 {
        assert_eq!(call(&foresight, &broker, &[]), []);
    }
    assert_eq!(broker.answers(), before + 1);
    // One that asks now and then is not foreseen.
    for _ in 0..9 {
        assert_eq!(call(&foresight, &broker, &[grains()]), []);
        assert_eq!(call(&foresight, &broker, &[]), []);
    }
    // Of two questions the first alone is asked still.
    assert_eq!(teach(&[grains(), grain("os")]), [0, 0, 2]);
    assert_eq!(call(&foresight, &broker, &[grains()]).len(), 2);
    assert_eq!(call(&foresight, &broker, &[grains()]), [grains()]);
}

/// Other arguments, another master or user, test mode, another function and other grants are other calls.
#[test]
fn calls_that_differ_are_foreseen_apart() {
    let (foresight, broker) = (Arc::new(Foresight::default()), Counter::default());
    for _ in 0..2 {
        assert_eq!(call(&foresight, &broker, &[grains()]), []);
    }
    let of_job = |change: fn(&mut JobContext)| {
        let mut who = who();
        change(Arc::make_mut(&mut who.job));
        who
    };
    let other_grants = caller(&policy("modules:\n  mine: {grains: true, disks: true}\n"), "mine", "f", None);
    for other in [
        of_job(|job| job.master = Some("aa:bb".into())),
        of_job(|job| job.user = "sudo_root".into()),
        who().planning(Some(Arc::new(Plan::default()))),
        other_grants,
    ] {
        assert_eq!(call_with(&foresight, &broker, &other, NOTHING, &[grains()]), []);
    }
    assert_eq!(call_with(&foresight, &broker, &who(), (&[0x91, 1], &[0x80]), &[grains()]), []);
    let mut other_function = foresight.watch(1, NOTHING, &who()).unwrap();
    assert!(foresee(&mut other_function, &broker, &who(), &Limits::default()).is_empty());
    assert_eq!(broker.answers(), 0);
    assert_eq!(call(&foresight, &broker, &[grains()]), [grains()]);
    let long = vec![0; MAX_ARGUMENTS + 1];
    assert!(foresight.watch(0, (&long, &[]), &who()).is_none());
}

#[test]
fn another_content_of_a_module_starts_anew() {
    let of = |content: u8| Loadable::new(name("mine"), Sha256Hex::from([content; 32]), false, Vec::new(), 1).foresight;
    let (one, broker) = (of(1), Counter::default());
    for came in [0, 0, 1] {
        assert_eq!(call(&one, &broker, &[grains()]).len(), came);
    }
    assert_eq!(call(&of(2), &broker, &[grains()]), []);
}

/// A module that changes files or reaches hosts by itself could ask for what it has just changed.
#[test]
fn who_acts_without_the_minion_is_not_foreseen() {
    for grant in ["filesystem: {/srv: rw}", "network: [\"192.0.2.1:80\"]"] {
        let policy = policy(&format!("modules:\n  mine: {{grains: true, {grant}}}\n"));
        assert!(Arc::new(Foresight::default()).watch(0, NOTHING, &caller(&policy, "mine", "f", None)).is_none());
    }
}

/// The questions are what executors say: each answer is checked when it is made, and a refusal goes nowhere.
#[test]
fn what_is_not_granted_is_not_foreseen_and_nobody_is_told() {
    let (foresight, broker) = (Arc::new(Foresight::default()), Counter::default());
    for asks in [[disks(), grains()], [grains(), disks()]] {
        for _ in 0..2 {
            assert_eq!(call(&foresight, &broker, &asks), []);
        }
        let granted = asks.iter().take_while(|op| **op == grains()).count();
        assert_eq!(call(&foresight, &broker, &asks), asks[..granted]);
    }
    assert_eq!((broker.answers(), broker.refused.lock().unwrap().len()), (1, 0));
    // With the grant it is the same question of another call.
    let granted = caller(&policy("modules:\n  mine: {grains: true, disks: true}\n"), "mine", "f", None);
    for came in [0, 0, 2] {
        assert_eq!(call_with(&foresight, &broker, &granted, NOTHING, &[grains(), disks()]).len(), came);
    }
}

#[test]
fn answers_that_are_large_or_take_time_are_not_handed_over() {
    let (foresight, broker) = (Arc::new(Foresight::default()), Counter::default());
    let teach = || (0..2).for_each(|_| drop(call(&foresight, &broker, &[grains()])));
    teach();
    for (bytes, came) in [(MAX_BYTES - 5, 1), (MAX_BYTES + 1, 0)] {
        *broker.text.lock().unwrap() = Some("x".repeat(bytes));
        assert_eq!(call(&foresight, &broker, &[grains()]).len(), came, "{bytes}");
    }
    *broker.text.lock().unwrap() = None;
    teach();
    let mut watch = foresight.watch(0, NOTHING, &who()).unwrap();
    for limits in [Limits { host_bytes: 0, ..Limits::default() }, Limits { host_calls: 0, ..Limits::default() }] {
        assert!(foresee(&mut watch, &broker, &who(), &limits).is_empty(), "the job's own limits");
        teach();
    }
    teach();
    let before = broker.answers();
    *broker.waits.lock().unwrap() = true;
    let came: Vec<usize> = (0..6).map(|_| call(&foresight, &broker, &[grains()]).len()).collect();
    assert_eq!(came, [0; 6]);
    assert!((1..=3).contains(&(broker.answers() - before)), "some of the calls try");
}

#[test]
fn a_plan_shows_nothing_of_it() {
    let (foresight, broker) = (Arc::new(Foresight::default()), Counter::default());
    let plan = Arc::new(Plan::default());
    let who = who().planning(Some(Arc::clone(&plan)));
    let came: Vec<usize> = (0..4).map(|_| call_with(&foresight, &broker, &who, NOTHING, &[grains()]).len()).collect();
    assert_eq!(came, [0, 0, 1, 1]);
    assert_eq!(plan.taken(), Vec::<Value>::new());
}

#[test]
fn what_is_kept_is_bounded() {
    let (foresight, broker) = (Arc::new(Foresight::default()), Counter::default());
    for n in 0..=u8::MAX {
        for _ in 0..2 {
            call_with(&foresight, &broker, &who(), (&[n], &[]), &[grains()]);
        }
    }
    assert_eq!(foresight.known().len(), MAX_KNOWN);
    assert_eq!(call_with(&foresight, &broker, &who(), (&[u8::MAX], &[]), &[grains()]), [grains()]);
    assert_eq!(call_with(&foresight, &broker, &who(), (&[0], &[]), &[grains()]), []);
    // An executor may say that it used any number.
    let watch = foresight.watch(0, (&[u8::MAX], &[]), &who()).unwrap();
    assert_eq!(ended(watch, u32::MAX), []);
}

/// An operation that may be foreseen only looks.
#[test]
fn what_can_be_foreseen_changes_nothing() {
    let mount_point = || String::from("/");
    for op in [
        grains(),
        grain("os"),
        HostOp::Disks(DisksOp::Mounts),
        disks(),
        HostOp::Disks(DisksOp::Usage { mount_point: mount_point() }),
        HostOp::Disks(DisksOp::FileSystemAt { mount_point: mount_point() }),
    ] {
        assert!(op.is_foreseeable() && op.calls() == 1, "{op:?}");
        assert_eq!(op.clone().planned(&Grants::default()), Planned::Look(op));
    }
    assert!(!kill().is_foreseeable());
}
