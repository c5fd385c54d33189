//! What a program's table of options gives beside parsing and `--help`.
//!
//! - Completion in bash, zsh and fish: `COMPLETE=bash salt` prints the script that a shell loads, which then asks the program itself,
//!   by clap's own protocol.
//! - Manual pages: `BRINE_MAN_PAGES=DIR salt` writes them into a folder, for who installs.
//! - What all of Salt's programs have: `--version`, `--versions-report`, the Saltfile ([`read`]).
//!
//! [`output`] is what the commands that print have in common, [`wrong()`] what is said of wrong calls.

pub mod output;
mod wrong;

pub use wrong::{explained, words, wrong};

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::CompleteEnv;

/// What asks for completion, and in the words of which shell.
const VARIABLE: &str = "COMPLETE";
/// What asks for the manual pages, with their folder.
const MAN_PAGES: &str = "BRINE_MAN_PAGES";
/// Where shells say which word the cursor is in; the last one otherwise.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";
/// More than anybody looks through.
const MAX_CANDIDATES: usize = 2_000;

/// The words before the cursor, the program's name first, and the one that is being written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// As the program would get them.
    pub before: Vec<String>,
    /// As it was written so far, with its quotes.
    pub current: String,
}

impl Line {
    /// From what a shell hands over: `program -- words…`. None where it asks for the script.
    fn new(args: impl IntoIterator<Item = OsString>, index: Option<usize>) -> Option<Self> {
        let text = |word: OsString| word.to_string_lossy().into_owned();
        let mut words: Vec<String> = args.into_iter().skip_while(|word| word != "--").skip(1).map(text).collect();
        let at = index.unwrap_or(words.len().checked_sub(1)?);
        words.truncate(at + 1);
        let current = if words.len() > at { words.pop()? } else { String::new() };
        Some(Self { before: words.iter().map(|word| unquoted(word)).collect(), current })
    }

    /// The options and words before the cursor as the program's own parser has them, as far as they make sense.
    pub fn parse<T: FromArgMatches>(&self, command: &Command) -> Option<T> {
        let matches = command.clone().ignore_errors(true).try_get_matches_from(&self.before).ok()?;
        T::from_arg_matches(&matches).ok()
    }
}

/// A word without its quotes. Bash hands them over as they were written.
fn unquoted(word: &str) -> String {
    match shlex::split(word).as_deref() {
        Some([one]) => one.clone(),
        _ => word.to_owned(),
    }
}

/// The id of the option that asks for the report of versions.
const REPORT: &str = "versions_report";

/// A program's command with the options that all of Salt's programs have, where it has them not itself.
pub fn common(command: Command) -> Command {
    let version = Arg::new("version").long("version").action(ArgAction::Version).help("Print the version and end");
    let report = Arg::new(REPORT).short('V').long("versions-report").action(ArgAction::SetTrue);
    let report = report.help("Print the versions of this program and of what it is made of, and end");
    let saltfile = Arg::new(crate::saltfile::OPTION).long("saltfile").value_name("SALTFILE");
    let saltfile = saltfile.value_parser(clap::value_parser!(PathBuf)).help(
        "The path to a Saltfile. If not passed, one will be searched for in the current working directory and in ~/.salt",
    );
    let missing = |arg: &Arg| !command.get_arguments().any(|known| known.get_id() == arg.get_id());
    let missing: Vec<Arg> = [version, report, saltfile].into_iter().filter(missing).collect();
    command.disable_version_flag(true).args(missing.into_iter().map(|arg| arg.help_heading(None::<&str>)))
}

/// Reads a command line, its program's name first, with what the Saltfile adds to it. The second is that whole line, for who starts
/// the program again. Prints the report of versions and ends the program where that is asked for.
///
/// # Errors
/// What clap says of a wrong line, of `--help` and of `--version`.
pub fn read(
    command: Command,
    args: impl IntoIterator<Item = OsString>,
) -> Result<(ArgMatches, Vec<OsString>), clap::Error> {
    let command = common(command);
    let mut args: Vec<OsString> = args.into_iter().collect();
    let matches = command.clone().try_get_matches_from(&args)?;
    if matches.get_flag(REPORT) {
        output::stdout(&crate::versions::report());
        std::process::exit(crate::exit::OK);
    }
    let added = crate::saltfile::arguments(&command, &matches)
        .map_err(|why| clap::Error::raw(ErrorKind::Io, format_args!("{why}\n")))?;
    if added.is_empty() {
        return Ok((matches, args));
    }
    let at = args.len().min(1);
    args.splice(at..at, added);
    Ok((command.try_get_matches_from(&args)?, args))
}

