//! Puts the WIT of the host and of what there is of WASI into the program, whatever files there are.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    // Of this run: what was built of another checkout, in a shared target folder, would look there.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&manifest).join("..");
    let mut text = String::from("&[\n");
    for (folder, below) in [("wit", "brine-host/"), ("wasm-modules/deps", "wasi-")] {
        let folder = root.join(folder).canonicalize().expect("the WIT is in the source");
        println!("cargo::rerun-if-changed={}", folder.display());
        let entries = std::fs::read_dir(&folder).expect("the WIT can be read");
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("the WIT can be read").path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "wit")) {
            let name = file.file_name().expect("it has a name").to_string_lossy();
            writeln!(text, "    ({:?}, include_str!({:?})),", format!("{below}{name}"), file).expect("memory");
        }
    }
    text.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").expect("cargo says where");
    std::fs::write(Path::new(&out).join("wit.rs"), text).expect("cargo's folder can be written");
}
