//! The options of `salt`, in Salt's words.

use brine_protocol::exit;
use clap::{Args, Parser};

use crate::cli::options::{ConfigArgs, LogArgs, OutputArgs};
use crate::cli::{Failure, usage};

/// The command line of `salt`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "salt",
    version = concat!(env!("CARGO_PKG_VERSION"), " (Brine)"),
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
    /// Comma-separated list of named CLI arguments (i.e. argname=value) which should not be parsed as Python data types
    #[arg(long = "no-parse", value_name = "argname1,argname2,...", value_delimiter = ',')]
    pub(super) no_parse: Vec<String>,
    /// Return the data from minions as a group after they all return.
    #[arg(short = 's', long = "static")]
    pub(super) static_: bool,
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
    #[arg(long = "hide-timeout")]
    pub(super) hide_timeout: bool,
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
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) log: LogArgs,
}

/// How the target is meant.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Target Options")]
pub(super) struct TargetArgs {
    /// Instead of using shell globs to evaluate the target servers, use pcre regular expressions.
    #[arg(short = 'E', long)]
    pub(super) pcre: bool,
    /// Instead of using shell globs to evaluate the target servers, take a comma or whitespace delimited list of
    /// servers.
    #[arg(short = 'L', long)]
    pub(super) list: bool,
    /// Instead of using shell globs to evaluate the target use a grain value to identify targets, the syntax for the
    /// target is the grain key followed by a globexpression: "os:Arch*".
    #[arg(short = 'G', long)]
    pub(super) grain: bool,
    /// Instead of using shell globs to evaluate the target use a grain value to identify targets, the syntax for the
    /// target is the grain key followed by a pcre regular expression: "os:Arch.*".
    #[arg(short = 'P', long = "grain-pcre")]
    pub(super) grain_pcre: bool,
    /// Instead of using shell globs to evaluate the target use one of the predefined nodegroups to identify a list of
    /// targets.
    #[arg(short = 'N', long)]
    pub(super) nodegroup: bool,
    /// Instead of using shell globs to evaluate the target use a range expression to identify targets. Range expressions
    /// look like %cluster. They need a range server, which is not supported: no minion matches.
    #[arg(short = 'R', long)]
    pub(super) range: bool,
    /// The compound target option allows for multiple target types to be evaluated, allowing for greater granularity in
    /// target matching. The compound target is space delimited, targets other than globs are preceded with an identifier
    /// matching the specific targets argument type: salt 'G@os:RedHat and webser* or E@database.*'.
    #[arg(short = 'C', long)]
    pub(super) compound: bool,
    /// Instead of using shell globs to evaluate the target use a pillar value to identify targets, the syntax for the
    /// target is the pillar key followed by a glob expression: "role:production*".
    #[arg(short = 'I', long)]
    pub(super) pillar: bool,
    /// Instead of using shell globs to evaluate the target use a pillar value to identify targets, the syntax for the
    /// target is the pillar key followed by a pcre regular expression: "role:prod.*".
    #[arg(short = 'J', long = "pillar-pcre")]
    pub(super) pillar_pcre: bool,
    /// Match based on Subnet (CIDR notation) or IP address.
    #[arg(short = 'S', long)]
    pub(super) ipcidr: bool,
    /// Change the default delimiter for matching in multi-level data structures. Default: ':'.
    #[arg(long, value_name = "DELIMITER", default_value = ":")]
    pub(super) delimiter: String,
}

impl TargetArgs {
    /// The `tgt_type` that the options choose.
    pub(super) fn tgt_type(&self) -> Result<&'static str, Failure> {
        // in the order in which Salt lists them
        let all = [
            (self.pcre, "--pcre", "pcre"),
            (self.list, "--list", "list"),
            (self.grain, "--grain", "grain"),
            (self.grain_pcre, "--grain-pcre", "grain_pcre"),
            (self.nodegroup, "--nodegroup", "nodegroup"),
            (self.range, "--range", "range"),
            (self.compound, "--compound", "compound"),
            (self.pillar, "--pillar", "pillar"),
            (self.pillar_pcre, "--pillar-pcre", "pillar_pcre"),
            (self.ipcidr, "--ipcidr", "ipcidr"),
        ];
        let chosen: Vec<_> = all.into_iter().filter(|(set, ..)| *set).collect();
        match chosen.as_slice() {
            [] => Ok("glob"),
            [(_, _, tgt_type)] => Ok(tgt_type),
            several => {
                let names: Vec<_> = several.iter().map(|(_, option, _)| *option).collect();
                Err(usage::wrong::<SaltArgs>(&format!(
                    "The options {} are mutually exclusive. Please only choose one of them",
                    names.join("/")
                )))
            }
        }
    }
}

/// A command line that misses its words: the help, then what is missing (exit code 42).
pub(super) fn incomplete(what: &str) -> Failure {
    use clap::CommandFactory as _;
    crate::cli::print::stdout(SaltArgs::command().render_help().to_string().trim_end());
    Failure::new(exit::OPTION, format!("\n{what}"))
}
