//! `salt-run`: runs a runner in the master and prints what it returns.

mod watch;

use std::ffi::OsString;
use std::time::Duration;

use brine_protocol::args::split_input;
use brine_protocol::commandline::{self, Line};
use brine_protocol::exit;
use brine_protocol::value::Value;
use clap::Parser;

use super::options::{ConfigArgs, LogArgs, OutputArgs};
use super::print::{Printer, stdout};
use super::{Failure, Outcome, block_on, complete, usage};
use crate::RunnerClient;

/// The command line of `salt-run`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "salt-run",
    version = concat!(env!("CARGO_PKG_VERSION"), " (Brine)"),
    about = "salt-run is the frontend command for executing Salt Runners",
    override_usage = "salt-run [options] <function> [arguments]",
    help_template = "{usage-heading} {usage}\n\n{about}\n\n{all-args}",
    infer_long_args = true,
    args_override_self = true
)]
pub struct SaltRunArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Seconds to wait for the runner. Default: until it ends.
    #[arg(short = 't', long, value_name = "TIMEOUT", allow_negative_numbers = true)]
    timeout: Option<i64>,
    /// Start the runner and do not wait for its result.
    #[arg(long = "async")]
    asynchronous: bool,
    /// Do not display the results of the run.
    #[arg(short = 'q', long)]
    quiet: bool,
    /// The runner and its arguments.
    #[arg(value_name = "ARGUMENTS", hide = true, allow_negative_numbers = true)]
    words: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// A runner, at the cursor of the shell.
fn candidates(command: &clap::Command, line: &Line) -> Vec<String> {
    let Some(args) = line.parse::<SaltRunArgs>(command) else { return Vec::new() };
    match (args.words.is_empty(), args.config.load()) {
        (true, Ok((_, opts))) => complete::runners(&opts),
        _ => Vec::new(),
    }
}

/// Runs the command with these arguments, the program's name first.
///
/// # Errors
/// What stops it, with its exit code.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> Outcome {
    use clap::CommandFactory as _;
    commandline::answer(&SaltRunArgs::command(), &[("words", candidates)]);
    let args: SaltRunArgs = usage::parse(argv)?;
    args.log.start()?;
    let Some((fun, words)) = args.words.split_first() else {
        stdout(SaltRunArgs::command().render_help().to_string().trim_end());
        return Err(Failure::new(exit::USAGE, "\nsalt-run: error: no runner was named, such as jobs.list_jobs"));
    };
    let (config, opts) = args.config.load()?;
    let mut printer = Printer::new(&args.output, &config)?;
    let (positional, named) = split_input(words);
    let timeout = args.timeout.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    if fun == "state.event" {
        let watch = watch::Watch::parse(&positional, &named)
            .map_err(|why| Failure::new(exit::USAGE, format!("\nsalt-run: error: {why}")))?;
        return block_on(watch.run(&opts, args.quiet))?.inspect(|code| {
            // The runner ends without a result, which Salt shows as that of any other.
            if !args.quiet {
                printer.show(&Value::Nil, "", i64::from(*code));
            }
        });
    }
    block_on(async {
        let client = RunnerClient::new(opts);
        let result = if args.asynchronous {
            client.cmd_async(fun, positional, named).await.map(|started| {
                tracing::warn!(
                    "Running in asynchronous mode. Results of this execution may be collected by attaching to the master \
                     event bus or by examining the master job cache, if configured. This execution is running under tag {}",
                    started.tag
                );
                exit::OK
            })
        } else {
            let running = client.cmd(fun, positional, named, timeout.map(Duration::from_secs));
            running.await.map(|ret| {
                let code = ret.retcode.unwrap_or_else(|| i64::from(if ret.success { exit::OK } else { exit::GENERIC }));
                if !args.quiet {
                    printer.show(&ret.ret, ret.out.as_deref().unwrap_or_default(), code);
                }
                i32::try_from(code).unwrap_or(exit::GENERIC)
            })
        };
        result.map_err(|error| {
            let text = match error.hint() {
                Some(hint) => format!("{error} {hint}"),
                None => error.to_string(),
            };
            Failure::new(exit::GENERIC, brine_protocol::output::visible(&text))
        })
    })?
}
