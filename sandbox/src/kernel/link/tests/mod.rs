//! An executor controlled by an escaped guest can send anything, but gets only what the job was granted.

mod foresight;

use std::collections::VecDeque;

use brine_sandbox_wire::{
    ByteBuf, Connection, FailKind, FilesOp, GrainsOp, HostError, HostOp, JobContext, JobsOp, Limits, LogLevel,
    MAX_OPEN_REQUESTS, Wanted,
};
use futures_util::future::BoxFuture;
use rmpv::Value;

use super::*;
use crate::Policy;
use crate::kernel::loadable::Loadable;
use crate::kernel::record::Frames;

#[derive(Default)]
struct Recorder {
    calls: Mutex<Vec<HostOp>>,
    lines: Mutex<Vec<String>>,
    answers: Mutex<VecDeque<Value>>,
    refused: Mutex<Vec<String>>,
}

impl Broker for Recorder {
    fn host_call<'a>(&'a self, _: &'a Caller, op: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        self.calls.lock().unwrap().push(op);
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async move {
            match answer {
                Some(value) => Ok(value),
                None => std::future::pending().await,
            }
        })
    }

    fn log(&self, _: &JobContext, _: LogLevel, message: &str) {
        self.lines.lock().unwrap().push(message.to_owned());
    }

    fn refused(&self, refused: &crate::RefusedCall<'_>) {
        self.refused.lock().unwrap().push(refused.what.to_owned());
    }
}

/// A link with the minion's end served; the test plays the executor.
struct Taken {
    link: Arc<Link>,
    broker: Arc<Recorder>,
    served: tokio::task::JoinHandle<String>,
    say: Sender<FromExecutor>,
    hear: Receiver<ToExecutor>,
    call: u64,
    ticket: Ticket,
    end: oneshot::Receiver<CallEnd>,
}

/// Returns a link with one running call of a module that was granted grains only.
async fn taken(limits: Limits) -> Taken {
    taken_recording(limits, None).await
}

/// The same, with parts of a recording that go here.
async fn taken_recording(limits: Limits, frames: Option<Arc<Frames>>) -> Taken {
    let (here, there) = Connection::pair().unwrap();
    let (sender, receiver) = here.minion();
    let (say, mut hear) = Connection::from_fd(there).unwrap().executor();
    let link = Link::new(1, sender, Arc::default(), no_jobs(), Arc::default());
    let broker = Arc::new(Recorder::default());
    let served = {
        let (link, broker): (_, Arc<dyn Broker>) = (Arc::clone(&link), Arc::<Recorder>::clone(&broker));
        tokio::spawn(async move { link.serve(receiver, &broker).await })
    };
    let module = module();
    let caller = caller_of(&module);
    let caller = Arc::new(Caller::clone(&caller).recording(frames));
    let (ticket, end) = link.register(&caller, &limits, None);
    link.start(&ticket, &caller, &module, "f", (vec![0x90], vec![0x80]), terms(&limits, None)).await.unwrap();
    let call = ticket.call;
    let ToExecutor::Run(run) = hear.recv().await.unwrap().message else { panic!() };
    assert_eq!((run.call, run.imports_granted), (call, vec!["brine:host/grains".to_owned()]));
    Taken { link, broker, served, say, hear, call, ticket, end }
}

fn terms(limits: &Limits, lease: Option<u64>) -> Terms<'_> {
    Terms { limits, lease, foreseen: Vec::new() }
}

fn no_jobs() -> Arc<Jobs> {
    let bounds = crate::kernel::admission::Bounds { max_running: 1, max_waiting: 0, max_queued: 0, memory: 1 << 30 };
    Arc::new(Jobs::new(bounds))
}

fn module() -> Loadable {
    module_of(1)
}

fn module_of(content: u8) -> Loadable {
    let sha256 = Sha256Hex::from([content; 32]);
    Loadable::new("mine".parse().unwrap(), sha256, false, vec!["brine:host/grains".to_owned()], 1)
}

