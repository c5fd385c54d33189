//! `file.find`: its options, the walk, and the output for each path.

use std::cmp::Ordering;

use brine_guest::host::metadata;
use brine_guest::{Value, path};
use regex_lite::Regex;

use crate::look::fs::{FileStat, Kind};
use crate::look::pattern::{self, Flags};
use crate::look::{fs, hash, lines, text};

/// Upper bound on the paths of a result.
const MAX_FOUND: usize = 200_000;
/// Upper bound on nested directories.
const MAX_DEPTH: usize = 256;

/// A condition on a path.
enum Criterion {
    /// A pattern that matches from the start of the name.
    Name(Regex),
    Type(Vec<Kind>),
    User(Vec<String>),
    Group(Vec<String>),
    Size(u64, u64),
    /// Modified before a time or, with `-`, after it.
    Mtime(f64, bool),
    Grep(Regex),
}

impl Criterion {
    /// The cost of checking; cheap conditions come first: on the name, on the file, on its content.
    fn cost(&self) -> u8 {
        match self {
            Self::Name(_) => 0,
            Self::Grep(_) => 2,
            _ => 1,
        }
    }
}

/// The conditions and the output of a search.
pub(crate) struct Finder {
    criteria: Vec<Criterion>,
    print: Vec<String>,
    mindepth: i64,
    maxdepth: Option<i64>,
}

impl Finder {
    /// Reads the keywords of `file.find`. `now` is the time in seconds.
    pub(crate) fn new(options: &[(Value, Value)], now: f64) -> Result<Self, String> {
        let mut finder = Self { criteria: Vec::new(), print: Vec::new(), mindepth: 0, maxdepth: None };
        for (key, value) in options {
            let key = key.to_text();
            if key.starts_with('_') || key == "test" {
                continue;
            }
            let depth = || value.to_text().parse().map_err(|_| format!("invalid {key}: \"{}\"", value.to_text()));
            match key.as_str() {
                "mindepth" => {
                    finder.mindepth = depth()?;
                    continue;
                }
                "maxdepth" => {
                    finder.maxdepth = if *value == Value::None { None } else { Some(depth()?) };
                    continue;
                }
                "delete" | "exec" => return Err(format!("\"{key}\" is not there: this module only reads")),
                _ => {}
            }
            if !value.truthy() {
                return Err(format!("missing value for \"{key}\" option"));
            }
            let value = value.to_text();
            let regex = |pattern: &str, ignore_case: bool| {
                let flags = Flags { ignore_case, ..Flags::default() };
                let regex = pattern::python(pattern, flags)
                    .and_then(|pattern| pattern::compile(&format!("\\A(?:{pattern})"), flags));
                regex.map_err(|_| format!("invalid regular expression: \"{value}\""))
            };
            let names = |value: &str| value.replace(',', " ").split_whitespace().map(str::to_owned).collect();
            finder.criteria.push(match key.as_str() {
                "name" => Criterion::Name(regex(&globbed(&value), false)?),
                "iname" => Criterion::Name(regex(&globbed(&value), true)?),
                "regex" => Criterion::Name(regex(&value, false)?),
                "iregex" => Criterion::Name(regex(&value, true)?),
                "type" => Criterion::Type(types(&value)?),
                "user" | "owner" => Criterion::User(names(&value)),
                "group" => Criterion::Group(names(&value)),
                "size" => {
                    let (least, most) = size(&value)?;
                    Criterion::Size(least, most)
                }
                "mtime" => {
                    let (seconds, newer) = interval(&value)?;
                    Criterion::Mtime(now - seconds, newer)
                }
                "grep" => {
                    let regex = pattern::python(&value, Flags::default())
                        .and_then(|pattern| pattern::compile(&pattern, Flags::default()));
                    Criterion::Grep(regex.map_err(|_| format!("invalid regular expression: \"{value}\""))?)
                }
                "print" => {
                    finder.print = names(&value);
                    continue;
                }
                _ => return Err(format!("invalid option \"{key}\"")),
            });
        }
        finder.criteria.sort_by_key(Criterion::cost);
        if finder.print.is_empty() {
            finder.print.push("path".into());
        }
        Ok(finder)
    }

    /// Collects the matches at and below a path.
    pub(crate) fn find(&self, top: &str, found: &mut Vec<Value>) -> Result<(), String> {
        if self.mindepth < 1 {
            self.look(path::basename(top), top, found)?;
        }
        // As in `os.walk`: a link to a directory is followed only at the top, and unreadable directories are skipped.
        let mut directories = vec![(top.to_owned(), 1_i64)];
        while let Some((directory, depth)) = directories.pop() {
            if depth as usize > MAX_DEPTH {
                return Err(format!("'{directory}' is too deep"));
            }
            if self.maxdepth.is_some_and(|most| depth > most) {
                continue;
            }
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for (name, kind) in entries {
                let place = path::join(&directory, &name);
                if depth >= self.mindepth {
                    self.look(&name, &place, found)?;
                }
                let unknown = || fs::stat(&place, false).is_ok_and(|stat| stat.kind == Kind::Directory);
                if kind == Kind::Directory || (kind == Kind::Unknown && unknown()) {
                    directories.push((place, depth + 1));
                }
            }
        }
        Ok(())
    }

