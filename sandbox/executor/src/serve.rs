//! The socket's loop: loads and drops modules, starts and kills calls, passes replies on.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use brine_sandbox_walls::Walls;
use brine_sandbox_wire::{
    Connection, FailKind, FromExecutor, Received, Receiver, Run, Sha256Hex, ToExecutor, Usage, VERSION, WireError,
};
use brine_trim::{Code, Looked, Trim};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, Semaphore};

use crate::call::{self, Shared};
use crate::line::Line;
use crate::links::{InterfaceSet, Linkers};
use crate::load;
use crate::modules::LoadedModule;
use crate::outcome;
use crate::ticker::Ticker;

/// Upper bound on loaded modules. A minion has some dozens; each takes address space and the pages in use.
const MAX_MODULES: usize = 4_096;

/// Upper bound on the calls that run or wait for a slot. The minion queues jobs itself and sends far fewer.
const MAX_CALLS: usize = 4_096;

/// Upper bound on the characters of an error in a message.
const MAX_ERROR: usize = 400;

/// Niceness of guests, so that the kernel prefers every other thread.
const GUEST_NICENESS: i32 = 5;

/// Threads for blocking work, such as files on a server that does not answer. Blocked threads delay only guests with
/// the same grants, because other grants have an executor of their own.
const BLOCKING_THREADS: usize = 16;

/// Time from the start to the first look for memory to give back, and from a message after a look to the next look.
const TRIM_AT_START: Duration = Duration::from_secs(2);
const TRIM_EVERY: Duration = Duration::from_secs(30);

/// The kernel's signal for a write beyond the limit on file sizes.
const SIGXFSZ: i32 = rustix::process::Signal::XFSZ.as_raw();

/// The settings from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeOptions {
    /// Threads for guests. Instances share the process's address space, in which mapping and unmapping are serialized,
    /// so more threads do not speed up small jobs.
    pub guest_threads: usize,
    /// Guests that run at once; others wait.
    pub max_running: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { guest_threads: 2, max_running: 64 }
    }
}

/// Why the executor ends.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// fd 0 is not a socket, so the minion did not start this program.
    #[error("fd 0 is not the minion's socket: {0}; salt-minion starts this program, it is of no use by itself")]
    NoSocket(io::Error),
    /// The executor cannot run on this host.
    #[error("cannot start: {0}")]
    Start(String),
    /// A message on the socket is invalid.
    #[error("the minion's socket: {0}")]
    Wire(WireError),
}

/// Serves the minion at the other end of the socket until the minion closes it. `code` is what to give back while there is
/// nothing to do.
///
/// # Errors
/// [`ServeError`]. A socket that the minion closed is no error.
pub fn serve(socket: OwnedFd, settings: &ServeOptions, walls: Walls, code: Code) -> Result<(), ServeError> {
    let start = |error: &dyn std::fmt::Display| ServeError::Start(brine_text::short(&error.to_string(), MAX_ERROR));
    let main = Builder::new_current_thread().enable_io().build().map_err(|error| start(&error))?;
    let connection = main.block_on(async { Connection::from_fd(socket) }).map_err(ServeError::NoSocket)?;
    // With a handler for this signal, a guest that writes too much to a file gets an error, and the process does not
    // end.
    let too_large = {
        let _main = main.enter();
        signal(SignalKind::from_raw(SIGXFSZ))
    };
    let _too_large = too_large.map_err(|error| start(&error))?;
    let guests = guest_runtime(settings).map_err(|error| start(&error))?;
    let engine = load::engine().map_err(|error| start(&error.root_cause()))?;
    let (sender, receiver) = connection.executor();
    let host = Shared {
        links: Linkers::new(&engine),
        ticker: Ticker::start(&engine).map_err(|error| start(&error))?,
        running: Semaphore::new(settings.max_running.max(1)),
        sender: tokio::sync::Mutex::new(sender),
        engine,
    };
    let worked = Arc::new(Notify::new());
    guests.spawn(trim_when_quiet(Trim::new(code), Arc::clone(&worked)));
    let executor = Executor {
        host: Arc::new(host),
        worked,
        guests: guests.handle().clone(),
        modules: HashMap::new(),
        calls: Arc::default(),
        here: None,
    };
    let result = main.block_on(executor.serve(receiver, walls));
    // The guests that still run end with the process, because the minion is gone.
    guests.shutdown_background();
    match result {
        WireError::Closed => Ok(()),
        // The minion died in the middle of a message.
        WireError::Truncated => Ok(()),
        WireError::Io(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
            Ok(())
        }
        error => Err(ServeError::Wire(error)),
    }
}

