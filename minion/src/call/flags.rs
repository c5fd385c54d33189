//! The command line of `salt-call`.

use std::path::PathBuf;

use brine_cli::commandline::VERSION;
use brine_cli::print::OutputArgs;
use brine_protocol::args::yamlify;
use brine_protocol::config::settings;
use brine_protocol::exit;
use brine_protocol::value::{Value, list, map};
use clap::{Args, Parser};

/// Runs a function of a module on this host, in a sandbox, and prints what it returns
#[derive(Debug, Parser)]
#[command(
    name = "salt-call",
    version = VERSION,
    override_usage = "salt-call [options] <function> [arguments]",
    disable_version_flag = true,
    infer_long_args = true,
    args_override_self = true
)]
pub(super) struct Flags {
    /// Ask no master: modules come from the package and from --module-dirs, files and pillar from this host.
    #[arg(long)]
    pub(super) local: bool,
    /// The folder with the configuration. Default: /etc/salt.
    #[arg(short = 'c', long = "config-dir", value_name = "CONFIG_DIR")]
    pub(super) config_dir: Option<PathBuf>,
    /// What to log to stderr: quiet, critical, error, warning, info, debug or trace. Default: the setting log_level.
    #[arg(short = 'l', long = "log-level", value_name = "LOG_LEVEL")]
    pub(super) log_level: Option<String>,
    /// Also log to this file.
    #[arg(long = "log-file", value_name = "LOG_FILE")]
    pub(super) log_file: Option<PathBuf>,
    /// What to log to that file. Default: the setting log_level_logfile.
    #[arg(long = "log-file-level", value_name = "LOG_LEVEL_LOGFILE")]
    pub(super) log_file_level: Option<String>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// With --local: the folder of modules to use beside the standard ones.
    #[arg(short = 'm', long = "module-dirs", value_name = "MODULE_DIR")]
    pub(super) module_dir: Option<PathBuf>,
    /// With --local: the folder of the environment base. Default: the setting file_roots.
    #[arg(long, value_name = "FILE_ROOT")]
    file_root: Option<PathBuf>,
    /// With --local: the folder of the pillar's environment base. Default: the setting pillar_roots.
    #[arg(long, value_name = "PILLAR_ROOT")]
    pillar_root: Option<PathBuf>,
    /// Use this minion id. Default: the setting id.
    #[arg(long)]
    pub(super) id: Option<String>,
    /// Use this master, which must have accepted the minion's key. Default: the setting master.
    #[arg(long)]
    pub(super) master: Option<String>,
    /// Use this folder for the minion's cache. Default: the setting cachedir.
    #[arg(long, value_name = "CACHEDIR")]
    cachedir: Option<PathBuf>,
    /// Print the grains of this host.
    #[arg(short = 'g', long)]
    pub(super) grains: bool,
    /// With --grains: those of the host alone, without modules and so without a sandbox. The master asks so.
    #[arg(long = "host-grains", hide = true)]
    pub(super) host_grains: bool,
    /// Somebody else than who starts this asked for the call: what only the owner of the host may do, it may not. The master's runner
    /// `salt.cmd` asks so.
    #[arg(long = "for-others", hide = true)]
    pub(super) for_others: bool,
    /// Do not collect grains.
    #[arg(long = "skip-grains")]
    skip_grains: bool,
    /// Changes nothing: the grains are collected anew with every call.
    #[arg(long = "refresh-grains-cache")]
    _refresh_grains_cache: bool,
    /// Show the documentation of functions whose names begin so; of all functions if none is named.
    #[arg(short = 'd', long, aliases = ["documentation"])]
    pub(super) doc: bool,
    /// End with the function's own return code instead of 0 or 1.
    #[arg(long)]
    pub(super) retcode_passthrough: bool,
    /// Print the return with its jid, return code and what the call used.
    #[arg(long, overrides_with = "metadata")]
    pub(super) metadata: bool,
    /// Data to keep with the job, as YAML: '{ticket: 7}'.
    #[arg(long = "set-metadata", value_name = "METADATA")]
    set_metadata: Option<String>,
    /// Do not send the return to the master.
    #[arg(long)]
    pub(super) no_return_event: bool,
    /// Also give the return to these returners, modules of this host: local,http.
    #[arg(long = "return", value_name = "RETURNER")]
    pub(super) returner: Option<String>,
    /// Keep the values of these keyword arguments as text, for example --no-parse=a,b for a=1 b=2.
    #[arg(long = "no-parse", value_name = "argname1,argname2,...", value_delimiter = ',')]
    pub(super) no_parse: Vec<String>,
    /// Read further options and arguments from stdin, one a line.
    #[arg(long = "args-stdin")]
    pub(super) args_stdin: bool,
    /// Options for what runs the call, as YAML: {timeout: 5} ends it after 5 seconds. The configuration's own limit may end it
    /// sooner.
    #[arg(long = "executor-opts", value_name = "EXECUTOR_OPTS")]
    executor_opts: Option<String>,
    /// Seconds that the master has to authenticate this minion. Default: the setting auth_timeout.
    #[arg(short = 't', long, value_name = "AUTH_TIMEOUT")]
    pub(super) timeout: Option<u64>,
    /// Run as this user. Only root can change to another user.
    #[arg(long = "priv", short = 'u', value_name = "USER")]
    pub(super) user: Option<String>,
    /// Changes nothing: errors are always told as they are.
    #[arg(long = "hard-crash", hide = true)]
    _hard_crash: bool,
    #[command(flatten)]
    refused: Refused,
    /// The function, as in test.ping.
    pub(super) function: Option<String>,
    /// Its arguments; name=value for keywords.
    pub(super) arguments: Vec<String>,
}

