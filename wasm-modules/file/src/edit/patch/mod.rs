//! Patches: unified differences, applied to one file or to the files of a directory, as by GNU patch. No program is run, so a dry
//! run looks at the same and writes nothing.
//!
//! - [`unified`] reads them · [`apply`] one section on one text

mod apply;
mod unified;

use brine_guest::changes::{self, Content, Kind, Owner, Put};
use brine_guest::{Value, path, words};

use super::place;
use apply::{Applied, How};
use unified::Section;

/// Lines of context that may differ, as in `patch`.
const FUZZ: i64 = 2;
/// Upper bound on the lines of context that may differ: those that a hunk usually has are fewer.
const MAX_FUZZ: i64 = 1000;

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Trouble {
    /// What `patch` says, with the code 2.
    Said(String),
    /// Anything else.
    Raised(String),
}

/// The options of `patch` that there are here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    /// How many folders at the start of the names in a patch are left out.
    pub(crate) strip: usize,
    fuzz: i64,
    reverse: bool,
    silent: bool,
    backup: bool,
}

impl Options {
    /// # Errors
    /// An option that is not offered.
    pub(crate) fn read(line: &[String]) -> Result<Self, String> {
        let mut options = Self { strip: 0, fuzz: FUZZ, reverse: false, silent: false, backup: true };
        let mut words = line.iter();
        while let Some(word) = words.next() {
            let mut number = |short: &str, long: &str| -> Option<Result<i64, String>> {
                let said = match word.strip_prefix(short).or_else(|| word.strip_prefix(&format!("{long}="))) {
                    Some("") => words.next()?.as_str(),
                    Some(said) => said,
                    None if word == long => words.next()?.as_str(),
                    None => return None,
                };
                Some(said.parse().map_err(|_| format!("patch: **** {said:?} is no number")))
            };
            if let Some(strip) = number("-p", "--strip") {
                options.strip = usize::try_from(strip?).map_err(|_| "a strip count is not negative")?;
                continue;
            }
            if let Some(fuzz) = number("-F", "--fuzz") {
                options.fuzz = fuzz?.clamp(0, MAX_FUZZ);
                continue;
            }
            match word.as_str() {
                "-R" | "--reverse" => options.reverse = true,
                "-s" | "--quiet" | "--silent" => options.silent = true,
                "--no-backup-if-mismatch" => options.backup = false,
                "-N" | "--forward" | "-u" | "--unified" | "--binary" => {}
                other => return Err(format!("the option {other} of patch is not offered")),
            }
        }
        Ok(options)
    }

    /// The options of a line of them.
    ///
    /// # Errors
    /// As [`Options::read`].
    pub(crate) fn of_line(line: &str) -> Result<Self, String> {
        Self::read(&words::split(line)?)
    }
}

/// What a patch came to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) retcode: i64,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The hunks that did not fit, as a patch.
    pub(crate) rejects: Vec<u8>,
    /// Whether what did not fit is there already.
    pub(crate) is_there: bool,
}

impl Outcome {
    /// As Salt's `cmd.run_all` has it; no program has a number.
    pub(crate) fn value(&self) -> Value {
        Value::dict([
            ("retcode", self.retcode.into()),
            ("stdout", self.stdout.as_str().into()),
            ("stderr", self.stderr.as_str().into()),
        ])
    }
}

/// Applies a patch to a file, or to the files below a directory. With `dry_run` it writes nothing.
///
/// # Errors
/// One line, when a file cannot be read or written.
pub(crate) fn run(target: &str, patch: &[u8], options: &Options, dry_run: bool) -> Result<Outcome, String> {
    let sections = match unified::parse(patch) {
        Ok(sections) => sections,
        Err(Trouble::Said(stderr)) => return Ok(Outcome { retcode: 2, stderr, ..Outcome::default() }),
        Err(Trouble::Raised(why)) => return Err(why),
    };
    let is_directory = changes::is(target, Kind::Directory)?;
    let mut outcome = Outcome { is_there: true, ..Outcome::default() };
    let mut said: Vec<String> = Vec::new();
    // In a dry run, later sections see what earlier ones would have written.
    let mut written: Vec<(String, Vec<u8>)> = Vec::new();
    for section in sections {
        let section = if options.reverse { section.reversed() } else { section };
        let (name, place) = match is_directory {
            false => (target.to_owned(), target.to_owned()),
            true => {
                let Some(name) = name_below(target, &section, options.strip)? else {
                    said.push(format!("can't find file to patch for {}", quoted(&section.names[1])));
                    outcome.retcode = 1;
                    outcome.is_there = false;
                    continue;
                };
                (name.clone(), path::join(target, &name))
            }
        };
        let known = written.iter().rfind(|(known, _)| *known == place).map(|(_, text)| text.clone());
        let old = place::read(&place)?;
        let input = known.or_else(|| old.clone());
        said.push(format!("{} file {}", if dry_run { "checking" } else { "patching" }, quoted(&name)));
        let done = applied(&section, input.as_deref(), options, &name);
        said.extend(done.said.iter().cloned());
        let (all, failed) = (section.hunks.len(), done.rejected.len());
        if failed > 0 {
            outcome.retcode = 1;
            let (plural, what) = (if all == 1 { "" } else { "s" }, if done.skipped { "ignored" } else { "FAILED" });
            said.push(format!("{failed} out of {all} hunk{plural} {what}"));
            outcome.is_there &= has(&section, &done, input.as_deref().unwrap_or_default());
            outcome.rejects.extend(format!("--- {name}\n+++ {name}\n").into_bytes());
            done.rejected.iter().for_each(|(hunk, moved)| outcome.rejects.extend(hunk.written(*moved)));
        }
        if failed < all {
            if !dry_run {
                write(&place, old.as_deref(), &section, &done, options)?;
            }
            written.push((place, done.text));
        }
    }
    if !options.silent {
        outcome.stdout = said.join("\n");
    }
    Ok(outcome)
}

