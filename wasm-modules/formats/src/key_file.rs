//! A file with public keys: of the master, or of this host.

use brine_guest::host::files;
use brine_guest::{Result, changes};

/// Upper bound on the bytes of the file.
const MAX_FILE: u32 = 1 << 20;

/// Its text; none if there is no such file. `source` is `salt://PATH`, with `?saltenv=ENV` if it is of another environment,
/// or an absolute path.
///
/// # Errors
/// One line, when it is not granted, is no text, or is too large.
pub fn load(source: &str, saltenv: &str) -> Result<Option<String>> {
    let Some(path) = source.strip_prefix("salt://") else {
        return if source.starts_with('/') {
            changes::read_text(source)
        } else {
            Err(format!("{source} is neither a file of the master nor a path"))
        };
    };
    let (path, saltenv) = path.split_once("?saltenv=").unwrap_or((path, saltenv));
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Ok(None);
    }
    let Some(bytes) = files::read(path, saltenv, 0, MAX_FILE)? else { return Ok(None) };
    if bytes.len() == MAX_FILE as usize {
        return Err(format!("{source} has {MAX_FILE} bytes or more"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| format!("{source} is no text"))
}