/// Returns the caller for a module that the default policy grants grains.
fn caller_of(module: &Loadable) -> Arc<Caller> {
    let job = Arc::new(JobContext { jid: "1".into(), ..JobContext::default() });
    let subject = crate::Subject { name: &module.name, standard: false, sha256: module.sha256, signers: &[] };
    let grants = Policy::default().decide(&subject, &["brine:host/grains@1.0.0".to_owned()], &["f"]).unwrap();
    assert_eq!(grants.interfaces().collect::<Vec<_>>(), module.interfaces);
    let granted = grants.of("f", None).unwrap();
    let (name, sha256, grants) = (module.name.clone(), module.sha256, Arc::clone(&granted.grants));
    Arc::new(Caller::new(job, name, sha256, grants, Duration::from_secs(60)).with_remedy(granted.remedy()))
}

impl Taken {
    async fn ask(&mut self, call: u64, request: u64, op: HostOp) {
        self.say.send(&FromExecutor::HostCall { call, request, op }).await.unwrap();
    }

    async fn heard(&mut self) -> (u64, u64, Result<ByteBuf, HostError>) {
        match self.hear.recv().await.unwrap().message {
            ToExecutor::HostReply { call, request, result } => (call, request, result),
            other => panic!("{other:?}"),
        }
    }

    fn calls(&self) -> usize {
        self.broker.calls.lock().unwrap().len()
    }
}

fn grains() -> HostOp {
    HostOp::Grains(GrainsOp::Items)
}

fn kill() -> HostOp {
    HostOp::Jobs(JobsOp::Kill { jid: "2".into() })
}

#[tokio::test]
async fn what_was_not_granted_does_not_reach_the_broker() {
    let mut it = taken(Limits::default()).await;
    it.ask(it.call, 1, kill()).await;
    let line = format!("mine: {{sha256: \"{}\", jobs: true}}", "01".repeat(32));
    let denied = Err(HostError::Denied(format!(
        "module mine may not see and end running jobs; the owner of this host grants it by this line under sandbox: modules: in the \
         minion's configuration: {line}"
    )));
    assert_eq!(it.heard().await, (it.call, 1, denied));
    // A call with an unknown number is refused too.
    it.ask(99, 2, grains()).await;
    assert_eq!(it.heard().await, (99, 2, Err(HostError::Denied("the job has ended".into()))));
    assert_eq!(it.calls(), 0);
    it.broker.answers.lock().unwrap().push_back(Value::from(7));
    it.ask(it.call, 3, grains()).await;
    assert_eq!(it.heard().await, (it.call, 3, Ok(ByteBuf::from(vec![7]))));
    assert_eq!(it.calls(), 1);
}

#[tokio::test]
async fn calls_are_counted_here_too() {
    let mut it = taken(Limits { host_calls: 2, ..Limits::default() }).await;
    it.broker.answers.lock().unwrap().extend([Value::Nil, Value::Nil, Value::Nil]);
    for request in 1..=2 {
        it.ask(it.call, request, grains()).await;
        assert!(it.heard().await.2.is_ok());
    }
    it.ask(it.call, 3, grains()).await;
    assert_eq!(it.heard().await.2, Err(HostError::Denied("more than 2 calls of the host".into())));
    assert_eq!(it.calls(), 2);
}

/// A call about many files does the work of several, and counts as several: here too, where the executor's count does not matter.
#[tokio::test]
async fn a_call_about_many_files_counts_as_several() {
    let files = |n: usize| {
        let (paths, saltenv) = (vec!["a".to_owned(); n], "base".to_owned());
        [
            HostOp::Files(FilesOp::CacheAll { paths: paths.clone(), saltenv: saltenv.clone() }),
            HostOp::Files(FilesOp::HashAll { paths, saltenv }),
        ]
    };
    let counts = |n| files(n).map(|op| op.calls());
    assert_eq!([0, 1, 8, 9, 256].map(counts), [[1; 2], [1; 2], [1; 2], [2; 2], [32; 2]]);
    for op in files(64) {
        let mut it = taken(Limits { host_calls: 9, ..Limits::default() }).await;
        it.broker.answers.lock().unwrap().extend([Value::Nil, Value::Nil]);
        let over = Err(HostError::Denied("more than 9 calls of the host".into()));
        it.ask(it.call, 1, grains()).await;
        it.heard().await.2.unwrap();
        it.ask(it.call, 2, op.clone()).await;
        assert_ne!(it.heard().await.2, over, "1 and 8");
        it.ask(it.call, 3, grains()).await;
        assert_eq!(it.heard().await.2, over);
        // All at once is too much as well.
        let mut it = taken(Limits { host_calls: 7, ..Limits::default() }).await;
        it.ask(it.call, 1, op).await;
        assert_eq!(it.heard().await.2, Err(HostError::Denied("more than 7 calls of the host".into())));
    }
}