fn guest_runtime(settings: &ServeOptions) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(settings.guest_threads.max(1))
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("guest")
        .on_thread_start(|| {
            // The executor also runs if this fails. `None` is the calling thread, the only one whose priority the walls
            // allow to change.
            let _ = rustix::process::setpriority_process(None, GUEST_NICENESS);
        })
        // A busy guest yields only once in a tick. By default, a tokio thread looks at work from other threads and at
        // its timers once in 61 polls, so a new call, a kill or the end of a sleep could wait for most of a second.
        .global_queue_interval(1)
        .event_interval(1)
        .enable_all()
        .build()
}

/// Gives memory back some time after the start and after the last message, and sleeps while there are none.
async fn trim_when_quiet(mut trim: Trim, worked: Arc<Notify>) {
    let mut wait = TRIM_AT_START;
    loop {
        tokio::time::sleep(wait).await;
        wait = TRIM_EVERY;
        // Freed pieces are looked through on a thread that serves no calls.
        let looked = tokio::task::spawn_blocking(move || {
            let found = trim.look();
            (trim, found)
        });
        let Ok((back, found)) = looked.await else { return };
        trim = back;
        if found != Looked::Busy {
            worked.notified().await;
        }
    }
}

type Calls = Arc<Mutex<HashMap<u64, Arc<Line>>>>;

struct Executor {
    host: Arc<Shared>,
    /// Told of each call.
    worked: Arc<Notify>,
    guests: Handle,
    modules: HashMap<Sha256Hex, Arc<LoadedModule>>,
    calls: Calls,
    here: Option<Here>,
}

/// A call that runs on the socket's own thread: a call that arrives alone, as long as it is short. Passing it, and each
/// of the broker's replies, to another thread would cost more than most calls take.
struct Here {
    call: Pin<Box<dyn Future<Output = ()> + Send>>,
    line: Arc<Line>,
}

impl Executor {
    /// Runs until the connection ends.
    async fn serve(mut self, mut receiver: Receiver<ToExecutor>, walls: Walls) -> WireError {
        let ready = FromExecutor::Ready { version: VERSION, pid: std::process::id(), walls };
        if let Err(error) = self.host.sender.lock().await.send(&ready).await {
            return error;
        }
        loop {
            let received = tokio::select! {
                biased;
                () = std::future::poll_fn(|context| self.poll_here(context)) => continue,
                received = receiver.recv() => received,
            };
            let result = match received.and_then(|received| self.on_message(received)) {
                Ok(None) => Ok(()),
                Ok(Some(answer)) => self.send(answer).await,
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                return error;
            }
        }
    }

    /// Sends an answer while the local call continues, because the local call may be before this in the queue for the
    /// socket.
    async fn send(&mut self, message: FromExecutor) -> Result<(), WireError> {
        let host = Arc::clone(&self.host);
        let mut sent = std::pin::pin!(async { host.sender.lock().await.send(&message).await });
        loop {
            tokio::select! {
                biased;
                sent = &mut sent => return sent,
                () = std::future::poll_fn(|context| self.poll_here(context)) => {}
            }
        }
    }