    fn look(&self, name: &str, place: &str, found: &mut Vec<Value>) -> Result<(), String> {
        // The file is examined at most once, and only if a condition needs it.
        let mut known: Option<Option<FileStat>> = None;
        let mut stat =
            || known.get_or_insert_with(|| fs::stat(place, true).or_else(|_| fs::stat(place, false)).ok()).clone();
        for criterion in &self.criteria {
            let matches = match criterion {
                Criterion::Name(regex) => regex.is_match(name),
                criterion => match stat() {
                    // The file was removed in the meantime.
                    None => false,
                    Some(stat) => matches(criterion, place, &stat),
                },
            };
            if !matches {
                return Ok(());
            }
        }
        let mut parts = Vec::new();
        for part in &self.print {
            parts.extend(match part.as_str() {
                "path" => Some(Value::from(place)),
                "name" => Some(Value::from(name)),
                other => stat().and_then(|stat| printed(other, place, &stat)),
            });
        }
        if found.len() >= MAX_FOUND {
            return Err(format!("more than {MAX_FOUND} paths match"));
        }
        found.push(if parts.len() == 1 { parts.remove(0) } else { Value::List(parts) });
        Ok(())
    }
}

fn matches(criterion: &Criterion, place: &str, stat: &FileStat) -> bool {
    let named = |names: &[String], id: u32, name: &dyn Fn(u32) -> Option<String>| {
        names.iter().any(|wanted| wanted.parse() == Ok(id)) || name(id).is_some_and(|name| names.contains(&name))
    };
    match criterion {
        Criterion::Name(_) => true,
        Criterion::Type(kinds) => kinds.contains(&stat.kind),
        Criterion::User(names) => named(names, stat.uid, &metadata::user_name),
        Criterion::Group(names) => named(names, stat.gid, &metadata::group_name),
        Criterion::Size(least, most) => (*least..=*most).contains(&stat.size),
        Criterion::Mtime(time, true) => stat.mtime.trunc() >= *time,
        Criterion::Mtime(time, false) => stat.mtime.trunc() <= *time,
        Criterion::Grep(regex) => stat.kind == Kind::Regular && contains(regex, place),
    }
}

fn contains(regex: &Regex, place: &str) -> bool {
    let mut found = false;
    let read = fs::open(place).and_then(|file| {
        lines::lines(&file, |line| {
            found = pattern::found(regex, line);
            !found
        })
    });
    read.is_ok() && found
}

/// One part of the output that `print` selects; none for an unknown word.
fn printed(part: &str, place: &str, stat: &FileStat) -> Option<Value> {
    let id = |id: u32| Value::Int(id.into());
    Some(match part {
        "size" => stat.size.into(),
        "type" => letter(stat.kind).into(),
        "mode" => Value::Int((stat.mode & 0o777).into()),
        "mtime" => Value::Int(stat.mtime as i64),
        "user" => metadata::user_name(stat.uid).map_or_else(|| id(stat.uid), Value::from),
        "group" => metadata::group_name(stat.gid).map_or_else(|| id(stat.gid), Value::from),
        "md5" if stat.kind == Kind::Regular => hash::of(place, "md5").unwrap_or_default().into(),
        "md5" => "".into(),
        _ => return None,
    })
}

/// Converts Salt's glob to a pattern. Only these three characters are special.
fn globbed(glob: &str) -> String {
    glob.replace('.', "\\.").replace('?', ".?").replace('*', ".*") + "$"
}

const LETTERS: [(char, Kind); 7] = [
    ('b', Kind::Block),
    ('c', Kind::Character),
    ('d', Kind::Directory),
    ('f', Kind::Regular),
    ('l', Kind::Symlink),
    ('p', Kind::Fifo),
    ('s', Kind::Socket),
];

fn letter(kind: Kind) -> String {
    LETTERS.iter().find(|(_, other)| *other == kind).map_or('?', |(letter, _)| *letter).into()
}

fn types(value: &str) -> Result<Vec<Kind>, String> {
    let letters = value.chars().filter(|c| *c != ',' && !c.is_whitespace());
    letters
        .map(|wanted| {
            let known = LETTERS.iter().find(|(letter, _)| *letter == wanted);
            known.map(|(_, kind)| *kind).ok_or_else(|| format!("invalid file type \"{wanted}\""))
        })
        .collect()
}

