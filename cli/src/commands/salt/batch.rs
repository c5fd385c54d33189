//! `-b`: a job that runs on some minions at a time.

use std::time::Duration;

use brine_protocol::config::{Config, settings};
use brine_protocol::exit;
use brine_protocol::value::{self, Value, ValueExt};

use super::Session;
use super::args::SaltArgs;
use crate::Failure;
use crate::commandline::misuse;
use crate::commands::print_hint;
use crate::print::{stderr, stdout};
use brine_client::{BatchEvent, BatchOptions, BatchSize, ClientError, Job, JobEvent, LocalClient, MinionReturn};

/// Salt's default of `--batch-safe-size`.
const SAFE_SIZE: &str = "8";

/// The options of the batch.
pub(super) struct Plan {
    options: BatchOptions,
    /// Whether `--static` delays all output to the end.
    quiet: bool,
}

impl Plan {
    /// Plans the batch; none if the job runs without one. `preview` lists the minions of the target.
    pub(super) fn new(
        args: &SaltArgs,
        config: &Config,
        preview: impl FnOnce() -> Result<Vec<String>, String>,
    ) -> Result<Option<Self>, Failure> {
        let size = match args.batch.as_deref().filter(|size| !size.is_empty()) {
            Some(size) => size,
            None if args.static_ => return Ok(None),
            None => {
                let limit =
                    args.batch_safe_limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 1);
                if !limit.is_some_and(|limit| preview().is_ok_and(|minions| minions.len() >= limit)) {
                    return Ok(None);
                }
                stdout("\nNOTICE: Too many minions targeted, switching to batch execution.");
                args.batch_safe_size.as_deref().unwrap_or(SAFE_SIZE)
            }
        };
        if args.asynchronous {
            let text = "A batch is run by this command and not by the master: --batch does not go with --async.";
            return Err(misuse::<SaltArgs>(text));
        }
        let size = size.parse::<BatchSize>().map_err(|error| Failure::new(exit::USAGE, error.to_string()))?;
        let wait = args.batch_wait.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_default();
        let failhard = args.failhard || config.get(settings::FAILHARD).is_ok_and(|failhard| failhard.truthy());
        Ok(Some(Self { options: BatchOptions { size, wait, failhard }, quiet: args.static_ }))
    }
}

impl Session<'_> {
    /// Pings the target, then runs the job on the minions that answered, some at a time. Returns the highest exit code
    /// of the returns.
    pub(super) async fn batch(&mut self, client: &LocalClient, job: &Job, plan: &Plan) -> Result<i32, ClientError> {
        let there = match self.ping(client, job, plan).await {
            Err(error @ ClientError::NoMatch { .. }) => {
                stdout(&error.to_string());
                print_hint(&error);
                Vec::new()
            }
            there => there?,
        };
        if there.is_empty() {
            if !plan.quiet {
                stdout("No minions matched the target.");
            }
            stderr("ERROR: No return received");
            return Ok(exit::STATE_FAILURE);
        }
        let mut batch = client.cmd_batch(job, there, plan.options).await?;
        let mut all: Vec<MinionReturn> = Vec::new();
        loop {
            let event = tokio::select! {
                event = batch.next() => event?,
                _ = tokio::signal::ctrl_c() => self.interrupted(batch.jid()),
            };
            match event {
                None => break,
                Some(BatchEvent::Started(mut ids)) => {
                    ids.sort();
                    if !plan.quiet {
                        self.printer.line(&format!("\nExecuting run on {}\n", value::list(ids).python_repr()));
                    }
                }
                Some(BatchEvent::Return(ret)) => {
                    if !plan.quiet {
                        self.printer.show(&format_return(&ret), ret.out.as_deref().unwrap_or_default(), ret.retcode);
                    }
                    all.push(*ret);
                }
                // Salt prints nothing about such a minion.
                Some(BatchEvent::Missing(id)) => tracing::warn!("{id} did not return; it may still run the job"),
            }
        }
        if batch.is_halted() {
            tracing::error!("Batch run stopped due to failhard");
        }
        if plan.quiet {
            self.printer.show(&value::map(all.iter().map(|ret| (ret.id.as_str(), ret.ret.clone()))), "", 0);
        }
        let worst = all.iter().map(|ret| ret.retcode).max().unwrap_or(0);
        Ok(i32::try_from(worst).unwrap_or(exit::GENERIC).max(0))
    }

    /// Pings the target and returns the minions that answer.
    async fn ping(&mut self, client: &LocalClient, job: &Job, plan: &Plan) -> Result<Vec<String>, ClientError> {
        let ping = Job { fun: Value::from("test.ping"), arg: Vec::new(), ..job.clone() };
        let mut returns = client.cmd_iter(&ping).await?;
        let missing = returns.published().missing.clone();
        let mut there = Vec::new();
        loop {
            let event = tokio::select! {
                event = returns.next() => event?,
                _ = tokio::signal::ctrl_c() => self.interrupted(&returns.published().jid),
            };
            match event {
                None => break,
                Some(JobEvent::Return(ret)) => there.push(ret.id),
                Some(JobEvent::Missing { id, .. }) if !plan.quiet && !missing.contains(&id) => {
                    self.printer.line(&format!("Minion {id} did not respond. No job will be sent."));
                }
                Some(JobEvent::Missing { .. }) => {}
            }
        }
        there.sort();
        Ok(there)
    }
}

/// A return of a batch in Salt's form: with its jid and its retcode.
fn format_return(ret: &MinionReturn) -> Value {
    let mut row = value::empty_map();
    for name in ["retcode", "jid"] {
        if let Some(value) = ret.load.get(name) {
            row.insert(name, value.clone());
        }
    }
    row.insert(ret.id.as_str(), ret.ret.clone());
    row
}