#[tokio::test]
async fn more_questions_at_once_than_a_guest_can_ask_end_the_executor() {
    let mut it = taken(Limits::default()).await;
    for request in 0..=u64::from(MAX_OPEN_REQUESTS) {
        it.ask(it.call, request, grains()).await;
    }
    assert_eq!(it.served.await.unwrap(), "asked more at once than a guest can");
    assert!(it.broker.calls.lock().unwrap().len() <= MAX_OPEN_REQUESTS as usize);
}

/// What an executor says it refused is checked as its requests are, and bounded: the owner does not read what an escaped guest makes up.
#[tokio::test]
async fn what_an_executor_says_it_refused_is_checked_and_bounded() {
    let path = |path: &str| Wanted::Path { path: path.to_owned(), access: brine_sandbox_wire::PathAccess::Read };
    let mut it = taken(Limits::default()).await;
    // This module has neither files nor sockets, so its executor has nothing to refuse it there.
    for wanted in [path("/etc/x"), Wanted::Connection { to: "192.0.2.1:80".parse().unwrap() }, Wanted::Socket] {
        it.say.send(&FromExecutor::Refused { call: it.call, wanted }).await.unwrap();
    }
    it.broker.answers.lock().unwrap().push_back(Value::from(7));
    it.ask(it.call, 1, grains()).await;
    assert_eq!(it.heard().await, (it.call, 1, Ok(ByteBuf::from(vec![7]))));
    assert_eq!(*it.broker.refused.lock().unwrap(), Vec::<String>::new());

    let mut it = taken(Limits::default()).await;
    let mut grants = crate::Grants::default();
    let directories = crate::Grant::Directories(Vec::new());
    let interfaces = ["wasi:filesystem/types", "brine:host/grains"];
    grants.put(crate::Capability::Filesystem, interfaces, directories, &crate::Host::default());
    let (call, caller) = {
        let mut state = it.link.state();
        let call = state.calls.get_mut(&it.call).unwrap();
        let (job, module) = (Arc::clone(&call.caller.job), call.caller.module.clone());
        let caller = Caller::new(job, module, call.caller.sha256, Arc::new(grants), Duration::from_secs(60));
        call.caller = Arc::new(caller);
        (it.call, Arc::clone(&call.caller))
    };
    assert!(caller.grants.allows("wasi:filesystem/types"));
    for nth in 0..1_000 {
        it.say.send(&FromExecutor::Refused { call, wanted: path(&format!("/etc/{nth}")) }).await.unwrap();
    }
    // Another call, and one that is not there.
    it.say.send(&FromExecutor::Refused { call: 99, wanted: path("/etc/x") }).await.unwrap();
    it.broker.answers.lock().unwrap().push_back(Value::from(7));
    it.ask(call, 1, grains()).await;
    assert_eq!(it.heard().await, (call, 1, Ok(ByteBuf::from(vec![7]))));
    let refused = it.broker.refused.lock().unwrap();
    assert_eq!((refused.len(), refused[0].as_str()), (64, "read /etc/0"));
}

/// A guest ends with its first refusal; a process that an escaped guest controls may go on asking.
#[tokio::test]
async fn refused_requests_are_told_within_bounds() {
    let mut it = taken(Limits::default()).await;
    for request in 0..500 {
        it.ask(it.call, request, kill()).await;
        assert!(it.heard().await.2.is_err());
    }
    assert_eq!((it.calls(), it.broker.refused.lock().unwrap().len()), (0, 64));
}

