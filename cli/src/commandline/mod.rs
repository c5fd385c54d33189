//! Command lines of all of Brine's programs: parsing, shared options, and messages about wrong calls.
//!
//! - [`parse()`] and its variants parse a line, with the Saltfile's options, into a program's own type.
//! - [`complete_or_document`] serves completion and manual pages.
//! - [`misuse`] formats the message about a wrong call as Salt's programs do.

mod completion;
mod misuse;
mod saltfile;
mod versions;

pub use completion::{Candidates, Line, complete_or_document, user_cache};
pub use misuse::misuse;
pub use versions::VERSION;

use std::ffi::OsString;
use std::io::Read as _;
use std::path::PathBuf;

use brine_protocol::exit;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, Parser};

use crate::Failure;
use crate::print::{stderr, stdout};

/// Upper bound on the bytes of stdin that `--args-stdin` reads.
const MAX_STDIN: u64 = 4 << 20;

/// The id of the option for the report of versions.
const REPORT: &str = "versions_report";

/// Adds Salt's common options that the command does not define itself.
fn add_common_options(command: Command) -> Command {
    let version = Arg::new("version").long("version").action(ArgAction::Version).help("Print the version and end");
    let report = Arg::new(REPORT).short('V').long("versions-report").action(ArgAction::SetTrue);
    let report = report.help("Print the versions of this program and of what it is made of, and end");
    let saltfile = Arg::new(saltfile::OPTION).long("saltfile").value_name("SALTFILE");
    let saltfile = saltfile.value_parser(clap::value_parser!(PathBuf)).help(
        "Read further options from this file (YAML, by program). Default: $SALT_SALTFILE, ./Saltfile or ~/.salt/Saltfile",
    );
    let missing = |arg: &Arg| !command.get_arguments().any(|known| known.get_id() == arg.get_id());
    let missing: Vec<Arg> = [version, report, saltfile].into_iter().filter(missing).collect();
    command.disable_version_flag(true).args(missing.into_iter().map(|arg| arg.help_heading(None::<&str>)))
}

/// Reads a command line, beginning with the program's name, with the options of the Saltfile. Also returns the whole
/// line. `--versions-report` prints the report and ends the program.
///
/// # Errors
/// clap's error for a wrong line, `--help` and `--version`.
fn read(
    command: Command,
    args: impl IntoIterator<Item = OsString>,
) -> Result<(ArgMatches, Vec<OsString>), clap::Error> {
    let command = add_common_options(command);
    let mut args: Vec<OsString> = args.into_iter().collect();
    let matches = command.clone().try_get_matches_from(&args)?;
    if matches.get_flag(REPORT) {
        stdout(&versions::report());
        std::process::exit(exit::OK);
    }
    let added = saltfile::arguments(&command, &matches)
        .map_err(|why| clap::Error::raw(ErrorKind::Io, format_args!("{why}\n")))?;
    if added.is_empty() {
        return Ok((matches, args));
    }
    let at = args.len().min(1);
    args.splice(at..at, added);
    Ok((command.try_get_matches_from(&args)?, args))
}

/// Parses the arguments, beginning with the program's name.
///
/// # Errors
/// For help and version, code 0 after everything is printed; for a wrong call, code 64.
pub fn parse<T: Parser>(args: impl IntoIterator<Item = OsString>) -> Result<T, Failure> {
    parse_command(&T::command(), args).map(|(parsed, _)| parsed)
}

/// Parses as [`parse()`] does, with a command that need not be the derived one. Also returns the whole line with the
/// options of the Saltfile, with which a daemon starts itself again.
///
/// # Errors
/// As [`parse()`].
pub fn parse_command<T: FromArgMatches>(
    command: &Command,
    args: impl IntoIterator<Item = OsString>,
) -> Result<(T, Vec<OsString>), Failure> {
    let read = read(command.clone(), args);
    let parsed = read.and_then(|(mut matches, line)| Ok((T::from_arg_matches_mut(&mut matches)?, line)));
    parsed.map_err(|error| match error.use_stderr() {
        true => misuse::fail(command.clone(), &misuse::describe_error(&error)),
        false => {
            stdout(error.render().to_string().trim_end());
            Failure { message: None, code: exit::OK }
        }
    })
}

