//! An executor process, and the minion's side of its socket.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "it is test code")]
#![allow(clippy::disallowed_methods, reason = "the test starts the program that may start nothing")]

use std::io::Read;
use std::process::{Child, Command, Stdio};

use brine_kit::files::file;
use brine_kit::wait::within;
use brine_kit::wat::{component as component_text, wasm};
use brine_sandbox_wire::{
    ByteBuf, Connection, FailKind, FromExecutor, HostError, HostOp, JobContext, Limits, LogLevel, Outcome, Receiver,
    Run, Sender, Sha256Hex, ToExecutor, Usage, Wanted, WireError,
};
use serde_json::Value;

pub struct Executor {
    pub child: Child,
    pub sender: Sender<ToExecutor>,
    pub receiver: Receiver<FromExecutor>,
    /// The log lines since they were last taken.
    pub log: Vec<(u64, LogLevel, String)>,
    /// What it says that it refused by itself.
    pub refused: Vec<Wanted>,
    next_call: u64,
    next_module: u8,
}

pub fn command(stdin: impl Into<Stdio>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brine-executor"));
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Compiles a module as the minion's compiler does.
pub fn compile(wat: &str) -> Vec<u8> {
    brine_engine::engine().unwrap().precompile_component(&wasm(wat)).unwrap_or_else(|error| panic!("{error:?}\n{wat}"))
}

pub fn pack(value: &Value) -> Vec<u8> {
    rmp_serde::to_vec(value).unwrap()
}

pub fn unpack(bytes: &[u8]) -> Value {
    rmp_serde::from_slice(bytes).unwrap_or_else(|error| panic!("{error} in {bytes:02x?}"))
}

impl Executor {
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(options: &[&str]) -> Self {
        let (connection, other) = Connection::pair().unwrap();
        let child = command(other).args(options).spawn().unwrap();
        let (sender, mut receiver) = connection.minion();
        let ready = within(receiver.recv()).await.unwrap().message;
        assert!(
            matches!(ready, FromExecutor::Ready { version: brine_sandbox_wire::VERSION, pid, .. } if pid == child.id())
        );
        Self { child, sender, receiver, log: Vec::new(), refused: Vec::new(), next_call: 0, next_module: 0 }
    }

    /// Loads a component under the name `test`.
    pub async fn load(&mut self, wat: &str) -> Sha256Hex {
        self.load_code(&compile(wat)).await.unwrap()
    }

    pub async fn load_code(&mut self, code: &[u8]) -> Result<Sha256Hex, String> {
        self.load_granted(code, None).await
    }

    /// Loads with these grants, or with those of each call.
    pub async fn load_granted(&mut self, code: &[u8], granted: Option<&[&str]>) -> Result<Sha256Hex, String> {
        let imports_granted = granted.map(|names| names.iter().map(ToString::to_string).collect());
        self.next_module += 1;
        let hash = Sha256Hex::from([self.next_module; 32]);
        let load = ToExecutor::Load { module: hash, name: "test".into(), imports_granted };
        self.sender.send_with_file(&load, file(code).into()).await.unwrap();
        match within(self.receiver.recv()).await.unwrap().message {
            FromExecutor::Loaded { module } if module == hash => Ok(hash),
            FromExecutor::LoadFailed { module, error } if module == hash => Err(error),
            other => panic!("{other:?}"),
        }
    }

    pub fn run(&mut self, module: Sha256Hex, function: &str) -> Run {
        self.next_call += 1;
        Run {
            call: self.next_call,
            module,
            function: function.into(),
            args: vec![0x90],
            kwargs: vec![0x80],
            context: JobContext {
                jid: "20261120120000000000".into(),
                function: format!("test.{function}"),
                user: "root".into(),
                minion_id: "minion".into(),
                ..JobContext::default()
            },
            limits: Limits::default(),
            imports_granted: Vec::new(),
            direct: brine_sandbox_wire::DirectGrants::default(),
            would_write: Vec::new(),
            record: None,
            foreseen: Vec::new(),
        }
    }

    pub async fn send(&mut self, message: ToExecutor) {
        self.sender.send(&message).await.unwrap();
    }

    pub async fn recv(&mut self) -> Result<FromExecutor, WireError> {
        Ok(within(self.receiver.recv()).await?.message)
    }

    /// The next message that is neither a log line nor about a refusal.
    pub async fn next(&mut self) -> FromExecutor {
        loop {
            match self.recv().await.unwrap() {
                FromExecutor::Log { call, level, message } => self.log.push((call, level, message)),
                FromExecutor::Refused { wanted, .. } => self.refused.push(wanted),
                other => return other,
            }
        }
    }

    pub async fn done(&mut self, call: u64) -> (Outcome, Usage) {
        match self.next().await {
            FromExecutor::Done { call: done, outcome, usage } if done == call => (outcome, usage),
            other => panic!("{other:?} in place of the end of {call}"),
        }
    }

    pub async fn finish(&mut self, run: Run) -> (Outcome, Usage) {
        let call = run.call;
        self.send(ToExecutor::Run(Box::new(run))).await;
        self.done(call).await
    }

    /// Calls a function with these arguments.
    pub async fn call(&mut self, module: Sha256Hex, function: &str, args: &Value, kwargs: &Value) -> Outcome {
        let mut run = self.run(module, function);
        (run.args, run.kwargs) = (pack(args), pack(kwargs));
        self.finish(run).await.0
    }

    /// Loads a component and calls its `f`, which makes this request of an interface of the host. Gives it the reply.
    pub async fn ask(
        &mut self,
        wat: &str,
        interface: &str,
        args: &Value,
        expected: &HostOp,
        reply: Result<Vec<u8>, HostError>,
    ) -> Outcome {
        let module = self.load(wat).await;
        let mut run = self.run(module, "f");
        run.args = pack(args);
        run.imports_granted = vec![format!("brine:host/{interface}")];
        let call = run.call;
        self.send(ToExecutor::Run(Box::new(run))).await;
        match self.next().await {
            FromExecutor::HostCall { call: asking, request, op } => {
                assert_eq!((asking, &op), (call, expected));
                self.send(ToExecutor::HostReply { call, request, result: reply.map(ByteBuf::from) }).await;
                self.done(call).await.0
            }
            other => panic!("{expected:?}: {other:?}"),
        }
    }

    /// Loads a component and calls its `f` with these limits.
    pub async fn f(&mut self, wat: &str, limits: Limits) -> (Outcome, Usage) {
        let module = self.load(wat).await;
        let mut run = self.run(module, "f");
        run.limits = limits;
        self.finish(run).await
    }

    /// Checks that the process works: it answers another job.
    pub async fn still_works(&mut self) {
        let module = self.load(&pings()).await;
        let run = self.run(module, "ping");
        assert_eq!(returned(&self.finish(run).await.0), Value::Bool(true));
    }

    /// Waits for the process to end; returns its exit code and its output.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        while self.recv().await.is_ok() {}
        drop((self.sender, self.receiver));
        let mut child = self.child;
        let end = move || {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            (child.wait().unwrap().code(), said)
        };
        within(tokio::task::spawn_blocking(end)).await.unwrap()
    }
}

