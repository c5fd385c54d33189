//! A stand-in for the sandbox: a module `test`, and installed modules.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brine_minion::runtime::Runtime;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{
    Broker, Caller, Function, Grants, Held, HostOp, Installed, JobContext, JobOutcome, JobsOp, MineOp, Module,
    ModuleInfo, ModulesOp, Param, PolicyOp, Reloaded, Rest, Settings, Sha256Hex, Usage,
};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, watch};

pub struct Modules {
    broker: Arc<dyn Broker>,
    installed: Mutex<BTreeMap<String, Arc<Module>>>,
    signatures: Mutex<BTreeMap<String, Vec<u8>>>,
    /// The environments of recorded syncs.
    pub synced: Mutex<Vec<String>>,
    /// `test.wait` continues when this has a permit.
    pub gate: Semaphore,
    killed: watch::Sender<Vec<String>>,
    /// The number of calls.
    pub calls: AtomicUsize,
    /// The number of `test.wait` calls under way.
    pub waiting: watch::Sender<usize>,
}

impl Modules {
    pub fn new(broker: Arc<dyn Broker>) -> Arc<Self> {
        let test = module("test", b"test", "standard");
        Arc::new(Self {
            broker,
            installed: Mutex::new(BTreeMap::from([("test".to_owned(), test)])),
            signatures: Mutex::default(),
            synced: Mutex::default(),
            gate: Semaphore::new(0),
            killed: watch::Sender::new(Vec::new()),
            calls: AtomicUsize::new(0),
            waiting: watch::Sender::new(0),
        })
    }

    /// Sends a request to the broker like a function of a job with these grants.
    pub async fn ask(&self, jid: &str, grants: Grants, op: HostOp) -> Result<Value, String> {
        let job = JobContext { jid: jid.to_owned(), minion_id: crate::running::ID.to_owned(), ..JobContext::default() };
        let (name, hash) = ("test".parse().unwrap(), Sha256Hex::from([0; 32]));
        let caller = Caller::new(Arc::new(job), name, hash, Arc::new(grants), Duration::from_secs(60));
        self.broker.host_call(&caller, op).await.map_err(|e| e.to_string())
    }

    async fn call(&self, job: JobContext, fun: &str, args: Vec<Value>, kwargs: Vec<(String, Value)>) -> JobOutcome {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let first = || args.first().cloned().unwrap_or(Value::Nil);
        let (name, hash) = ("test".parse().unwrap(), Sha256Hex::from([0; 32]));
        let caller = Caller::new(Arc::new(job.clone()), name, hash, Arc::default(), Duration::from_secs(60));
        let asked = |op| self.broker.host_call(&caller, op);
        let value = match fun {
            "test.ping" | "test.short" => Ok(Value::from(true)),
            "test.echo" => Ok(first()),
            "test.kwargs" => Ok(Value::Map(kwargs.into_iter().map(|(k, v)| (k.into(), v)).collect())),
            "test.mode" => Ok(Value::from(job.test)),
            "test.origin" => {
                let master = job.master.map_or(Value::Nil, Value::from);
                Ok(Value::Array(vec![master, job.timeout_ms.map_or(Value::Nil, Value::from)]))
            }
            "test.panic" => panic!("as a fault of the minion's would"),
            "test.fail" => Err("it failed".to_owned()),
            "test.wait" => {
                self.waiting.send_modify(|n| *n += 1);
                let mut killed = self.killed.subscribe();
                tokio::select! {
                    place = self.gate.acquire() => { place.unwrap().forget(); Ok(Value::from("waited")) }
                    _ = killed.wait_for(|jids| jids.contains(&job.jid)) => Err("killed".to_owned()),
                }
            }
            "saltutil.find_job" => {
                let jid = first().text().unwrap().to_owned();
                asked(HostOp::Jobs(JobsOp::Find { jid })).await.map_err(|e| e.to_string())
            }
            "saltutil.kill_job" => {
                let jid = first().text().unwrap().to_owned();
                asked(HostOp::Jobs(JobsOp::Kill { jid })).await.map_err(|e| e.to_string())
            }
            "saltutil.sync_modules" => {
                let saltenv =
                    args.first().and_then(ValueExt::text).map(|envs| envs.split(',').map(String::from).collect());
                asked(HostOp::Modules(ModulesOp::Sync { saltenv })).await.map_err(|e| e.to_string())
            }
            "mine.update" => {
                let data = msgpack::encode_disk(&Value::from(job.jid.len() as u64));
                asked(HostOp::Mine(MineOp::Publish { name: "x".to_owned(), data: data.into() }))
                    .await
                    .map_err(|e| e.to_string())
            }
            other => match other.split_once('.').and_then(|(name, _)| self.describe(name)) {
                Some(module) if module.origin != "standard" => Ok(Value::from(module.name.as_str())),
                _ => Err(format!("'{other}' is not available.")),
            },
        };
        let sha256 = Some(Sha256Hex::from([7; 32]));
        let usage = Some(Usage { wall_us: 12, ..Usage::default() });
        match value {
            Ok(value) => JobOutcome { value, retcode: 0, success: true, usage, sha256 },
            Err(text) => JobOutcome { value: Value::from(text), retcode: 1, success: false, usage, sha256 },
        }
    }
}

