//! The command line of `salt-call`.

use std::path::PathBuf;

use brine_protocol::exit;
use brine_protocol::output::Indent;
use brine_protocol::value::Value;
use clap::Parser;

/// Runs a function of a module on this minion.
#[derive(Debug, Parser)]
#[command(name = "salt-call", version = concat!(env!("CARGO_PKG_VERSION"), " (Brine)"), disable_version_flag = true)]
pub(super) struct Flags {
    /// Run as if there was no master.
    #[arg(long)]
    pub(super) local: bool,
    /// The folder of the configuration [default: /etc/salt].
    #[arg(short = 'c', long = "config-dir", value_name = "DIR")]
    pub(super) config_dir: Option<PathBuf>,
    /// What to log on the terminal: quiet, critical, error, warning, info, debug, trace.
    #[arg(short = 'l', long = "log-level", value_name = "LEVEL")]
    pub(super) log_level: Option<String>,
    /// The log file.
    #[arg(long = "log-file", value_name = "FILE")]
    pub(super) log_file: Option<PathBuf>,
    /// What to log to the file.
    #[arg(long = "log-file-level", value_name = "LEVEL")]
    pub(super) log_file_level: Option<String>,
    /// How to print: nested, json, txt, yaml, raw, pprint, quiet.
    #[arg(long = "out", alias = "output", value_name = "OUTPUTTER")]
    pub(super) out: Option<String>,
    /// Columns a level, for outputters that indent; negative for none.
    #[arg(long = "out-indent", alias = "output-indent", value_name = "COLUMNS", allow_negative_numbers = true)]
    pub(super) out_indent: Option<i64>,
    /// Never colour.
    #[arg(long, alias = "no-colour")]
    pub(super) no_color: bool,
    /// Colour, whatever the output is.
    #[arg(long, alias = "force-colour")]
    pub(super) force_color: bool,
    /// With --local: the folder of modules beside the standard ones, instead of those fetched from the master.
    #[arg(short = 'm', long = "module-dirs", value_name = "DIR")]
    pub(super) module_dir: Option<PathBuf>,
    /// The minion's id.
    #[arg(long)]
    pub(super) id: Option<String>,
    /// The master.
    #[arg(long)]
    pub(super) master: Option<String>,
    /// Print the grains.
    #[arg(short = 'g', long)]
    pub(super) grains: bool,
    /// Print the documentation of functions whose names begin so.
    #[arg(short = 'd', long, aliases = ["documentation"])]
    pub(super) doc: bool,
    /// End with the function's retcode.
    #[arg(long)]
    pub(super) retcode_passthrough: bool,
    /// Print what is known of the run beside its return.
    #[arg(long)]
    pub(super) metadata: bool,
    /// Do not tell the master.
    #[arg(long)]
    pub(super) no_return_event: bool,
    /// Take arguments as text.
    #[arg(long)]
    pub(super) no_parse: bool,
    /// Seconds to wait for the master to answer the authentication.
    #[arg(short = 't', long, value_name = "SECONDS")]
    pub(super) timeout: Option<u64>,
    /// The user to run as.
    #[arg(long = "priv", short = 'u', value_name = "USER")]
    pub(super) user: Option<String>,
    /// Print the version and end.
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: (),
    /// The function, as in test.ping.
    pub(super) function: Option<String>,
    /// Its arguments; name=value for keywords.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) arguments: Vec<String>,
}

impl Flags {
    /// What the parser cannot say.
    pub(super) fn check(&self) -> Result<(), String> {
        match &self.function {
            None if !self.grains && !self.doc => Err("a function is needed, or --grains or --doc; see --help".into()),
            Some(_) if self.grains => Err("-g/--grains does not accept any arguments".into()),
            Some(_) if self.doc && !self.arguments.is_empty() => {
                Err("You can only get documentation for one method at one time".into())
            }
            _ if self.module_dir.is_some() && !self.local => {
                Err("-m/--module-dirs goes with --local: otherwise modules come from the master".into())
            }
            _ => Ok(()),
        }
    }

    /// Settings that the command line overrules.
    pub(super) fn overrides(&self) -> Vec<(&'static str, Value)> {
        let mut set = Vec::new();
        if let Some(master) = &self.master {
            set.push(("master", Value::from(master.as_str())));
        }
        if let Some(seconds) = self.timeout {
            set.push(("auth_timeout", Value::from(seconds)));
            set.push(("auth_tries", Value::from(1)));
        }
        set
    }

    /// `--out-indent`
    pub(super) fn indent(&self) -> Indent {
        match self.out_indent {
            None => Indent::Unset,
            Some(n) if n < 0 => Indent::Null,
            Some(n) => Indent::Columns(n),
        }
    }

    /// 0 or 1, or the function's own code with `--retcode-passthrough`.
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
    fn options_stand_before_and_arguments_after_the_function() {
        let f = flags(&["--local", "--out=json", "test.echo", "text", "--looks=like", "-x", "a=1"]);
        assert!(f.local);
        assert_eq!(f.out.as_deref(), Some("json"));
        assert_eq!(f.function.as_deref(), Some("test.echo"));
        assert_eq!(f.arguments, ["text", "--looks=like", "-x", "a=1"]);
    }

    #[test]
    fn misuse_is_refused() {
        for words in [&[][..], &["-g", "test.ping"], &["-d", "test.ping", "x"], &["-m", "x", "test.ping"]] {
            assert!(flags(words).check().is_err(), "{words:?}");
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
