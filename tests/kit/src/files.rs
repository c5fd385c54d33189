//! Modes, scripts, and temporary folders.

use std::fs::{File, Permissions};
use std::io::{Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

/// Returns a file's permission bits.
#[track_caller]
pub fn mode(path: impl AsRef<Path>) -> u32 {
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o7777
}

/// Sets a file's permission bits, whatever the umask is.
#[track_caller]
pub fn set_mode(path: impl AsRef<Path>, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("our own file");
}

/// Writes a program for the shell, or for the interpreter in its first line.
#[track_caller]
pub fn script(path: impl AsRef<Path>, text: &str) {
    std::fs::write(&path, text).expect("our own folder");
    set_mode(path, 0o755);
}

/// Makes a file without a name that has this content, open at its start.
pub fn file(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(content).and_then(|()| file.rewind()).expect("room for it");
    file
}

/// Makes a folder with a short path, because the path of a unix socket has at most 107 characters.
pub fn folder(prefix: &str) -> TempDir {
    tempfile::Builder::new().prefix(prefix).tempdir_in("/tmp").expect("a temporary folder")
}
