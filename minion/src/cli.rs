//! What the two programs' command lines have in common.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use brine_protocol::commandline::output::stderr;
use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::{commandline, exit, logging};
use clap::Parser;

/// Salt's folder of configuration files.
pub(crate) const CONF_DIR: &str = "/etc/salt";

/// Reads the command line. Help and version end well, everything else with Salt's code for misuse.
pub(crate) fn parse<T: Parser>(args: impl IntoIterator<Item = OsString>) -> Result<T, i32> {
    parse_all(args).map(|(parsed, _)| parsed)
}

/// As [`parse`], with the whole line that was read: what the Saltfile has is in it.
pub(crate) fn parse_all<T: Parser>(args: impl IntoIterator<Item = OsString>) -> Result<(T, Vec<OsString>), i32> {
    let read = commandline::read(T::command(), args);
    let parsed = read.and_then(|(mut matches, line)| Ok((T::from_arg_matches_mut(&mut matches)?, line)));
    parsed.map_err(|e| if commandline::explain_as_salt(T::command(), &e) { exit::USAGE } else { exit::OK })
}

/// The most that is read of stdin.
const MAX_STDIN: u64 = 4 << 20;

/// As [`parse`]; where `wants` says so of what was parsed, the lines of stdin are further arguments (`--args-stdin`).
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

/// The folder of `-c` must be there: with a mistyped one, a minion would start as somebody else.
pub(crate) fn check_conf_dir(given: Option<&Path>) -> Result<(), String> {
    match given {
        Some(dir) if !dir.exists() => {
            Err(format!("the configuration folder {} does not exist; name another with -c", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Starts logging as the command line and the configuration say. A log file that cannot be written is said and left out:
/// the log is on stderr as well.
pub(crate) fn start_log(
    config: &Config,
    level: Option<&str>,
    file: Option<(&Path, Option<&str>)>,
) -> Result<(), String> {
    let wrong = |error: ConfigError| error.to_string();
    let level = level.map_or_else(|| config.get(settings::LOG_LEVEL), |level| Ok(level.to_owned())).map_err(wrong)?;
    let Some((path, file_level)) = file else { return logging::init(&level, None) };
    let configured = config.find(settings::LOG_LEVEL_LOGFILE).map_err(wrong)?;
    let file_level = file_level.map(str::to_owned).or(configured).unwrap_or_else(|| level.clone());
    logging::parse_level(&level)?;
    logging::parse_level(&file_level)?;
    logging::init(&level, Some((path, &file_level))).or_else(|e| {
        stderr(&format!("{e}; logging to the terminal only"));
        logging::init(&level, None)
    })
}
