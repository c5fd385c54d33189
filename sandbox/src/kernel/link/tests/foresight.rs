//! Answers that come with a call, and what an executor may say of them.

use super::*;

/// Starts another call of the module. Returns the number of the call and the answers that came with it.
async fn next(it: &mut Taken, module: &Loadable, caller: &Arc<Caller>) -> (Ticket, Vec<(HostOp, ByteBuf)>) {
    let arguments = (vec![0x90], vec![0x80]);
    let limits = Limits { host_calls: 2, ..Limits::default() };
    let mut watch = module.foresight.watch(0, (&arguments.0, &arguments.1), caller);
    let foreseen = match &mut watch {
        Some(watch) => watch.foresee(&*it.broker, caller, &limits).await,
        None => Vec::new(),
    };
    let (ticket, _) = it.link.register(caller, &limits, watch);
    let terms = Terms { limits: &limits, lease: None, foreseen };
    it.link.start(&ticket, caller, module, "f", arguments, terms).await.unwrap();
    let ToExecutor::Run(run) = it.hear.recv().await.unwrap().message else { panic!() };
    assert_eq!(run.call, ticket.call);
    (ticket, run.foreseen.into_iter().map(|foreseen| (foreseen.op, foreseen.answer)).collect())
}

/// The executor ends a call and says that the guest used so many of the answers.
async fn done(it: &mut Taken, ticket: Ticket, foreseen: u32) {
    let outcome = Outcome::Returned { value: vec![0xc0], retcode: 0 };
    let usage = Usage { foreseen, ..Usage::default() };
    it.say.send(&FromExecutor::Done { call: ticket.call, outcome, usage }).await.unwrap();
    while it.link.runs(ticket.call) {
        tokio::task::yield_now().await;
    }
}

async fn asks(it: &mut Taken, call: u64, op: HostOp) -> Result<ByteBuf, HostError> {
    it.ask(call, 1, op).await;
    it.heard().await.2
}

#[tokio::test]
async fn an_answer_comes_with_the_third_call_and_is_made_anew() {
    let mut it = taken(Limits::default()).await;
    let (module, it) = (module(), &mut it);
    let caller = caller_of(&module);
    it.broker.answers.lock().unwrap().extend([1, 2, 3, 4, 5].map(Value::from));
    for n in [1, 2] {
        let (ticket, foreseen) = next(it, &module, &caller).await;
        assert_eq!(foreseen, []);
        assert_eq!(asks(it, ticket.call, grains()).await, Ok(ByteBuf::from(vec![n])));
        done(it, ticket, 0).await;
    }
    for n in [3, 4] {
        let (ticket, foreseen) = next(it, &module, &caller).await;
        assert_eq!(foreseen, [(grains(), ByteBuf::from(vec![n]))]);
        done(it, ticket, 1).await;
    }
    // The executor says that nobody asked: that was the last one.
    let (ticket, foreseen) = next(it, &module, &caller).await;
    assert_eq!(foreseen.len(), 1);
    done(it, ticket, 0).await;
    let (ticket, foreseen) = next(it, &module, &caller).await;
    assert_eq!((foreseen, it.calls()), (vec![], 5));
    done(it, ticket, u32::MAX).await;
}

/// What an escaped guest says it asks is checked at each call, and what it says of its answers is worth nothing.
#[tokio::test]
async fn an_executor_that_lies_gets_what_was_granted_and_no_more_requests() {
    let mut it = taken(Limits::default()).await;
    let (module, it) = (module(), &mut it);
    let caller = caller_of(&module);
    it.broker.answers.lock().unwrap().extend((0..99).map(Value::from));
    let disks = || HostOp::Disks(brine_sandbox_wire::DisksOp::FileSystems);
    // In place of grains: disks, which this module was not granted.
    for _ in 0..4 {
        let (ticket, foreseen) = next(it, &module, &caller).await;
        assert_eq!(foreseen, []);
        assert!(matches!(asks(it, ticket.call, disks()).await, Err(HostError::Denied(_))));
        done(it, ticket, u32::MAX).await;
    }
    assert_eq!(it.calls(), 0);
    assert_eq!(it.broker.refused.lock().unwrap().len(), 4, "of the four requests");
    // It says that it used an answer in each call: it gets one in each, beside its two requests.
    for nth in 0..6 {
        let (ticket, foreseen) = next(it, &module, &caller).await;
        assert_eq!(foreseen.len(), usize::from(nth >= 2), "{nth}");
        for _ in 0..2 {
            assert!(asks(it, ticket.call, grains()).await.is_ok());
        }
        assert!(asks(it, ticket.call, grains()).await.is_err());
        done(it, ticket, u32::MAX).await;
    }
}

/// A call that is killed or dies teaches nothing.
#[tokio::test]
async fn a_call_without_an_end_teaches_nothing() {
    let mut it = taken(Limits::default()).await;
    let (module, it) = (module(), &mut it);
    let caller = caller_of(&module);
    it.broker.answers.lock().unwrap().extend((0..9).map(Value::from));
    for _ in 0..4 {
        let (ticket, foreseen) = next(it, &module, &caller).await;
        assert_eq!(foreseen, []);
        asks(it, ticket.call, grains()).await.unwrap();
        it.link.state().calls.remove(&ticket.call);
    }
}
