//! Compiled code of the standard modules, kept from one test to the next: compiling them is most of what the start of a new minion
//! takes. The minion checks what it finds in its cache, and compiles what is missing.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use brine_kit::programs::program_folder;

/// Returns the folder where it is kept. Another compiler has another folder.
fn kept() -> io::Result<PathBuf> {
    let compiler = fs::metadata(program_folder().join("brine-compiler"))?;
    let name = format!("compiled-{}-{}-{}", compiler.mtime(), compiler.mtime_nsec(), compiler.size());
    Ok(program_folder().join("../tmp").join(name))
}

/// Puts what is kept into the cache of a new minion.
pub(crate) fn lay_out(cache: &Path) {
    // Without it the minion compiles.
    let _ = kept().and_then(|kept| copy(&kept, cache));
}

/// Keeps what a minion has compiled, unless there is something already. To be called before it has other modules.
pub(crate) fn keep(cache: &Path) {
    let kept = || {
        let kept = kept()?;
        if kept.exists() {
            return Ok(());
        }
        let parent = kept.parent().expect("it is in a folder");
        fs::create_dir_all(parent)?;
        let draft = tempfile::Builder::new().prefix("compiled-draft").tempdir_in(parent)?;
        copy(cache, &draft.path().join("all"))?;
        // Another test may have been faster.
        fs::rename(draft.path().join("all"), kept)
    };
    let _: io::Result<()> = kept();
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let files = fs::read_dir(from)?;
    DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    for file in files {
        let file = file?;
        if file.path().extension().is_some_and(|kind| kind == "json" || kind == "cwasm") {
            fs::copy(file.path(), to.join(file.file_name()))?;
        }
    }
    Ok(())
}
