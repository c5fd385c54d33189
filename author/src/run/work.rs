//! The folder of a run.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use brine_cli::commandline::user_cache;
use brine_recording::Recording;
use brine_sandbox::ModuleName;
use tempfile::TempDir;

use crate::failure::Failure;
use crate::file;

/// The folder of a run, in the user's cache folder if possible. The compiled code of the last run is moved into it and
/// back afterwards. A second run at the same time finds none and compiles again.
pub(super) struct Work {
    folder: TempDir,
    kept: Option<PathBuf>,
}

impl Work {
    pub(super) fn new() -> Result<Self, Failure> {
        let none = |error: std::io::Error| Failure::failed(format!("no folder to work in: {error}"));
        let kept = user_cache().map(|cache| cache.join("run"));
        let kept = kept.filter(|dir| DirBuilder::new().recursive(true).mode(0o700).create(dir).is_ok());
        let (folder, kept) = match kept.and_then(|dir| Some((tempfile::tempdir_in(&dir).ok()?, dir.join("compiled")))) {
            Some((folder, kept)) => (folder, Some(kept)),
            None => (tempfile::tempdir().map_err(none)?, None),
        };
        let work = Self { folder, kept };
        let modules = work.path().join("cache/modules");
        DirBuilder::new().recursive(true).mode(0o700).create(&modules).map_err(none)?;
        if let Some(kept) = &work.kept {
            // There may be no compiled code.
            let _ = std::fs::rename(kept, work.compiled());
        }
        Ok(work)
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn compiled(&self) -> PathBuf {
        self.path().join("cache/sandbox")
    }

    /// Keeps the compiled code for the next run.
    pub(super) fn keep(&self) {
        if let Some(kept) = &self.kept {
            // If another run was faster, its compiled code is as good.
            let _ = std::fs::rename(self.compiled(), kept);
        }
    }
}

/// Makes a folder of standard modules below `dir` that has those of `package` with these names alone, so that no other
/// is compiled.
pub(super) fn few_modules(dir: &Path, package: &Path, names: &[&str]) -> Result<PathBuf, Failure> {
    let few = dir.join("standard");
    std::fs::create_dir(&few).map_err(|error| Failure::unwritable(&few, error))?;
    let signed = names.iter().flat_map(|name| [format!("{name}.wasm"), format!("{name}.wasm.minisig")]);
    let key = (!names.is_empty()).then(|| "standard.pub".to_owned());
    for name in signed.chain(key) {
        let from = package.join(&name);
        let content = std::fs::read(&from).map_err(|error| Failure::unreadable(&from, error))?;
        file::write(&few.join(&name), &content)?;
    }
    Ok(few)
}

/// Puts the recordings of a module's calls into the author's folder.
pub(super) fn keep_recordings(name: &ModuleName, from: &Path, to: &Path) -> Result<(), Failure> {
    let unwritable = |error: std::io::Error| Failure::unwritable(to, error);
    std::fs::create_dir_all(to).map_err(unwritable)?;
    // No call was recorded if there is no folder.
    for entry in std::fs::read_dir(from).into_iter().flatten() {
        let path = entry.map_err(unwritable)?.path();
        let content = std::fs::read(&path).map_err(unwritable)?;
        // The modules that it called have recordings too.
        let of_module = |recording: Recording| recording.head.module == name.as_str();
        if !Recording::from_bytes(&content).is_ok_and(of_module) {
            continue;
        }
        let to = to.join(path.file_name().unwrap_or_default());
        file::write(&to, &content)?;
        brine_cli::print::stderr(&format!("recorded: {}", to.display()));
    }
    Ok(())
}
