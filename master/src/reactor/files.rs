//! From the SLS paths of a reaction to files.

use std::path::{Path, PathBuf};

use brine_patterns::Glob;

use super::entry::Sls;
use crate::fileserver::FileServer;
use crate::runners::SlsFile;

/// Upper bound on the bytes of a file: people write them.
const FILE_MAX: u64 = 4 << 20;
/// Upper bound on the files of one glob.
const FOUND_MAX: usize = 1_000;

/// Reads the files of an SLS path, in the order of their names. Blocks while it reads the disk.
///
/// # Errors
/// There are none, or one cannot be read: a sentence.
pub(super) fn read(sls: &Sls, server: &FileServer) -> Result<Vec<SlsFile>, String> {
    match sls {
        Sls::Served { path, saltenv } => match server.whole(saltenv, path, FILE_MAX)? {
            Some(file) => Ok(vec![SlsFile { path: file.path.to_string_lossy().into_owned(), data: file.data }]),
            None => Err(format!("{sls} is not there")),
        },
        Sls::Path(pattern) => {
            let found = expand(pattern);
            if found.is_empty() {
                return Err(format!("{sls} is not there"));
            }
            let read = |path: PathBuf| {
                let data = brine_files::read_named(&path, FILE_MAX);
                let data = data.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
                Ok(SlsFile { path: path.to_string_lossy().into_owned(), data })
            };
            found.into_iter().map(read).collect()
        }
    }
}

/// The paths that match a glob, as Python's `glob.glob` finds them: a wildcard stands for no slash, and for no dot at the
/// start of a name.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let is_glob = |text: &str| text.contains(['*', '?', '[']);
    let mut found = vec![PathBuf::from("/")];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if !is_glob(part) {
            for path in &mut found {
                path.push(part);
            }
            continue;
        }
        let glob = Glob::new(part);
        let fits = |name: &str| (!name.starts_with('.') || part.starts_with('.')) && glob.matches(name);
        found = found.iter().flat_map(|folder| names(folder, &fits)).take(FOUND_MAX).collect();
    }
    found.retain(|path| path.exists());
    found
}

/// The paths in a folder whose names fit, sorted.
fn names(folder: &Path, fits: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let fitting = entries.filter(|entry| entry.file_name().to_str().is_some_and(fits));
    let mut paths: Vec<PathBuf> = fitting.map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_of_paths_are_pythons() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["b/two.sls", "b/one.sls", "b/.hidden.sls", "c/one.sls", "b/other"] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let of = |pattern: &str| {
            let found = expand(&format!("{}/{pattern}", dir.path().display()));
            found.iter().map(|path| path.strip_prefix(dir.path()).unwrap().display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("b/*.sls"), ["b/one.sls", "b/two.sls"]);
        assert_eq!(of("*/one.sls"), ["b/one.sls", "c/one.sls"]);
        assert_eq!(of("b/.*.sls"), [".hidden.sls"].map(|name| format!("b/{name}")));
        assert_eq!(of("b/one.sls"), ["b/one.sls"]);
        assert!(of("d/*.sls").is_empty() && of("b/none.sls").is_empty());
    }
}
