//! `salt-run`: runs a runner in the master and prints its result.

mod watch;

use std::ffi::OsString;
use std::time::Duration;

use crate::commandline::{self, Line, misuse};
use brine_protocol::args::{parse_kwarg, split_input};
use brine_protocol::exit;
use brine_protocol::target::fnmatch;
use brine_protocol::value::{Value, ValueExt as _, map};
use clap::Parser;

use super::options::{ConfigArgs, LogInArgs};
use super::{block_on, candidates as complete};
use crate::logging::LogArgs;
use crate::print::OutputArgs;
use crate::print::{Printer, stdout};
use crate::{Failure, Outcome};
use brine_client::{ClientError, LogIn, RunnerClient, RunnerEvent};

/// The time for the master's reply with its runners' documentation.
const DOC_TIME: Duration = Duration::from_secs(30);

/// The command line of `salt-run`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "salt-run",
    about = "Runs a runner in the master and prints its result.",
    override_usage = "salt-run [options] <function> [arguments]"
)]
pub struct SaltRunArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Seconds to wait for the runner. Default: until it ends.
    #[arg(short = 't', long, value_name = "TIMEOUT", allow_negative_numbers = true)]
    timeout: Option<i64>,
    /// Read further options and arguments from stdin, one a line.
    #[arg(long = "args-stdin")]
    args_stdin: bool,
    /// Keep the values of these keyword arguments as text, for example --no-parse=a,b for a=1 b=2.
    #[arg(long = "no-parse", value_name = "argname1,argname2,...", value_delimiter = ',')]
    no_parse: Vec<String>,
    /// Show the documentation of a runner or of one of its functions; of all if none is named.
    #[arg(short = 'd', long, alias = "documentation")]
    doc: bool,
    /// Changes nothing: runners load no grains.
    #[arg(long = "skip-grains")]
    skip_grains: bool,
    /// Start the runner and do not wait for its result.
    #[arg(long = "async")]
    asynchronous: bool,
    /// Print nothing of the run.
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Options of Salt's that are not offered, so that it can be said why.
    #[arg(long, hide = true, value_name = "JID")]
    jid: Option<String>,
    #[arg(long = "enable-profiling", hide = true)]
    enable_profiling: bool,
    #[arg(long = "profiling-path", hide = true, value_name = "PROFILING_PATH")]
    profiling_path: Option<String>,
    /// The runner and its arguments.
    #[arg(value_name = "ARGUMENTS", hide = true, allow_negative_numbers = true)]
    words: Vec<String>,
    #[command(flatten)]
    log_in: LogInArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// Completion candidates: runners.
fn candidates(command: &clap::Command, line: &Line) -> Vec<String> {
    let Some(args) = line.parse::<SaltRunArgs>(command) else { return Vec::new() };
    match (args.words.is_empty(), args.config.load()) {
        (true, Ok((_, opts))) => complete::runners(&opts),
        _ => Vec::new(),
    }
}

/// Runs the command with these arguments, beginning with the program's name.
///
/// # Errors
/// The failure that ended the command, with its exit code.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> Outcome {
    use clap::CommandFactory as _;
    commandline::complete_or_document(&SaltRunArgs::command(), &[("words", candidates)]);
    let args: SaltRunArgs = commandline::parse_with_stdin(argv, |args: &SaltRunArgs| args.args_stdin)?;
    args.log.start()?;
    refuse_options_not_offered(&args)?;
    if args.doc {
        return docs(&args);
    }
    let Some((fun, words)) = args.words.split_first() else {
        stdout(SaltRunArgs::command().render_help().to_string().trim_end());
        return Err(Failure::new(exit::USAGE, "\nsalt-run: error: no runner was named, such as jobs.list_jobs"));
    };
    let (config, opts) = args.config.load()?;
    let mut printer = Printer::new(&args.output, &config)?;
    let (positional, mut named) = split_input(words);
    for (name, text) in words.iter().filter_map(|word| parse_kwarg(word)) {
        if args.no_parse.iter().any(|kept| kept == name) {
            named.iter_mut().filter(|(known, _)| known == name).for_each(|(_, value)| *value = Value::from(text));
        }
    }
    let timeout = args.timeout.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    if fun == watch::NAME {
        let watch = watch::Watch::parse(&positional, &named)
            .map_err(|why| Failure::new(exit::USAGE, format!("\nsalt-run: error: {why}")))?;
        return block_on(watch.run(&opts, args.quiet))?.inspect(|code| {
            // The runner ends without a result, which Salt prints like any other result.
            if !args.quiet {
                printer.show(&Value::Nil, "", i64::from(*code));
            }
        });
    }
    args.log_in.check_system(exit::OK)?;
    block_on(async {
        let log_in = args.log_in.resolve(&config, &opts).await?;
        let by_key = log_in == LogIn::Key;
        let client = RunnerClient::logged_in(opts, log_in);
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
            let running =
                client.follow(fun, positional, named, timeout.map(Duration::from_secs), |event| match event {
                    RunnerEvent::Progress(suffix, data) if !args.quiet => {
                        let shown = map([("suffix", Value::from(suffix)), ("event", data.clone())]);
                        printer.show(&shown, data.get_text("outputter").unwrap_or_default(), 0);
                    }
                    RunnerEvent::Print(text) if !args.quiet => printer.line(text),
                    _ => {}
                });
            running.await.map(|ret| {
                let code = ret.retcode.unwrap_or_else(|| i64::from(if ret.success { exit::OK } else { exit::GENERIC }));
                if !args.quiet {
                    printer.show(&ret.ret, ret.out.as_deref().unwrap_or_default(), code);
                }
                i32::try_from(code).unwrap_or(exit::GENERIC)
            })
        };
        match result {
            // A refused log-in is printed in place of a result, with exit code 0, as in Salt.
            Err(error) if !by_key && error.is_refusal() => {
                if !args.quiet {
                    printer.show(&error.to_string().into(), "nested", 0);
                }
                Ok(exit::OK)
            }
            result => result.map_err(|error| failed(&error)),
        }
    })?
}

