//! Grains that the owner wrote: the file `grains` beside the minion's configuration.

use brine_protocol::config::yaml;
use brine_protocol::value::{Value, ValueExt};
use std::path::{Path, PathBuf};

use crate::own_yaml;

/// Upper bound on the grains file, which is read whole: far more than people write by hand.
const MAX_FILE_BYTES: u64 = 512 * 1024;
/// Mode of a new grains file. Grains are no secrets: each user of the host can find out most of them.
const NEW_FILE: u32 = 0o644;

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

/// A grain of the file: its name, and its value or none to remove it.
pub(crate) type Change = (String, Option<Value>);

/// Why the grains file was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    /// What is there cannot be used. Salt's words.
    #[error("Unable to read existing grains file: {0}")]
    Read(GrainsFileError),
    /// It is a symbolic link: what it leads to is not the minion's to replace.
    #[error("the grains file {0} is a symbolic link, which the minion does not write through")]
    Link(PathBuf),
    /// A value cannot be written as YAML, or all of them are too many.
    #[error("the grains cannot be written: {0}")]
    Value(String),
    /// The disk.
    #[error("the grains file {path} cannot be written: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Changes grains of the file and leaves the others. The file is replaced at once or not at all; comments in it are
/// lost, as with Salt.
///
/// # Errors
/// As [`ChangeError`]. The file is as before then.
pub(super) fn change(path: &Path, changes: &[Change]) -> Result<(), ChangeError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => return Err(ChangeError::Link(path.to_owned())),
        Ok(meta) => meta.permissions().mode() & 0o7755,
        Err(_) => NEW_FILE,
    };
    let mut grains = Value::Map(load(path).map_err(ChangeError::Read)?.unwrap_or_default());
    for (name, value) in changes {
        match value {
            Some(value) => grains.insert(name, value.clone()),
            None => drop(grains.remove(name)),
        }
    }
    let wrong = |why: String| ChangeError::Value(why);
    let text = own_yaml::write(&grains).map_err(wrong)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(wrong(format!("the file would have {} bytes, more than {MAX_FILE_BYTES}", text.len())));
    }
    // What cannot be read again would lose all grains of the file.
    yaml::load(&text).map_err(|e| wrong(e.to_string()))?;
    let write = brine_protocol::files::write_synced(path, text.as_bytes(), mode);
    write.map_err(|source| ChangeError::Write { path: path.to_owned(), source })
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

    #[test]
    fn what_is_no_file_of_text_is_an_error_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("grains");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        assert!(matches!(load(&path), Err(GrainsFileError::Read { .. })), "a FIFO");
        let change = || super::change(&path, &[("role".into(), Some(Value::from("web")))]);
        assert!(change().unwrap_err().to_string().starts_with("Unable to read existing grains file: "));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(load(&path).is_err() && change().is_err(), "a folder");
        std::fs::remove_dir(&path).unwrap();
        for content in [&b"role: \xff\xfe\n"[..], b"- a list\n", b"role: [\n"] {
            std::fs::write(&path, content).unwrap();
            assert!(load(&path).is_err() && change().is_err(), "{content:?}");
            assert_eq!(std::fs::read(&path).unwrap(), content, "it is not the minion's to repair");
        }
        std::fs::remove_file(&path).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::write(&elsewhere, "role: db\n").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(matches!(change(), Err(ChangeError::Link(_))));
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "role: db\n");
    }

    #[test]
    fn changes_leave_the_other_grains_and_the_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("grains");
        let set = |name: &str, value: Option<Value>| change(&path, &[(name.to_owned(), value)]);
        set("roles", Some(brine_protocol::value::list(["web", "yes", "1"]))).unwrap();
        let mode = || path.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(), NEW_FILE);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        set("none", Some(Value::Nil)).unwrap();
        set("gone", Some(Value::from(1))).unwrap();
        set("gone", None).unwrap();
        set("never there", None).unwrap();
        assert_eq!(mode(), 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "none: null\nroles:\n- web\n- 'yes'\n- '1'\n");
        let large = Some(Value::from("x".repeat(MAX_FILE_BYTES as usize)));
        assert!(matches!(set("large", large), Err(ChangeError::Value(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}
