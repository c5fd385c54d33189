//! brine-swarm: reads its command line and calls the library.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use brine_swarm::bench::{self, BenchOpts};
use brine_swarm::keys::{self, SwarmKey};
use brine_swarm::{Plan, Swarm, limits};
use clap::{Args, Parser, Subcommand};

/// Thousands of simulated Salt minions in one process, to see what a master does under load.
///
/// Each has an id (swarm-00001), an RSA key, an authentication, a session, a subscription and a request connection of its own, over real
/// sockets; a master, Brine's or Python's, cannot tell them from minions. They answer test.ping, test.echo, test.version, grains.items,
/// grains.get, saltutil.find_job, saltutil.refresh_pillar and swarm.fetch salt://PATH, and run nothing. Grains: os: Swarm, swarm_group: 0 to 9.
///
/// The master has to accept the keys: auto_accept: True there, or salt-key -A. Never aim it at a master that others use.
#[derive(Debug, Parser)]
#[command(name = "brine-swarm", version)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes the keys and ends
    Keys(Keys),
    /// Connects minions to a master and lets them answer until Ctrl-C
    Run(Box<Run>),
    /// Measures a Brine master of its own, which it starts on loopback in a temporary folder; prints one table with goals
    Bench(Bench),
}

#[derive(Debug, Args)]
struct Keys {
    /// The folder of what the keys are made of, which is kept: the same minions have the same keys the next time. They are worth nothing
    /// beyond this, since all are made of a few primes
    #[arg(long, value_name = "DIR", default_value = "swarm-keys")]
    keys: PathBuf,
    /// The size of the keys; shorter ones are cheaper for master and swarm and measure less
    #[arg(long, value_name = "BITS", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1024..=4096))]
    key_bits: u32,
    /// How many minions
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    minions: usize,
}

#[derive(Debug, Args)]
struct Run {
    /// The master's host name or address
    #[arg(default_value = "127.0.0.1")]
    master: String,
    /// Its port of requests (ret_port)
    #[arg(long, default_value_t = 4506)]
    port: u16,
    #[command(flatten)]
    keys: Keys,
    /// What ids begin with
    #[arg(long, default_value = "swarm")]
    prefix: String,
    /// The fraction of minions, 0 to 1, that never answer a job
    #[arg(long, value_name = "FRACTION", default_value_t = 0.0, value_parser = fraction)]
    silent: f64,
    /// The fraction of minions, 0 to 1, that answer late
    #[arg(long, value_name = "FRACTION", default_value_t = 0.0, value_parser = fraction)]
    slow: f64,
    /// How late those are
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    slow_for: Duration,
    /// Minions start over so long; 0 starts all at once
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    start_over: Duration,
    /// Every minion starts anew after so long, each at a time of its own
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    restart_every: Option<Duration>,
    /// All minions start anew at once after so long: a restart storm
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    storm_after: Option<Duration>,
    /// The longest wait before a lost connection is tried again; the shortest is a tenth of it
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    reconnect: Duration,
    /// How long a minion waits for an answer
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    timeout: Duration,
    /// Every minion asks for its pillar after it signed in, by which the master learns its grains, and fires its start event
    #[arg(long)]
    pillar: bool,
    /// Minions subscribe to their own topics (zmq_filtering)
    #[arg(long)]
    filtering: bool,
    /// Minions know only what Python's know: no publications for one minion alone, and no going on with a session
    #[arg(long)]
    shared: bool,
    /// Ends after so long instead of at Ctrl-C
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    run_for: Option<Duration>,
    /// Says how it goes every so often; 0 says it at the end only
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    every: Duration,
    /// Reports as JSON, one document a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Bench {
    /// The folder of salt-master and salt; that of this program if not given
    #[arg(long, value_name = "DIR")]
    bin: Option<PathBuf>,
    /// The folder of the keys
    #[arg(long, value_name = "DIR", default_value = "swarm-keys")]
    keys: PathBuf,
    /// The size of the keys
    #[arg(long, value_name = "BITS", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1024..=4096))]
    key_bits: u32,
    /// The numbers of minions to measure with
    #[arg(short = 'n', long, value_name = "N,…", value_delimiter = ',', default_value = "100,1000,10000")]
    minions: Vec<usize>,
    /// How often what can be repeated is; the median is shown, and the longest
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// At most so many minions fetch the file of 5 MB
    #[arg(long, value_name = "N", default_value_t = 1000)]
    fetchers: usize,
    /// How many `salt` commands run at once
    #[arg(long, value_name = "N", default_value_t = 100)]
    clients: usize,
    /// Additional lines of the master's configuration (YAML)
    #[arg(long, value_name = "YAML", default_value = "")]
    config: String,
    /// Runs the master under this, words separated by blanks: `perf record -g -o FILE`, `valgrind --tool=callgrind`
    #[arg(long, value_name = "COMMAND")]
    under: Option<String>,
    /// The steps to run, all if not given: ping, rotate, clients, fetch, storm, restart
    #[arg(long, value_name = "STEP,…", value_delimiter = ',')]
    steps: Vec<bench::Step>,
    /// Prints JSON instead of the table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(Line::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("brine-swarm: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    match command {
        Command::Keys(opts) => prepare(&opts).map(drop),
        Command::Run(opts) => runtime.block_on(swarm(*opts)),
        Command::Bench(opts) => {
            let most = opts.minions.iter().copied().max().unwrap_or(0);
            let keys = prepare(&Keys { keys: opts.keys, key_bits: opts.key_bits, minions: most })?;
            let bin = match opts.bin {
                Some(bin) => bin,
                None => own_folder()?,
            };
            let opts = BenchOpts {
                bin,
                sizes: opts.minions,
                rounds: opts.rounds.max(1),
                fetchers: opts.fetchers,
                clients: opts.clients,
                config: opts.config,
                under: opts
                    .under
                    .map(|words| words.split_whitespace().map(str::to_owned).collect())
                    .unwrap_or_default(),
                steps: if opts.steps.is_empty() { bench::Step::ALL.to_vec() } else { opts.steps },
                json: opts.json,
            };
            runtime.block_on(bench::run(&opts, &keys))
        }
    }
}