/// `[+-]number[bkmgt]`: the least and the greatest size.
fn size(value: &str) -> Result<(u64, u64), String> {
    let trimmed = value.trim();
    let (style, scalar) = match trimmed.strip_prefix(['-', '+']) {
        Some(rest) => (&trimmed[..1], rest),
        None => ("=", trimmed),
    };
    let shift = scalar.chars().last().and_then(|unit| "bkmgt".find(unit.to_ascii_lowercase()));
    let (number, multiplier) = match shift {
        Some(power) => (scalar[..scalar.len() - 1].trim(), 1_u64 << (10 * power)),
        None => (scalar, 1),
    };
    // The cast saturates.
    let bytes = text::number(number).filter(|number| *number >= 0.0).map(|number| (number * multiplier as f64) as u64);
    let bytes = bytes.ok_or_else(|| format!("invalid size: \"{value}\""))?;
    Ok(match style {
        "-" => (0, bytes),
        "+" => (bytes, u64::MAX),
        _ => (bytes, bytes.saturating_add(multiplier - 1)),
    })
}

/// `[+-]1w2d3h4m5s`: the seconds, in multiples of the smallest unit, and whether newer files match.
fn interval(value: &str) -> Result<(f64, bool), String> {
    let invalid = || format!("invalid time interval: '{value}'");
    let mut rest = value.trim();
    let newer = rest.starts_with('-');
    rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let mut seconds = 0.0;
    let mut resolution = None;
    for (unit, length) in [('w', 604_800.0), ('d', 86_400.0), ('h', 3600.0), ('m', 60.0), ('s', 1.0)] {
        rest = rest.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (number, after) = (&rest[..end], rest[end..].trim_start());
        let Some(after) = after.strip_prefix([unit, unit.to_ascii_uppercase()]) else { continue };
        seconds += text::number(number).ok_or_else(invalid)? * length;
        resolution = Some(length);
        rest = after;
    }
    match resolution {
        Some(resolution) if rest.trim().is_empty() => Ok(((seconds / resolution).trunc() * resolution, newer)),
        _ => Err(invalid()),
    }
}

/// Python's order of texts, numbers and lists of them.
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::List(a), Value::List(b)) => {
            let first = a.iter().zip(b).map(|(a, b)| order(a, b)).find(|order| order.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (a, b) => a.to_text().cmp(&b.to_text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(key: &str, value: &str) -> String {
        Finder::new(&[(key.into(), value.into())], 0.0).err().unwrap_or_default()
    }

    #[test]
    fn sizes_are_salts() {
        // salt.utils.find._parse_size
        for (value, least, most) in [
            ("100", 100, 100),
            ("1k", 1024, 2047),
            ("+10m", 10 << 20, u64::MAX),
            ("-2G", 0, 2 << 30),
            ("1.5k", 1536, 2559),
            (" 5b ", 5, 5),
        ] {
            assert_eq!(size(value), Ok((least, most)), "{value}");
        }
        for bad in ["", "k", "x", "+", "1x", "--1"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn intervals_are_salts() {
        // salt.utils.find._parse_interval, int(seconds / resolution) * resolution
        for (value, seconds, newer) in [
            ("2d", 172_800.0, false),
            ("-2d", 172_800.0, true),
            ("+1w 2d 3h", 788_400.0, false),
            ("1.5h", 3600.0, false),
            ("90m", 5400.0, false),
            ("1D5S", 86_405.0, false),
        ] {
            assert_eq!(interval(value), Ok((seconds, newer)), "{value}");
        }
        for bad in ["5", "", "d", "1h1d", "x", "1..5h"] {
            assert_eq!(interval(bad), Err(format!("invalid time interval: '{bad}'")));
        }
    }

    #[test]
    fn errors_are_salts() {
        for (key, value, text) in [
            ("type", "x", "invalid file type \"x\""),
            ("what", "1", "invalid option \"what\""),
            ("type", "", "missing value for \"type\" option"),
            ("regex", "(", "invalid regular expression: \"(\""),
            ("size", "x", "invalid size: \"x\""),
        ] {
            assert_eq!(error(key, value), text);
        }
        assert!(error("delete", "f").contains("only reads"));
        assert!(error("exec", "ls {}").contains("only reads"));
        assert_eq!(error("name", "*.txt"), "");
    }

    #[test]
    fn names_are_matched_from_their_start() {
        let name = |key: &str, pattern: &str, name: &str| {
            let finder = Finder::new(&[(key.into(), pattern.into())], 0.0).unwrap();
            matches!(&finder.criteria[0], Criterion::Name(regex) if regex.is_match(name))
        };
        assert!(name("name", "*.txt", "a.txt") && !name("name", "*.txt", "a.txt2") && !name("name", "b*", "ab"));
        assert!(
            name("iname", "A*", "abc") && name("regex", "[a-c]\\.(txt|bin)", "b.bin") && name("iregex", "B", "b.bin")
        );
    }

    #[test]
    fn pythons_order() {
        let list = |items: &[Value]| Value::List(items.to_vec());
        let mut values = [
            list(&["b".into(), Value::Int(1)]),
            list(&["a".into(), Value::Int(10)]),
            list(&["a".into(), Value::Int(9)]),
        ];
        values.sort_by(order);
        assert_eq!(values[0], list(&["a".into(), Value::Int(9)]));
        assert_eq!(values[2], list(&["b".into(), Value::Int(1)]));
    }
}