#[tokio::test]
async fn parts_of_a_recording_are_bounded_and_asked_for() {
    let part = |call, size| FromExecutor::Recorded { call, part: ByteBuf::from(vec![1; size]) };
    let frames = Frames::new(1_000);
    let it = &mut taken_recording(Limits::default(), Some(Arc::clone(&frames))).await;
    it.say.send(&part(it.call, 600)).await.unwrap();
    // Another call, which may have ended.
    it.say.send(&part(99, 600)).await.unwrap();
    it.say.send(&part(it.call, 400)).await.unwrap();
    it.say.send(&part(it.call, 100)).await.unwrap();
    assert_eq!((&mut it.served).await.unwrap(), "recorded more than it may");
    assert_eq!(frames.take().len(), 1_000);
    let mut it = taken(Limits::default()).await;
    it.say.send(&part(it.call, 1)).await.unwrap();
    assert_eq!(it.served.await.unwrap(), "recorded a call for which that was not asked");
    it = taken(Limits::default()).await;
    it.say.send(&FromExecutor::Differs { call: it.call, at: 0, recorded: None, asked: None }).await.unwrap();
    assert_eq!(it.served.await.unwrap(), "said that a call differs which was not replayed");
}

#[tokio::test]
async fn an_answer_too_large_to_send_is_an_error_to_the_guest() {
    let mut it = taken(Limits { host_bytes: u64::MAX, ..Limits::default() }).await;
    it.broker.answers.lock().unwrap().push_back(Value::from("x".repeat(brine_sandbox_wire::MAX_FRAME + 1)));
    it.ask(it.call, 1, grains()).await;
    assert!(matches!(it.heard().await.2, Err(HostError::Failed(why)) if why.contains("over the limit")));
}

#[tokio::test]
async fn log_lines_are_bounded_and_clean() {
    let mut it = taken(Limits { log: 13, ..Limits::default() }).await;
    for message in ["a\x1b[1m\nb", "too long a line", "cd"] {
        let log = FromExecutor::Log { call: it.call, level: LogLevel::Info, message: message.into() };
        it.say.send(&log).await.unwrap();
    }
    let log = FromExecutor::Log { call: 99, level: LogLevel::Info, message: "x".into() };
    it.say.send(&log).await.unwrap();
    let outcome = Outcome::Failed { kind: FailKind::Trap, message: "a\nb".into(), retcode: 1 };
    it.say.send(&FromExecutor::Done { call: it.call, outcome, usage: Usage::default() }).await.unwrap();
    match it.end.await.unwrap() {
        CallEnd::Done(Outcome::Failed { message, .. }, _) => assert_eq!(message, "a\\nb"),
        other => panic!("{other:?}"),
    }
    assert_eq!(*it.broker.lines.lock().unwrap(), ["a\\x1b[1m\\nb", "cd"]);
}

/// An executor that sends any number of log lines: empty lines count too, up to the bound.
#[tokio::test]
async fn log_lines_are_counted_here_too() {
    let mut it = taken(Limits { log_lines: 3, ..Limits::default() }).await;
    for _ in 0..1_000 {
        let log = FromExecutor::Log { call: it.call, level: LogLevel::Info, message: String::new() };
        it.say.send(&log).await.unwrap();
    }
    it.ask(it.call, 1, kill()).await;
    assert!(it.heard().await.2.is_err());
    assert_eq!(it.broker.lines.lock().unwrap().len(), 3);
}

/// The size of answers to a guest is bounded here too.
#[tokio::test]
async fn an_answer_over_the_limit_is_an_error_to_the_guest() {
    let mut it = taken(Limits { host_bytes: 100, ..Limits::default() }).await;
    it.broker.answers.lock().unwrap().extend([Value::from("x".repeat(98)), Value::from("x".repeat(99))]);
    it.ask(it.call, 1, grains()).await;
    assert_eq!(it.heard().await.2.unwrap().len(), 100);
    it.ask(it.call, 2, grains()).await;
    let why = "the answer has 101 bytes; the limit of one is 100 (sandbox:limits:host_bytes)";
    assert_eq!(it.heard().await.2, Err(HostError::Failed(why.into())));
}

