//! Reads configuration files and their includes, and merges them like Salt: the files of one include list are merged
//! deeply, and the result replaces keys of the main file.

use std::path::{Path, PathBuf};

use super::{ConfigError, yaml};
use crate::value::{self, Value, ValueExt};
use brine_patterns::Glob;

/// The file beside the included ones in which a minion keeps what `schedule.*` changed. It is no configuration of the owner's: the minion
/// reads it by itself.
pub const SCHEDULE_FILE: &str = "_schedule.conf";
/// Upper bound on nested includes. More is a loop.
const MAX_INCLUDES: usize = 16;
/// Upper bound on the files of one glob.
const MAX_MATCHES: usize = 10_000;

/// Checks whether a file may be read. The error says why not.
type Trust<'a> = &'a dyn Fn(&Path) -> Result<(), String>;

/// Returns the main file's options, overlaid by those of `default_include` and `include`, and the patterns of the files that they include.
pub(super) fn load(
    path: &Path,
    default_include: Option<&Value>,
    trust: Trust<'_>,
) -> Result<(Value, Vec<PathBuf>), ConfigError> {
    let mut seen = Vec::new();
    let mut opts = match read(path, trust) {
        Err(ConfigError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => value::empty_map(),
        other => other?,
    };
    let default_include = opts.get("default_include").or(default_include).cloned();
    let include = opts.get("include").cloned();
    for (patterns, verbose) in [(default_include, false), (include, true)] {
        if let Some(patterns) = patterns
            && let Value::Map(entries) = included(&patterns, path, verbose, 0, trust, &mut seen)?
        {
            for (key, value) in entries {
                set(&mut opts, key, value);
            }
        }
    }
    Ok((opts, seen))
}

/// Parses options from text.
pub(super) fn parse(text: &str, path: &Path) -> Result<Value, ConfigError> {
    let loaded = yaml::load(text).map_err(|source| ConfigError::Yaml { path: path.to_owned(), source })?;
    match loaded {
        map @ Value::Map(_) => Ok(map),
        // As in Salt, a false value counts as an empty file.
        other if !other.truthy() => Ok(value::empty_map()),
        _ => Err(ConfigError::NotMap(path.to_owned())),
    }
}

fn read(path: &Path, trust: Trust<'_>) -> Result<Value, ConfigError> {
    trust(path).map_err(ConfigError::Untrusted)?;
    let text = brine_files::read_named_text(path, u64::try_from(yaml::MAX_TEXT).unwrap_or(u64::MAX));
    parse(&text.map_err(|source| ConfigError::Read { path: path.to_owned(), source })?, path)
}

fn included(
    patterns: &Value,
    from: &Path,
    verbose: bool,
    depth: usize,
    trust: Trust<'_>,
    seen: &mut Vec<PathBuf>,
) -> Result<Value, ConfigError> {
    if depth > MAX_INCLUDES {
        let why = std::io::Error::other(format!(
            "more than {MAX_INCLUDES} levels of include: do two files include each other?"
        ));
        return Err(ConfigError::Read { path: from.to_owned(), source: why });
    }
    let one = std::slice::from_ref(patterns);
    let mut merged = value::empty_map();
    for pattern in patterns.list().unwrap_or(one).iter().filter_map(ValueExt::text).filter(|p| !p.is_empty()) {
        let dir = from.parent().unwrap_or(Path::new("/"));
        let pattern_path = dir.join(pattern);
        let mut files = matches(&pattern_path);
        seen.push(pattern_path);
        files.retain(|file| file.file_name().is_none_or(|name| name != SCHEDULE_FILE));
        if files.is_empty() && verbose {
            tracing::warn!("{}: the include {pattern:?} matches no files", from.display());
        }
        for file in files {
            let mut opts = read(&file, trust)?;
            if let Some(include) = opts.get("include").cloned()
                && let Value::Map(entries) = included(&include, &file, verbose, depth + 1, trust, seen)?
            {
                for (key, value) in entries {
                    set(&mut opts, key, value);
                }
            }
            merge(&mut merged, opts);
        }
    }
    Ok(merged)
}

fn set(map: &mut Value, key: Value, value: Value) {
    if let Value::Map(entries) = map {
        match entries.iter_mut().find(|(k, _)| *k == key) {
            Some((_, slot)) => *slot = value,
            None => entries.push((key, value)),
        }
    }
}

/// Merges two values: maps are merged, lists are joined without duplicates, other values are replaced.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (into @ Value::Map(_), Value::Map(from)) => {
            for (key, value) in from {
                let Value::Map(entries) = into else { return };
                match entries.iter_mut().find(|(k, _)| *k == key) {
                    Some((_, slot)) => merge(slot, value),
                    None => entries.push((key, value)),
                }
            }
        }
        (Value::Array(into), Value::Array(from)) => {
            for item in from {
                if !into.contains(&item) {
                    into.push(item);
                }
            }
        }
        (into, from) => *into = from,
    }
}

/// Returns the files that match a shell pattern, sorted. Hidden files need an explicit dot.
pub(super) fn matches(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let Some(name) = part.as_os_str().to_str() else { return Vec::new() };
        if !name.contains(['*', '?', '[']) {
            for path in &mut found {
                path.push(name);
            }
            continue;
        }
        let glob = Glob::new(name);
        found = found
            .iter()
            .filter_map(|dir| std::fs::read_dir(dir).ok())
            .flat_map(|entries| entries.flatten().take(MAX_MATCHES))
            .filter(|entry| {
                let file = entry.file_name();
                let file = file.to_str().unwrap_or_default();
                glob.matches(file) && (name.starts_with('.') || !file.starts_with('.'))
            })
            .map(|entry| entry.path())
            .collect();
    }
    found.retain(|path| path.exists());
    found.sort();
    found
}