    /// Polls the local call until it waits, has run for a tick, or has ended. Returns ready when the call has ended.
    fn poll_here(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(here) = &mut self.here else { return Poll::Pending };
        // The call's timers and its blocking work belong to the runtime of the guests.
        let _guests = self.guests.enter();
        match catch_unwind(AssertUnwindSafe(|| here.call.as_mut().poll(context))) {
            Ok(Poll::Pending) if !here.line.is_long() => return Poll::Pending,
            Ok(Poll::Pending) => {
                if let Some(here) = self.here.take() {
                    drop(self.guests.spawn(here.call));
                }
            }
            // A panic ends only this call, as it would end only a task.
            Ok(Poll::Ready(())) | Err(_) => self.here = None,
        }
        Poll::Ready(())
    }

    /// Handles a message and returns the immediate answer, if there is one.
    fn on_message(&mut self, received: Received<ToExecutor>) -> Result<Option<FromExecutor>, WireError> {
        self.worked.notify_one();
        match received.message {
            ToExecutor::Load { module, name, imports_granted } => {
                let answer = match self.load(module, &name, received.file, imports_granted.as_deref()) {
                    Ok(()) => FromExecutor::Loaded { module },
                    Err(error) => FromExecutor::LoadFailed { module, error: brine_text::short(&error, MAX_ERROR) },
                };
                Ok(Some(answer))
            }
            ToExecutor::Unload { module } => {
                self.modules.remove(&module);
                Ok(None)
            }
            ToExecutor::Run(run) => self.start(*run, None),
            ToExecutor::RunWithin { run, lease } => self.start(*run, Some(lease)),
            ToExecutor::Kill { call, reason } => {
                let line = self.calls.lock().unwrap_or_else(PoisonError::into_inner).get(&call).cloned();
                if let Some(line) = line {
                    line.kill(reason, self.host.ticker.hurry());
                }
                Ok(None)
            }
            ToExecutor::HostReply { call, request, result } => {
                let line = self.calls.lock().unwrap_or_else(PoisonError::into_inner).get(&call).cloned();
                if let Some(line) = line {
                    line.reply(request, result);
                }
                Ok(None)
            }
            ToExecutor::Grown { call, refused } => {
                let line = self.calls.lock().unwrap_or_else(PoisonError::into_inner).get(&call).cloned();
                if let Some(line) = line {
                    line.grown(refused);
                }
                Ok(None)
            }
            ToExecutor::Ping { n } => Ok(Some(FromExecutor::Pong { n })),
            ToExecutor::Look { n, lease } => Ok(Some(self.look(n, lease))),
            ToExecutor::Measure { n } => {
                let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(Some(FromExecutor::Measured { n, calls: calls.values().map(|line| line.in_use()).collect() }))
            }
        }
    }

    fn load(
        &mut self,
        hash: Sha256Hex,
        name: &str,
        file: Option<OwnedFd>,
        granted: Option<&[String]>,
    ) -> Result<(), String> {
        self.modules.remove(&hash);
        if self.modules.len() >= MAX_MODULES {
            return Err(format!("{MAX_MODULES} modules are loaded already"));
        }
        let file = file.ok_or("it came without its file")?;
        let engine = &self.host.engine;
        // Code with a wrong header can make the engine panic. That must fail only this module.
        let loaded = catch_unwind(AssertUnwindSafe(|| load::load(engine, file)));
        let component = match loaded {
            Ok(loaded) => loaded.map_err(|error| error.root_cause().to_string())?,
            Err(_) => return Err("its compiled code is damaged".to_owned()),
        };
        let module = LoadedModule::new(engine, name, component)?;
        if let Some(granted) = granted {
            // A module that cannot be linked is refused now, because each call would fail. The first call also finds it
            // linked.
            module.linked(&self.host.links, InterfaceSet::new(granted).into())?;
        }
        self.modules.insert(hash, Arc::new(module));
        Ok(())
    }

    /// Reports which calls wait. Waiting calls that hold little memory give back their claim to more.
    fn look(&self, n: u64, lease: u64) -> FromExecutor {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = calls.iter().filter(|(_, line)| line.activity.only_waits());
        let (mut waits, mut gave_back) = (Vec::new(), Vec::new());
        for (call, line) in waiting {
            waits.push(*call);
            if line.give_back(lease) {
                gave_back.push(*call);
            }
        }
        FromExecutor::Looked { n, waits, gave_back }
    }

