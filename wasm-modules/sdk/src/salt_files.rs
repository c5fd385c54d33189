//! Many files of the master at once. The host asks the master for those of one call together.

use crate::Result;
use crate::host::files::{self, Digest};

/// Upper bound on the files of one call of the host.
const TOGETHER: usize = 256;

/// Fetches files into the minion's cache. Returns the path of each there, in order; none for one that the master does not have.
///
/// # Errors
/// When a file cannot be fetched.
pub fn cache_all(paths: &[String], saltenv: &str) -> Result<Vec<Option<String>>> {
    in_groups(paths, |group| files::cache_all(group, saltenv))
}

/// The hash of each file, in order; none for one that the master does not have.
///
/// # Errors
/// When the master cannot be asked.
pub fn hash_all(paths: &[String], saltenv: &str) -> Result<Vec<Option<Digest>>> {
    in_groups(paths, |group| files::hash_all(group, saltenv))
}

fn in_groups<T>(paths: &[String], ask: impl Fn(&[String]) -> Result<Vec<T>>) -> Result<Vec<T>> {
    let mut all = Vec::with_capacity(paths.len());
    for group in paths.chunks(TOGETHER) {
        all.extend(ask(group)?);
    }
    Ok(all)
}
