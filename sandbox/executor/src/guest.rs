//! The data of one instance: its budget, its context, its connection to the minion.

use std::sync::Arc;

use brine_sandbox_wire::{ByteBuf, HostError, HostOp, JobContext, LogLevel, NetworkRule, Run};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::failure::HostFailure;
use crate::files::Files;
use crate::foreseen::Foreseen;
use crate::line::{Answer, Line, answered, wide};
use crate::memory::Memory;
use crate::network::{self, Network};
use crate::recorder::{self, Recorder};
use crate::request;
use crate::stdio::Stdio;

/// Upper bound on the host resources of a guest: files, sockets, streams, pollables. A stream may hold a buffer of 64
/// KiB.
pub const MAX_RESOURCES: usize = 256;
/// Upper bound on the handles of a guest, to host resources and to its own.
pub const MAX_HANDLES: usize = 1_000;

/// Upper bound on the random bytes of one call. Keys and seeds are far smaller. The host generates them.
const MAX_RANDOM: u64 = 64 << 10;

/// The data of an instance's store.
pub struct Guest {
    /// The call's connection to the minion.
    pub line: Arc<Line>,
    /// The job.
    context: JobContext,
    /// Whether the guest asked for more than what came with the call.
    knows_more: bool,
    /// The module's name.
    pub module: Arc<str>,
    /// The memory limit.
    pub memory: Memory,
    /// The directories and open files.
    pub files: Files,
    /// The table numbers of the guest's sockets; some may be closed.
    pub tcp: Vec<u32>,
    /// Whether its sockets are those of [`crate::host::unconnected`].
    pub unconnected: bool,
    rules: Vec<NetworkRule>,
    network: Option<Arc<Network>>,
    /// The table of host resources.
    pub table: ResourceTable,
    /// The value of `set-retcode`.
    pub retcode: Option<i32>,
    /// Records or replays the call.
    pub recorder: Option<Box<Recorder>>,
    /// Number of calls to the broker so far; one that does the work of several counts as several.
    pub host_calls: u64,
    /// Answers that came with the call.
    pub foreseen: Foreseen,
    /// Bytes of the broker's replies.
    pub host_bytes: u64,
    max_host_calls: u32,
    max_answer: u64,
    /// WASI's context, made at its first use, because most modules need none.
    wasi: Option<(WasiCtx, Stdio, Stdio)>,
}