#[tokio::test]
async fn what_makes_no_sense_ends_the_executor_or_nothing() {
    let mut it = taken(Limits::default()).await;
    // Messages about unknown calls and modules have no effect.
    let outcome = Outcome::Returned { value: vec![0xc0], retcode: 0 };
    it.say.send(&FromExecutor::Done { call: 99, outcome, usage: Usage::default() }).await.unwrap();
    it.say.send(&FromExecutor::Loaded { module: Sha256Hex::from([9; 32]) }).await.unwrap();
    it.say.send(&FromExecutor::Pong { n: 5 }).await.unwrap();
    it.say
        .send(&FromExecutor::Ready { version: 1, pid: 1, walls: brine_sandbox_walls::Walls::default() })
        .await
        .unwrap();
    assert_eq!(it.served.await.unwrap(), "said twice that it is ready");
    it.link.died(&"broke".into(), 0, false);
    assert!(matches!(it.end.await.unwrap(), CallEnd::Died(_)));
}

#[tokio::test]
async fn bytes_that_are_no_message_end_the_executor() {
    use std::io::Write;
    for bytes in [[0xff; 64].as_slice(), &[0, 0, 0, 2, 0xc0, 0xc0], &[0, 0, 0, 1, 0xc1]] {
        let (here, there) = Connection::pair().unwrap();
        let (sender, receiver) = here.minion();
        let mut socket = std::os::unix::net::UnixStream::from(there);
        socket.write_all(bytes).unwrap();
        let broker: Arc<dyn Broker> = Arc::new(Recorder::default());
        let why = Link::new(1, sender, Arc::default(), no_jobs(), Arc::default()).serve(receiver, &broker).await;
        assert!(why.starts_with("broke the protocol ("), "{why}");
    }
}

/// After a death nothing waits for ever, and nothing new begins.
#[tokio::test]
async fn the_dead_answer_nobody() {
    let it = taken(Limits::default()).await;
    assert_eq!(it.link.died(&"was killed by signal 9".into(), 0, false).jobs, 1);
    assert!(matches!(it.end.await.unwrap(), CallEnd::Died(how) if &*how == "was killed by signal 9"));
    let (_, end) = it.link.register(&caller_of(&module()), &Limits::default(), None);
    assert!(matches!(end.await.unwrap(), CallEnd::NotBegun(_)));
    let code = async { Ok(tempfile::tempfile().unwrap()) };
    assert_eq!(it.link.loaded(&module(), code).await, Err("the executor was killed by signal 9".into()));
}

/// A call that the executor had not read has not begun, so that another executor may run it, and its module is not
/// suspected.
#[tokio::test]
async fn only_what_was_read_had_begun() {
    let mut it = taken(Limits::default()).await;
    let module = module_of(2);
    let caller = caller_of(&module);
    let (ticket, end) = it.link.register(&caller, &Limits::default(), None);
    let before = it.link.written.load(Ordering::Acquire);
    let arguments = (vec![0x91, 7], vec![0x80]);
    let back =
        it.link.start(&ticket, &caller, &module, "f", arguments.clone(), terms(&Limits::default(), Some(5))).await;
    assert_eq!(back.unwrap(), arguments);
    let sent = it.link.written.load(Ordering::Acquire) - before;
    assert!(matches!(it.hear.recv().await.unwrap().message, ToExecutor::RunWithin { lease: 5, .. }));
    // Everything except the first byte is unread.
    let remains = it.link.died(&"was killed by signal 9".into(), sent - 1, false);
    assert_eq!((remains.jobs, remains.blamed), (1, true));
    assert!(matches!(it.end.await.unwrap(), CallEnd::Died(_)));
    assert!(matches!(end.await.unwrap(), CallEnd::NotBegun(_)));
    let standing = |content: u8| it.link.suspects.standing(&module.name, Sha256Hex::from([content; 32]));
    assert_eq!(standing(1), Ok(crate::kernel::suspects::Standing::Convicted));
    assert_eq!(standing(2), Ok(crate::kernel::suspects::Standing::Trusted));
}

/// Returns an executor that can be asked to load modules.
fn loader(suspects: &Arc<Suspects>) -> (Arc<Link>, Sender<FromExecutor>, Receiver<ToExecutor>) {
    let (here, there) = Connection::pair().unwrap();
    let (sender, receiver) = here.minion();
    let (say, hear) = Connection::from_fd(there).unwrap().executor();
    let link = Link::new(1, sender, Arc::clone(suspects), no_jobs(), Arc::default());
    let served = Arc::clone(&link);
    tokio::spawn(async move {
        let broker: Arc<dyn Broker> = Arc::new(Recorder::default());
        served.serve(receiver, &broker).await
    });
    (link, say, hear)
}

