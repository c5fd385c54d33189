//! `file.grep`: its options and output.

use std::collections::VecDeque;

use brine_guest::{Value, path};
use regex_lite::Regex;

use crate::look::pattern::{self, Flags};
use crate::look::{fs, glob, lines};

/// Upper bound on the bytes of the output; the minion's bound on a job's return is lower.
const MAX_OUTPUT: usize = 16 * 1024 * 1024;
/// Upper bound on nested directories.
const MAX_DEPTH: usize = 64;

/// The options of grep.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    ignore_case: bool,
    invert: bool,
    count: bool,
    number: bool,
    with_match: bool,
    without_match: bool,
    only_matching: bool,
    word: bool,
    line: bool,
    extended: bool,
    fixed: bool,
    quiet: bool,
    silent: bool,
    names: Option<bool>,
    text: bool,
    recursive: bool,
    most: Option<u64>,
    after: usize,
    before: usize,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let Some(letters) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                return Err(format!("{arg} is no option of grep; one pattern and one path are taken"));
            };
            if let Some(long) = letters.strip_prefix('-') {
                if !long.is_empty() {
                    options.long(long)?;
                }
                continue;
            }
            for (at, letter) in letters.char_indices() {
                if !matches!(letter, 'm' | 'A' | 'B' | 'C') {
                    options.flag(letter)?;
                    continue;
                }
                let attached = &letters[at + 1..];
                let number = if attached.is_empty() { args.next().map(String::as_str) } else { Some(attached) };
                options.number(letter, number.unwrap_or_default())?;
                break;
            }
        }
        Ok(options)
    }

    fn flag(&mut self, letter: char) -> Result<(), String> {
        let flag = match letter {
            'i' | 'y' => &mut self.ignore_case,
            'v' => &mut self.invert,
            'c' => &mut self.count,
            'n' => &mut self.number,
            'l' => &mut self.with_match,
            'L' => &mut self.without_match,
            'o' => &mut self.only_matching,
            'w' => &mut self.word,
            'x' => &mut self.line,
            'E' => &mut self.extended,
            'F' => &mut self.fixed,
            'q' => &mut self.quiet,
            's' => &mut self.silent,
            'a' => &mut self.text,
            'r' => &mut self.recursive,
            'h' | 'H' => {
                self.names = Some(letter == 'H');
                return Ok(());
            }
            'G' => return Ok(()),
            _ => return Err(format!("file.grep runs no grep, and does not know its option -{letter}")),
        };
        *flag = true;
        Ok(())
    }

    fn number(&mut self, letter: char, text: &str) -> Result<(), String> {
        let number: usize = text.parse().map_err(|_| format!("-{letter} takes a number, not {text:?}"))?;
        match letter {
            'm' => self.most = Some(number as u64),
            'A' => self.after = number,
            'B' => self.before = number,
            _ => (self.after, self.before) = (number, number),
        }
        Ok(())
    }

    fn long(&mut self, name: &str) -> Result<(), String> {
        let letter = match name.split_once('=') {
            Some(("max-count", number)) => return self.number('m', number),
            Some(("after-context", number)) => return self.number('A', number),
            Some(("before-context", number)) => return self.number('B', number),
            Some(("context", number)) => return self.number('C', number),
            Some(("color" | "colour", _)) => return Ok(()),
            _ => match name {
                "ignore-case" => 'i',
                "invert-match" => 'v',
                "count" => 'c',
                "line-number" => 'n',
                "files-with-matches" => 'l',
                "files-without-match" => 'L',
                "only-matching" => 'o',
                "word-regexp" => 'w',
                "line-regexp" => 'x',
                "extended-regexp" => 'E',
                "fixed-strings" => 'F',
                "basic-regexp" => 'G',
                "quiet" | "silent" => 'q',
                "no-messages" => 's',
                "text" => 'a',
                "recursive" => 'r',
                "no-filename" => 'h',
                "with-filename" => 'H',
                _ => return Err(format!("file.grep runs no grep, and does not know its option --{name}")),
            },
        };
        self.flag(letter)
    }

    /// Whether it prints names or counts and no lines.
    const fn lists_files(&self) -> bool {
        self.count || self.with_match || self.without_match || self.quiet
    }

    fn regex(&self, text: &str) -> Result<Regex, String> {
        // Each line of the text is a pattern.
        let one = |line: &str| {
            let pattern = if self.fixed {
                Ok(pattern::fixed(line))
            } else if self.extended {
                pattern::extended(line)
            } else {
                pattern::basic(line)
            };
            Ok::<_, String>(format!("(?:{})", pattern?))
        };
        let mut all = text.split('\n').map(one).collect::<Result<Vec<_>, _>>()?.join("|");
        if self.line {
            all = format!("^(?:{all})$");
        } else if self.word {
            all = format!("(?:^|\\W)(?:{all})(?:\\W|$)");
        }
        pattern::compile(&all, Flags { ignore_case: self.ignore_case, ..Flags::default() })
    }
}

