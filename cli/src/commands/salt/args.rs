//! The options of `salt`, in Salt's words.

use brine_protocol::exit;
use clap::Parser;

use crate::Failure;
use crate::commandline::VERSION;
use crate::commands::options::{ConfigArgs, LogInArgs};
use crate::commands::target::TargetArgs;
use crate::logging::LogArgs;
use crate::print::OutputArgs;

/// The command line of `salt`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "salt",
    version = VERSION,
    about = "Salt allows for commands to be executed across a swath of remote systems in parallel, so they can be both \
             controlled and queried with ease.",
    override_usage = "salt [options] '<target>' <function> [arguments]",
    help_template = "{usage-heading} {usage}\n\n{about}\n\n{all-args}",
    infer_long_args = true,
    args_override_self = true
)]
pub struct SaltArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Seconds to wait for returns before asking the minions whether they still run the job; who does is waited for.
    /// Default: the configuration's timeout, 5.
    #[arg(short = 't', long, value_name = "TIMEOUT", allow_negative_numbers = true)]
    pub(super) timeout: Option<i64>,
    /// Read additional options and/or arguments from stdin. Each entry is newline separated.
    #[arg(long = "args-stdin")]
    pub(super) args_stdin: bool,
    /// Comma-separated list of named CLI arguments (i.e. argname=value) which should not be parsed as Python data types
    #[arg(long = "no-parse", value_name = "argname1,argname2,...", value_delimiter = ',')]
    pub(super) no_parse: Vec<String>,
    /// Return the data from minions as a group after they all return.
    #[arg(short = 's', long = "static")]
    pub(super) static_: bool,
    /// Display a progress bar instead of the returns, and a summary.
    #[arg(short = 'p', long)]
    pub(super) progress: bool,
    /// Execute the salt job in batch mode, pass either the number of minions to batch at a time, or the percentage of
    /// minions to have running.
    #[arg(short = 'b', long, alias = "batch-size", value_name = "BATCH")]
    pub(super) batch: Option<String>,
    /// Wait the specified time in seconds after each job is done before freeing the slot in the batch for the next one.
    #[arg(long = "batch-wait", value_name = "BATCH_WAIT", allow_negative_numbers = true)]
    pub(super) batch_wait: Option<f64>,
    /// Execute the salt job in batch mode if the job would have executed on at least this many minions.
    #[arg(long = "batch-safe-limit", value_name = "BATCH_SAFE_LIMIT", allow_negative_numbers = true)]
    pub(super) batch_safe_limit: Option<i64>,
    /// Batch size to use for batch jobs created by batch-safe-limit. Default: 8.
    #[arg(long = "batch-safe-size", value_name = "BATCH_SAFE_SIZE")]
    pub(super) batch_safe_size: Option<String>,
    /// Stop batch execution upon first "bad" return.
    #[arg(long)]
    pub(super) failhard: bool,
    /// Execute the routine on a random subset of the targeted minions. The minions will be verified that they have the
    /// named function before executing.
    #[arg(long, value_name = "SUBSET", allow_negative_numbers = true)]
    pub(super) subset: Option<i64>,
    /// Show the minions expected to match a target. Does not issue any command.
    #[arg(long = "preview-target")]
    pub(super) preview_target: bool,
    /// Publish the job, print its jid and do not wait for returns.
    #[arg(long = "async")]
    pub(super) asynchronous: bool,
    /// Show the job's jid, and minions that did not return even with --hide-timeout.
    #[arg(short = 'v', long)]
    pub(super) verbose: bool,
    /// Do not show minions that did not return in time.
    #[arg(long = "hide-timeout", overrides_with = "show_timeout")]
    pub(super) hide_timeout: bool,
    /// Show minions that did not return in time, which is the default.
    #[arg(long = "show-timeout")]
    pub(super) show_timeout: bool,
    /// Display jid without the additional output of --verbose.
    #[arg(long = "show-jid")]
    pub(super) show_jid: bool,
    /// Return the documentation for the specified module or for all modules if none are specified.
    #[arg(short = 'd', long = "doc", alias = "documentation")]
    pub(super) doc: bool,
    /// Set the special argument used as a delimiter between command arguments of compound commands. This is useful when
    /// one wants to pass commas as arguments to some of the commands in a compound command.
    #[arg(long = "args-separator", value_name = "ARGS_SEPARATOR", default_value = ",", hide_default_value = true)]
    pub(super) args_separator: String,
    /// Display summary information about a salt command.
    #[arg(long)]
    pub(super) summary: bool,
    /// Metadata that is kept with the job and its returns.
    #[arg(long, value_name = "METADATA")]
    pub(super) metadata: Option<String>,
    /// Request that targeted minions fire a salt/job/<jid>/start/<minion_id> event when they accept the published job, before
    /// executing the function. Useful for callers that want to confirm reachability without waiting for the full return.
    #[arg(long = "start-event")]
    pub(super) start_event: bool,
    /// Set an alternative return method. By default salt will send the return data from the command back to the master, but
    /// the return data can be redirected into any number of systems, databases or applications. Several with commas.
    #[arg(long = "return", value_name = "RETURNER")]
    pub(super) returner: Option<String>,
    /// The configuration of the returner that is to be used, where it has several.
    #[arg(long = "return_config", alias = "return-config", value_name = "RETURNER_CONF")]
    pub(super) return_config: Option<String>,
    /// Set any returner options at the command line.
    #[arg(long = "return_kwargs", alias = "return-kwargs", value_name = "RETURNER_KWARGS")]
    pub(super) return_kwargs: Option<String>,
    /// Dump the master configuration values
    #[arg(long = "config-dump")]
    pub(super) config_dump: bool,
    /// Set an alternative list of executors to override the one set in minion config.
    #[arg(long = "module-executors", value_name = "EXECUTOR_LIST", hide = true)]
    pub(super) module_executors: Option<String>,
    /// Options of the job for what runs it: {timeout: 5} ends it after 5 seconds, or sooner where its minion says so.
    #[arg(long = "executor-opts", value_name = "EXECUTOR_OPTS")]
    pub(super) executor_opts: Option<String>,
    /// The target, the function and its arguments.
    #[arg(value_name = "ARGUMENTS", hide = true, allow_negative_numbers = true)]
    pub(super) words: Vec<String>,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// The compound target option allows for multiple target types to be evaluated, allowing for greater granularity in
    /// target matching. The compound target is space delimited, targets other than globs are preceded with an identifier
    /// matching the specific targets argument type: salt 'G@os:RedHat and webser* or E@database.*'.
    #[arg(short = 'C', long, help_heading = "Target Options")]
    pub(super) compound: bool,
    #[command(flatten)]
    pub(super) log_in: LogInArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) log: LogArgs,
}

impl SaltArgs {
    /// The `tgt_type` that the options choose.
    pub(super) fn tgt_type(&self) -> Result<&'static str, Failure> {
        self.target.tgt_type::<Self>(self.compound)
    }
}

/// A command line that misses its words: the help, then what is missing (exit code 42).
pub(super) fn incomplete(what: &str) -> Failure {
    use clap::CommandFactory as _;
    crate::print::stdout(SaltArgs::command().render_help().to_string().trim_end());
    Failure::new(exit::OPTION, format!("\n{what}"))
}