/// Salt's options that are not offered, so that who gives one hears why.
#[derive(Debug, Args)]
struct Refused {
    #[arg(long, hide = true)]
    states_dir: Option<String>,
    #[arg(long, hide = true)]
    module_executors: Option<String>,
    #[arg(long, hide = true)]
    proxyid: Option<String>,
    #[arg(short = 'r', long, hide = true)]
    resources: bool,
    #[arg(long, hide = true)]
    tgt: Option<String>,
    #[arg(long, hide = true)]
    tgt_type: Option<String>,
    #[arg(long, hide = true)]
    profiling_path: Option<String>,
    #[arg(long, hide = true)]
    enable_profiling: bool,
}

impl Refused {
    /// Returns the refused option that was given, and the reason.
    fn find_given(&self) -> Option<(&'static str, &'static str)> {
        let profiling = "what a call used is told by --metadata";
        let resources = "a minion here has no resources";
        let all = [
            (self.states_dir.is_some(), "--states-dir", "states are in modules; a folder of modules: -m"),
            (self.module_executors.is_some(), "--module-executors", "every call is run by the sandbox"),
            (self.proxyid.is_some(), "--proxyid", "there are no proxy minions"),
            (self.resources, "--resources", resources),
            (self.tgt.is_some(), "--tgt", resources),
            (self.tgt_type.is_some(), "--tgt-type", resources),
            (self.profiling_path.is_some(), "--profiling-path", profiling),
            (self.enable_profiling, "--enable-profiling", profiling),
        ];
        all.into_iter().find(|(given, ..)| *given).map(|(_, option, why)| (option, why))
    }
}

