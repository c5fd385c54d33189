//! The files in which a host keeps its receipts: `NUMBER.receipts`, the oldest with the lowest number.

use std::io;
use std::path::{Path, PathBuf};

const SUFFIX: &str = ".receipts";

/// The number of a file of receipts; none for any other name.
pub fn file_number(name: &str) -> Option<u64> {
    name.strip_suffix(SUFFIX)?.parse().ok()
}

/// The files of a folder with their numbers, the oldest first.
///
/// # Errors
/// When the folder cannot be read.
pub fn files(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for item in std::fs::read_dir(dir)? {
        let item = item?;
        files.extend(item.file_name().to_str().and_then(file_number).map(|number| (number, item.path())));
    }
    files.sort_unstable();
    Ok(files)
}