    fn start(&mut self, run: Run, lease: Option<u64>) -> Result<Option<FromExecutor>, WireError> {
        let call = run.call;
        let refuse = |kind, message| FromExecutor::Done {
            call,
            outcome: outcome::failed(kind, message),
            usage: Usage::default(),
        };
        let Some(module) = self.modules.get(&run.module).cloned() else {
            return Ok(Some(refuse(FailKind::Unknown, format!("no module {} is loaded", run.module))));
        };
        let line = Arc::new(Line::new(call, run.limits.log, run.limits.log_lines).within(lease));
        let (full, alone) = {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            if calls.contains_key(&call) {
                return Err(WireError::Malformed(format!("call {call} runs already")));
            }
            let full = calls.len() >= MAX_CALLS;
            let alone = calls.is_empty();
            if !full {
                calls.insert(call, Arc::clone(&line));
            }
            (full, alone)
        };
        if full {
            return Ok(Some(refuse(FailKind::Internal, format!("{MAX_CALLS} calls run or wait already"))));
        }
        let registered = Registered { calls: Arc::clone(&self.calls), call };
        let host = Arc::clone(&self.host);
        let long = Arc::clone(&line);
        let call = async move {
            let _registered = registered;
            // The loop notices a failure of the socket by itself.
            let _ = call::run(&host, &module, run, line).await;
        };
        if alone {
            self.here = Some(Here { call: Box::pin(call), line: long });
        } else {
            drop(self.guests.spawn(call));
        }
        Ok(None)
    }
}

/// Registers a call as long as this value lives.
struct Registered {
    calls: Calls,
    call: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.call);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use brine_sandbox_wire::LogLevel;
    use tokio::sync::Notify;

    use super::*;

    /// The local call waits for the socket, and the loop waits behind it. Neither may wait for ever.
    #[tokio::test]
    async fn an_answer_lets_the_call_that_is_here_send_first() {
        let engine = brine_engine::engine().unwrap();
        let (minion, executor) = Connection::pair().unwrap();
        let (sender, receiver) = Connection::from_fd(executor).unwrap().executor();
        let (mut say, mut hear) = minion.minion();
        let host = Arc::new(Shared {
            links: Linkers::new(&engine),
            ticker: Ticker::start(&engine).unwrap(),
            running: Semaphore::new(1),
            sender: tokio::sync::Mutex::new(sender),
            engine,
        });
        let go = Arc::new(Notify::new());
        let call = {
            let (host, go) = (Arc::clone(&host), Arc::clone(&go));
            async move {
                go.notified().await;
                let line = FromExecutor::Log { call: 1, level: LogLevel::Info, message: "here".into() };
                host.sender.lock().await.send(&line).await.unwrap();
            }
        };
        let executor = Executor {
            host: Arc::clone(&host),
            worked: Arc::default(),
            guests: Handle::current(),
            modules: HashMap::new(),
            calls: Arc::default(),
            here: Some(Here { call: Box::pin(call), line: Arc::new(Line::new(1, 0, 0)) }),
        };
        let walls = Walls::default();
        let talk = async {
            assert!(matches!(hear.recv().await.unwrap().message, FromExecutor::Ready { .. }));
            let other = host.sender.lock().await;
            go.notify_one();
            // The call is first in the queue for the socket.
            tokio::time::sleep(Duration::from_millis(20)).await;
            say.send(&ToExecutor::Ping { n: 7 }).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(other);
            assert!(matches!(hear.recv().await.unwrap().message, FromExecutor::Log { .. }));
            assert!(matches!(hear.recv().await.unwrap().message, FromExecutor::Pong { n: 7 }));
        };
        tokio::select! {
            error = executor.serve(receiver, walls) => panic!("{error}"),
            done = tokio::time::timeout(Duration::from_secs(5), talk) => done.expect("the loop waits for its own call"),
        }
    }
}
