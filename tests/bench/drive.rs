//! Publishes jobs by Brine's `LocalClient` and waits for their returns on one subscription, with a bound on jobs at a
//! time. It drives masters of both kinds, so that only the master and the minion differ.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use brine_client::{ClientOpts, Job, JobEvent, LocalClient};
use brine_protocol::config::{Config, Role};
use brine_protocol::event::FrameDecoder;
use brine_protocol::value::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use crate::side::ID;

/// Deadline of one job.
const JOB: Duration = Duration::from_secs(600);

/// The client.
pub(crate) struct Drive {
    runtime: tokio::runtime::Runtime,
    client: LocalClient,
    returns: Arc<Mutex<Returns>>,
}

#[derive(Default)]
struct Returns {
    waiting: HashMap<String, oneshot::Sender<()>>,
    /// Returns that arrived before the reply to their publication.
    early: HashSet<String>,
}

/// The result of many jobs.
pub(crate) struct Driven {
    /// Wall time of all jobs.
    pub(crate) elapsed: Duration,
    pub(crate) jobs: usize,
}

impl Driven {
    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    pub(crate) fn per_second(&self) -> f64 {
        self.jobs as f64 / self.elapsed.as_secs_f64()
    }
}

impl Drive {
    pub(crate) fn connect(config: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let config = Config::load(config, Role::Master).expect("our own configuration");
        let opts = ClientOpts::new(&config).expect("our own configuration");
        let bus = opts.bus_socket();
        let returns = Arc::new(Mutex::new(Returns::default()));
        let stream = runtime.block_on(UnixStream::connect(&bus)).expect("the master's bus");
        runtime.spawn(read(stream, Arc::clone(&returns)));
        Self { client: LocalClient::new(opts), runtime, returns }
    }

    /// Runs `LocalClient.cmd` with test.ping, one call after the other.
    pub(crate) fn cmd(&self, runs: usize) -> Vec<Duration> {
        let job = Job::new(ID, "test.ping", Vec::new());
        let one = async || {
            let began = Instant::now();
            let mut returns = self.client.cmd_iter(&job).await.expect("it is published");
            match returns.next().await.expect("the bus is there") {
                Some(JobEvent::Return(ret)) => assert_eq!(ret.ret, Value::Boolean(true)),
                other => panic!("no return: {other:?}"),
            }
            began.elapsed()
        };
        self.runtime.block_on(async {
            let mut times = Vec::with_capacity(runs);
            for _ in 0..runs {
                times.push(one().await);
            }
            times
        })
    }

    /// Runs `jobs` times test.ping, `in_flight` at a time.
    pub(crate) fn pings(&self, jobs: usize, in_flight: usize) -> Driven {
        self.jobs(&Job::new(ID, "test.ping", Vec::new()), jobs, in_flight)
    }

    /// Runs a job `jobs` times, `in_flight` at a time.
    pub(crate) fn jobs(&self, job: &Job, jobs: usize, in_flight: usize) -> Driven {
        let left = std::cell::Cell::new(jobs);
        let lane = async || {
            while left.get() > 0 {
                left.set(left.get() - 1);
                self.one(job).await;
            }
        };
        let began = Instant::now();
        self.runtime.block_on(async {
            futures_util::future::join_all((0..in_flight).map(|_| lane())).await;
        });
        Driven { elapsed: began.elapsed(), jobs }
    }

    /// Publishes a job `jobs` times at once, does `work` meanwhile, and waits for all returns.
    pub(crate) fn during<T>(&self, job: &Job, jobs: usize, work: impl FnOnce() -> T) -> T {
        self.runtime.block_on(async {
            let mut all = Vec::with_capacity(jobs);
            for _ in 0..jobs {
                all.push(self.publish(job).await);
            }
            let done = work();
            for returned in all {
                wait(returned).await;
            }
            done
        })
    }

    async fn one(&self, job: &Job) {
        let returned = self.publish(job).await;
        wait(returned).await;
    }

    /// Publishes a job. Returns a receiver for its return, None if the return has already arrived.
    async fn publish(&self, job: &Job) -> Option<oneshot::Receiver<()>> {
        let published = self.client.cmd_async(job).await.expect("it is published");
        let mut returns = self.returns.lock().unwrap_or_else(PoisonError::into_inner);
        if returns.early.remove(&published.jid) {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        returns.waiting.insert(published.jid, sender);
        Some(receiver)
    }
}

async fn wait(returned: Option<oneshot::Receiver<()>>) {
    if let Some(returned) = returned {
        tokio::time::timeout(JOB, returned).await.expect("the job returns in time").expect("the bus is there");
    }
}

async fn read(mut stream: UnixStream, returns: Arc<Mutex<Returns>>) {
    let mut decoder = FrameDecoder::default();
    while let Ok(1..) = stream.read_buf(decoder.buffer()).await {
        while let Some(body) = decoder.next_body().expect("the master frames its events") {
            let end = body.windows(2).position(|pair| pair == b"\n\n").unwrap_or(0);
            let tag = std::str::from_utf8(&body[..end]).unwrap_or_default();
            let Some((jid, _)) = tag.strip_prefix("salt/job/").and_then(|rest| rest.split_once("/ret/")) else {
                continue;
            };
            let mut returns = returns.lock().unwrap_or_else(PoisonError::into_inner);
            match returns.waiting.remove(jid) {
                Some(waiting) => drop(waiting.send(())),
                None => drop(returns.early.insert(jid.to_owned())),
            }
        }
    }
}
