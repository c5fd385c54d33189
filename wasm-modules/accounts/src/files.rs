//! The files of accounts, read whole by way of `changes`.

use brine_guest::Result;
use brine_guest::host::changes;

/// Bytes of one read.
const CHUNK: u32 = 256 * 1024;
/// Upper bound on the bytes of such a file.
const MAX: usize = 16 << 20;

/// The lines of a file below `root`; none if there is no such file.
pub(crate) fn lines(root: Option<&str>, path: &str) -> Result<Vec<String>> {
    let path = match root.map(|root| root.trim_end_matches('/')).filter(|root| !root.is_empty()) {
        Some(root) => format!("{root}{path}"),
        None => path.to_owned(),
    };
    let mut content = Vec::new();
    while let Some(part) = changes::read(&path, content.len() as u64, CHUNK)? {
        if part.is_empty() {
            break;
        }
        content.extend(part);
        if content.len() > MAX {
            return Err(format!("{path} is larger than {MAX} bytes"));
        }
    }
    Ok(String::from_utf8_lossy(&content).lines().map(|line| line.trim().to_owned()).collect())
}
