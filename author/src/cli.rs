//! The command line.

use std::path::PathBuf;

use crate::lang::Lang;
use clap::{Args, Parser, Subcommand};

/// Makes, checks, tries and signs modules: WebAssembly components whose functions `salt` calls
#[derive(Debug, Parser)]
#[command(name = "salt-module", version = concat!(env!("CARGO_PKG_VERSION"), " (Brine)"), arg_required_else_help = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    New(New),
    Build(Build),
    Inspect(Inspect),
    Diff(Diff),
    Run(Run),
    Replay(Replay),
    Test(Test),
    Docs(Docs),
    Keygen(Keygen),
    Sign(Sign),
    Verify(Verify),
}

/// Lay down a module that builds, runs and passes its own test
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  salt-module new hello --lang rust\n  cd hello\n  salt-module build\n  \
    salt-module run hello.wasm world")]
pub(crate) struct New {
    /// The module: what comes before the dot in `salt '*' NAME.function`
    pub(crate) name: String,
    /// The language to write it in
    #[arg(short, long)]
    pub(crate) lang: Lang,
    /// With a state, for SLS files, beside the function
    #[arg(long)]
    pub(crate) state: bool,
    /// An engine of a master, which sees events, instead of functions for minions
    #[arg(long, conflicts_with = "state")]
    pub(crate) engine: bool,
    /// The folder to make [default: NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Build the module in a folder into a component, NAME.wasm, with its documentation inside
///
/// The language is known by what is in the folder: Cargo.toml (Rust), package.json (JavaScript), *.py (Python) or *.c (C), each with
/// the module's functions in wit/world.wit. What the language needs and is not here is installed, or said how to get.
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// The module's folder [default: this one]
    pub(crate) dir: Option<PathBuf>,
    /// The file to write [default: NAME.wasm in the module's folder]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The world, where the WIT has several; its name in snake_case is the module's
    #[arg(long)]
    pub(crate) world: Option<String>,
    /// Sign what was built with this secret key
    #[arg(long, value_name = "KEY")]
    pub(crate) sign: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) password: Password,
}

/// Say what a module is: its functions, what it asks for, what it costs, who signed it
///
/// For who did not write it: the file is read and compiled in the cage in which a minion does that, never by this program. Ends with
/// 1 where every minion would refuse it.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The module
    pub(crate) file: PathBuf,
    /// As JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not compile it to see what that costs
    #[arg(long)]
    pub(crate) no_compile: bool,
}

/// Say what changed between two versions of a module: functions, and what it asks for
///
/// Ends with 0 where the new one asks for the same or less, which minions take by themselves; with 1 where it asks for more, which
/// a minion's owner has to grant; with another code where they cannot be compared.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The version before
    pub(crate) old: PathBuf,
    /// The version after
    pub(crate) new: PathBuf,
    /// As JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Call a function or a state of a module once, in the sandbox of a minion and without a minion
///
/// The engine, the limits and the checks are a minion's. What the module asks for is granted by --grant, in the words of the
/// configuration; a refusal names the option that would allow it. Without FUNCTION it says which there are.
///
/// With --state, FUNCTION is a state, and the first of the arguments its name, as in `salt '*' state.single`. Ends with 1 where nothing
/// could be run, and with 2 where the state failed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  salt-module run hello.wasm world\n  salt-module run hello.wasm world name=Ada --out json\n  \
    salt-module run disk_report.wasm report / --grant disks --grant 'filesystem: {/srv: ro}'\n  \
    salt-module run hello.wasm world --limit 'memory: 16MiB' --usage\n  \
    salt-module run --state motd.wasm written /tmp/motd text=hi --grant 'changes: {/tmp: rw}' --test"
)]
pub(crate) struct Run {
    /// The module, NAME.wasm
    pub(crate) file: PathBuf,
    /// The function: `world`, or `hello.world` as `salt` calls it; with --state the state
    pub(crate) function: Option<String>,
    /// Its arguments as `salt` takes them: each is YAML, NAME=VALUE is a keyword. After `--` they may begin with a dash
    #[arg(allow_negative_numbers = true)]
    pub(crate) arguments: Vec<String>,
    /// Run a state of the module, and print its result as the outputter `highstate` does
    #[arg(long)]
    pub(crate) state: bool,
    /// Change nothing (`test=True`): say what the state would change, and the plan, which is what the host stopped
    #[arg(long, requires = "state")]
    pub(crate) test: bool,
    /// Grant something, as an entry under `sandbox: modules: NAME:` says it; may be given several times
    #[arg(short, long = "grant", value_name = "YAML")]
    pub(crate) grants: Vec<String>,
    /// Limit the call, as `sandbox: limits:` says it; may be given several times
    #[arg(long = "limit", value_name = "YAML")]
    pub(crate) limits: Vec<String>,
    /// How to print the return: nested, highstate, json, yaml, raw, txt…
    #[arg(long, value_name = "OUTPUTTER")]
    pub(crate) out: Option<String>,
    /// Say on standard error what the call used
    #[arg(long)]
    pub(crate) usage: bool,
    /// Put a recording of each call of the module into this folder, for `replay` and `test`; secrets in it are replaced by markers
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// What to log on standard error: warning, info, debug… [default: what the call does and writes to its log]
    #[arg(short, long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
}

