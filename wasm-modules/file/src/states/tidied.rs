//! `file.tidied`: removes old and large files.

use brine_guest::changes::{self, Entry, Kind};
use brine_guest::states::is_dry_run;
use brine_guest::{Value, path};
use regex_lite::Regex;

use super::{Arguments, Ret};
use crate::change::directories;
use crate::look::pattern::{self, Flags};
use crate::wasi::clocks::wall_clock;

const DAY: f64 = 86_400.0;

/// What is removed.
struct Rules {
    age: i64,
    size: i64,
    matches: Vec<Regex>,
    exclude: Vec<Regex>,
    rmdirs: bool,
    rmlinks: bool,
    by_path: bool,
    time: String,
    /// `age` or `size` alone.
    only: Option<String>,
    both: bool,
    /// The day, since 1970.
    today: i64,
}

pub(crate) fn tidied(name: &str, args: &Arguments) -> Result<Ret, String> {
    if !name.starts_with('/') {
        return Ok(Ret::bad(format!("Specified file {name} is not an absolute path")));
    }
    if !changes::is(name, Kind::Directory)? {
        return Ok(Ret::bad(format!("{name} does not exist or is not a directory.")));
    }
    let rules = match Rules::of(args) {
        Ok(rules) => rules,
        Err(why) => return Ok(Ret::bad(why)),
    };
    let mut old = Vec::new();
    // From the bottom up, so that what is in a directory goes before it.
    for level in directories::walk(name, None)?.iter().rev() {
        for entry in level.files.iter().chain(&level.dirs) {
            let place = path::join(&level.path, entry);
            let Some(found) = changes::look(&place, false)? else { continue };
            if rules.removes(entry, &place, &found) {
                old.push(place);
            }
        }
    }
    if old.is_empty() {
        return Ok(Ret::good(format!("Nothing to remove from directory {name}")));
    }
    let mut ret = Ret::new();
    if is_dry_run() {
        ret.result = None;
        ret.comment = format!("{name} is set for tidy");
        ret.change("removed", old);
        return Ok(ret);
    }
    let count = old.len();
    let mut removed: Vec<String> = Vec::new();
    for place in old {
        if let Err(why) = changes::remove(&place, true) {
            ret.change("removed", removed);
            return Ok(ret.failed(format!("Could not remove '{place}': {why}")));
        }
        removed.push(place);
    }
    ret.change("removed", removed);
    ret.comment = format!("Removed {count} files or directories from directory {name}");
    Ok(ret)
}

impl Rules {
    fn of(args: &Arguments) -> Result<Self, String> {
        let regexes = |name: &str| -> Result<Vec<Regex>, String> {
            let compile = |one: &Value| {
                // Python's `re.match`: from the start.
                let anchored = format!("^(?:{})", one.to_text());
                pattern::compile(&pattern::python(&anchored, Flags::default())?, Flags::default())
            };
            args.list(name).iter().map(compile).collect()
        };
        let number = |name: &str| match args.get(name) {
            None => Ok(0),
            Some(Value::Int(number)) => Ok(*number),
            Some(other) => bytes(&other.to_text()).ok_or_else(|| format!("{name} is no number: {}", other.to_text())),
        };
        let time = args.text("time_comparison").map(|time| time.to_lowercase());
        let time = time.filter(|time| ["atime", "ctime", "mtime"].contains(&time.as_str()));
        let only = args.text("age_size_only").map(|only| only.to_lowercase());
        #[allow(clippy::cast_possible_truncation)]
        let today = (wall_clock::now().seconds as f64 / DAY).floor() as i64;
        Ok(Self {
            age: number("age")?,
            size: number("size")?,
            matches: regexes("matches")?,
            exclude: regexes("exclude")?,
            rmdirs: args.flag("rmdirs", false),
            rmlinks: args.flag("rmlinks", true),
            by_path: args.flag("full_path_match", false),
            time: time.unwrap_or_else(|| "atime".into()),
            only: only.filter(|only| ["age", "size"].contains(&only.as_str())),
            both: args.text("age_size_logical_operator").is_some_and(|word| word.eq_ignore_ascii_case("and")),
            today,
        })
    }

    fn removes(&self, name: &str, place: &str, entry: &Entry) -> bool {
        let (may, size) = match entry.kind {
            Kind::Symlink => (self.rmlinks, 0),
            Kind::Directory => (self.rmdirs, 0),
            _ => (true, i64::try_from(entry.size).unwrap_or(i64::MAX)),
        };
        let time = match self.time.as_str() {
            "ctime" => entry.ctime,
            "mtime" => entry.mtime,
            _ => entry.atime,
        };
        #[allow(clippy::cast_possible_truncation)]
        let days = (self.today - (time / DAY).floor() as i64).abs();
        let (is_old, is_large) = (days >= self.age, size >= self.size);
        let counts = match self.only.as_deref() {
            Some("age") => is_old,
            Some(_) => is_large,
            None if self.both => is_old && is_large,
            None => is_old || is_large,
        };
        let text = if self.by_path { place } else { name };
        let named = self.matches.is_empty() || self.matches.iter().any(|regex| regex.is_match(text));
        may && counts && named && !self.exclude.iter().any(|regex| regex.is_match(text))
    }
}

/// A number of bytes as people write it: `10`, `5K`, `1.5MiB`, `2GB`. With a `B` alone, thousands count.
fn bytes(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = text[digits..].trim().to_uppercase();
    let mut letters = unit.chars();
    let power = match letters.next() {
        None | Some('B') => 0,
        Some(letter) => i32::try_from("KMGTPEZY".find(letter)?).ok()? + 1,
    };
    let base: f64 = if letters.as_str() == "B" { 1000.0 } else { 1024.0 };
    #[allow(clippy::cast_possible_truncation)]
    let bytes = (number * base.powi(power)) as i64;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_people_write_them() {
        for (text, is) in [("10", Some(10)), ("1K", Some(1024)), ("1KB", Some(1000)), ("1.5MiB", Some(1_572_864))] {
            assert_eq!(bytes(text), is, "{text}");
        }
        assert_eq!((bytes("x"), bytes("1q"), bytes("")), (None, None, None));
    }
}