fn load(link: &Arc<Link>, module: &Arc<Loadable>) -> tokio::task::JoinHandle<Result<(), String>> {
    let (link, module) = (Arc::clone(link), Arc::clone(module));
    tokio::spawn(async move { link.loaded(&module, async { Ok(tempfile::tempfile().unwrap()) }).await })
}

async fn asked_to_load(hear: &mut Receiver<ToExecutor>) -> Sha256Hex {
    match hear.recv().await.unwrap().message {
        ToExecutor::Load { module, imports_granted, .. } => {
            assert!(imports_granted.is_some());
            module
        }
        other => panic!("{other:?}"),
    }
}

/// A module's code kills the executor that maps it. Modules whose load waits behind it are not to blame.
#[tokio::test]
async fn a_module_that_kills_executors_when_it_is_loaded_is_set_aside_and_others_are_not() {
    let suspects = Arc::new(Suspects::default());
    let (bad, good) = (Arc::new(module_of(1)), Arc::new(module_of(2)));
    for _ in 0..2 {
        let (link, _say, mut hear) = loader(&suspects);
        let first = load(&link, &bad);
        assert_eq!(asked_to_load(&mut hear).await, bad.key);
        let second = load(&link, &good);
        assert_eq!(asked_to_load(&mut hear).await, good.key);
        assert!(link.died(&"was killed by signal 11".into(), 0, false).blamed);
        for load in [first, second] {
            let why = load.await.unwrap().unwrap_err();
            assert_eq!(why, "the executor ended while it loaded the module");
        }
    }
    let (link, mut say, mut hear) = loader(&suspects);
    let why = load(&link, &bad).await.unwrap().unwrap_err();
    assert_eq!(
        why,
        "module mine is not available: it is set aside, because the executor died 2 times while it was loaded; it is tried \
         again with another content, or when the minion starts again"
    );
    let loading = load(&link, &good);
    assert_eq!(asked_to_load(&mut hear).await, good.key);
    say.send(&FromExecutor::Loaded { module: good.key }).await.unwrap();
    assert_eq!(loading.await.unwrap(), Ok(()));
    assert!(link.has(good.key) && !link.has(bad.key));
}

/// A load that was answered, successfully or not, did not cause a later death.
#[tokio::test]
async fn a_load_that_was_answered_is_not_blamed_for_a_death() {
    let suspects = Arc::new(Suspects::default());
    let loadable = Arc::new(module_of(1));
    let module = loadable.key;
    for answer in [
        FromExecutor::Loaded { module },
        FromExecutor::LoadFailed { module, error: "no".into() },
        FromExecutor::Loaded { module },
    ] {
        let (link, mut say, mut hear) = loader(&suspects);
        let loading = load(&link, &loadable);
        asked_to_load(&mut hear).await;
        say.send(&answer).await.unwrap();
        let failed = matches!(answer, FromExecutor::LoadFailed { .. });
        assert_eq!(loading.await.unwrap(), if failed { Err("no".to_owned()) } else { Ok(()) });
        link.died(&"was killed by signal 9".into(), 0, false);
    }
    assert_eq!(suspects.set_aside(module), None);
}

/// A stopped executor, or one with an escaped guest, does not read. It does not block its senders for ever.
#[tokio::test(start_paused = true)]
async fn an_executor_that_does_not_read_is_ended() {
    let it = taken(Limits::default()).await;
    let module = module();
    let caller = caller_of(&module);
    let (ticket, end) = it.link.register(&caller, &Limits::default(), None);
    let large = (vec![0xc0; 8 << 20], vec![0x80]);
    it.link.start(&ticket, &caller, &module, "f", large, terms(&Limits::default(), None)).await.unwrap();
    assert_eq!(it.link.condemned().await, "did not read what it was sent");
    // The supervisor then calls this.
    let remains = it.link.died(&"did not read what it was sent and was ended".into(), 0, false);
    assert_eq!(remains.jobs, 1);
    assert!(matches!(end.await.unwrap(), CallEnd::NotBegun(_)), "half of it was sent");
}

