//! The folders that modules are read from: `NAME.wasm`, its signature `NAME.wasm.minisig` and where it came from, `NAME.json`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::ModuleName;

/// Modules of one folder. Far above what there is, and a bound to what a start reads.
pub(super) const MAX_MODULES: usize = 1_000;
/// The origin of what somebody put into the folder of installed modules by hand. It is theirs: nothing but an update by the same
/// name takes it away.
pub(super) const LOCAL: &str = "local folder";

pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The modules of a folder by name, sorted; no folder is no modules.
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
