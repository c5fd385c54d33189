//! The benchmarks: a separate Brine master in a temporary folder on loopback, the swarm in this process, one table at
//! the end.
//!
//! Swarm and master share the processors, so wall times include both. The rows of CPU time are for the master alone.

mod master;
mod steps;
mod table;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::keys::SwarmKey;
use crate::{Plan, Swarm, limits};
use master::Master;
use steps::Steps;
use table::Table;

/// Deadline of every step; a longer time means a fault.
pub(crate) const DEADLINE: Duration = Duration::from_secs(300);

/// The measured steps, each repeated for every number of minions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// `test.ping` to all, until the last return.
    Ping,
    /// The publish key is replaced, and all minions authenticate again with the next job.
    Rotate,
    /// Many `salt` commands at once, each for one minion.
    Clients,
    /// Many minions fetch a file of 5 MB.
    Fetch,
    /// All minions restart at once.
    Storm,
    /// The master is restarted, and all minions reconnect.
    Restart,
}

impl Step {
    /// All steps in their order.
    pub const ALL: [Self; 6] = [Self::Ping, Self::Rotate, Self::Clients, Self::Fetch, Self::Storm, Self::Restart];
}

impl std::str::FromStr for Step {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "ping" => Self::Ping,
            "rotate" => Self::Rotate,
            "clients" => Self::Clients,
            "fetch" => Self::Fetch,
            "storm" => Self::Storm,
            "restart" => Self::Restart,
            other => return Err(format!("{other:?} is no step: ping, rotate, clients, fetch, storm, restart")),
        })
    }
}

/// The options of a benchmark.
#[derive(Debug, Clone)]
pub struct BenchOpts {
    /// The folder of `salt-master`, `salt-key` and `salt`.
    pub bin: PathBuf,
    /// Numbers of minions.
    pub sizes: Vec<usize>,
    /// Repetitions of repeatable steps.
    pub rounds: usize,
    /// Upper bound on the minions that fetch the file.
    pub fetchers: usize,
    /// The number of simultaneous `salt` commands.
    pub clients: usize,
    /// Additional lines of the master's configuration.
    pub config: String,
    /// A program to run the master under, with its arguments.
    pub under: Vec<String>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Whether to print JSON instead of the table.
    pub json: bool,
}

/// Runs the benchmarks and prints the results. Progress goes to standard error.
///
/// # Errors
/// The programs are missing, or a step does not work at all.
pub async fn run(opts: &BenchOpts, keys: &[Arc<SwarmKey>]) -> Result<(), String> {
    let files = limits::raise_open_files();
    let mut table = Table::default();
    for &wanted in &opts.sizes {
        let (count, why) = limits::fit(wanted, files);
        if let Some(why) = why {
            eprintln!("brine-swarm: {why}");
            table.note(why);
        }
        eprintln!("brine-swarm: {count} minions");
        let count = count.min(keys.len());
        one(opts, &keys[..count], &mut table).await?;
    }
    if opts.json {
        println!("{}", table.json());
    } else {
        println!("{table}");
    }
    Ok(())
}

/// Runs all steps with one number of minions.
async fn one(opts: &BenchOpts, keys: &[Arc<SwarmKey>], table: &mut Table) -> Result<(), String> {
    let master = Master::start(opts).await?;
    let idle = master.pss_mib()?;
    table.put("the master's memory before anyone came (PSS, MiB)", keys.len(), idle, Some("≤ 25"));
    let cpu = master.cpu()?;
    let plan = Plan { port: master.ret_port, ..Plan::default() };
    let swarm = Swarm::start(plan, keys).map_err(|error| error.to_string())?;
    let ready = swarm.wait_ready(DEADLINE).await;
    let mut steps = Steps { opts, master, swarm, table, idle };
    steps.first_contact(ready, cpu)?;
    for step in &opts.steps {
        eprintln!("brine-swarm:   {step:?}");
        match step {
            Step::Ping => steps.ping().await?,
            Step::Rotate => steps.rotate().await?,
            Step::Clients => steps.clients().await?,
            Step::Fetch => steps.fetch().await?,
            Step::Storm => steps.storm().await?,
            Step::Restart => steps.restart().await?,
        }
    }
    steps.end()
}