fn refuse_options_not_offered(args: &SaltRunArgs) -> Result<(), Failure> {
    if args.jid.is_some() {
        return Err(misuse::<SaltRunArgs>("--jid is not offered: the master gives each run a jid of its own"));
    }
    if args.enable_profiling || args.profiling_path.is_some() {
        let text = "--enable-profiling is not offered: SIGUSR2 makes salt-master write a profile";
        return Err(misuse::<SaltRunArgs>(text));
    }
    Ok(())
}

fn failed(error: &ClientError) -> Failure {
    let text = match error.hint() {
        Some(hint) => format!("{error} {hint}"),
        None => error.to_string(),
    };
    Failure::new(exit::GENERIC, text)
}

/// `-d`: prints the documentation of all runners, of a module, of a function, or of those that a glob names.
fn docs(args: &SaltRunArgs) -> Outcome {
    if args.words.len() > 1 {
        return Err(misuse::<SaltRunArgs>("You can only get documentation for one method at one time"));
    }
    let (config, opts) = args.config.load()?;
    let asked = block_on(async {
        let log_in = args.log_in.resolve(&config, &opts).await?;
        let client = RunnerClient::logged_in(opts, log_in);
        Ok::<_, Failure>(client.cmd("doc.runner", Vec::new(), Vec::new(), Some(DOC_TIME)).await)
    })??;
    let docs = asked.map_err(|error| failed(&error))?.ret;
    let mut found: Vec<(&str, String)> = docs
        .entries()
        .unwrap_or_default()
        .iter()
        .filter_map(|(name, doc)| Some((name.text()?, doc.python_str())))
        .filter(|(name, _)| args.words.first().is_none_or(|wanted| is_wanted(name, wanted)))
        .collect();
    if args.words.first().is_none_or(|wanted| is_wanted(watch::NAME, wanted)) {
        found.push((watch::NAME, watch::DOC.to_owned()));
    }
    found.sort_by_key(|(name, _)| *name);
    for (name, doc) in found {
        stdout(&format!("{name}:\n{doc}"));
    }
    Ok(exit::OK)
}

/// Whether `wanted` names the function, in Salt's reading: as a glob, a function, or a module.
fn is_wanted(name: &str, wanted: &str) -> bool {
    if wanted.contains('*') {
        return fnmatch(wanted, name);
    }
    name == wanted || name.starts_with(&format!("{}.", wanted.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_is_found_by_function_module_and_glob() {
        for (name, wanted, yes) in [
            ("jobs.list_job", "jobs.list_job", true),
            ("jobs.list_jobs", "jobs.list_job", false),
            ("jobs.list_jobs", "jobs", true),
            ("jobs.list_jobs", "jobs.", true),
            ("jobs.list_jobs", "job", false),
            ("jobs.list_jobs", "jobs.l*", true),
            ("manage.up", "jobs*", false),
        ] {
            assert_eq!(is_wanted(name, wanted), yes, "{name} {wanted}");
        }
    }
}
