//! Reads a file by lines or by parts.

use crate::look::fs;

/// Upper bound on the bytes of a line; a longer line is an error.
const MAX_LINE: usize = 8 * 1024 * 1024;

/// Passes each line with its line end to `each` until that returns false.
pub(crate) fn lines(file: &fs::File, mut each: impl FnMut(&[u8]) -> bool) -> Result<(), fs::Error> {
    let mut pending: Vec<u8> = Vec::new();
    let mut more = true;
    let mut long = false;
    file.each(|part| {
        let mut rest = part;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end + 1);
            more = if pending.is_empty() {
                each(line)
            } else {
                pending.extend_from_slice(line);
                let more = each(&pending);
                pending.clear();
                more
            };
            if !more {
                return false;
            }
            rest = after;
        }
        pending.extend_from_slice(rest);
        long = pending.len() > MAX_LINE;
        !long
    })?;
    if long {
        return Err(fs::Error::Other("a line is too long"));
    }
    if more && !pending.is_empty() {
        each(&pending);
    }
    Ok(())
}
