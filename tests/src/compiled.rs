//! Compiled code of the standard modules, kept from one test to the next: compiling them is most of what the start of a new minion
//! takes. The minion checks what it finds in its cache, and compiles what is missing.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use brine_kit::process::run;
use brine_kit::programs::{program, program_folder};

/// Where a minion has compiled code, below its root_dir.
pub const COMPILED: &str = "cache/sandbox";

/// Returns the folder where it is kept. Another compiler has another folder.
fn kept() -> io::Result<PathBuf> {
    let compiler = fs::metadata(program_folder().join("brine-compiler"))?;
    let name = format!("compiled-{}-{}-{}", compiler.mtime(), compiler.mtime_nsec(), compiler.size());
    Ok(program_folder().join("../tmp").join(name))
}

/// Puts it into the cache of a new minion. The first test to come compiles it, and the others wait: all modules take longer than tests
/// wait for a minion that starts.
pub fn lay_out(cache: &Path) {
    // Without it the minion compiles.
    let _ = filled().and_then(|kept| copy(&kept, cache));
}

fn filled() -> io::Result<PathBuf> {
    let kept = kept()?;
    if !kept.exists() {
        let parent = kept.parent().expect("it is in a folder");
        fs::create_dir_all(parent)?;
        let lock = File::create(parent.join("compiled.lock"))?;
        lock.lock()?;
        if !kept.exists() {
            compile(parent, &kept)?;
        }
    }
    Ok(kept)
}

/// Has a host without a master compile the standard modules: all of them, for what lists them.
fn compile(parent: &Path, kept: &Path) -> io::Result<()> {
    let folder = tempfile::Builder::new().prefix("compiled-draft").tempdir_in(parent)?;
    let (conf, dir) = (folder.path().join("conf"), folder.path().display());
    fs::create_dir(&conf)?;
    let text = format!(
        "id: m\nfile_client: local\nroot_dir: {dir}\npki_dir: {dir}/pki\ncachedir: {dir}/cache\nlog_file: {dir}/log\n"
    );
    fs::write(conf.join("minion"), text)?;
    let conf = conf.to_str().expect("our own folder");
    let called = run(&program("salt-call"), &["-c", conf, "--local", "sys.list_modules"]);
    if called.code != 0 {
        return Err(io::Error::other(called.stderr));
    }
    copy(&folder.path().join(COMPILED), &folder.path().join("all"))?;
    fs::rename(folder.path().join("all"), kept)
}

/// Copies compiled code to a folder, beside what is there, with the modes that a minion requires. Others may read and write both folders
/// meanwhile: nobody sees a file that is not whole, and what is gone by its turn is left out.
///
/// # Errors
/// When a folder cannot be read or made, or a file not written.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    for file in fs::read_dir(from)? {
        let (file, name) = file.map(|file| (file.path(), file.file_name()))?;
        if file.extension().is_some_and(|kind| kind == "json" || kind == "cwasm" || kind == "verified") {
            let mut copy = tempfile::NamedTempFile::new_in(to)?;
            match File::open(&file).and_then(|mut file| io::copy(&mut file, copy.as_file_mut())) {
                Ok(_) => drop(copy.persist(to.join(name))?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
