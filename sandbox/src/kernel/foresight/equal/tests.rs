//! Which looks are repeated without an instance.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use brine_capabilities::Grants;
use brine_sandbox_wire::{FailKind, GrainsOp, HostError, HostOp, JobContext, KernelOp, Limits, LogLevel, Usage};
use futures_util::future::BoxFuture;
use rmpv::Value;

use super::super::{Broker, Caller, Foresight};
use super::*;
use crate::testing::{caller, policy};

/// Answers with a text, at once or after a while, and counts.
#[derive(Default)]
struct Host {
    text: Mutex<String>,
    takes: Mutex<Duration>,
    answers: AtomicUsize,
}

impl Broker for Host {
    fn host_call<'a>(&'a self, _: &'a Caller, _: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        self.answers.fetch_add(1, Ordering::SeqCst);
        let (value, takes) = (Value::from(self.text.lock().unwrap().as_str()), *self.takes.lock().unwrap());
        Box::pin(async move {
            if !takes.is_zero() {
                tokio::time::sleep(takes).await;
            }
            Ok(value)
        })
    }

    fn log(&self, _: &JobContext, _: LogLevel, _: &str) {}
}

/// Looks of one beacon that asks for its grains, or for something else.
#[derive(Default)]
struct Beacon {
    asks: Option<HostOp>,
    foresight: Arc<Foresight>,
    host: Host,
    /// What its next instance returns.
    returns: u8,
}

const LOOK: Usage = Usage {
    repeatable: true,
    foreseen: 1,
    wall_us: 0,
    cpu_us: 0,
    memory_peak: 0,
    host_calls: 1,
    bytes_in: 0,
    bytes_out: 0,
    log_dropped: 0,
    written: 0,
    new_files: 0,
};

fn who() -> Caller {
    caller(&policy("modules:\n  mine: {grains: true}\n"), "mine", "f", None)
}

fn outcome(value: Vec<u8>) -> Outcome {
    Outcome::Returned { value, retcode: 0 }
}

impl Beacon {
    /// A look with this state. Returns its outcome, and whether an instance made it, which uses up the answers and ends with what
    /// `end` makes of the two.
    async fn look_ending(
        &self,
        who: &Caller,
        state: &[u8],
        end: impl FnOnce(&mut Outcome, &mut Usage),
    ) -> (Outcome, bool) {
        let question = self.asks.clone().unwrap_or(HostOp::Grains(GrainsOp::Items));
        let mut watch = self.foresight.watch(0, (&[0x90], state), who).unwrap().repeating();
        let foreseen = watch.foresee(&self.host, who, &Limits::default()).await;
        if let Some(outcome) = watch.repeated(&foreseen) {
            return (outcome, false);
        }
        let mut usage = LOOK;
        if foreseen.is_empty() {
            watch.asks(&question);
            (usage.foreseen, usage.repeatable) = (0, false);
        }
        let mut outcome = outcome(vec![self.returns]);
        end(&mut outcome, &mut usage);
        watch.ended(&outcome, &usage);
        (outcome, true)
    }

    async fn look(&self) -> (Outcome, bool) {
        self.look_ending(&who(), &[], |_, _| ()).await
    }

    async fn made(&self) -> bool {
        self.look().await.1
    }

    /// After the looks that a beacon needs until one is repeated.
    async fn settled() -> Self {
        let beacon = Self::default();
        for _ in 0..3 {
            assert!(beacon.made().await);
        }
        assert!(!beacon.made().await);
        beacon
    }
}

#[tokio::test]
async fn a_look_that_would_find_all_as_it_was_has_no_instance() {
    let mut beacon = Beacon::settled().await;
    let asked = beacon.host.answers.load(Ordering::SeqCst);
    beacon.returns = 1;
    for _ in 0..9 {
        assert_eq!(beacon.look().await, (outcome(vec![0]), false));
    }
    assert_eq!(beacon.host.answers.load(Ordering::SeqCst), asked + 9, "the answers are made for each look");
    // Something changed.
    *beacon.host.text.lock().unwrap() = "more".to_owned();
    assert_eq!(beacon.look().await, (outcome(vec![1]), true));
    assert_eq!(beacon.look().await, (outcome(vec![1]), false));
    // What it was before is not remembered.
    *beacon.host.text.lock().unwrap() = String::new();
    assert!(beacon.made().await);
}

