//! One call: makes an instance with its budget, calls the function with the job's arguments, and reports the result or
//! the failure.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use brine_sandbox_wire::{FailKind, FromExecutor, Limits, LogLevel, Outcome, Run, Sender, Usage, WireError};
use tokio::sync::{Mutex, Semaphore};
use wasmtime::component::{ComponentType, Func, Instance, InstancePre, Lift, Val};
use wasmtime::{Engine, Store};

use crate::directories::Directories;
use crate::guest::{Guest, MAX_HANDLES};
use crate::line::Line;
use crate::links::{Imports, InterfaceSet, Linkers};
use crate::modules::{LoadedFunction, LoadedModule, Returns, Shape};
use crate::outcome;
use crate::params::Params;
use crate::planned::WouldWrite;
use crate::recorder::Recorder;
use crate::ticker::Ticker;
use crate::value::lift::{self, Unfit};
use crate::value::lower::{self, ValueBudget};
use crate::value::msgpack::Writer;
use crate::value::show::show;
use crate::value::signature::Misfit;

/// Upper bound on the characters of a guest's own error: enough for an operator to read, and less than the megabytes
/// that a faulty program may return.
const MAX_ERROR: usize = 4_000;

/// Upper bound on the characters of a function's name in a message.
const MAX_NAME: usize = 100;

/// CPU time of a short call. An instance of an interpreter takes one or two milliseconds.
const SHORT: Duration = Duration::from_millis(4);

/// The state that all calls share.
pub struct Shared {
    /// The engine.
    pub engine: Engine,
    /// The linkers.
    pub links: Linkers,
    /// The clock that interrupts guests.
    pub ticker: Ticker,
    /// The slots for running guests.
    pub running: Semaphore,
    /// The connection to the minion.
    pub sender: Mutex<Sender<FromExecutor>>,
}

/// Runs a call from its `Run` message to its `Done` message.
///
/// # Errors
/// When the socket fails, because the minion has ended.
pub async fn run(host: &Shared, module: &LoadedModule, run: Run, line: Arc<Line>) -> Result<(), WireError> {
    let call = run.call;
    // A call may be killed while it waits for its slot, because earlier calls may take long.
    let permit = tokio::select! {
        biased;
        permit = host.running.acquire() => permit.ok(),
        () = line.changed.notified() => None,
    };
    if permit.is_none() {
        let name = format!("{}.{}", module.name, brine_text::short(&run.function, MAX_NAME));
        let outcome = outcome::killed(&name, &line.killed().unwrap_or_default());
        return send(host, &[FromExecutor::Done { call, outcome, usage: Usage::default() }]).await;
    }
    // Dropping the instance unmaps its memory. The answer is sent first; the next guest starts after the drop.
    let (outcome, usage, instance) = in_instance(host, module, run, &line).await?;
    let mut last = line.outgoing();
    if usage.log_dropped > 0 {
        let message = format!("its log limit is used up, {} more lines were dropped", usage.log_dropped);
        last.push(FromExecutor::Log { call, level: LogLevel::Warning, message });
    }
    last.push(FromExecutor::Done { call, outcome, usage });
    let sent = match send(host, &last).await {
        // The limits keep answers far below the size of a frame. If one is too large nevertheless, the minion gets a
        // failure, because it would wait for the answer for ever.
        Err(error @ (WireError::TooLarge { .. } | WireError::Encode(_))) => {
            let outcome = outcome::failed(FailKind::Internal, format!("the answer cannot be sent: {error}"));
            send(host, &[FromExecutor::Done { call, outcome, usage }]).await
        }
        sent => sent,
    };
    drop(instance);
    drop(permit);
    sent
}

async fn send(host: &Shared, messages: &[FromExecutor]) -> Result<(), WireError> {
    let mut sender = host.sender.lock().await;
    for message in messages {
        sender.send(message).await?;
    }
    Ok(())
}

/// How the future of a guest ended.
enum End {
    Returned(Result<Vec<u8>, Failure>),
    Wall,
    Cpu,
    Killed(String),
    Panicked,
}

/// Why a call has no value.
enum Failure {
    Misfit(Misfit),
    Engine(wasmtime::Error),
    Function(String),
    Unfit(Unfit),
}

impl From<Misfit> for Failure {
    fn from(misfit: Misfit) -> Self {
        Self::Misfit(misfit)
    }
}

