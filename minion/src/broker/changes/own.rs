//! What is the minion's own: its folders, and the files elsewhere that its configuration names.
//!
//! A file that an `include` names is as much the policy as the main file, and a key in a folder of the owner's choice decides what content is
//! trusted.

use std::path::{Component, Path, PathBuf};

use brine_patterns::Glob;
use brine_protocol::config::Config;
use brine_protocol::value::{Value, ValueExt};

use crate::config::{MinionOpts, Package};

/// The minion's own files and folders.
#[derive(Default)]
pub(super) struct Own {
    /// Each with all that is below it.
    pub(super) paths: Vec<PathBuf>,
    /// Patterns of files, which may not be there yet.
    patterns: Vec<PathBuf>,
}

impl Own {
    pub(super) fn find(opts: &MinionOpts) -> Self {
        let mut paths = vec![opts.conf_dir.clone(), opts.pki_dir.clone(), opts.cachedir.clone()];
        paths.extend(opts.config.path().parent().map(Path::to_owned));
        // The program itself, and the package's modules and programs, wherever they are.
        if let Ok(program) = std::env::current_exe() {
            let libraries = program.parent().and_then(Path::parent).map(|prefix| prefix.join("lib/brine"));
            paths.extend(libraries);
            paths.push(program);
        }
        if let Ok(Package { executor, compiler, modules }) = Package::find() {
            paths.extend([executor, compiler, modules]);
        }
        let folders = ["keys", "profiles_dir"].iter().filter_map(|key| opts.sandbox.get_text(key)).map(str::to_owned);
        let mut keys = Vec::new();
        key_files(&opts.sandbox, false, &mut keys);
        paths.extend(folders.chain(keys).map(|path| opts.conf_dir.join(path)));
        Self::of(paths, opts.config.includes())
    }

    /// `includes`: patterns, absolute.
    pub(super) fn of(paths: Vec<PathBuf>, includes: &[PathBuf]) -> Self {
        let (patterns, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
            includes.iter().partition(|path| path.components().any(|part| is_pattern(part)));
        let paths = paths.into_iter().chain(files.into_iter().cloned());
        let paths = paths.flat_map(|path| [path.canonicalize().ok(), Some(path)]).flatten();
        let mut paths: Vec<PathBuf> = paths.filter(|path| path.parent().is_some()).collect();
        paths.sort();
        paths.dedup();
        let mut patterns: Vec<PathBuf> =
            patterns.into_iter().flat_map(|pattern| [real(pattern), Some(pattern.clone())]).flatten().collect();
        patterns.retain(|pattern| !paths.iter().any(|own| pattern.starts_with(own)));
        patterns.sort();
        patterns.dedup();
        Self { paths, patterns }
    }

    /// All that is there now.
    pub(super) fn present(&self) -> impl Iterator<Item = PathBuf> {
        self.paths.iter().cloned().chain(self.patterns.iter().flat_map(|pattern| Config::included(pattern)))
    }

    /// Checks whether a path is one of these, or lies in one.
    pub(super) fn has(&self, real: &Path) -> bool {
        self.paths.iter().any(|own| real.starts_with(own))
            || self.patterns.iter().any(|pattern| is_below(real, pattern) == Some(true))
    }

    /// Checks whether a path is one of these, or one of them lies in it.
    pub(super) fn is_around(&self, real: &Path) -> bool {
        self.paths.iter().any(|own| own.starts_with(real))
            || self.patterns.iter().any(|pattern| is_below(real, pattern) == Some(false))
    }
}

/// The names of files with keys, and lines that are keys, which are no files.
fn key_files(section: &Value, within: bool, found: &mut Vec<String>) {
    match section {
        Value::Map(entries) => {
            for (key, value) in entries {
                let names_keys = matches!(key.text(), Some("signed_by" | "revoked"));
                key_files(value, within || names_keys, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| key_files(value, within, found)),
        value if within => found.extend(value.text().filter(|text| text.ends_with(".pub")).map(str::to_owned)),
        _ => {}
    }
}

fn is_pattern(part: Component<'_>) -> bool {
    part.as_os_str().to_str().is_some_and(|name| name.contains(['*', '?', '[']))
}

/// A pattern whose folder is written without links.
fn real(pattern: &Path) -> Option<PathBuf> {
    let plain = pattern.components().take_while(|part| !is_pattern(*part)).count();
    let folder: PathBuf = pattern.components().take(plain).collect();
    let rest: PathBuf = pattern.components().skip(plain).collect();
    Some(folder.canonicalize().ok()?.join(rest))
}

/// Whether a path is of a pattern or below such a file (true), or one of a pattern may lie in it (false).
fn is_below(path: &Path, pattern: &Path) -> Option<bool> {
    let mut parts = path.components();
    for wanted in pattern.components() {
        let Some(part) = parts.next() else { return Some(false) };
        let matches = match (wanted.as_os_str().to_str(), part.as_os_str().to_str()) {
            (Some(name), Some(part)) if is_pattern(wanted) => Glob::new(name).matches(part),
            _ => wanted == part,
        };
        if !matches {
            return None;
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;

    use super::*;

    fn own(includes: &[&str]) -> Own {
        let includes: Vec<PathBuf> = includes.iter().map(PathBuf::from).collect();
        Own::of(vec![PathBuf::from("/etc/salt")], &includes)
    }

    #[test]
    fn files_of_a_pattern_are_own_before_they_are_there() {
        let own = own(&["/srv/app/*.minion.conf", "/srv/one.conf", "/etc/salt/minion.d/*.conf"]);
        for (path, is, around) in [
            ("/srv/app/new.minion.conf", true, false),
            ("/srv/app/new.conf", false, false),
            ("/srv/app", false, true),
            ("/srv", false, true),
            ("/srv/one.conf", true, true),
            ("/srv/other", false, false),
            ("/etc/salt/minion.d/x.conf", true, false),
            ("/etc/salt/anything", true, false),
            ("/etc", false, true),
        ] {
            assert_eq!((own.has(Path::new(path)), own.is_around(Path::new(path))), (is, around), "{path}");
        }
        assert_eq!(own.patterns.len(), 1, "what is in a folder of the minion's needs no pattern");
    }

    #[test]
    fn files_of_keys_are_named_by_signed_by_and_revoked() {
        let section = "{modules: {a: {signed_by: {at_least: 2, of: [/srv/a.pub, RWQf]}}, b: {signed_by: [b.pub]}},\
                       masters: {x: {modules: {'*': {signed_by: [c.pub]}}}}, revoked: {keys: [d.pub]}, other: [e.pub]}";
        let mut found = Vec::new();
        key_files(&yaml::load(section).unwrap(), false, &mut found);
        assert_eq!(found, ["/srv/a.pub", "b.pub", "c.pub", "d.pub"]);
    }
}
