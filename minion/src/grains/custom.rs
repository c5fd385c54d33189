//! Grains that the owner wrote: the file `grains` beside the minion's configuration.

use brine_protocol::config::yaml;
use brine_protocol::value::Value;
use std::path::{Path, PathBuf};

/// Upper bound on the grains file, which is read whole: far more than people write by hand.
const MAX_FILE_BYTES: u64 = 512 * 1024;

/// Why the grains file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GrainsFileError {
    /// It exists and cannot be read.
    #[error("cannot read the grains file {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// It is too long.
    #[error("the grains file {path} is longer than {MAX_FILE_BYTES} bytes")]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It is not YAML, or not a mapping.
    #[error("the grains file {path} is not a YAML mapping: {why}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        why: String,
    },
}

/// Reads the grains file; none if it is missing or empty.
///
/// # Errors
/// When the file cannot be read, is too long or is not a mapping.
pub(super) fn load(path: &Path) -> Result<Option<Vec<(Value, Value)>>, GrainsFileError> {
    use std::io::Read;
    let file = match brine_files::open_named(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(GrainsFileError::Read { path: path.to_owned(), source }),
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|source| GrainsFileError::Read { path: path.to_owned(), source })?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(GrainsFileError::TooLong { path: path.to_owned() });
    }
    match yaml::load(&text) {
        Ok(Value::Map(entries)) => Ok(Some(entries)),
        Ok(Value::Nil) => Ok(None),
        Ok(_) => Err(GrainsFileError::Malformed { path: path.to_owned(), why: "it is another kind of value".into() }),
        Err(e) => Err(GrainsFileError::Malformed { path: path.to_owned(), why: e.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grains_file_is_a_mapping_or_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("grains");
        assert!(load(&path).unwrap().is_none());
        for (text, ok) in [("role: web\nnested: {a: 1}\n", true), ("", true), ("- a\n- b\n", false), ("a: [", false)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(load(&path).is_ok(), ok, "{text}");
        }
        for tag in ["!!python/object/apply:os.system", "!!python/name:os.system", "!include", "!!python/tuple"] {
            std::fs::write(&path, format!("role: {tag} ['touch /tmp/x']\n")).unwrap();
            let error = load(&path).unwrap_err().to_string();
            assert!(error.contains("could not determine a constructor"), "CVE-2025-62348: {error}");
        }
        std::fs::write(&path, vec![b'#'; MAX_FILE_BYTES as usize + 1]).unwrap();
        assert!(matches!(load(&path), Err(GrainsFileError::TooLong { .. })));
    }
}
