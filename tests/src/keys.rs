//! Keys of masters and minions, kept from one run of tests to the next: making one takes a processor half a second to a second, which is
//! most of what the start of a new master or minion takes.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use brine_kit::programs::program_folder;

/// As large as those that masters and minions make.
const BITS: usize = 2048;

/// The number of the next key. Each master and each minion of a process gets another one.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Puts a key into the folder `pki_dir` of a new master or minion, as `<name>.pem` and `<name>.pub`.
pub fn lay_out(pki_dir: &Path, name: &str) {
    // Without it the program makes its own.
    let _ = copy(pki_dir, name);
}

fn copy(pki_dir: &Path, name: &str) -> io::Result<()> {
    let kept = program_folder().join("../tmp/keys");
    let private = kept.join(format!("{}.pem", NEXT.fetch_add(1, Ordering::Relaxed)));
    if !private.exists() {
        DirBuilder::new().recursive(true).mode(0o700).create(&kept)?;
        make(&private)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(pki_dir)?;
    fs::copy(private.with_extension("pub"), pki_dir.join(format!("{name}.pub")))?;
    fs::copy(private, pki_dir.join(format!("{name}.pem"))).map(drop)
}

/// Makes the two files of a key. Other tests that need it wait.
fn make(private: &Path) -> io::Result<()> {
    let lock = File::create(private.with_extension("lock"))?;
    lock.lock()?;
    if private.exists() {
        return Ok(());
    }
    let key = brine_openssl::generate(BITS).ok_or_else(|| io::Error::other("OpenSSL makes no key"))?;
    key.public().write_public(&private.with_extension("pub")).map_err(io::Error::other)?;
    // Whoever sees the private half finds both, and whole.
    let draft = private.with_extension("draft");
    key.write_private(&draft).map_err(io::Error::other)?;
    fs::rename(draft, private)
}
