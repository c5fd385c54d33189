//! Globs over paths, as Python's `glob.glob` has them.

use brine_guest::{fnmatch, fs, path};

/// Paths that a glob may match.
const MAX_MATCHES: usize = 100_000;

/// Whether there is anything to match in it.
pub(crate) fn magic(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The paths that match; a path without a glob in it matches itself, where it is there. What is outside of what was granted
/// is an error.
pub(crate) fn expand(glob: &str) -> Result<Vec<String>, String> {
    if !glob.starts_with('/') {
        return Err(format!("the path must be absolute: '{glob}'"));
    }
    if !magic(glob) {
        return Ok(if there(glob)? { vec![glob.into()] } else { Vec::new() });
    }
    let mut found = vec![String::from("/")];

    for part in glob.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for place in found {
            if !magic(part) {
                next.push(path::join(&place, part));
                continue;
            }
            let entries = match fs::read_dir(&place) {
                Ok(entries) => entries,
                Err(error @ fs::Error::NotGranted(_)) => return Err(error.at(&place)),
                Err(_) => continue,
            };
            let hidden = part.starts_with('.');
            let names = entries.into_iter().map(|(name, _)| name).filter(|name| hidden || !name.starts_with('.'));
            next.extend(names.filter(|name| fnmatch(part, name)).map(|name| path::join(&place, &name)));
        }
        if next.len() > MAX_MATCHES {
            return Err(format!("'{glob}' matches more than {MAX_MATCHES} paths"));
        }
        found = next;
    }
    let slash = if glob.ends_with('/') { "/" } else { "" };
    let mut there_are = Vec::new();
    for place in found {
        let place = place + slash;
        if there(&place)? {
            there_are.push(place);
        }
    }
    Ok(there_are)
}

/// Whether there is anything at this path, if only a link that leads nowhere.
fn there(path: &str) -> Result<bool, String> {
    match fs::stat(path, false) {
        Ok(_) => Ok(true),
        Err(error @ fs::Error::NotGranted(_)) => Err(error.at(path)),
        Err(_) => Ok(false),
    }
}