/// Says what clap has to say: help and version on stdout, of a wrong line on stderr, which repeats what was typed. Returns whether
/// the line was wrong.
pub fn explain(error: &clap::Error) -> bool {
    if error.use_stderr() {
        output::stderr(error.render().to_string().trim_end());
        return true;
    }
    let _ = error.print();
    false
}

/// [`explain`], with a wrong line told as Salt's programs tell it: the usage, and the words of Python's optparse.
pub fn explain_as_salt(command: Command, error: &clap::Error) -> bool {
    let Some(text) = explained(command, error) else { return explain(error) };
    output::stderr(&text);
    true
}

/// What could stand at the cursor, by the command as it is and the line.
pub type Candidates = fn(&Command, &Line) -> Vec<String>;

/// Answers a shell that completes, or who asks for the manual pages, and ends the program; returns at once where nobody asks. `values` are the ids of arguments
/// with what their values could be.
pub fn answer(command: &Command, values: &[(&str, Candidates)]) {
    // An author's program has options of its own kind.
    let command = &if command.has_subcommands() { command.clone() } else { common(command.clone()) };
    if let Some(dir) = std::env::var_os(MAN_PAGES) {
        let code = match clap_mangen::generate_to(command.clone(), &dir) {
            Ok(()) => crate::exit::OK,
            Err(error) => {
                output::stderr(&format!("the manual pages cannot be written to {}: {error}", dir.display()));
                crate::exit::CANT_CREATE
            }
        };
        std::process::exit(code);
    }
    if std::env::var_os(VARIABLE).is_none_or(|shell| shell.is_empty() || shell == "0") {
        return;
    }
    let index = std::env::var(INDEX).ok().and_then(|index| index.parse().ok());
    let line = Line::new(std::env::args_os(), index).unwrap_or_default();
    CompleteEnv::with_factory(|| offering(command.clone(), values, &line)).complete();
}

/// The command with what completion needs of it.
fn offering(command: Command, values: &[(&str, Candidates)], line: &Line) -> Command {
    let original = command.clone();
    // Options only where one is begun: there are dozens, and the words come first.
    let options = line.current.starts_with('-');
    // clap adds them of itself, where a program has none of its own.
    let command = match options {
        true => command,
        false => command.disable_help_flag(true).disable_version_flag(true),
    };
    command.mut_args(|arg| {
        let hidden = arg.is_hide_set() || !options;
        match values.iter().find(|(id, _)| arg.get_id() == id) {
            Some((_, candidates)) => {
                let completer = completer(original.clone(), *candidates, line.clone());
                let hidden = hidden && !arg.is_positional();
                arg.hide(hidden).add(completer)
            }
            None => arg.hide(hidden),
        }
    })
}

fn completer(command: Command, candidates: Candidates, line: Line) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy();
        let mut found = candidates(&command, &line);
        found.retain(|name| name.starts_with(current.as_ref()) && name.chars().all(plain));
        found.sort();
        found.dedup();
        found.truncate(MAX_CANDIDATES);
        found.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// What a name may have in it that a shell puts into a command line: names come from other hosts.
fn plain(c: char) -> bool {
    (c.is_alphanumeric() && !brine_text::is_active(c)) || "._-,:@=/+".contains(c)
}

/// The user's folder for what can be made again, `${XDG_CACHE_HOME:-~/.cache}/brine`.
#[must_use]
pub fn user_cache() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("brine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str, index: Option<usize>) -> Option<Line> {
        Line::new(words.split(' ').map(OsString::from), index)
    }

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

    #[test]
    fn words_up_to_the_cursor() {
        let before = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(line("salt", None), None, "the script is asked for");
        let whole = line("/bin/salt -- salt '*' test.p", None).unwrap();
        assert_eq!(whole, Line { before: before(&["salt", "*"]), current: "test.p".into() });
        let middle = line("salt -- salt web\\* te x y", Some(2)).unwrap();
        assert_eq!(middle, Line { before: before(&["salt", "web*"]), current: "te".into() });
        let after = line("salt -- salt \"a*\"", Some(2)).unwrap();
        assert_eq!(after, Line { before: before(&["salt", "a*"]), current: String::new() });
    }
}