fn module(name: &str, content: &[u8], origin: &str) -> Arc<Module> {
    let function = |name: &str, params: Vec<Param>| Function {
        name: name.to_owned(),
        export: vec![name.to_owned()],
        params,
        result: None,
        doc: None,
    };
    let rest = Param { name: "kwargs".into(), ty: "data".into(), optional: true, rest: Rest::Kwargs };
    let functions = vec![function("ping", vec![]), function("mode", vec![]), function("kwargs", vec![rest])];
    Arc::new(Module {
        name: name.to_owned(),
        sha256: Sha256Hex::from(<[u8; 32]>::from(Sha256::digest(content))),
        size: content.len() as u64,
        origin: origin.to_owned(),
        info: ModuleInfo { functions, ..ModuleInfo::default() },
    })
}

impl Runtime for Modules {
    fn names(&self) -> Vec<String> {
        self.installed.lock().unwrap().keys().cloned().collect()
    }

    fn describe(&self, name: &str) -> Option<Arc<Module>> {
        self.installed.lock().unwrap().get(name).cloned()
    }

    fn install<'a>(
        &'a self,
        name: &'a str,
        wasm: &'a [u8],
        signature: Option<&'a [u8]>,
        origin: &'a str,
    ) -> BoxFuture<'a, Result<Installed, String>> {
        Box::pin(async move {
            if wasm.starts_with(b"bad") {
                return Err("it is not a component".to_owned());
            }
            match signature {
                Some(signature) => self.signatures.lock().unwrap().insert(name.to_owned(), signature.to_vec()),
                None => self.signatures.lock().unwrap().remove(name),
            };
            let before = self.installed.lock().unwrap().insert(name.to_owned(), module(name, wasm, origin));
            Ok(if before.is_some() { Installed::Updated } else { Installed::New })
        })
    }

    fn signature(&self, name: &str) -> Option<Vec<u8>> {
        self.signatures.lock().unwrap().get(name).cloned()
    }

    fn installed(&self) -> Vec<(String, String)> {
        let installed = self.installed.lock().unwrap();
        let fetched = installed.values().filter(|module| module.origin != "standard");
        fetched.map(|module| (module.name.clone(), module.origin.clone())).collect()
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async move { Ok(self.installed.lock().unwrap().remove(name).is_some()) })
    }

    fn run<'a>(
        &'a self,
        job: JobContext,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> BoxFuture<'a, JobOutcome> {
        Box::pin(self.call(job, fun, args, kwargs))
    }

    fn call<'a>(
        &'a self,
        caller: &'a Caller,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> BoxFuture<'a, JobOutcome> {
        Box::pin(Modules::call(self, JobContext::clone(&caller.job), fun, args, kwargs))
    }

    fn kill(&self, jid: &str) -> usize {
        self.killed.send_modify(|jids| jids.push(jid.to_owned()));
        1
    }

    fn is_short(&self, fun: &str) -> bool {
        fun == "test.short"
    }

    fn policy<'a>(&'a self, _caller: &'a Caller, _op: PolicyOp) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async { Ok(Value::Nil) })
    }

    fn held(&self, _name: &str) -> Option<Arc<Held>> {
        None
    }

    fn install_held<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Installed, String>> {
        Box::pin(async move { Err(format!("nothing is held of module {name}")) })
    }

    fn difference<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async { None })
    }

    fn synced(&self, environments: &[&str], _master: &str, _changed: bool) -> std::io::Result<()> {
        self.synced.lock().unwrap().extend(environments.iter().map(|it| (*it).to_owned()));
        Ok(())
    }

    fn reload(&self, _settings: Settings) -> BoxFuture<'_, Reloaded> {
        Box::pin(async { Reloaded::default() })
    }

    fn load(&self) -> (usize, Vec<u32>) {
        (*self.waiting.borrow(), Vec::new())
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
