//! The steps. Each of them leaves the swarm connected and authenticated.

use std::time::{Duration, Instant};

use brine_client::{Job, JobEvent};
use brine_protocol::value::{Value, list};

use super::master::Master;
use super::table::Table;
use super::{BenchOpts, DEADLINE};
use crate::Swarm;
use crate::stats::Counts;

/// The file to fetch.
const FILE: &str = "swarm.bin";
const FILE_LEN: usize = 5 << 20;

pub(super) struct Steps<'a> {
    pub(super) opts: &'a BenchOpts,
    pub(super) master: Master,
    pub(super) swarm: Swarm,
    pub(super) table: &'a mut Table,
    /// The master's memory without minions in MiB.
    pub(super) idle: f64,
}

impl Steps<'_> {
    fn put(&mut self, what: &str, value: f64, goal: Option<&'static str>) {
        self.table.put(what, self.swarm.len(), value, goal);
    }

    fn all(&self) -> u64 {
        u64::try_from(self.swarm.len()).unwrap_or(u64::MAX)
    }

    fn stuck(&self, what: &str) -> String {
        format!("{what} did not end in {DEADLINE:?}.\n{}\nThe master said: {}", self.swarm.report(), self.master.said())
    }

    /// Records the first contact: all minions come at once, with unknown keys.
    pub(super) fn first_contact(&mut self, ready: Option<Duration>, cpu: f64) -> Result<(), String> {
        let took = ready.ok_or_else(|| self.stuck("the first authentication"))?;
        self.put("first contact of all at once, until the last is connected (s)", took.as_secs_f64(), None);
        let cpu = self.master.cpu()? - cpu;
        self.put("  first contact: the master's CPU (s)", cpu, None);
        self.auths("  first contact: ", Counts::default());
        let connected = self.master.pss_mib()?;
        self.put("the master's memory with all connected (PSS, MiB)", connected, Some("≤ 200"));
        self.put("  for each minion (KiB)", self.per_minion(connected), None);
        Ok(())
    }

    fn per_minion(&self, pss: f64) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a number of minions")]
        let minions = self.swarm.len() as f64;
        (pss - self.idle) * 1024.0 / minions
    }

    /// Records the authentications since `before`.
    fn auths(&mut self, indent: &str, before: Counts) {
        let now = self.swarm.counts();
        let since = |now: u64, before: u64| f64::from(u32::try_from(now - before).unwrap_or(u32::MAX));
        let refused = since(now.auth_refused, before.auth_refused);
        let unanswered = since(now.auth_unanswered, before.auth_unanswered);
        self.put(&format!("{indent}told to come again"), refused, None);
        self.put(&format!("{indent}without an answer"), unanswered, Some("0"));
        let slowest = self.swarm.report().auth.max;
        self.put(&format!("{indent}the longest wait for an answer (s)"), slowest.as_secs_f64(), None);
    }

    /// Sends `test.ping` to all. Returns the time until the last return, and the number of missing returns.
    async fn one_ping(&self) -> Result<(Duration, usize), String> {
        let client = self.master.client()?;
        let started = Instant::now();
        let job = Job::new("*", "test.ping", Vec::new());
        self.wait_returns(&client, &job, started).await
    }

    async fn wait_returns(
        &self,
        client: &brine_client::LocalClient,
        job: &Job,
        started: Instant,
    ) -> Result<(Duration, usize), String> {
        let mut returns = client.cmd_iter(job).await.map_err(|error| error.to_string())?;
        let (mut last, mut missing) = (started.elapsed(), 0);
        while let Some(event) = returns.next().await.map_err(|error| error.to_string())? {
            match event {
                JobEvent::Return(ret) if ret.retcode == 0 => last = started.elapsed(),
                JobEvent::Return(_) | JobEvent::Missing { .. } => missing += 1,
            }
        }
        Ok((last, missing))
    }

    /// Publishes to all until all have received the publication, which is sealed for each of them. The master may not have read a
    /// subscription yet, and publications before that are lost, as with every master. Then nothing is under way any more.
    async fn settle(&self) -> Result<(), String> {
        let client = self.master.client()?;
        let started = Instant::now();
        while started.elapsed() < DEADLINE {
            let before = self.swarm.counts().publications;
            let job = Job::new("*", "test.ping", Vec::new());
            client.cmd_async(&job).await.map_err(|error| error.to_string())?;
            let all = before + self.all();
            if self.swarm.wait(Duration::from_secs(10), |c| c.publications >= all).await.is_some() {
                return self.one_ping().await.map(drop);
            }
        }
        Err(self.stuck("the subscriptions"))
    }

    pub(super) async fn ping(&mut self) -> Result<(), String> {
        self.settle().await?;
        let (mut times, mut lost) = (Vec::new(), 0);
        let cpu = self.master.cpu()?;
        for _ in 0..self.opts.rounds {
            let (time, missing) = self.one_ping().await?;
            times.push(time.as_secs_f64());
            lost += missing;
        }
        let cpu = (self.master.cpu()? - cpu) / rounds(self.opts.rounds);
        times.sort_by(f64::total_cmp);
        self.put("`test.ping` to all, until the last return, median (s)", times[times.len() / 2], Some("≤ 0.8"));
        self.put("  longest (s)", times[times.len() - 1], None);
        self.put("  returns lost, all rounds", rounds(lost), Some("0"));
        self.put("  ping: the master's CPU for one (s)", cpu, None);
        let pss = self.master.pss_mib()?;
        self.put("  ping: the master's memory afterwards (PSS, MiB)", pss, Some("≤ 200"));
        Ok(())
    }

    /// Deletes a key, like an operator, which replaces the publish key. The next job tells the minions.
    pub(super) async fn rotate(&mut self) -> Result<(), String> {
        self.settle().await?;
        let dummy = self.master.path("pki/minions/deleted");
        let any =
            std::fs::read_dir(self.master.path("pki/minions")).map_err(|error| error.to_string())?.flatten().next();
        let any = any.ok_or("the master has no keys")?;
        std::fs::copy(any.path(), &dummy).map_err(|error| error.to_string())?;
        let deleted = self.master.command("salt-key").args(["-y", "-d", "deleted"]).output();
        let deleted = deleted.map_err(|error| error.to_string())?;
        if !deleted.status.success() {
            return Err(format!("salt-key failed: {}", String::from_utf8_lossy(&deleted.stderr)));
        }
        self.swarm.forget_times();
        let (before, cpu) = (self.swarm.counts(), self.master.cpu()?);
        let started = Instant::now();
        // The rotation follows salt-key's reply after a moment. Jobs until then still use the old key.
        let (time, missing) = loop {
            let done = self.one_ping().await?;
            if has_keys(&self.swarm.counts()) > has_keys(&before) {
                break done;
            }
            if started.elapsed() > DEADLINE {
                return Err(self.stuck("the key rotation"));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        let done = self.swarm.wait(DEADLINE, |c| has_keys(c) >= has_keys(&before) + self.all()).await;
        done.ok_or_else(|| self.stuck("the new keys after a rotation"))?;
        let cpu = self.master.cpu()? - cpu;
        self.put("all get new keys after a rotation, until the last return (s)", time.as_secs_f64(), Some("≤ 3"));
        self.put("  rotation: the master's CPU (s)", cpu, None);
        self.put("  rotation: returns lost", rounds(missing), Some("0"));
        self.auths("  rotation: ", before);
        Ok(())
    }

    /// Runs `salt ID test.ping` in many processes at once.
    pub(super) async fn clients(&mut self) -> Result<(), String> {
        let started = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..self.opts.clients {
            let id = format!("swarm-{:05}", number % self.swarm.len() + 1);
            let mut command = self.master.command("salt");
            command.args([&id, "test.ping", "--out=txt"]);
            tasks.spawn_blocking(move || {
                let started = Instant::now();
                let output = command.output();
                let good = output.is_ok_and(|output| output.stdout == format!("{id}: True\n").as_bytes());
                (started.elapsed().as_secs_f64(), good)
            });
        }
        let done = tasks.join_all().await;
        let total = started.elapsed().as_secs_f64();
        let failed = done.iter().filter(|(_, good)| !good).count();
        let mut times: Vec<f64> = done.into_iter().map(|(time, _)| time).collect();
        times.sort_by(f64::total_cmp);
        if times.is_empty() {
            return Ok(());
        }
        let what = format!("{} `salt` commands at once, until the last has ended (s)", times.len());
        self.put(&what, total, None);
        self.put("  one command, median (s)", times[times.len() / 2], None);
        self.put("  clients: failed", rounds(failed), Some("0"));
        Ok(())
    }

    /// Fetches a file of 5 MB by `_serve_file`, like a minion that fetches a module.
    pub(super) async fn fetch(&mut self) -> Result<(), String> {
        let count = self.opts.fetchers.min(self.swarm.len());
        let noise: Vec<u8> = (0..FILE_LEN).map(|_| rand::random()).collect();
        std::fs::write(self.master.path("srv").join(FILE), noise).map_err(|error| error.to_string())?;
        let ids = (1..=count).map(|number| Value::from(format!("swarm-{number:05}")));
        let mut job = Job::new("", "swarm.fetch", vec![Value::from(format!("salt://{FILE}"))]);
        job.tgt = list(ids.collect::<Vec<_>>());
        job.tgt_type = "list".to_owned();
        let (client, cpu, before) = (self.master.client()?, self.master.cpu()?, self.swarm.counts());
        let (time, missing) = self.wait_returns(&client, &job, Instant::now()).await?;
        let cpu = self.master.cpu()? - cpu;
        let bytes = self.swarm.counts().file_bytes - before.file_bytes;
        let mib = f64::from(u32::try_from(bytes >> 20).unwrap_or(u32::MAX));
        self.put(&format!("5 MiB fetched, by so many minions (at most {})", self.opts.fetchers), rounds(count), None);
        self.put("  until the last has it (s)", time.as_secs_f64(), None);
        self.put("  together (MiB/s)", mib / time.as_secs_f64(), None);
        self.put("  fetch: the master's CPU (s)", cpu, None);
        self.put("  fetch: failed", rounds(missing), Some("0"));
        let pss = self.master.pss_mib()?;
        self.put("  fetch: the master's memory afterwards (PSS, MiB)", pss, Some("≤ 200"));
        Ok(())
    }

    /// Restarts all minions at once.
    pub(super) async fn storm(&mut self) -> Result<(), String> {
        self.swarm.forget_times();
        let (before, cpu) = (self.swarm.counts(), self.master.cpu()?);
        self.swarm.storm();
        let all = self.all();
        let time = self
            .swarm
            .wait(DEADLINE, |c| c.restarts >= before.restarts + all && c.authenticated == all && c.connected == all)
            .await
            .ok_or_else(|| self.stuck("the restart storm"))?;
        let cpu = self.master.cpu()? - cpu;
        self.put("all minions start anew at once, until the last is connected (s)", time.as_secs_f64(), Some("≤ 10"));
        self.put("  storm: the master's CPU (s)", cpu, None);
        self.auths("  storm: ", before);
        Ok(())
    }

    /// Restarts the master. Minions wait one to ten seconds before they try again, like Salt's.
    pub(super) async fn restart(&mut self) -> Result<(), String> {
        self.swarm.forget_times();
        let before = self.swarm.counts();
        self.master.down().await?;
        self.master.up().await?;
        let all = self.all();
        let ready = |c: &Counts| has_keys(c) >= has_keys(&before) + all && c.authenticated == all && c.connected == all;
        let time = self.swarm.wait(DEADLINE, ready).await.ok_or_else(|| self.stuck("coming back to the master"))?;
        self.put("the master restarts, until the last is back (s)", time.as_secs_f64(), None);
        let cpu = self.master.cpu()?;
        self.put("  restart: the master's CPU (s)", cpu, None);
        self.auths("  restart: ", before);
        self.settle().await?;
        let (time, missing) = self.one_ping().await?;
        self.put("  `test.ping` to all afterwards (s)", time.as_secs_f64(), Some("≤ 4"));
        self.put("  restart: returns lost afterwards", rounds(missing), Some("0"));
        Ok(())
    }

    pub(super) fn end(self) -> Result<(), String> {
        let (pss, peak) = (self.master.pss_mib()?, self.master.peak_mib()?);
        let report = self.swarm.report();
        self.table.put("the master's memory at the end (PSS, MiB)", report.minions, pss, Some("≤ 200"));
        self.table.put("  its highest since its last start (RSS, MiB)", report.minions, peak, None);
        self.table.put(
            "requests without an answer, all steps",
            report.minions,
            f64::from(u32::try_from(report.counts.requests_unanswered).unwrap_or(u32::MAX)),
            None,
        );
        eprintln!("{report}");
        let said = self.master.said();
        if !said.is_empty() {
            eprintln!("the master said:\n{}", said.lines().take(20).collect::<Vec<_>>().join("\n"));
        }
        Ok(())
    }
}

/// How often a minion got the master's keys: it authenticated, or went on with its session.
fn has_keys(counts: &Counts) -> u64 {
    counts.auth_accepted + counts.resumed
}

#[allow(clippy::cast_precision_loss, reason = "a small number")]
fn rounds(count: usize) -> f64 {
    count as f64
}