impl From<wasmtime::Error> for Failure {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<Unfit> for Failure {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

type Finished = (Outcome, Usage, Option<Box<Store<Guest>>>);

async fn in_instance(
    host: &Shared,
    module: &LoadedModule,
    mut run: Run,
    line: &Arc<Line>,
) -> Result<Finished, WireError> {
    let started = Instant::now();
    run.limits.output = run.limits.output.min(Limits::MAX_OUTPUT);
    let nothing = |kind, message| Ok((outcome::failed(kind, message), Usage::default(), None));
    let function = match module.function(&run.function) {
        Ok(function) => function,
        Err(message) => return nothing(FailKind::Unknown, message),
    };
    let grants = InterfaceSet::new(&run.imports_granted);
    let imports = Imports::of(grants, &run);
    let pre = match module.linked(&host.links, imports) {
        Ok(pre) => pre,
        Err(message) => return nothing(FailKind::Refused, message),
    };
    let recorder = match run.record.take().map(Recorder::new).transpose() {
        Ok(recorder) => recorder.map(Box::new),
        Err(message) => return nothing(FailKind::Refused, message),
    };
    let mut store = Box::new(store(host, &module.name, &mut run, line));
    store.data_mut().recorder = recorder;
    store.data_mut().unconnected = imports.unconnected;
    store.data_mut().files.asks = grants.asks_about_files();
    let (limits, name) = (&run.limits, &function.signature.name);
    let mut meter = Meter { cpu: Duration::ZERO };
    let end = {
        let mut guest = pin!(async {
            if !run.direct.directories.is_empty() && grants.sees_files() {
                open_directories(&mut store, &run).await?;
            }
            call(&mut store, &pre, &function, &run).await
        });
        drive(host, guest.as_mut(), line, started, limits, &mut meter).await?
    };
    store.data_mut().flush_stdio();
    let retcode = store.data().retcode;
    let outcome = match end {
        End::Returned(Ok(value)) => Outcome::Returned { value, retcode: retcode.unwrap_or(0) },
        End::Returned(Err(Failure::Misfit(misfit))) => {
            outcome::failed(FailKind::Arguments, function.signature.refusal(&misfit))
        }
        End::Returned(Err(Failure::Engine(error))) => outcome::engine(name, &error, store.data(), limits),
        End::Returned(Err(Failure::Function(message))) => {
            let message = match left_out(store.data_mut(), message, &run) {
                Ok(message) => message,
                Err(message) => return nothing(FailKind::Internal, message),
            };
            let retcode = retcode.filter(|code| *code != 0).unwrap_or(1);
            Outcome::Failed { kind: FailKind::Function, message, retcode }
        }
        End::Returned(Err(Failure::Unfit(Unfit::Full(crate::value::msgpack::Full::Bytes(_))))) => {
            outcome::output(name, limits)
        }
        End::Returned(Err(Failure::Unfit(unfit @ Unfit::Full(_)))) => {
            outcome::failed(FailKind::Output, format!("{name} was stopped: its return is too large: {unfit}"))
        }
        End::Returned(Err(Failure::Unfit(unfit))) => {
            outcome::failed(FailKind::Trap, format!("{name} returned no Salt value: {unfit}"))
        }
        End::Wall => outcome::wall(name, limits),
        End::Cpu => outcome::cpu(name, limits),
        End::Killed(reason) => outcome::killed(name, &reason),
        End::Panicked => {
            outcome::failed(FailKind::Internal, format!("{name} failed: the executor has a bug, its log says where"))
        }
    };
    let outcome = recorded(store.data_mut(), run.call, outcome);
    let guest = store.data();
    let (written, new_files) = guest.files.budget.used();
    let (logged, log_dropped) = line.logged();
    let returned = if let Outcome::Returned { value, .. } = &outcome { wide(value.len()) } else { 0 };
    let usage = Usage {
        wall_us: micros(started.elapsed()),
        cpu_us: micros(meter.cpu),
        memory_peak: guest.memory.peak(),
        host_calls: guest.host_calls,
        bytes_in: wide(run.args.len()) + wide(run.kwargs.len()) + guest.host_bytes,
        bytes_out: returned + logged,
        log_dropped,
        written,
        new_files,
        foreseen: guest.foreseen.used(),
        repeatable: guest.is_repeatable(),
    };
    Ok((outcome, usage, Some(store)))
}

/// Extends a function's error as [`outcome::with_left_out`] does. A replay has no directories, so the result is recorded.
fn left_out(guest: &mut Guest, message: String, run: &Run) -> Result<String, String> {
    const NAME: &str = "the error of the function";
    if guest.recorder.is_none() {
        return Ok(outcome::with_left_out(message, &guest.files.directories, run));
    }
    let asked = brine_recording::pack(&message);
    if let Some(recorder) = guest.recorder.as_mut().filter(|recorder| recorder.replays()) {
        return match recorder.answer_of(NAME, &asked) {
            Some(told) => brine_recording::unpack(&told),
            None => Ok(message),
        };
    }
    let extended = outcome::with_left_out(message.clone(), &guest.files.directories, run);
    if extended != message {
        guest.keep(NAME, asked, brine_recording::pack(&extended));
    }
    Ok(extended)
}

/// Sends the rest of the call's recording, or judges its replay.
fn recorded(guest: &mut Guest, call: u64, outcome: Outcome) -> Outcome {
    let Some(recorder) = &mut guest.recorder else { return outcome };
    if let Some(part) = recorder.rest() {
        guest.line.recorded(part);
    }
    let (outcome, differs) = recorder.judge(call, outcome);
    if let Some(differs) = differs {
        guest.line.differs(differs);
    }
    outcome
}

fn store(host: &Shared, module: &Arc<str>, run: &mut Run, line: &Arc<Line>) -> Store<Guest> {
    let guest = Guest::new(Arc::clone(line), module, run);
    let mut store = Store::new(&host.engine, guest);
    store.limiter_async(|guest| &mut guest.memory);
    // The limit on host bytes must not refuse a return that is within the limit on output.
    let host_bytes = run.limits.host_bytes.max(run.limits.output);
    store.set_hostcall_fuel(usize::try_from(host_bytes).unwrap_or(usize::MAX));
    store.set_max_component_handles(MAX_HANDLES);
    // A guest that has run for a tick yields. `drive` decides whether it continues.
    store.epoch_deadline_async_yield_and_update(1);
    store.set_epoch_deadline(1);
    store
}

fn wide(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

struct Meter {
    cpu: Duration,
}

/// The CPU time of this thread. A guest stays on one thread during one poll.
fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Polls the guest until it ends: measures its CPU time, sends its messages, and stops it when a limit is reached or
/// the minion kills it. A computing guest yields to this function at every tick; a waiting guest is woken at its
/// deadline.
async fn drive(
    host: &Shared,
    mut guest: Pin<&mut impl Future<Output = Result<Vec<u8>, Failure>>>,
    line: &Line,
    started: Instant,
    limits: &Limits,
    meter: &mut Meter,
) -> Result<End, WireError> {
    let deadline = started.checked_add(Duration::from_millis(limits.wall_ms));
    let cpu = Duration::from_millis(limits.cpu_ms);
    let _running = host.ticker.running(deadline, &line.changed, &line.activity);
    let waker = Waker::from(Arc::clone(&line.activity));
    let mut waits = false;
    loop {
        if let Some(reason) = line.killed() {
            return Ok(End::Killed(reason));
        }
        let mut changed = pin!(line.changed.notified());
        let step = std::future::poll_fn(|context| {
            if !std::mem::take(&mut waits) {
                let before = thread_cpu();
                line.activity.begin(context.waker());
                host.ticker.stir();
                let within = &mut Context::from_waker(&waker);
                let polled = catch_unwind(AssertUnwindSafe(|| guest.as_mut().poll(within)));
                line.activity.end();
                meter.cpu += thread_cpu().saturating_sub(before);
                line.spent(meter.cpu);
                match polled {
                    Err(_) => return Poll::Ready(Some(End::Panicked)),
                    Ok(Poll::Ready(result)) => return Poll::Ready(Some(End::Returned(result))),
                    Ok(Poll::Pending) => {}
                }
            }
            if meter.cpu >= SHORT {
                line.set_long();
            }
            if meter.cpu >= cpu {
                return Poll::Ready(Some(End::Cpu));
            }
            // A computing guest gets here at each tick, and a waiting guest is woken at its deadline.
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Poll::Ready(Some(End::Wall));
            }
            ready!(changed.as_mut().poll(context));
            Poll::Ready(None)
        });
        match step.await {
            Some(end) => return Ok(end),
            None => {
                let outgoing = line.outgoing();
                let mut send = pin!(send(host, &outgoing));
                // A send that completes at once wakes no other task, so the guest is polled again only after it is
                // woken.
                match std::future::poll_fn(|context| Poll::Ready(send.as_mut().poll(context))).await {
                    Poll::Ready(sent) => {
                        sent?;
                        waits = true;
                    }
                    Poll::Pending => send.await?,
                }
            }
        }
    }
}

/// Opens the granted directories within the time of the call, because a directory may lie on a server that does not
/// answer.
async fn open_directories(store: &mut Store<Guest>, run: &Run) -> Result<(), Failure> {
    let granted = run.direct.directories.clone();
    let opened = tokio::task::spawn_blocking(move || Directories::open(&granted)).await;
    let (directories, lines) = opened.map_err(|error| Failure::Engine(error.into()))?;
    let guest = store.data_mut();
    lines.iter().for_each(|line| guest.line.log(LogLevel::Warning, line));
    guest.files.would_write = WouldWrite::new(&directories, &run.would_write);
    guest.files.directories = directories;
    Ok(())
}

async fn call(
    store: &mut Store<Guest>,
    pre: &InstancePre<Guest>,
    function: &LoadedFunction,
    run: &Run,
) -> Result<Vec<u8>, Failure> {
    // The arguments are checked before an instance is made.
    let signature = &function.signature;
    let given = signature.bind(&run.args, &run.kwargs)?;
    let mut out = Writer::new(usize::try_from(run.limits.output).unwrap_or(usize::MAX));
    let mut budget = ValueBudget::new(usize::try_from(run.limits.host_bytes).unwrap_or(usize::MAX));
    if let Some(shape) = &function.shape {
        let params = shape.takes.params(signature, &given, &mut budget)?;
        return with_static_types(store, pre, function, shape, params, out).await;
    }
    let params = lower::lower_all(signature, &given, &mut budget)?;
    let func = instantiate(store, pre, function).await?;
    let mut results = vec![Val::Bool(false); usize::from(signature.result.is_some())];
    func.call_async(&mut *store, &params, &mut results).await?;
    match (results.first(), signature.result.as_deref()) {
        (Some(Val::Result(Err(error))), Some(crate::value::ty::Ty::Result(_, ty))) => {
            return Err(Failure::Function(match (error, ty) {
                (Some(error), Some(ty)) => error_text(error, ty)?,
                _ => format!("{} failed and does not say why", signature.name),
            }));
        }
        (Some(Val::Result(Ok(value))), Some(crate::value::ty::Ty::Result(ty, _))) => {
            lift::optional(value.as_deref(), ty.as_deref(), &mut out)?;
        }
        (value, ty) => lift::optional(value, ty, &mut out)?,
    }
    Ok(out.into_bytes())
}

/// The message of a function's error: a string as it is, any other value as it is displayed.
fn error_text(error: &Val, ty: &crate::value::ty::Ty) -> Result<String, Unfit> {
    if let Val::String(text) = error {
        return Ok(brine_text::short(text, MAX_ERROR));
    }
    let mut out = Writer::new(MAX_ERROR);
    lift::lift(error, ty, &mut out)?;
    Ok(show(&out.into_bytes()))
}

async fn instantiate(
    store: &mut Store<Guest>,
    pre: &InstancePre<Guest>,
    function: &LoadedFunction,
) -> Result<Func, Failure> {
    let instance: Instance = pre.instantiate_async(&mut *store).await?;
    let func = instance.get_func(&mut *store, function.export);
    func.ok_or_else(|| Failure::Engine(wasmtime::Error::msg("the function is not where it was")))
}

#[derive(ComponentType, Lift)]
#[component(record)]
struct DataOut {
    msgpack: Vec<u8>,
}

async fn with_static_types(
    store: &mut Store<Guest>,
    pre: &InstancePre<Guest>,
    function: &LoadedFunction,
    shape: &Shape,
    params: Params,
    mut out: Writer,
) -> Result<Vec<u8>, Failure> {
    let func = instantiate(store, pre, function).await?;
    match shape.returns {
        Returns::Bool => {
            let value = returned::<bool>(store, func, shape, params).await?;
            out.bool(value).map_err(Unfit::from)?;
        }
        Returns::Text => {
            let value = returned::<String>(store, func, shape, params).await?;
            out.str(&value).map_err(Unfit::from)?;
        }
        Returns::Bytes => {
            let value = returned::<Vec<u8>>(store, func, shape, params).await?;
            out.bin(&value).map_err(Unfit::from)?;
        }
        Returns::Data => {
            let value = returned::<DataOut>(store, func, shape, params).await?;
            lift::data(&value.msgpack, &mut out)?;
        }
    }
    Ok(out.into_bytes())
}

/// Calls the function and returns its result or its error.
async fn returned<R>(store: &mut Store<Guest>, func: Func, shape: &Shape, params: Params) -> Result<R, Failure>
where
    R: ComponentType + Lift + Send + Sync + 'static,
{
    if !shape.fails {
        return Ok(func.typed::<Params, (R,)>(&*store)?.call_async(store, params).await?.0);
    }
    let func = func.typed::<Params, (Result<R, String>,)>(&*store)?;
    let (result,) = func.call_async(store, params).await?;
    result.map_err(|error| Failure::Function(brine_text::short(&error, MAX_ERROR)))
}

#[cfg(test)]
mod tests {
    use brine_sandbox_wire::{Connection, JobContext, Sha256Hex};
    use wasmtime::component::{Component, Linker};