/// Parses as [`parse()`] does. If `wants` is true for the result (`--args-stdin`), the lines of stdin are further
/// arguments.
///
/// # Errors
/// As [`parse()`], and when stdin cannot be read.
pub fn parse_with_stdin<T: Parser>(
    args: impl IntoIterator<Item = OsString>,
    wants: impl Fn(&T) -> bool,
) -> Result<T, Failure> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let parsed = parse::<T>(args.clone())?;
    if !wants(&parsed) {
        return Ok(parsed);
    }
    let failed = |why: &str| misuse::<T>(&format!("--args-stdin: {why}"));
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_STDIN + 1).read_to_string(&mut text);
    let length = read.map_err(|error| failed(&error.to_string()))?;
    if length as u64 > MAX_STDIN {
        return Err(failed("more than 4 MiB"));
    }
    args.extend(text.lines().map(|line| OsString::from(line.trim_end_matches('\r'))));
    parse(args)
}

/// Prints clap's own text: help and version on stdout, an error on stderr. Returns whether the line was wrong.
pub fn explain(error: &clap::Error) -> bool {
    if error.use_stderr() {
        stderr(error.render().to_string().trim_end());
        return true;
    }
    let _ = error.print();
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn salt() -> Command {
        let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
        let config = Arg::new("config_dir").short('c').long("config-dir").value_name("CONFIG_DIR");
        let level = Arg::new("log_file_level").long("log-file-level").value_name("LOG_LEVEL_LOGFILE");
        Command::new("salt").version("1.2.3 (Brine)").args([
            config,
            level,
            flag("static"),
            Arg::new("words").num_args(0..),
        ])
    }

    fn words(args: &[&str]) -> Vec<OsString> {
        args.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_saltfile_sets_what_the_command_line_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let option = format!("--saltfile={}", path.display());
        let read_with = |text: &str, args: &[&str]| {
            std::fs::write(&path, text).unwrap();
            read(salt(), words(&[&["salt", &option], args].concat())).map_err(|e| e.to_string())
        };
        let text = "salt:\n  config_dir: /srv/test\n  log_level_logfile: debug\n  static: True\nsalt-key: {x: 1}\n";
        let (matches, line) = read_with(text, &["*", "test.ping"]).unwrap();
        assert_eq!(matches.get_one::<String>("config_dir").unwrap(), "/srv/test");
        assert_eq!(matches.get_one::<String>("log_file_level").unwrap(), "debug");
        assert!(matches.get_flag("static"));
        assert_eq!(line[line.len() - 2..], words(&["*", "test.ping"]));
        let (matches, _) = read_with(text, &["-c", "/other"]).unwrap();
        assert_eq!(matches.get_one::<String>("config_dir").unwrap(), "/other");
        assert!(!read_with("salt: {static: False}", &[]).unwrap().0.get_flag("static"));
        for text in ["", "salt-key: {x: 1}", "salt:"] {
            assert_eq!(read_with(text, &[]).unwrap().1.len(), 2, "{text}");
        }
        for (text, why) in [
            ("salt: {nonsense: 1}", "nonsense"),
            ("- a", "map"),
            ("a: [", "YAML"),
            ("salt: 7", "map"),
            // CVE-2025-62348
            ("salt: {config_dir: !!python/object/apply:os.system ['touch /tmp/x']}", "constructor"),
            ("salt: !include /etc/shadow", "constructor"),
        ] {
            let error = read_with(text, &[]).unwrap_err();
            assert!(error.contains(why) && error.contains("file"), "{text}: {error}");
        }
        std::fs::remove_file(&path).unwrap();
        let error = read(salt(), words(&["salt", &option])).unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{error}");
    }

    #[test]
    fn versions() {
        let error = read(salt(), words(&["salt", "--version"])).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::DisplayVersion, "salt 1.2.3 (Brine)\n"));
    }
}