pub fn returned(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Returned { value, retcode: 0 } => unpack(value),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub fn assert_failed(outcome: &Outcome, expected: FailKind, text: &str) {
    match outcome {
        Outcome::Failed { kind, message, retcode: 1 } => {
            assert_eq!((*kind, message.as_str()), (expected, text));
        }
        other => panic!("{other:?}"),
    }
}

/// A component around a core module that exports `f`, a `memory` and a bump allocator `realloc`. `types` precede it;
/// `ty` is the type of the function.
pub fn component(types: &str, ty: &str, core: &str) -> String {
    format!(
        r#"(component
            {types}
            (core module $m
                (memory (export "memory") 1)
                (global $top (mut i32) (i32.const 1024))
                (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                    (local $at i32)
                    (local.set $at (i32.and (i32.add (global.get $top) (i32.const 15)) (i32.const -16)))
                    (global.set $top (i32.add (local.get $at) (local.get 3)))
                    (block $enough
                        (loop $more
                            (br_if $enough (i32.le_u (global.get $top) (i32.mul (memory.size) (i32.const 65536))))
                            (drop (memory.grow (i32.const 16)))
                            (br $more)))
                    (local.get $at))
                {core})
            (core instance $i (instantiate $m))
            (func (export "f") {ty}
                (canon lift (core func $i "f") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))"#
    )
}

/// A component whose `f` has no parameters and no result, with this core module.
pub fn bare(core: &str) -> String {
    component_text("", core, &[("f", "")])
}

/// A component whose `ping` returns true.
pub fn pings() -> String {
    component_text("", r#"(func (export "ping") (result i32) i32.const 1)"#, &[("ping", "(result bool)")])
}

/// The streams of WASI and their errors, as `$streams`.
pub const STREAMS: &str = r#"
    (import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
    (alias export $error "error" (type $error-type))
    (import "wasi:io/streams@0.2.0" (instance $streams
        (export "input-stream" (type (sub resource)))
        (export "output-stream" (type $stream (sub resource)))
        (alias outer 1 $error-type (type $error'))
        (export "error" (type $error (eq $error')))
        (type $failure' (variant (case "last-operation-failed" (own $error)) (case "closed")))
        (export "stream-error" (type $failure (eq $failure')))
        (export "[method]output-stream.blocking-write-and-flush" (func
            (param "self" (borrow $stream)) (param "contents" (list u8)) (result (result (error $failure)))))))"#;

/// `f` passes its parameters to `function` of the interface and returns the memory that the function writes, as
/// `result`: a type with the same layout as the function's own.
pub fn forward(interface: &str, types: &str, function: &str, lowered: &str, params: &str, result: &str) -> String {
    let count = lowered.split_whitespace().count();
    let pass: String = (0..count).map(|n| format!("(local.get {n})")).collect();
    format!(
        r#"(component
            (import "brine:host/types@1.0.0" (instance $types
                (type $d' (record (field "msgpack" (list u8)))) (export "data" (type (eq $d')))))
            (alias export $types "data" (type $data))
            (import "brine:host/{interface}@1.0.0" (instance $host
                (alias outer 1 $data (type $data'))
                (export "data" (type $data (eq $data')))
                {types}))
            (core module $memory
                (memory (export "memory") 4)
                (global $top (mut i32) (i32.const 1024))
                (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                    (global.set $top (i32.and (i32.add (global.get $top) (i32.const 15)) (i32.const -16)))
                    (global.get $top)
                    (global.set $top (i32.add (global.get $top) (local.get 3)))))
            (core instance $memory (instantiate $memory))
            (core func $function (canon lower (func $host "{function}")
                (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
            (core module $m
                (import "host" "function" (func $function (param {lowered} i32)))
                (func (export "f") (param {lowered}) (result i32) (call $function {pass} (i32.const 0)) i32.const 0))
            (core instance $i (instantiate $m (with "host" (instance (export "function" (func $function))))))
            (export $d "data" (type $data))
            (func (export "f") {params} (result {result})
                (canon lift (core func $i "f") (memory (core memory $memory "memory"))
                    (realloc (core func $memory "realloc")))))"#
    )
}

/// Imports `brine:host/log` and calls `write` with a level and a text that lies in its memory at 0.
pub fn logger(text: &str, core: &str) -> String {
    let length = text.len();
    let text: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    format!(
        r#"(component
            (import "brine:host/log@1.0.0" (instance $log
                (type $level' (enum "trace" "debug" "info" "warning" "error"))
                (export "level" (type $level (eq $level')))
                (export "write" (func (param "level" $level) (param "message" string)))))
            (core module $memory (memory (export "memory") 100) (data (memory 0) (i32.const 0) "{text}"))
            (core instance $memory (instantiate $memory))
            (core func $write (canon lower (func $log "write") (memory (core memory $memory "memory"))))
            (core module $m
                (import "log" "write" (func $write (param i32 i32 i32)))
                (func $say (call $write (i32.const 3) (i32.const 0) (i32.const {length})))
                {core})
            (core instance $i (instantiate $m (with "log" (instance (export "write" (func $write))))))
            (func (export "f") (canon lift (core func $i "f"))))"#
    )
}