impl Guest {
    /// Makes the data for one call.
    #[must_use]
    pub fn new(line: Arc<Line>, module: &Arc<str>, run: &mut Run) -> Self {
        let (context, limits) = (std::mem::take(&mut run.context), &run.limits);
        let rules = std::mem::take(&mut run.direct.network);
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_RESOURCES);
        let memory = Memory::new(limits.memory, Arc::clone(&line));
        let foreseen = Foreseen::new(std::mem::take(&mut run.foreseen), line.arrived());
        Self {
            line,
            context,
            knows_more: false,
            module: Arc::clone(module),
            files: Files::new(module, limits),
            tcp: Vec::new(),
            unconnected: false,
            rules,
            network: None,
            memory,
            table,
            retcode: None,
            recorder: None,
            host_calls: 0,
            foreseen,
            host_bytes: 0,
            max_host_calls: limits.host_calls,
            max_answer: limits.host_bytes,
            wasi: None,
        }
    }

    /// Returns the job, for the guest to know.
    pub fn job(&mut self) -> &JobContext {
        self.knows_more = true;
        &self.context
    }

    /// Whether the guest asked for nothing but what came with the call, and told nobody anything before its end: nothing of WASI, which has
    /// clocks and random numbers, nothing of the job, no log.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        let told = self.retcode.is_some() || self.recorder.is_some() || self.line.logged() != (0, 0);
        !(told || self.knows_more || self.wasi.is_some() || self.network.is_some())
    }

    /// Sends a request to the minion's broker and waits for its reply: one MessagePack value, not checked.
    ///
    /// # Errors
    /// When the guest has to end: after a refusal, or beyond a limit. The inner error is the broker's `Failed`; the
    /// caller decides about it.
    pub async fn ask(&mut self, what: &'static str, op: HostOp) -> Result<Result<Vec<u8>, String>, HostFailure> {
        let answer = match &self.recorder {
            None => match self.admit(&op)? {
                Ok(()) => self.reply(op).await,
                Err(error) => return Ok(Err(error)),
            },
            Some(_) => match Box::pin(self.ask_recorded(what, op)).await? {
                Ok(answer) => answer,
                Err(error) => return Ok(Err(error)),
            },
        };
        let answer = answered(what, answer, self.max_answer)?;
        self.host_bytes += answer.as_ref().map_or(0, |value| wide(value.len()));
        Ok(answer)
    }

    /// Returns the broker's reply to an admitted request: the one that came with the call, or the one to the request.
    async fn reply(&mut self, op: HostOp) -> Option<Result<ByteBuf, HostError>> {
        match self.foreseen.take(&op) {
            Some(answer) => Some(Ok(answer)),
            None => {
                self.knows_more = true;
                self.line.ask(self.host_calls, op).await.ok()
            }
        }
    }

    /// Asks the minion's broker and records its reply, or returns the reply from a recording.
    async fn ask_recorded(
        &mut self,
        what: &'static str,
        op: HostOp,
    ) -> Result<Result<Option<Result<ByteBuf, HostError>>, String>, HostFailure> {
        let asked = recorder::asked(&op);
        if let Err(error) = self.admit(&op)? {
            return Ok(Err(error));
        }
        let replayed = self.recorder.as_mut().and_then(|recorder| recorder.answer(what, &asked));
        if let Some(told) = replayed {
            let answer = recorder::answered(&told?);
            return Ok(Ok(Some(answer.map_err(|error| HostFailure::Failed { what, error })?)));
        }
        let answer = self.reply(op).await;
        if let Some(answer) = &answer {
            self.keep(what, asked, recorder::told(answer));
        }
        Ok(Ok(answer))
    }

    /// Writes down a call of the host, if this call is recorded.
    pub fn keep(&mut self, name: &str, asked: Vec<u8>, told: Vec<u8>) {
        let Some(recorder) = &mut self.recorder else { return };
        let (part, ended) = recorder.keep(name, asked, told);
        if ended {
            self.line.log(LogLevel::Warning, "the recording of this call ends here: it has reached its largest size");
        }
        if let Some(part) = part {
            self.line.recorded(part);
        }
    }

    /// Sends a request to the minion's broker. The caller passes the reply to [`answered`].
    ///
    /// # Errors
    /// When the limit on host calls is used up. The inner error says that the request is too large.
    pub fn begin(&mut self, op: HostOp) -> Result<Result<Answer, String>, HostFailure> {
        let admitted = self.admit(&op)?;
        self.foreseen.forget();
        self.knows_more = true;
        Ok(admitted.map(|()| self.line.ask(self.host_calls, op)))
    }

    /// Counts a request and checks its size.
    fn admit(&mut self, op: &HostOp) -> Result<Result<(), String>, HostFailure> {
        let calls = self.host_calls + u64::from(op.calls());
        if calls > u64::from(self.max_host_calls) {
            return Err(HostFailure::TooManyCalls(self.max_host_calls));
        }
        self.host_calls = calls;
        Ok(request::check(op))
    }

    /// Like [`Guest::ask`], for functions that return no error: on failure the guest ends.
    ///
    /// # Errors
    /// When the broker has no result.
    pub async fn ask_or_end(&mut self, what: &'static str, op: HostOp) -> Result<Vec<u8>, HostFailure> {
        self.ask(what, op).await?.map_err(|error| HostFailure::Failed { what, error })
    }

    /// Logs the unfinished lines of the standard streams.
    pub fn flush_stdio(&mut self) {
        if let Some((_, out, err)) = &self.wasi {
            out.finish();
            err.finish();
        }
    }
}

impl Guest {
    /// Returns a standard stream.
    pub fn stdio(&mut self, level: LogLevel) -> Stdio {
        let ((_, out, err), _) = self.wasi();
        if level == LogLevel::Info { out.clone() } else { err.clone() }
    }

    fn wasi(&mut self) -> (&mut (WasiCtx, Stdio, Stdio), &mut ResourceTable) {
        if self.wasi.is_none() {
            self.wasi = Some(self.make_wasi());
        }
        (self.wasi.as_mut().expect("it was just made"), &mut self.table)
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let ((ctx, ..), table) = self.wasi();
        WasiCtxView { ctx, table }
    }
}

impl Guest {
    /// Returns the addresses that the guest may connect to.
    pub fn network(&mut self) -> Arc<Network> {
        Arc::clone(self.network.get_or_insert_with(|| Arc::new(Network::new(&self.rules))))
    }

    fn make_wasi(&mut self) -> (WasiCtx, Stdio, Stdio) {
        let out = Stdio::new(Arc::clone(&self.line), LogLevel::Info);
        let err = Stdio::new(Arc::clone(&self.line), LogLevel::Warning);
        let mut builder = WasiCtx::builder();
        builder
            .stdout(out.clone())
            .stderr(err.clone())
            .max_random_size(MAX_RANDOM)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .allow_blocking_current_thread(false);
        if !self.rules.is_empty() {
            let network = self.network();
            builder.allow_tcp(true).socket_addr_check(network::check(
                network,
                Arc::clone(&self.line),
                Arc::clone(&self.module),
            ));
        }
        (builder.build(), out, err)
    }
}