/// Run a recorded call again from its recording, without the host: it returns the same, bit for bit
///
/// A minion keeps recordings in recordings/ of its cachedir, for modules with `record: on` in its configuration. With NEW.wasm, a
/// changed module runs, and what is said is the first place where it asks the host for something else. Ends with 0 where all is the
/// same, and with 1 where something differs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  salt-module replay 20261126120000000000-hello.world-1.recording\n  \
    salt-module replay 20261126120000000000-hello.world-1.recording hello.wasm")]
pub(crate) struct Replay {
    /// The recording
    pub(crate) file: PathBuf,
    /// The module to run [default: the recorded content, as NAME.wasm beside the recording or in this folder]
    #[arg(value_name = "NEW.wasm")]
    pub(crate) module: Option<PathBuf>,
    /// How to print the return: nested, json, yaml, raw, txt…
    #[arg(long, value_name = "OUTPUTTER")]
    pub(crate) out: Option<String>,
}

/// Run all recordings of a folder again: a module's tests
///
/// Each runs in the module that is here now, NAME.wasm in the folder of the recordings or in this one. Ends with 0 where each asks
/// and returns the same as in its recording, and with 1 otherwise.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  salt-module build\n  salt-module test recordings")]
pub(crate) struct Test {
    /// The folder of recordings, NAME.recording
    pub(crate) folder: PathBuf,
    /// A module that is elsewhere; may be given several times
    #[arg(short, long = "module", value_name = "NAME.wasm")]
    pub(crate) modules: Vec<PathBuf>,
}

/// Put the doc comments of the WIT into a component, where sys.doc finds them (`build` does it by itself)
#[derive(Debug, Args)]
pub(crate) struct Docs {
    /// The component
    pub(crate) file: PathBuf,
    /// A folder or file of WIT; may be given several times, dependencies first
    #[arg(long, required = true, value_name = "DIR")]
    pub(crate) wit: Vec<PathBuf>,
    /// The world that the component was built from; may be left out where the WIT has only one
    #[arg(long)]
    pub(crate) world: Option<String>,
    /// The file to write; may be the component itself
    #[arg(short, long)]
    pub(crate) output: PathBuf,
}

/// Make a pair of keys to sign modules with: PREFIX.key, which is secret, and PREFIX.pub, which minions are given
///
/// They are minisign's: `minisign -S -s PREFIX.key` signs with them too. Neither file is ever overwritten.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  salt-module keygen -o ops\n  salt-module sign deploy.wasm --key ops.key\n\n\
    On the minion, in its configuration:\n  sandbox:\n    modules:\n      \"*\": {signed_by: [ops.pub]}")]
pub(crate) struct Keygen {
    /// Where: PREFIX.key and PREFIX.pub
    #[arg(short, long = "output", value_name = "PREFIX", default_value = "module")]
    pub(crate) output: PathBuf,
    /// Protect the secret key by its file's mode (0600) only
    #[arg(long, conflicts_with_all = ["password_file", "password_env"])]
    pub(crate) no_password: bool,
    #[command(flatten)]
    pub(crate) password: Password,
}

/// Sign modules: FILE.wasm.minisig beside each, which goes into salt://_modules with it
///
/// Signed are the whole content, the name of the file, the time and the module's version. `minisign -V` checks it too.
#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// The modules, NAME.wasm
    #[arg(required = true, value_name = "FILE.wasm")]
    pub(crate) files: Vec<PathBuf>,
    /// The secret key, as `keygen` or `minisign -G` made it
    #[arg(short, long, value_name = "KEY")]
    pub(crate) key: PathBuf,
    /// Sign beside those who did already, instead of in their place
    #[arg(long)]
    pub(crate) add: bool,
    #[command(flatten)]
    pub(crate) password: Password,
}

/// How the password of a secret key is given; asked for otherwise.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Password {
    /// The file whose first line is the password of the secret key; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// The environment variable that holds the password of the secret key
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) password_env: Option<String>,
}

/// Say who signed a module, when, and which version; ends with 1 unless one of the keys did
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The module, NAME.wasm; its signature is NAME.wasm.minisig beside it
    #[arg(value_name = "FILE.wasm")]
    pub(crate) file: PathBuf,
    /// A public key: its file, or its line (RWQ…)
    #[arg(short, long = "key", required = true, value_name = "PUB", num_args = 1..)]
    pub(crate) keys: Vec<String>,
    /// How many of the keys have to have signed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) at_least: usize,
}
