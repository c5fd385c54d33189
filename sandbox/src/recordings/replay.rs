//! Runs calls again from their recordings, on an author's machine: an executor that has no broker, no grants and no
//! directories.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_component::ModuleInfo;
use brine_recording::Recording;
use brine_sandbox_wire::{
    ByteBuf, DirectGrants, FromExecutor, Limits, LogLevel, Outcome, Record, Run, Sha256Hex, ToExecutor, WireError,
};
use bytes::Bytes;

use crate::kernel::cache::{self, Cache, CacheError};
use crate::kernel::compile::{CompileError, Compiler};
use crate::kernel::process::{self, ExecutorProgram, Living, Process};
use crate::kernel::user;
use crate::{Capability, CompileLimits, ModuleName};

/// Time for the executor to load a module.
const LOAD: Duration = Duration::from_secs(60);
/// The longest time of a replay in milliseconds: an hour. Nothing in it waits.
const MAX_TIME_MS: u64 = 3_600_000;
/// Time beyond a call's own limit of wall-clock time.
const GRACE: Duration = Duration::from_secs(10);

/// Runs calls again from their recordings.
pub struct Replayer {
    compiler: Compiler,
    cache: Cache,
    process: Process,
    module: Sha256Hex,
    calls: u64,
}

/// The result of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// How the call ended.
    pub outcome: Outcome,
    /// The first difference in what was asked. None: it asked the same, to the end.
    pub difference: Option<Difference>,
    /// The lines of its log.
    pub log: Vec<(LogLevel, String)>,
}

/// The first place where a call asks something else than in its recording. If both parts are missing, the recording ended
/// there because it had reached its bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// How many calls of the host were the same before.
    pub at: u64,
    /// What was asked in the recording, name and MessagePack. None: nothing more.
    pub recorded: Option<(String, Vec<u8>)>,
    /// What is asked now. None: nothing more.
    pub asked: Option<(String, Vec<u8>)>,
}

/// The limits of a replay: those of the recording, which anybody may have written, within bounds of this machine.
fn bounded(recorded: &Limits) -> Limits {
    Limits {
        memory: recorded.memory.min(crate::kernel::memory::half()),
        wall_ms: recorded.wall_ms.min(MAX_TIME_MS),
        cpu_ms: recorded.cpu_ms.min(MAX_TIME_MS),
        host_bytes: recorded.host_bytes.min(1 << 30),
        ..recorded.clone()
    }
}

impl Replayer {
    /// Starts an executor. `cache_dir` keeps compiled code. The error is one line.
    ///
    /// # Errors
    /// A program or the folder cannot be used.
    pub async fn start(executor: PathBuf, compiler: PathBuf, cache_dir: &Path) -> Result<Self, String> {
        let user = user::of_the_sandbox(None)?;
        let compiler = Compiler { program: compiler, limits: CompileLimits::default(), user: user.clone() };
        let (engine, _) = compiler.engine().await.map_err(|error| error.to_string())?;
        let cache = Cache::open(cache_dir, engine).map_err(|error| format!("{}: {error}", cache_dir.display()))?;
        let program = ExecutorProgram {
            path: executor,
            max_running: 1,
            computing: 1,
            memory: crate::kernel::memory::half(),
            user,
            whole: false,
            groups: Err("one call at a time needs none".to_owned()),
            living: Living::default(),
        };
        let process = process::start(&program, &DirectGrants::default()).await?;
        Ok(Self { compiler, cache, process, module: Sha256Hex::from([0; 32]), calls: 0 })
    }

