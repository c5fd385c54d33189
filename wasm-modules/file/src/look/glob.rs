//! Expands globs over paths like Python's `glob.glob`.

use brine_guest::{fnmatch, path};

use crate::look::fs;

/// Upper bound on the matches of a glob.
const MAX_MATCHES: usize = 100_000;

/// Whether the text has a glob's special characters.
pub(crate) fn magic(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The paths that match. A path without a glob matches itself if it exists. A path without a grant is an error.
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

/// Whether the path exists, possibly as a dangling link.
fn there(path: &str) -> Result<bool, String> {
    match fs::stat(path, false) {
        Ok(_) => Ok(true),
        Err(error @ fs::Error::NotGranted(_)) => Err(error.at(path)),
        Err(_) => Ok(false),
    }
}