fn applied(section: &Section, input: Option<&[u8]>, options: &Options, name: &str) -> Applied {
    if section.old.is_none() && input.is_some_and(|input| !input.is_empty()) {
        return Applied {
            said: vec![
                format!("The next patch would create the file {},", quoted(name)),
                "which already exists!  Skipping patch.".to_owned(),
            ],
            rejected: section.hunks.iter().map(|hunk| (hunk.clone(), 0)).collect(),
            skipped: true,
            ..Applied::default()
        };
    }
    apply::apply(section, input.unwrap_or_default(), How { fuzz: options.fuzz, skips: true })
}

/// Whether a text has what was rejected: it can be taken back.
fn has(section: &Section, done: &Applied, input: &[u8]) -> bool {
    let back = done.rejected.iter().map(|(hunk, moved)| {
        let mut back = hunk.reversed();
        back.old_start += moved;
        back
    });
    let back = Section { hunks: back.collect(), ..section.clone() };
    apply::apply(&back, input, How { fuzz: FUZZ, skips: false }).rejected.is_empty()
}

fn write(place: &str, old: Option<&[u8]>, section: &Section, done: &Applied, options: &Options) -> Result<(), String> {
    if done.mismatch && options.backup && old.is_some() {
        let mode = changes::look(place, true)?.map(|entry| entry.mode);
        Put::new(&format!("{place}.orig")).follow(false).mode(mode).content(&Content::File(place.to_owned()))?;
    }
    if section.new.is_none() && done.text.is_empty() {
        return changes::remove(place, false).map(drop);
    }
    if old.is_none() {
        changes::make_directory(path::dirname(place), true, &Owner { user: None, group: None }, None)?;
    }
    place::write(place, old, done.text.clone())
}

/// The file below a directory that a section is about: of its names, one that is there, else the one that it makes.
fn name_below(directory: &str, section: &Section, strip: usize) -> Result<Option<String>, String> {
    let mut names = Vec::new();
    for name in section.names.iter().filter(|name| *name != "/dev/null") {
        let Some(name) = stripped(name, strip) else { continue };
        if name.starts_with('/') || name.split('/').any(|part| part == "..") {
            return Err(format!("the patch names {name:?}, which is not below {directory}"));
        }
        names.push(name);
    }
    // The shortest is the most likely one, as in `patch`.
    names.sort_by_key(|name| (name.split('/').count(), path::basename(name).len(), name.len()));
    for name in &names {
        if changes::is(&path::join(directory, name), Kind::Regular)? {
            return Ok(Some(name.clone()));
        }
    }
    Ok(if section.fits_an_empty_file() { names.pop() } else { None })
}