    use super::*;

    const CALLS_OUT: &str = r#"(component
        (import "out" (func $out))
        (core func $out (canon lower (func $out)))
        (core module $m (import "" "out" (func $out)) (func (export "f") call $out))
        (core instance $i (instantiate $m (with "" (instance (export "out" (func $out))))))
        (func (export "f") (canon lift (core func $i "f"))))"#;

    /// Runs a component that imports the host function `out`, and returns how the call ended.
    async fn outcome_of(out: impl FnOnce(&mut Linker<Guest>), line: &Arc<Line>, limits: Limits) -> (End, Shared) {
        let engine = brine_engine::engine().unwrap();
        let (connection, _other) = Connection::pair().unwrap();
        let host = Shared {
            links: Linkers::new(&engine),
            ticker: Ticker::start(&engine).unwrap(),
            running: Semaphore::new(1),
            sender: Mutex::new(connection.executor().0),
            engine: engine.clone(),
        };
        let component = Component::new(&engine, wat::parse_str(CALLS_OUT).unwrap()).unwrap();
        let mut linker = Linker::<Guest>::new(&engine);
        out(&mut linker);
        let pre = linker.instantiate_pre(&component).unwrap();
        let module = LoadedModule::new(&engine, "test", component).unwrap();
        let function = module.function("f").unwrap();
        let mut run = Run {
            call: 1,
            module: Sha256Hex::from([0; 32]),
            function: "f".into(),
            args: vec![0x90],
            kwargs: vec![0x80],
            context: JobContext::default(),
            limits,
            imports_granted: Vec::new(),
            direct: brine_sandbox_wire::DirectGrants::default(),
            would_write: Vec::new(),
            record: None,
            foreseen: Vec::new(),
        };
        let mut store = store(&host, &module.name, &mut run, line);
        let end = {
            let mut guest = pin!(call(&mut store, &pre, &function, &run));
            let mut meter = Meter { cpu: Duration::ZERO };
            drive(&host, guest.as_mut(), line, Instant::now(), &run.limits, &mut meter).await.unwrap()
        };
        drop(store);
        (end, host)
    }