    /// Compiles a module, if that was not done before, and loads it in place of the one before. The error is the rest of a
    /// sentence that begins with the module.
    ///
    /// # Errors
    /// The module is refused, or a program fails.
    pub async fn load(&mut self, name: &ModuleName, wasm: &[u8]) -> Result<ModuleInfo, String> {
        let sha256 = cache::sha256(wasm);
        let compiled = match self.cache.get(sha256) {
            Ok(compiled) => compiled,
            Err(error) => {
                if let CacheError::Tampered(_) = error {
                    self.cache.discard(sha256);
                }
                self.compile(sha256, wasm).await?
            }
        };
        let sender = &mut self.process.sender;
        let failed = |error: WireError| format!("cannot be given to the executor: {error}");
        let before = std::mem::replace(&mut self.module, sha256);
        if before != sha256 {
            sender.send(&ToExecutor::Unload { module: before }).await.map_err(failed)?;
        }
        let load = ToExecutor::Load { module: sha256, name: name.to_string(), imports_granted: None };
        sender.send_with_file(&load, compiled.code.into()).await.map_err(failed)?;
        match self.next(LOAD).await? {
            FromExecutor::Loaded { .. } => Ok(compiled.info),
            FromExecutor::LoadFailed { error, .. } => Err(format!("cannot be loaded: {error}")),
            other => Err(format!("cannot be loaded: the executor says {other:?}")),
        }
    }

    async fn compile(&self, sha256: Sha256Hex, wasm: &[u8]) -> Result<cache::Compiled, String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot be compiled: {error}");
        let stage = self.cache.stage().map_err(|error| failed(&error))?;
        let component = stage.component(Bytes::copy_from_slice(wasm)).await.map_err(|error| failed(&error))?;
        match self.compiler.compile(component, &stage.code(), &stage.info()).await {
            Ok(()) => {}
            Err(CompileError::Refused(why)) => return Err(why),
            Err(error @ CompileError::Failed(_)) => return Err(failed(&error)),
        }
        self.cache.put(sha256, &stage).map_err(|error| failed(&error))?;
        self.cache.get(sha256).map_err(|error| failed(&error))
    }

    /// Runs the recorded call in the module that was loaded last. The error is one line.
    ///
    /// # Errors
    /// The executor ended or does not respond.
    pub async fn replay(&mut self, recording: &Recording) -> Result<Replayed, String> {
        self.calls += 1;
        let head = &recording.head;
        let interfaces = Capability::ALL.into_iter().flat_map(Capability::interfaces);
        let run = Run {
            call: self.calls,
            module: self.module,
            function: head.function.clone(),
            args: head.args.to_vec(),
            kwargs: head.kwargs.to_vec(),
            context: head.context.clone(),
            limits: bounded(&head.limits),
            // An import that the recorded module did not have is found where it is asked.
            imports_granted: interfaces.map(|interface| (*interface).to_owned()).collect(),
            direct: DirectGrants::default(),
            would_write: Vec::new(),
            record: Some(Record::Replay { recording: ByteBuf::from(recording.to_bytes()) }),
            foreseen: Vec::new(),
        };
        let time = Duration::from_millis(run.limits.wall_ms).saturating_add(GRACE);
        let sent = self.process.sender.send(&ToExecutor::Run(Box::new(run))).await;
        sent.map_err(|error| format!("the recording cannot be given to the executor: {error}"))?;
        let (mut difference, mut log) = (None, Vec::new());
        loop {
            match self.next(time).await? {
                FromExecutor::Log { level, message, .. } => log.push((level, message)),
                // There is no owner to tell.
                FromExecutor::Refused { .. } => {}
                FromExecutor::Differs { at, recorded, asked, .. } => {
                    let part = |asked: Option<(String, ByteBuf)>| asked.map(|(name, asked)| (name, asked.into_vec()));
                    difference = Some(Difference { at, recorded: part(recorded), asked: part(asked) });
                }
                FromExecutor::Done { call, outcome, .. } if call == self.calls => {
                    return Ok(Replayed { outcome, difference, log });
                }
                FromExecutor::Grow { call } => {
                    let grown = ToExecutor::Grown { call, refused: None };
                    self.process.sender.send(&grown).await.map_err(|error| error.to_string())?;
                }
                other => return Err(format!("the executor asks for a host: {other:?}")),
            }
        }
    }

    async fn next(&mut self, time: Duration) -> Result<FromExecutor, String> {
        match tokio::time::timeout(time, self.process.receiver.recv()).await {
            Ok(Ok(received)) => Ok(received.message),
            Ok(Err(_)) => {
                let status = process::end(&mut self.process.child).await;
                Err(format!("the executor {}", process::how(status)))
            }
            Err(_) => Err("the executor does not answer".to_owned()),
        }
    }
}