/// A name without so many folders at its start; none if it has fewer.
fn stripped(name: &str, strip: usize) -> Option<String> {
    let mut rest = name;
    for _ in 0..strip {
        rest = rest.split_once('/')?.1.trim_start_matches('/');
    }
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// A name as `patch` says it.
fn quoted(name: &str) -> String {
    let is_plain =
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+:,@%^=~".contains(&byte) || byte > 127);
    if is_plain { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "a\nb\nc\nd\ne\nf\ng\nh\n";
    const PATCH: &str =
        "--- x\t2026-01-01\n+++ x\t2026-01-02\n@@ -1,4 +1,4 @@\n a\n-b\n+B\n c\n d\n@@ -6,3 +6,4 @@\n f\n g\n h\n+i\n";

    fn sections(patch: &str) -> Vec<Section> {
        unified::parse(patch.as_bytes()).unwrap()
    }

    fn on(text: &str, patch: &str) -> Applied {
        let section = &sections(patch)[0];
        applied(section, Some(text.as_bytes()), &Options::read(&[]).unwrap(), "x")
    }

    fn text(done: &Applied) -> &str {
        std::str::from_utf8(&done.text).unwrap()
    }

    #[test]
    fn hunks_are_applied() {
        let done = on(OLD, PATCH);
        assert_eq!((text(&done), done.said.len(), done.mismatch), ("a\nB\nc\nd\ne\nf\ng\nh\ni\n", 0, false));
        // Moved down by two lines. The first hunk has less context before it than behind, so that only with fuzz it fits elsewhere
        // than at the start.
        let done = on(&format!("x\ny\n{OLD}"), PATCH);
        assert_eq!(text(&done), "x\ny\na\nB\nc\nd\ne\nf\ng\nh\ni\n");
        let said = ["Hunk #1 succeeded at 3 with fuzz 1 (offset 2 lines).", "Hunk #2 succeeded at 8 (offset 2 lines)."];
        assert_eq!(done.said, said);
        let done = on(&OLD.replace("d\n", "D\n"), PATCH);
        assert_eq!(text(&done), "a\nB\nc\nD\ne\nf\ng\nh\ni\n");
        assert_eq!((done.said, done.mismatch), (vec!["Hunk #1 succeeded at 1 with fuzz 1.".to_owned()], true));
    }

    #[test]
    fn what_is_there_already_is_known() {
        let new = "a\nB\nc\nd\ne\nf\ng\nh\ni\n";
        let done = on(new, PATCH);
        assert!(done.skipped && done.rejected.len() == 2 && has(&sections(PATCH)[0], &done, new.as_bytes()));
        let done = on(&OLD.replace('b', "other"), PATCH);
        assert!(!done.skipped && done.rejected.len() == 1 && !has(&sections(PATCH)[0], &done, OLD.as_bytes()));
        assert_eq!(done.rejected[0].0.written(0), b"@@ -1,4 +1,4 @@\n a\n-b\n+B\n c\n d\n");
    }

    #[test]
    fn files_are_made_and_ends_of_lines_are_kept() {
        let make = "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n";
        assert!(sections(make)[0].old.is_none());
        let times = [
            ("1970-01-01 00:00:00.000000000 +0000", true),
            ("1970-01-01 01:00:00 +0100", true),
            ("1969-12-31 19:00:00 -0500", true),
        ];
        for (time, is_none) in
            times.into_iter().chain([("1970-01-01 00:00:00 +0100", false), ("2026-01-01 00:00:00 +0000", false)])
        {
            let made = sections(&make.replace("/dev/null", &format!("a/new\t{time}")));
            assert_eq!(made[0].old.is_none(), is_none, "{time}");
        }
        assert_eq!(text(&applied(&sections(make)[0], None, &Options::read(&[]).unwrap(), "new")), "one\ntwo");
        assert!(on("some\n", make).skipped);
        let end = "--- x\n+++ x\n@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+one\n";
        assert_eq!(text(&on("one", end)), "one\n");
        assert_eq!(on("one\n", end).rejected.len(), 1);
        let insert = "--- x\n+++ x\n@@ -2,0 +3 @@\n+x\n";
        assert_eq!(text(&on("1\n2\n3\n", insert)), "1\n2\nx\n3\n");
    }

    #[test]
    fn patches_and_options_that_cannot_be_had_are_refused() {
        let garbage = unified::parse(b"nothing\n");
        assert_eq!(garbage, Err(Trouble::Said("patch: **** Only garbage was found in the patch input.".into())));
        assert!(matches!(unified::parse(b"*** a\n--- b\n"), Err(Trouble::Raised(_))));
        assert!(matches!(unified::parse(b"--- a\n+++ a\n@@ -1,2 +1,2 @@\n a\n"), Err(Trouble::Said(_))));
        assert!(unified::parse(b"--- a\n+++ a\n@@ -1 +1 @@\n a\nx\n").is_ok());
        let options = Options::of_line("-p1 --fuzz=3 -R -s").unwrap();
        assert_eq!((options.strip, options.fuzz, options.reverse, options.silent), (1, 3, true, true));
        assert_eq!(Options::of_line("--strip 2 -F 0").unwrap().strip, 2);
        assert!(Options::of_line("-o /etc/passwd").is_err() && Options::of_line("-p x").is_err());
        assert_eq!((stripped("a/b//c", 1), stripped("a", 1)), (Some("b//c".into()), None));
        assert_eq!((quoted("/a/b.c"), quoted("a b")), ("/a/b.c".into(), "'a b'".into()));
    }
}