/// The output of grep.
#[derive(Default)]
struct Said {
    stdout: Vec<u8>,
    stderr: String,
    found: bool,
    failed: bool,
}

impl Said {
    fn trouble(&mut self, options: &Options, path: &str, error: &fs::Error) -> Result<(), String> {
        if let fs::Error::NotGranted(text) = error {
            return Err(text.clone());
        }
        self.failed = true;
        if !options.silent {
            let what = match error {
                fs::Error::NotFound => "No such file or directory".to_owned(),
                fs::Error::Denied => "Permission denied".to_owned(),
                fs::Error::Other(text) => text.trim_start_matches(|c| c != ']').trim_start_matches("] ").to_owned(),
                other => other.at(path),
            };
            self.stderr.push_str(&format!("grep: {path}: {what}\n"));
        }
        Ok(())
    }
}

/// `file.grep`: grep's return code, and the dict that Salt makes of its run.
pub(crate) fn grep(path: &str, pattern: &str, args: &[String]) -> Result<(i32, Value), String> {
    let options = Options::parse(args)?;
    let mut said = Said::default();
    match options.regex(pattern) {
        Err(why) => {
            said.failed = true;
            said.stderr = format!("grep: {why}\n");
        }
        Ok(regex) => {
            let mut places = glob::expand(path)?;
            if places.is_empty() {
                places.push(path.into());
            }
            let names = options.names.unwrap_or(places.len() > 1 || options.recursive);
            let search = Search { options: &options, regex: &regex, names };
            for place in places {
                search.walk(&place, 0, &mut said)?;
                if options.quiet && said.found {
                    break;
                }
            }
        }
    }
    let retcode = if said.failed && !(options.quiet && said.found) { 2 } else { i32::from(!said.found) };
    let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes).trim_end());
    let answer = Value::dict([
        // There is no process, so there is no pid.
        ("pid", Value::None),
        ("retcode", Value::Int(retcode.into())),
        ("stdout", text(&said.stdout)),
        ("stderr", text(said.stderr.as_bytes())),
    ]);
    Ok((retcode, answer))
}

/// What one run searches for, and how it prints what it finds.
struct Search<'a> {
    options: &'a Options,
    regex: &'a Regex,
    /// Whether lines begin with the file's name.
    names: bool,
}