impl Flags {
    /// Checks combinations of options that the parser cannot check.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some((option, why)) = self.refused.find_given() {
            return Err(format!("{option} is not offered: {why}"));
        }
        match &self.function {
            None if !self.grains && !self.doc => Err("a function is needed, or --grains or --doc; see --help".into()),
            Some(_) if self.grains => Err("-g/--grains does not accept any arguments".into()),
            Some(_) if self.doc && !self.arguments.is_empty() => {
                Err("You can only get documentation for one method at one time".into())
            }
            _ if self.module_dir.is_some() && !self.local => {
                Err("-m/--module-dirs goes with --local: otherwise modules come from the master".into())
            }
            _ if self.file_root.is_some() && !self.local => {
                Err("--file-root goes with --local: otherwise files come from the master".into())
            }
            _ if self.pillar_root.is_some() && !self.local => {
                Err("--pillar-root goes with --local: otherwise the pillar comes from the master".into())
            }
            _ => Ok(()),
        }
    }

    /// The settings that the command line overrides.
    pub(super) fn overrides(&self) -> Vec<(&'static str, Value)> {
        let mut set = Vec::new();
        if let Some(master) = &self.master {
            set.push((settings::MASTER.row.name, Value::from(master.as_str())));
        }
        if let Some(seconds) = self.timeout {
            set.push((settings::AUTH_TIMEOUT.row.name, Value::from(seconds)));
            set.push((settings::AUTH_TRIES.row.name, Value::from(1)));
        }
        let absolute = |dir: &PathBuf| {
            let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
            Value::from(dir.to_string_lossy().into_owned())
        };
        if let Some(dir) = &self.cachedir {
            set.push((settings::CACHEDIR.row.name, absolute(dir)));
        }
        let roots =
            [(&self.file_root, settings::FILE_ROOTS.row.name), (&self.pillar_root, settings::PILLAR_ROOTS.row.name)];
        for (dir, name) in roots {
            if let Some(dir) = dir {
                set.push((name, map([("base", list([absolute(dir)]))])));
            }
        }
        if self.skip_grains {
            set.push((crate::grains::SKIP, Value::from(true)));
        }
        set
    }

    /// The job's options: `metadata`, which is stored with the job, and `executor_opts`, which limit its run.
    pub(super) fn job_options(&self) -> Vec<(&'static str, Value)> {
        let said = [("metadata", &self.set_metadata), ("executor_opts", &self.executor_opts)];
        said.into_iter().filter_map(|(name, text)| Some((name, yamlify(text.as_deref()?)))).collect()
    }

    /// Returns the exit code: 0 or 1, or the function's own code with `--retcode-passthrough`.
    pub(super) fn exit_code(&self, retcode: i64) -> i32 {
        match (self.retcode_passthrough, retcode) {
            (true, code) => i32::try_from(code).unwrap_or(exit::GENERIC),
            (false, 0) => exit::OK,
            (false, _) => exit::GENERIC,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &[&str]) -> Flags {
        Flags::try_parse_from(std::iter::once(&"salt-call").chain(words)).unwrap()
    }

    #[test]
    fn options_stand_anywhere_before_two_dashes() {
        let f = flags(&["--local", "test.echo", "text", "--out=json", "a=1", "--", "--looks=like", "-x"]);
        assert!(f.local);
        assert_eq!(f.output.output.as_deref(), Some("json"));
        assert_eq!(f.function.as_deref(), Some("test.echo"));
        assert_eq!(f.arguments, ["text", "a=1", "--looks=like", "-x"]);
        assert!(Flags::try_parse_from(["salt-call", "test.echo", "--looks=like"]).is_err());
    }

    #[test]
    fn misuse_is_refused() {
        let with_local = [
            &["-m", "x", "test.ping"][..],
            &["--file-root=/srv", "test.ping"],
            &["--pillar-root", "/srv", "test.ping"],
        ];
        for words in [&[][..], &["-g", "test.ping"], &["-d", "test.ping", "x"]].into_iter().chain(with_local) {
            assert!(flags(words).check().is_err(), "{words:?}");
        }
        let refused: [&[&str]; 8] = [
            &["--states-dir=/srv"],
            &["--module-executors=[sudo]"],
            &["--proxyid=x"],
            &["-r"],
            &["--tgt=x"],
            &["--tgt-type=glob"],
            &["--profiling-path=/tmp"],
            &["--enable-profiling"],
        ];
        for words in refused {
            let option = words[0].split('=').next().unwrap();
            let why = flags(&[words, &["test.ping"]].concat()).check().unwrap_err();
            assert!(why.contains(if option == "-r" { "--resources" } else { option }), "{why}");
        }
        for words in [&["test.ping"][..], &["-g"], &["-d"], &["-d", "test"]] {
            assert!(flags(words).check().is_ok(), "{words:?}");
        }
    }

    #[test]
    fn exit_codes() {
        assert_eq!(flags(&["a.b"]).exit_code(0), 0);
        assert_eq!(flags(&["a.b"]).exit_code(42), 1);
        assert_eq!(flags(&["--retcode-passthrough", "a.b"]).exit_code(42), 42);
    }
}
