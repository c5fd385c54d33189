//! The folders a master works in.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::MasterOpts;
use crate::files;

/// A folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot make or write the folder {path} ({option}): {why}. Start salt-master as a user that may, or set {option}", path = path.display())]
pub struct DirError {
    option: &'static str,
    path: PathBuf,
    why: io::Error,
}

/// Makes what is missing. Folders that exist keep the mode their owner gave them.
pub(super) fn prepare(opts: &MasterOpts) -> Result<(), DirError> {
    for (option, path, mode) in [
        ("pki_dir", opts.pki_dir.as_path(), 0o700),
        ("cachedir", &opts.cachedir, 0o750),
        ("cachedir", &opts.cachedir.join("jobs"), 0o750),
        ("cachedir", &opts.cachedir.join("proc"), 0o750),
        ("sock_dir", &opts.sock_dir, 0o755),
    ] {
        make(path, mode).map_err(|why| DirError { option, path: path.to_owned(), why })?;
    }
    Ok(())
}

fn make(path: &Path, mode: u32) -> io::Result<()> {
    files::make_dir(path, mode)?;
    // Said now and by name, rather than later by the first file that fails.
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?;
    Ok(())
}
