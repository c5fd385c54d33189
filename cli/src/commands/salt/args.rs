//! The options of `salt`, with Salt's names.

use brine_protocol::exit;
use clap::Parser;

use crate::Failure;
use crate::commands::options::{ConfigArgs, LogInArgs};
use crate::commands::target::TargetArgs;
use crate::logging::LogArgs;
use crate::print::OutputArgs;

/// The command line of `salt`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "salt",
    about = "Runs a function on the minions that a target names, and prints what they return.",
    override_usage = "salt [options] '<target>' <function> [arguments]"
)]
pub struct SaltArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Seconds to wait for returns before asking the minions whether they still run the job. Default: the setting timeout (5).
    #[arg(short = 't', long, value_name = "TIMEOUT", allow_negative_numbers = true)]
    pub(super) timeout: Option<i64>,
    /// Read further options and arguments from stdin, one a line.
    #[arg(long = "args-stdin")]
    pub(super) args_stdin: bool,
    /// Keep the values of these keyword arguments as text, for example --no-parse=a,b for a=1 b=2.
    #[arg(long = "no-parse", value_name = "argname1,argname2,...", value_delimiter = ',')]
    pub(super) no_parse: Vec<String>,
    /// Print all returns at once, when the last one is there.
    #[arg(short = 's', long = "static")]
    pub(super) static_: bool,
    /// Show a progress bar and a summary instead of the returns.
    #[arg(short = 'p', long)]
    pub(super) progress: bool,
    /// Run the job on so many minions at a time, as a number or as a share of the target: 5 or 10%.
    #[arg(short = 'b', long, alias = "batch-size", value_name = "BATCH")]
    pub(super) batch: Option<String>,
    /// Seconds to wait after a minion of the batch returned before the next one starts. Default: 0.
    #[arg(long = "batch-wait", value_name = "BATCH_WAIT", allow_negative_numbers = true)]
    pub(super) batch_wait: Option<f64>,
    /// Use a batch if the target has at least this many minions.
    #[arg(long = "batch-safe-limit", value_name = "BATCH_SAFE_LIMIT", allow_negative_numbers = true)]
    pub(super) batch_safe_limit: Option<i64>,
    /// The size of the batch that --batch-safe-limit begins. Default: 8.
    #[arg(long = "batch-safe-size", value_name = "BATCH_SAFE_SIZE")]
    pub(super) batch_safe_size: Option<String>,
    /// End a batch at the first minion that fails.
    #[arg(long)]
    pub(super) failhard: bool,
    /// Run the job on this many minions of the target, taken at random among those that have the function.
    #[arg(long, value_name = "SUBSET", allow_negative_numbers = true)]
    pub(super) subset: Option<i64>,
    /// List the minions that the target should match, and run nothing.
    #[arg(long = "preview-target")]
    pub(super) preview_target: bool,
    /// Print the job's id and do not wait for returns.
    #[arg(long = "async")]
    pub(super) asynchronous: bool,
    /// Show the job's id, and minions that did not return even with --hide-timeout.
    #[arg(short = 'v', long)]
    pub(super) verbose: bool,
    /// Do not show minions that did not return in time.
    #[arg(long = "hide-timeout", overrides_with = "show_timeout")]
    pub(super) hide_timeout: bool,
    /// Show minions that did not return in time. This is the default.
    #[arg(long = "show-timeout")]
    pub(super) show_timeout: bool,
    /// Show the job's id.
    #[arg(long = "show-jid")]
    pub(super) show_jid: bool,
    /// Show the documentation of a function or of a module; of all functions if none is named.
    #[arg(short = 'd', long = "doc", alias = "documentation")]
    pub(super) doc: bool,
    /// What separates the arguments of each function in a call of several. Default: ','. For example: salt --args-separator=::
    /// '*' test.echo,test.echo a,b :: c
    #[arg(long = "args-separator", value_name = "ARGS_SEPARATOR", default_value = ",", hide_default_value = true)]
    pub(super) args_separator: String,
    /// Show how many minions were asked, returned and failed.
    #[arg(long)]
    pub(super) summary: bool,
    /// Data to keep with the job and its returns, as YAML: '{ticket: 7}'.
    #[arg(long, value_name = "METADATA")]
    pub(super) metadata: Option<String>,
    /// Have each minion fire salt/job/JID/start/ID before it runs the function.
    #[arg(long = "start-event")]
    pub(super) start_event: bool,
    /// Have the master pass the returns on to these returners as well, separated by commas.
    #[arg(long = "return", value_name = "RETURNER")]
    pub(super) returner: Option<String>,
    /// Which of a returner's configurations to use.
    #[arg(long = "return_config", alias = "return-config", value_name = "RETURNER_CONF")]
    pub(super) return_config: Option<String>,
    /// Options of the returner, as YAML: '{db: test}'.
    #[arg(long = "return_kwargs", alias = "return-kwargs", value_name = "RETURNER_KWARGS")]
    pub(super) return_kwargs: Option<String>,
    /// Print the master's configuration and end.
    #[arg(long = "config-dump")]
    pub(super) config_dump: bool,
    /// Salt's list of executors; a minion runs every job in its sandbox.
    #[arg(long = "module-executors", value_name = "EXECUTOR_LIST", hide = true)]
    pub(super) module_executors: Option<String>,
    /// Options for what runs the job, as YAML: {timeout: 5} ends it after 5 seconds. A minion's own limit may end it sooner.
    #[arg(long = "executor-opts", value_name = "EXECUTOR_OPTS")]
    pub(super) executor_opts: Option<String>,
    /// The target, the function and its arguments.
    #[arg(value_name = "ARGUMENTS", hide = true, allow_negative_numbers = true)]
    pub(super) words: Vec<String>,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// The target combines several kinds by 'and', 'or', 'not' and parentheses; a letter names a kind other than a glob:
    /// 'G@os:Debian and not web*'.
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
    /// The `tgt_type` that the options select.
    pub(super) fn tgt_type(&self) -> Result<&'static str, Failure> {
        self.target.tgt_type::<Self>(self.compound)
    }
}

/// The failure for a command line without a target or function: prints the help and the missing part (exit code 42).
pub(super) fn incomplete(what: &str) -> Failure {
    use clap::CommandFactory as _;
    crate::print::stdout(SaltArgs::command().render_help().to_string().trim_end());
    Failure::new(exit::OPTION, format!("\n{what}"))
}
