//! Finds libpam. The library itself is on every host that has log-ins; the name by which linkers look for it is in its development
//! package only, of which nothing else is needed, for no header is read. So where that is missing, the name is made here.

use std::path::{Path, PathBuf};

/// Where distributions have it.
const FOLDERS: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/lib"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if FOLDERS.iter().any(|folder| Path::new(folder).join("libpam.so").exists()) {
        return;
    }
    let library = FOLDERS.iter().map(|folder| Path::new(folder).join("libpam.so.0")).find(|path| path.exists());
    let (Some(library), Some(out)) = (library, std::env::var_os("OUT_DIR").map(PathBuf::from)) else {
        println!("cargo:warning=libpam is not here: install libpam0g-dev (Debian) or pam-devel (Fedora)");
        return;
    };
    let link = out.join("libpam.so");
    let _ = std::fs::remove_file(&link);
    if let Err(error) = std::os::unix::fs::symlink(&library, &link) {
        println!("cargo:warning={} cannot be made: {error}", link.display());
    }
    println!("cargo:rustc-link-search=native={}", out.display());
}
