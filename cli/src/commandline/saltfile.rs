//! The Saltfile: options of a program that its user keeps in a file (`man salt`, `--saltfile`). It is YAML, by program:
//!
//! ```yaml
//! salt:
//!   config_dir: /srv/test/salt
//! ```
//!
//! It is searched as in Salt: `--saltfile`, `$SALT_SALTFILE`, `./Saltfile`, `~/.salt/Saltfile`. Unlike in Salt, a file
//! that the user did not name is read only if no other user may write it. Otherwise another user could control root's
//! `salt` in a folder of that user.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use brine_protocol::config::yaml;
use brine_protocol::value::{Value, ValueExt};

/// The id of the option that names the Saltfile.
pub(crate) const OPTION: &str = "saltfile";
/// Salt's environment variable that names the Saltfile.
const VARIABLE: &str = "SALT_SALTFILE";
/// Upper bound on the bytes of a Saltfile.
const BYTES_MAX: u64 = 1 << 20;

/// The Saltfile's options for this program that the command line did not set, as arguments to insert before the
/// program's own.
///
/// # Errors
/// One line, when a Saltfile cannot be used.
pub(crate) fn arguments(command: &Command, matches: &ArgMatches) -> Result<Vec<OsString>, String> {
    let Some((path, named)) = find(matches) else { return Ok(Vec::new()) };
    let text = read(&path, named).map_err(|why| format!("the Saltfile {} {why}", path.display()))?;
    let wrong = |why: &dyn std::fmt::Display| format!("the Saltfile {}: {why}", path.display());
    let all = yaml::load(&text).map_err(|error| wrong(&format_args!("it is not valid YAML: {error}")))?;
    if !all.truthy() {
        return Ok(Vec::new());
    }
    if all.entries().is_none() {
        return Err(wrong(&"it must be a map of programs to their options"));
    }
    let Some(own) = all.get(command.get_name()).filter(|own| own.truthy()) else { return Ok(Vec::new()) };
    let Some(own) = own.entries() else {
        return Err(wrong(&format_args!("{} must be a map of options", command.get_name())));
    };
    let mut arguments = Vec::new();
    for (key, value) in own {
        let key = key.python_str();
        let argument = argument(command, matches, &key, value).map_err(|why| wrong(&why))?;
        arguments.extend(argument);
    }
    Ok(arguments)
}

/// Finds the Saltfile, and whether the user named it. An empty name means none.
fn find(matches: &ArgMatches) -> Option<(PathBuf, bool)> {
    let option = matches.try_get_one::<PathBuf>(OPTION).ok().flatten().cloned();
    if let Some(named) = option.or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from)) {
        return (!named.as_os_str().is_empty()).then_some((named, true));
    }
    let here = std::env::current_dir().ok().map(|dir| dir.join("Saltfile"));
    let home = || std::env::home_dir().map(|dir| dir.join(".salt/Saltfile"));
    here.filter(|path| path.is_file()).or_else(|| home().filter(|path| path.is_file())).map(|path| (path, false))
}

fn read(path: &Path, named: bool) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let file = brine_files::open_named(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    let me = rustix::process::geteuid().as_raw();
    if !named && (meta.mode() & 0o022 != 0 || (meta.uid() != me && meta.uid() != 0)) {
        return Err(format!(
            "is not read, because others may write it (mode {:04o}, owner {}): chmod go-w and chown it, or name it with --saltfile",
            meta.mode() & 0o7777,
            meta.uid()
        ));
    }
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// Makes an argument of one option; none if the command line has the option, or if it is a flag that is off.
fn argument(command: &Command, matches: &ArgMatches, key: &str, value: &Value) -> Result<Option<OsString>, String> {
    // Salt's name of an option is often the name of its value: LOG_LEVEL_LOGFILE for --log-file-level.
    let is = |name: &str| name.replace('-', "_").eq_ignore_ascii_case(key);
    let found = command.get_arguments().filter(|arg| !arg.is_positional()).find(|arg| {
        is(arg.get_id().as_str())
            || arg.get_long_and_visible_aliases().into_iter().flatten().any(is)
            || arg.get_all_aliases().into_iter().flatten().any(is)
            || arg.get_action().takes_values() && arg.get_value_names().is_some_and(|names| names.iter().any(|n| is(n)))
    });
    let Some(arg) = found.filter(|arg| arg.get_id() != OPTION) else {
        return Err(format!("{} has no option {key:?}", command.get_name()));
    };
    let Some(long) = arg.get_long() else { return Err(format!("the option {key:?} cannot be set there")) };
    if matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
        return Ok(None);
    }
    let text = match value {
        Value::Map(_) => return Err(format!("the option {key:?} must be one value")),
        Value::Array(items) => items.iter().map(ValueExt::python_str).collect::<Vec<_>>().join(","),
        value => value.python_str(),
    };
    Ok(match arg.get_action().takes_values() {
        true => Some(format!("--{long}={text}").into()),
        false => value.truthy().then(|| format!("--{long}").into()),
    })
}
