//! The folders of modules: `NAME.wasm`, its signature `NAME.wasm.minisig` and its provenance `NAME.json`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::ModuleName;

/// Upper bound on the modules in one folder: far above practical numbers, and a bound on what a start reads.
pub(super) const MAX_MODULES: usize = 1_000;
/// The origin of modules that the owner put into the folder by hand. Only an update of the same name replaces them.
pub(super) const LOCAL: &str = "local folder";

pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the modules of a folder by name, sorted. A missing folder is empty.
pub(super) fn component_files(dir: &Path) -> io::Result<BTreeMap<ModuleName, PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        other => other?,
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "wasm") {
            continue;
        }
        match path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().parse::<ModuleName>() {
            Ok(_) if found.len() >= MAX_MODULES => {
                tracing::error!(dir = %dir.display(), "more than {MAX_MODULES} modules; the rest is left out");
                break;
            }
            Ok(name) => {
                found.insert(name, path);
            }
            Err(error) => tracing::error!(path = %path.display(), "left out: {error}"),
        }
    }
    Ok(found)
}
