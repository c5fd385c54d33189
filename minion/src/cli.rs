//! The common part of the two programs' command lines.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use brine_protocol::commandline::output::stderr;
use brine_protocol::config::Config;
use brine_protocol::{commandline, exit, logging};
use clap::Parser;

/// Salt's folder of configuration files.
pub(crate) const CONF_DIR: &str = "/etc/salt";

/// Parses the command line.
///
/// # Errors
/// The exit code: success after help and version, Salt's code for misuse otherwise.
pub(crate) fn parse<T: Parser>(args: impl IntoIterator<Item = OsString>) -> Result<T, i32> {
    parse_all(args).map(|(parsed, _)| parsed)
}

/// As [`parse`], and returns the whole line, with what the Saltfile adds.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_all<T: Parser>(args: impl IntoIterator<Item = OsString>) -> Result<(T, Vec<OsString>), i32> {
    let read = commandline::read(T::command(), args);
    let parsed = read.and_then(|(mut matches, line)| Ok((T::from_arg_matches_mut(&mut matches)?, line)));
    parsed.map_err(|e| if commandline::explain_as_salt(T::command(), &e) { exit::USAGE } else { exit::OK })
}

/// Upper bound on the bytes of stdin.
const MAX_STDIN: u64 = 4 << 20;

/// As [`parse`]; if `wants` is true of the parsed line, the lines of stdin are further arguments (`--args-stdin`).
///
/// # Errors
/// As [`parse`], and the code for misuse when stdin is too long or cannot be read.
pub(crate) fn parse_with_stdin<T: Parser>(
    args: impl IntoIterator<Item = OsString>,
    wants: impl Fn(&T) -> bool,
) -> Result<T, i32> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let parsed = parse::<T>(args.clone())?;
    if !wants(&parsed) {
        return Ok(parsed);
    }
    let mut text = String::new();
    match std::io::stdin().take(MAX_STDIN + 1).read_to_string(&mut text) {
        Ok(length) if length as u64 <= MAX_STDIN => {}
        Ok(_) => {
            stderr("--args-stdin: more than 4 MiB");
            return Err(exit::USAGE);
        }
        Err(error) => {
            stderr(&format!("--args-stdin: {error}"));
            return Err(exit::USAGE);
        }
    }
    args.extend(text.lines().map(|line| OsString::from(line.trim_end_matches('\r'))));
    parse(args)
}

/// The folder of `-c`, which may also name the file in it.
pub(crate) fn conf_dir(given: Option<&Path>) -> PathBuf {
    let dir = given.unwrap_or(Path::new(CONF_DIR));
    if dir.is_file() { dir.parent().unwrap_or(Path::new("/")).to_owned() } else { dir.to_owned() }
}

/// Checks that the folder of `-c` exists: with a mistyped one, a minion would start under another identity.
///
/// # Errors
/// A sentence that names the folder.
pub(crate) fn check_conf_dir(given: Option<&Path>) -> Result<(), String> {
    match given {
        Some(dir) if !dir.exists() => {
            Err(format!("the configuration folder {} does not exist; name another with -c", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Starts logging by the command line and the configuration. If the log file cannot be written, the log goes to stderr alone and says
/// so.
///
/// # Errors
/// When a level is unknown.
pub(crate) fn start_log(
    config: &Config,
    level: Option<&str>,
    file: Option<(&Path, Option<&str>)>,
) -> Result<(), String> {
    let text = |key: &str| config.opt_str(key).ok().flatten();
    let level = level.map(str::to_owned).or_else(|| text("log_level")).unwrap_or_else(|| "warning".to_owned());
    let Some((path, file_level)) = file else { return logging::init(&level, None) };
    let file_level =
        file_level.map(str::to_owned).or_else(|| text("log_level_logfile")).unwrap_or_else(|| level.clone());
    logging::parse_level(&level)?;
    logging::parse_level(&file_level)?;
    logging::init(&level, Some((path, &file_level))).or_else(|e| {
        stderr(&format!("{e}; logging to the terminal only"));
        logging::init(&level, None)
    })
}
