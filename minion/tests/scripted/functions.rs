//! The functions of jobs in these tests. Tests control when they continue, end and fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brine_kit_sandbox::{caller, job};
use brine_minion::jobs::Functions;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{
    Broker, Grants, HostOp, JobContext, JobOutcome, JobsOp, MineOp, ModulesOp, Sandbox, Sha256Hex, Usage,
};
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, watch};

pub struct Scripted {
    broker: Arc<dyn Broker>,
    sandbox: Arc<Sandbox>,
    /// Each permit lets one `test.wait` continue.
    pub gate: Semaphore,
    killed: watch::Sender<Vec<String>>,
    /// Number of calls of functions.
    pub calls: AtomicUsize,
    /// Number of `test.wait` calls under way.
    pub waiting: watch::Sender<usize>,
}

impl Scripted {
    pub fn new(broker: Arc<dyn Broker>, sandbox: Arc<Sandbox>) -> Arc<Self> {
        Arc::new(Self {
            broker,
            sandbox,
            gate: Semaphore::new(0),
            killed: watch::Sender::new(Vec::new()),
            calls: AtomicUsize::new(0),
            waiting: watch::Sender::new(0),
        })
    }

    /// Makes a request to the broker like a job's function with these grants.
    pub async fn ask(&self, jid: &str, grants: Grants, op: HostOp) -> Result<Value, String> {
        let job = JobContext { minion_id: crate::running::ID.to_owned(), ..job(jid, "") };
        let caller = caller(job, "test", grants);
        self.broker.host_call(&caller, op).await.map_err(|e| e.to_string())
    }

    async fn call(&self, job: JobContext, fun: &str, args: Vec<Value>, kwargs: Vec<(String, Value)>) -> JobOutcome {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let first = || args.first().cloned().unwrap_or(Value::Nil);
        let caller = caller(job.clone(), "test", Grants::default());
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
            other => match other.split_once('.').and_then(|(name, _)| self.sandbox.describe(name)) {
                Some(module) if module.origin != "standard" => Ok(Value::from(module.name.as_str())),
                _ => Err(format!("'{other}' is not available.")),
            },
        };
        let sha256 = Some(Sha256Hex::from([7; 32]));
        let usage = Some(Usage { wall_us: 12, ..Usage::default() });
        match value {
            Ok(value) => JobOutcome {
                value,
                retcode: 0,
                success: true,
                usage,
                sha256,
                plan: None,
                stopped: false,
                raised: false,
            },
            Err(text) => JobOutcome {
                value: Value::from(text),
                retcode: 1,
                success: false,
                usage,
                sha256,
                plan: None,
                stopped: false,
                raised: false,
            },
        }
    }
}

impl Functions for Scripted {
    fn run<'a>(
        &'a self,
        job: JobContext,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> BoxFuture<'a, JobOutcome> {
        Box::pin(self.call(job, fun, args, kwargs))
    }

    fn kill(&self, jid: &str) -> usize {
        self.killed.send_modify(|jids| jids.push(jid.to_owned()));
        1
    }

    fn is_short(&self, fun: &str) -> bool {
        fun == "test.short"
    }
}