    #[tokio::test]
    async fn a_panic_of_the_host_fails_the_call_only() {
        let panics = |linker: &mut Linker<Guest>| {
            linker.root().func_wrap("out", |_, (): ()| -> wasmtime::Result<()> { panic!("meant to happen") }).unwrap();
        };
        let (end, _) = outcome_of(panics, &Arc::new(Line::new(1, 0, 0)), Limits::default()).await;
        assert!(matches!(end, End::Panicked));
    }

    /// A file on a server that does not answer blocks the thread but not the call.
    #[tokio::test]
    async fn what_blocks_for_ever_neither_outlasts_the_wall_clock_nor_a_kill() {
        let (hangs, ends) = std::sync::mpsc::channel::<()>();
        let ends = Arc::new(std::sync::Mutex::new(ends));
        let blocks = |linker: &mut Linker<Guest>| {
            let ends = Arc::clone(&ends);
            let waits = linker.root().func_wrap_async("out", move |_, (): ()| {
                let ends = Arc::clone(&ends);
                let hung = tokio::task::spawn_blocking(move || ends.lock().unwrap().recv().is_ok());
                Box::new(async move {
                    hung.await?;
                    Ok(())
                })
            });
            waits.unwrap();
        };
        let limits = Limits { wall_ms: 50, ..Limits::default() };
        let (end, host) = outcome_of(&blocks, &Arc::new(Line::new(1, 0, 0)), limits).await;
        assert!(matches!(end, End::Wall));
        let line = Arc::new(Line::new(1, 0, 0));
        let kill = async {
            tokio::task::yield_now().await;
            line.kill("enough".into(), host.ticker.hurry());
        };
        let (end, ()) = tokio::join!(outcome_of(&blocks, &line, Limits::default()), kill);
        assert!(matches!(end.0, End::Killed(reason) if reason == "enough"));
        drop(hangs);
    }
}