/// A job's call does not wait for a table that grows with the host; a look does.
#[tokio::test]
async fn large_tables_are_looked_at_too() {
    let table = HostOp::Kernel(KernelOp::Read { table: "processes".to_owned() });
    let who = caller(&policy("modules:\n  mine: {kernel: [processes]}\n"), "mine", "f", None);
    let beacon = Beacon { asks: Some(table.clone()), ..Beacon::default() };
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(beacon.look_ending(&who, &[], |_, _| ()).await.1);
    }
    assert_eq!(made, [true, true, true, false, false]);
    let of_job = Arc::<Foresight>::default();
    for _ in 0..4 {
        let mut watch = of_job.watch(0, (&[0x90], &[]), &who).unwrap();
        assert_eq!(watch.foresee(&beacon.host, &who, &Limits::default()).await, []);
        watch.asks(&table);
        watch.ended(&outcome(vec![0]), &Usage::default());
    }
}

#[tokio::test]
async fn other_arguments_grants_and_masters_are_other_looks() {
    let beacon = Beacon::settled().await;
    let look = async |who: &Caller, state: &[u8]| beacon.look_ending(who, state, |_, _| ()).await.1;
    assert!(look(&who(), &[1]).await, "another state");
    let mut of_other_master = who();
    Arc::make_mut(&mut of_other_master.job).master = Some("aa:bb".to_owned());
    assert!(look(&of_other_master, &[]).await);
    let of_other_grants = caller(&policy("modules:\n  mine: {grains: true, disks: true}\n"), "mine", "f", None);
    assert!(look(&of_other_grants, &[]).await);
    assert!(!look(&who(), &[]).await);
    // Without the grant there is no answer, and no outcome without one.
    let mut without = who();
    without.grants = Arc::new(Grants::default());
    assert!(look(&without, &[]).await);
}

#[tokio::test]
async fn a_look_that_knew_or_did_more_is_made_again() {
    let ends: [fn(&mut Outcome, &mut Usage); 5] = [
        |_, usage| usage.repeatable = false,
        |_, usage| usage.foreseen = 0,
        |_, usage| usage.foreseen = u32::MAX,
        |outcome, _| *outcome = Outcome::Failed { kind: FailKind::Cpu, message: String::new(), retcode: 1 },
        |outcome, _| *outcome = self::outcome(vec![0; MAX_BYTES + 1]),
    ];
    for (nth, end) in ends.into_iter().enumerate() {
        let beacon = Beacon::default();
        for _ in 0..6 {
            assert!(beacon.look_ending(&who(), &[], end).await.1, "{nth}");
        }
    }
    let beacon = Beacon::default();
    *beacon.host.text.lock().unwrap() = "x".repeat(MAX_BYTES);
    for _ in 0..6 {
        assert!(beacon.made().await, "large answers");
    }
}

/// Looks that go on, each with another state, keep the newest of them.
#[tokio::test]
async fn what_is_kept_of_looks_is_bounded() {
    let (beacon, states) = (Beacon::default(), 0..u8::try_from(3 * MAX_SEEN).unwrap());
    for state in states.clone() {
        for _ in 0..4 {
            beacon.look_ending(&who(), &[state], |_, _| ()).await;
        }
    }
    assert_eq!(beacon.foresight.known().iter().filter(|known| known.seen.is_some()).count(), MAX_SEEN);
    assert!(!beacon.look_ending(&who(), &[states.end - 1], |_, _| ()).await.1);
    assert!(beacon.look_ending(&who(), &[0], |_, _| ()).await.1);
}

/// A job of the same function is made, whatever is known of looks.
#[tokio::test]
async fn a_job_is_never_repeated() {
    let beacon = Beacon::settled().await;
    let mut watch = beacon.foresight.watch(0, (&[0x90], &[]), &who()).unwrap();
    let foreseen = watch.foresee(&beacon.host, &who(), &Limits::default()).await;
    assert_eq!((foreseen.len(), watch.repeated(&foreseen)), (1, None));
    watch.ended(&outcome(vec![0]), &LOOK);
    assert!(beacon.made().await, "and no look is repeated after it");
}

#[tokio::test]
async fn an_instance_looks_again_after_a_while() {
    let beacon = Beacon::settled().await;
    {
        let mut known = beacon.foresight.known();
        let seen = known.front_mut().unwrap().seen.as_mut().unwrap();
        seen.at = seen.at.checked_sub(MAX_AGE).expect("the machine runs longer");
    }
    assert!(beacon.made().await);
    assert!(!beacon.made().await);
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_take_a_moment_and_no_longer() {
    let beacon = Beacon::default();
    *beacon.host.takes.lock().unwrap() = PATIENCE / 2;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(beacon.made().await);
    }
    assert_eq!(made, [true, true, true, false, false]);
    *beacon.host.takes.lock().unwrap() = PATIENCE * 2;
    let began = tokio::time::Instant::now();
    assert!(beacon.made().await);
    assert!(began.elapsed() < PATIENCE * 2);
}
