//! Completion in bash, zsh and fish, and manual pages. Both are generated from a program's table of options.
//!
//! - `COMPLETE=bash salt` prints the script that a shell loads. The script then runs the program with clap's own
//!   protocol.
//! - `BRINE_MAN_PAGES=DIR salt` writes the manual pages into a folder; `make install` uses it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use brine_protocol::exit;
use clap::{Command, FromArgMatches};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::CompleteEnv;

use super::add_common_options;
use crate::print::stderr;

/// The variable that requests completion; its value names the shell.
const VARIABLE: &str = "COMPLETE";
/// The variable that requests the manual pages; its value names their folder.
const MAN_PAGES: &str = "BRINE_MAN_PAGES";
/// The variable in which shells pass the index of the word at the cursor. Without it, the last word counts.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";
/// Upper bound on candidates. A longer list is not useful.
const MAX_CANDIDATES: usize = 2_000;

/// The words before the cursor, beginning with the program's name, and the word at the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The words as the program would receive them.
    pub before: Vec<String>,
    /// The word so far, with its quotes.
    pub current: String,
}

impl Line {
    /// Reads a shell's arguments: `program -- words…`. None if the shell requests the script.
    fn new(args: impl IntoIterator<Item = OsString>, index: Option<usize>) -> Option<Self> {
        let text = |word: OsString| word.to_string_lossy().into_owned();
        let mut words: Vec<String> = args.into_iter().skip_while(|word| word != "--").skip(1).map(text).collect();
        let at = index.unwrap_or(words.len().checked_sub(1)?);
        words.truncate(at + 1);
        let current = if words.len() > at { words.pop()? } else { String::new() };
        Some(Self { before: words.iter().map(|word| unquote(word)).collect(), current })
    }

    /// Parses the options and words before the cursor with the program's own parser, as far as they are valid.
    pub fn parse<T: FromArgMatches>(&self, command: &Command) -> Option<T> {
        let matches = command.clone().ignore_errors(true).try_get_matches_from(&self.before).ok()?;
        T::from_arg_matches(&matches).ok()
    }
}

/// Removes the quotes of a word. Bash passes words with their quotes.
fn unquote(word: &str) -> String {
    match shlex::split(word).as_deref() {
        Some([one]) => one.clone(),
        _ => word.to_owned(),
    }
}

/// Finds the candidates for the cursor, from the command and the line so far.
pub type Candidates = fn(&Command, &Line) -> Vec<String>;

/// Answers a shell that requests completion, or an installer that requests manual pages, and then ends the program.
/// Returns at once if neither is requested. `values` maps ids of arguments to the candidates for their values.
pub fn complete_or_document(command: &Command, values: &[(&str, Candidates)]) {
    // `salt-module` has subcommands and does not share the common options.
    let command = &if command.has_subcommands() { command.clone() } else { add_common_options(command.clone()) };
    if let Some(dir) = std::env::var_os(MAN_PAGES) {
        let code = match clap_mangen::generate_to(command.clone(), &dir) {
            Ok(()) => exit::OK,
            Err(error) => {
                stderr(&format!("the manual pages cannot be written to {}: {error}", dir.display()));
                exit::CANT_CREATE
            }
        };
        std::process::exit(code);
    }
    if std::env::var_os(VARIABLE).is_none_or(|shell| shell.is_empty() || shell == "0") {
        return;
    }
    let index = std::env::var(INDEX).ok().and_then(|index| index.parse().ok());
    let line = Line::new(std::env::args_os(), index).unwrap_or_default();
    CompleteEnv::with_factory(|| prepare(command.clone(), values, &line)).complete();
}

/// Prepares the command for completion: attaches completers, and hides options unless the word at the cursor begins
/// one.
fn prepare(command: Command, values: &[(&str, Candidates)], line: &Line) -> Command {
    let original = command.clone();
    // Options are offered only if the word begins with `-`: there are dozens of them, and other words are more likely.
    let options = line.current.starts_with('-');
    // clap adds its own help and version options to a program that has none.
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
        found.retain(|name| name.starts_with(current.as_ref()) && name.chars().all(is_plain));
        found.sort();
        found.dedup();
        found.truncate(MAX_CANDIDATES);
        found.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// Whether a candidate may contain this character. Shells insert candidates into the command line, and names come from
/// other hosts.
fn is_plain(c: char) -> bool {
    (c.is_alphanumeric() && !brine_protocol::text::is_active(c)) || "._-,:@=/+".contains(c)
}

/// The user's cache folder, `${XDG_CACHE_HOME:-~/.cache}/brine`.
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