async fn swarm(opts: Run) -> Result<(), String> {
    let (count, why) = limits::fit(opts.keys.minions, limits::raise_open_files());
    if let Some(why) = why {
        eprintln!("brine-swarm: {why}");
    }
    let keys = tokio::task::block_in_place(|| prepare(&Keys { minions: count, ..opts.keys }))?;
    let plan = Plan {
        master: opts.master,
        port: opts.port,
        prefix: opts.prefix,
        silent: opts.silent,
        slow: opts.slow,
        slow_for: opts.slow_for,
        start_over: opts.start_over,
        restart_every: opts.restart_every,
        timeout: opts.timeout,
        reconnect: (opts.reconnect / 10, opts.reconnect),
        pillar: opts.pillar,
        filtering: opts.filtering,
        seals: !opts.shared,
        ..Plan::default()
    };
    let swarm = Swarm::start(plan, &keys).map_err(|error| error.to_string())?;
    let show = || {
        let report = swarm.report();
        let text = if opts.json { report.json().to_string() } else { report.to_string() };
        // The reader may have closed the pipe.
        let _ = writeln!(std::io::stdout(), "{text}");
    };
    let end = async {
        match opts.run_for {
            Some(time) => tokio::time::sleep(time).await,
            None => drop(tokio::signal::ctrl_c().await),
        }
    };
    tokio::pin!(end);
    let mut storm = std::pin::pin!(async {
        match opts.storm_after {
            Some(after) => tokio::time::sleep(after).await,
            None => std::future::pending().await,
        }
    });
    let mut stormed = false;
    let every = if opts.every.is_zero() { Duration::from_secs(u64::from(u32::MAX)) } else { opts.every };
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
    loop {
        tokio::select! {
            () = &mut end => break,
            () = &mut storm, if !stormed => {
                stormed = true;
                swarm.storm();
            }
            _ = ticks.tick() => show(),
        }
    }
    show();
    Ok(())
}

fn prepare(opts: &Keys) -> Result<Vec<Arc<SwarmKey>>, String> {
    keys::prepare(&opts.keys, opts.key_bits, opts.minions, |_| ()).map_err(|error| error.to_string())
}

fn own_folder() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    own.parent()
        .map(PathBuf::from)
        .ok_or_else(|| "this program has no folder: name that of salt-master by --bin".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a number of seconds");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

fn fraction(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|f| (0.0..=1.0).contains(f)).ok_or_else(|| format!("{text:?} is not a number from 0 to 1"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Line::command().debug_assert();
        assert!(Line::try_parse_from(["brine-swarm", "run", "--silent", "1.5"]).is_err());
        assert!(Line::try_parse_from(["brine-swarm", "run", "--for", "-1"]).is_err());
        let line = Line::try_parse_from(["brine-swarm", "bench", "-n", "1,2", "--steps", "ping,restart"]).unwrap();
        let Command::Bench(opts) = line.command else { panic!("it is a bench") };
        assert_eq!((opts.minions, opts.steps.len()), (vec![1, 2], 2));
    }
}
