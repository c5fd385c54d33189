//! The folders that modules are read from: `NAME.wasm`, its signature `NAME.wasm.minisig` and where it came from, `NAME.json`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ModuleName;
use crate::signature;

/// Modules of one folder. Far above what there is, and a bound to what a start reads.
pub(super) const MAX_MODULES: usize = 1_000;
/// The origin of what somebody put into the folder of installed modules by hand. It is theirs: nothing but an update by the same
/// name takes it away.
pub(super) const LOCAL: &str = "local folder";

/// What stands beside an installed component.
#[derive(Serialize, Deserialize)]
pub(super) struct Provenance {
    pub(super) origin: String,
}

pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// `NAME.wasm.minisig` beside `NAME.wasm`.
pub(super) fn signature_path(component: &Path) -> PathBuf {
    component.with_extension("wasm.minisig")
}

/// A signature that is too long is cut off, and then is none that can be read.
pub(super) fn read_signature(component: &Path) -> io::Result<Option<Bytes>> {
    let mut signature = Vec::new();
    match File::open(signature_path(component)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?.take(signature::MAX_SIGNATURE as u64 + 1).read_to_end(&mut signature)?,
    };
    Ok(Some(signature.into()))
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

pub(super) fn origin_of(component: &Path) -> String {
    let provenance = std::fs::read(component.with_extension("json")).ok();
    let provenance = provenance.and_then(|json| serde_json::from_slice::<Provenance>(&json).ok());
    provenance.map_or_else(|| LOCAL.to_owned(), |provenance| provenance.origin)
}