/// A job that goes away before the executor has confirmed anything ends too, and an executor that keeps running it is
/// ended.
#[tokio::test(start_paused = true)]
async fn a_dropped_ticket_ends_the_call_or_the_executor() {
    let mut it = taken(Limits::default()).await;
    drop(it.ticket);
    match it.hear.recv().await.unwrap().message {
        ToExecutor::Kill { call, .. } => assert_eq!(call, it.call),
        other => panic!("{other:?}"),
    }
    assert_eq!(it.link.condemned().await, "did not end a job that was over");

    let mut it = taken(Limits::default()).await;
    drop(it.ticket);
    it.hear.recv().await.unwrap();
    let outcome = Outcome::Failed { kind: FailKind::Killed, message: String::new(), retcode: 1 };
    it.say.send(&FromExecutor::Done { call: it.call, outcome, usage: Usage::default() }).await.unwrap();
    assert!(it.end.await.is_ok());
    assert!(tokio::time::timeout(GRACE * 3, it.link.condemned()).await.is_err());
}

/// A call dropped while it waits to be sent: the executor never receives it, and gets no request to end it.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_never_sent_is_forgotten() {
    let mut it = taken(Limits::default()).await;
    let module = module();
    let caller = caller_of(&module);
    let (ticket, _end) = it.link.register(&caller, &Limits::default(), None);
    let others = it.link.sender.lock().await;
    {
        let limits = Limits::default();
        let start = it.link.start(&ticket, &caller, &module, "f", (vec![0x90], vec![0x80]), terms(&limits, None));
        assert!(futures_util::poll!(std::pin::pin!(start)).is_pending());
    }
    let call = ticket.call;
    drop((ticket, others));
    assert!(!it.link.runs(call));
    assert!(tokio::time::timeout(GRACE * 3, it.link.condemned()).await.is_err());
    // Not even part of a message was sent.
    it.link.kill(it.call, "enough").await;
    assert!(matches!(it.hear.recv().await.unwrap().message, ToExecutor::Kill { call, .. } if call == it.call));
}

/// What an executor says of its calls is shown within what the minion knows, and never of calls that it does not have.
#[tokio::test]
async fn what_an_executor_says_its_calls_use_is_bounded() {
    let mut it = taken(Limits { memory: 1_000, ..Limits::default() }).await;
    // Nobody asked, and nothing waits.
    it.say.send(&FromExecutor::Measured { n: 7, calls: Vec::new() }).await.unwrap();
    let call = it.call;
    for (memory, cpu_us, expect) in [(10, 0, 10), (u64::MAX, u64::MAX, 1_000)] {
        let answer = async {
            let ToExecutor::Measure { n } = it.hear.recv().await.unwrap().message else { panic!() };
            let calls = [call, call + 9].map(|call| InUse { call, memory, cpu_us }).into();
            // An answer to another question is none to this one.
            it.say.send(&FromExecutor::Measured { n: n + 9, calls: Vec::new() }).await.unwrap();
            it.say.send(&FromExecutor::Measured { n, calls }).await.unwrap();
        };
        let (calls, ()) = tokio::join!(it.link.measure(), answer);
        let [one] = &calls[..] else { panic!("{calls:?}") };
        assert_eq!((one.job.jid.as_str(), one.memory, one.memory_max), ("1", Some(expect), 1_000));
        assert!(one.cpu.unwrap() <= one.elapsed, "{one:?}");
    }
}

#[tokio::test]
async fn an_executor_that_does_not_say_what_its_calls_use_keeps_nobody_waiting() {
    let it = taken(Limits::default()).await;
    let began = Instant::now();
    let all = futures_util::future::join_all((0..100).map(|_| it.link.measure())).await;
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(all.iter().all(|calls| calls.len() == 1 && calls[0].memory.is_none() && calls[0].cpu.is_none()));
    assert!(it.link.state().measuring.len() <= 16);
    let Taken { link, end, ticket, .. } = it;
    drop((end, ticket));
    assert!(!link.is_dead());
}
