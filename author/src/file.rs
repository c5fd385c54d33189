//! Reads and writes a module's file and the files beside it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use brine_sandbox::{CompileLimits, ModuleName};

use crate::failure::Failure;

/// Reads a component, up to the size that a minion accepts.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let limit = CompileLimits::default().module;
    bounded(path, limit)?.ok_or_else(|| {
        let mib = limit >> 20;
        Failure::input(format!("{} is larger than the {mib} MiB that a minion takes as a module", path.display()))
    })
}

/// Reads a text within a bound: a key, a signature, a password.
pub(crate) fn text(path: &Path, limit: usize, what: &str) -> Result<String, Failure> {
    let bytes = bounded(path, limit as u64)?;
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| Failure::input(format!("{} is no {what}", path.display())))
}

/// Reads a file. None if it is larger than the limit.
fn bounded(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
    let unreadable = |error: std::io::Error| Failure::unreadable(path, error);
    let file = File::open(path).map_err(unreadable)?;
    // A pipe or a device may never end.
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(Failure::unreadable(path, "it is no file"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// Writes a file atomically, because the next step may read it at any time.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let unwritable = |error: std::io::Error| Failure::unwritable(path, error);
    if path.is_dir() {
        return Err(Failure::unwritable(path, "it is a folder; name a file"));
    }
    let temporary = beside(path, &format!(".{}.tmp", std::process::id()));
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&temporary);
        unwritable(error)
    })
}

/// Returns the path with a suffix appended to its last name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(suffix);
    path.into()
}

/// Returns the module's name from the file name, which is its name in calls.
pub(crate) fn module_name(path: &Path) -> Result<ModuleName, Failure> {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(stem) = file.strip_suffix(".wasm") else {
        return Err(Failure::input(format!("{}: a module's file is NAME.wasm", path.display())));
    };
    stem.parse().map_err(|error| {
        Failure::input(format!("{}: the file names the module, and {error}; rename it", path.display()))
    })
}
