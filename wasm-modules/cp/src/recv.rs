//! Receives files from `salt-cp`: whole, or in chunks. Each chunk is a job of its own.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_guest::{Value, fs, path};
use flate2::read::MultiGzDecoder;

/// Upper bound on the bytes of an unpacked chunk; salt-cp sends 96 KiB.
const MAX_CHUNK: u64 = 16 * 1024 * 1024;

/// `cp.recv`: returns for each destination whether the file was written; a text if the directory does not exist.
pub(crate) fn whole(files: &[(Value, Value)], dest: &str) -> Result<Value, String> {
    let mut written = Vec::with_capacity(files.len());
    for (name, content) in files {
        let name = name.to_text();
        let place = if is_dir(dest).map_err(|why| refused(dest, why))? {
            path::join(dest, path::basename(&name))
        } else if path::basename(&name) == path::basename(dest) || is_dir(path::dirname(dest))? {
            dest.to_owned()
        } else {
            return Ok("Destination unavailable".into());
        };
        let content = match content {
            Value::Text(text) => text.as_bytes(),
            Value::Bytes(bytes) => bytes,
            _ => return Err(format!("{name}: its content is no text")),
        };
        let took = match fs::create(&place).and_then(|file| file.write_at(0, content)) {
            Ok(()) => true,
            // A missing grant is reported as an error.
            Err(error @ (fs::Error::NotGranted(_) | fs::Error::ReadOnly(_))) => return Err(error.at(&place)),
            Err(_) => false,
        };
        written.push((place.into(), took.into()));
    }
    Ok(Value::Dict(written))
}

/// `cp.recv_chunked` without a chunk: makes a directory.
pub(crate) fn dir(dest: &str) -> Result<Value, String> {
    match fs::create_dir_all(dest) {
        Ok(()) => Ok(true.into()),
        Err(_) if matches!(fs::stat(dest, true), Ok(stat) if stat.kind == fs::Kind::Regular) => {
            Ok("Path exists and is a file".into())
        }
        Err(error) => Err(error.at(dest)),
    }
}

/// `cp.recv_chunked`: writes the first piece of a file, or appends a piece.
pub(crate) fn chunk(
    dest: &str,
    packed: &[u8],
    append: bool,
    compressed: bool,
    mode: Option<u32>,
) -> Result<Value, String> {
    let chunk = unpacked(packed, compressed)?;
    let parent = path::dirname(dest);
    if let Err(fs::Error::NotFound) = fs::stat(parent, true) {
        fs::create_dir_all(parent).map_err(|error| error.at(parent))?;
    }
    if append {
        let (file, size) = fs::append(dest).map_err(|error| error.at(dest))?;
        file.write_at(size, &chunk).map_err(|error| error.at(dest))?;
        return Ok(true.into());
    }
    let is_new = match fs::stat(dest, true) {
        Ok(stat) => {
            closed(dest, stat.mode, mode)?;
            false
        }
        Err(fs::Error::NotFound) => true,
        Err(error) => return Err(error.at(dest)),
    };
    let file = fs::create(dest).map_err(|error| error.at(dest))?;
    if is_new {
        let stat = fs::stat(dest, true).map_err(|error| error.at(dest))?;
        if let Err(error) = closed(dest, stat.mode, mode) {
            // The file is still empty.
            let _ = fs::remove_file(dest);
            return Err(error);
        }
    }
    file.write_at(0, &chunk).map_err(|error| error.at(dest))?;
    Ok(true.into())
}

/// Refuses a file that only some users may read. A module cannot set a file's mode, so the file would be readable by
/// more users.
fn closed(dest: &str, has: u32, mode: Option<u32>) -> Result<(), String> {
    let open = mode.map_or(0, |mode| has & 0o077 & !mode);
    if open == 0 {
        return Ok(());
    }
    Err(format!(
        "{dest}: it would have the mode {:04o} and is to have {:04o}, which a module cannot set: make the file with that mode \
         first, it keeps it",
        has & 0o7777,
        mode.unwrap_or_default() & 0o7777
    ))
}

fn unpacked(packed: &[u8], compressed: bool) -> Result<Vec<u8>, String> {
    let bytes = STANDARD.decode(packed).map_err(|error| format!("the chunk is not base64: {error}"))?;
    if !compressed {
        return Ok(bytes);
    }
    let mut chunk = Vec::new();
    let read = MultiGzDecoder::new(bytes.as_slice()).take(MAX_CHUNK + 1).read_to_end(&mut chunk);
    read.map_err(|error| format!("the chunk cannot be uncompressed: {error}"))?;
    if chunk.len() as u64 > MAX_CHUNK {
        return Err(format!("the chunk is larger than {MAX_CHUNK} bytes"));
    }
    Ok(chunk)
}

/// Why nothing can be written to a place that may not even be looked at: the grant that is missed is one to write.
fn refused(dest: &str, why: String) -> String {
    match fs::create(dest) {
        Err(error @ fs::Error::NotGranted(_)) => error.at(dest),
        _ => why,
    }
}

fn is_dir(path: &str) -> Result<bool, String> {
    match fs::stat(path, true) {
        Ok(stat) => Ok(stat.kind == fs::Kind::Directory),
        Err(fs::Error::NotFound) => Ok(false),
        Err(error) => Err(error.at(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "hello\n", compressed by Python's gzip.
    const PACKED: &[u8] = b"H4sIAAAAAAACA8tIzcnJ5wIAIDA6NgYAAAA=";

    #[test]
    fn chunks_are_unpacked() {
        assert_eq!(unpacked(PACKED, true).as_deref(), Ok(&b"hello\n"[..]));
        assert_eq!(unpacked(b"aGVsbG8=", false).as_deref(), Ok(&b"hello"[..]));
        assert_eq!(unpacked(b"", false).as_deref(), Ok(&b""[..]));
        assert!(unpacked(b"%%", true).is_err());
        assert!(unpacked(b"aGVsbG8=", true).is_err());
    }

    #[test]
    fn what_is_to_be_closed_is_not_written_open() {
        assert!(closed("/a", 0o100_644, Some(0o644)).is_ok());
        assert!(closed("/a", 0o100_644, Some(0o755)).is_ok());
        assert!(closed("/a", 0o100_600, Some(0o600)).is_ok());
        assert!(closed("/a", 0o100_644, None).is_ok());
        assert!(closed("/a", 0o100_644, Some(0o640)).is_err());
        assert!(closed("/a", 0o100_664, Some(0o644)).is_err());
    }
}