impl Search<'_> {
    fn walk(&self, place: &str, depth: usize, said: &mut Said) -> Result<(), String> {
        let options = self.options;
        let directory = matches!(fs::stat(place, true), Ok(stat) if stat.kind == fs::Kind::Directory);
        if !(directory && options.recursive) {
            return match self.file(place, said) {
                Err(error) => said.trouble(options, place, &error),
                Ok(()) if said.stdout.len() > MAX_OUTPUT => Err(format!("more than {MAX_OUTPUT} bytes match")),
                Ok(()) => Ok(()),
            };
        }
        if depth > MAX_DEPTH {
            return said.trouble(options, place, &fs::Error::Other("too deep"));
        }
        match fs::read_dir(place) {
            Err(error) => said.trouble(options, place, &error),
            Ok(entries) => {
                for (name, kind) in entries {
                    // Below the named paths, links and devices are skipped.
                    if matches!(kind, fs::Kind::Regular | fs::Kind::Directory | fs::Kind::Unknown) {
                        self.walk(&path::join(place, &name), depth + 1, said)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Searches one file, and prints its result.
    fn file(&self, place: &str, said: &mut Said) -> Result<(), fs::Error> {
        let (file, options) = (fs::open(place)?, self.options);
        if options.most == Some(0) {
            return Ok(());
        }
        let mut scan = Scan::new(self, place, &mut said.stdout);
        lines::lines(&file, |line| scan.line(line))?;
        let Scan { matches, binary, .. } = scan;
        said.found |= matches > 0;
        if options.quiet {
            return Ok(());
        }
        if options.with_match || options.without_match {
            if (matches > 0) == options.with_match {
                said.stdout.extend(format!("{place}\n").as_bytes());
            }
        } else if options.count {
            let name = if self.names { format!("{place}:") } else { String::new() };
            said.stdout.extend(format!("{name}{matches}\n").as_bytes());
        } else if binary && matches > 0 {
            said.stderr.push_str(&format!("grep: {place}: binary file matches\n"));
        }
        Ok(())
    }
}

/// One file while its lines are read.
struct Scan<'a> {
    search: &'a Search<'a>,
    place: &'a str,
    out: &'a mut Vec<u8>,
    /// The number of the line.
    number: u64,
    matches: u64,
    binary: bool,
    /// The unprinted lines before a match.
    before: VecDeque<(u64, Vec<u8>)>,
    /// The number of lines still to be printed after a match.
    after: usize,
    /// The number of the last printed line.
    printed: u64,
}

impl<'a> Scan<'a> {
    fn new(search: &'a Search<'a>, place: &'a str, out: &'a mut Vec<u8>) -> Self {
        let before = VecDeque::new();
        Self { search, place, out, number: 0, matches: 0, binary: false, before, after: 0, printed: 0 }
    }

    /// Takes the next line. Returns whether to read on.
    fn line(&mut self, line: &[u8]) -> bool {
        let Search { options, regex, .. } = *self.search;
        self.number += 1;
        self.binary = self.binary || (!options.text && line.contains(&0));
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let text = String::from_utf8_lossy(line);
        if regex.is_match(&text) == options.invert {
            self.keep_context(line);
            return self.wants_more() || self.after > 0;
        }
        if !self.wants_more() {
            // The lines after the last match continue until the next match.
            return false;
        }
        self.matches += 1;
        if options.lists_files() {
            return options.count && self.wants_more();
        }
        if self.binary {
            return false;
        }
        self.print_before();
        self.print_match(line, &text);
        self.printed = self.number;
        self.after = options.after;
        self.out.len() <= MAX_OUTPUT && (self.wants_more() || self.after > 0)
    }

    fn wants_more(&self) -> bool {
        self.search.options.most.is_none_or(|most| self.matches < most)
    }

    /// Takes a line that does not match: prints it after a match, or keeps it for the next one.
    fn keep_context(&mut self, line: &[u8]) {
        let options = self.search.options;
        if self.after > 0 && !options.lists_files() && !self.binary {
            self.after -= 1;
            self.print(self.number, '-', line);
            self.printed = self.number;
        } else if options.before > 0 {
            self.before.push_back((self.number, line.to_vec()));
            if self.before.len() > options.before {
                self.before.pop_front();
            }
        }
    }

    /// Prints the lines before a match, and what parts them from earlier ones.
    fn print_before(&mut self) {
        let options = self.search.options;
        let first = self.before.front().map_or(self.number, |(first, _)| *first);
        if (options.before > 0 || options.after > 0) && self.printed > 0 && first > self.printed + 1 {
            self.out.extend(b"--\n");
        }
        for (number, line) in std::mem::take(&mut self.before) {
            self.print(number, '-', &line);
        }
    }

    /// Prints a line that matches, or with `-o` its matches.
    fn print_match(&mut self, line: &[u8], text: &str) {
        let Search { options, regex, .. } = *self.search;
        if !options.only_matching {
            self.print(self.number, ':', line);
        } else if !options.invert {
            for one in regex.find_iter(text).filter(|one| !one.is_empty()) {
                let one = one.as_str();
                let one =
                    if options.word { one.trim_matches(|c: char| !(c.is_alphanumeric() || c == '_')) } else { one };
                self.print(self.number, ':', one.as_bytes());
            }
        }
    }

    fn print(&mut self, number: u64, mark: char, line: &[u8]) {
        if self.search.names {
            self.out.extend(format!("{}{mark}", self.place).as_bytes());
        }
        if self.search.options.number {
            self.out.extend(format!("{number}{mark}").as_bytes());
        }
        self.out.extend(line);
        self.out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, String> {
        Options::parse(&args.iter().map(|arg| arg.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_greps() {
        let none = Options::default;
        assert_eq!(parse(&[]), Ok(none()));
        assert_eq!(parse(&["-in", "-v"]), Ok(Options { ignore_case: true, number: true, invert: true, ..none() }));
        assert_eq!(parse(&["-A", "2", "-nB3"]), Ok(Options { after: 2, before: 3, number: true, ..none() }));
        assert_eq!(parse(&["-C1", "--max-count=4"]), Ok(Options { after: 1, before: 1, most: Some(4), ..none() }));
        assert_eq!(parse(&["--", "-h"]), Ok(Options { names: Some(false), ..none() }));
        for unknown in ["-P", "-z", "--include=*.c", "-f", "-e", "file", "-A", "-Ax", "--perl-regexp"] {
            assert!(parse(&[unknown]).is_err(), "{unknown}");
        }
    }

    #[test]
    fn words_lines_and_several_patterns() {
        let found =
            |args: &[&str], pattern: &str, text: &str| parse(args).unwrap().regex(pattern).unwrap().is_match(text);
        assert!(found(&["-w"], "foo", "a foo b") && !found(&["-w"], "foo", "afoo"));
        assert!(found(&["-x"], "fo*", "foo") && !found(&["-x"], "fo*", "foo b"));
        assert!(found(&["-F"], "a.b", "xa.b") && !found(&["-F"], "a.b", "axb"));
        assert!(found(&[], "a\nb", "b") && found(&["-E"], "(a|b)c", "bc"));
        assert!(found(&["-i"], "FOO", "foo"));
        assert!(parse(&[]).unwrap().regex(r"\(a\)\1").is_err());
    }
}
