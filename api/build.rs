//! Puts the console into salt-api: our own files in `console/`, and those that `tools/console.sh` fetched. Without the
//! latter, salt-api is built without a console.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What comes from npm.
const FETCHED: [&str; 3] = ["htm.js", "hooks.js", "preact.js"];

fn main() {
    let var = |name| env::var_os(name).map(PathBuf::from);
    let manifest = var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = var("OUT_DIR").expect("cargo sets it");
    println!("cargo::rerun-if-env-changed=CARGO_TARGET_DIR");
    let target = var("CARGO_TARGET_DIR").unwrap_or_else(|| manifest.join("../target"));
    let (own, fetched) = (manifest.join("console"), target.join("console"));
    // cargo takes a folder that is not there as changed, each time.
    let _ = fs::create_dir_all(&fetched);
    let mut files = BTreeMap::new();
    for folder in [&own, &fetched] {
        println!("cargo::rerun-if-changed={}", folder.display());
        read(folder, &mut files);
    }
    if !FETCHED.iter().all(|name| files.contains_key(*name)) {
        files.clear();
    }
    let mut version = DefaultHasher::new();
    files.hash(&mut version);
    let mut table = format!("/// Changes when a file does.\nstatic VERSION: &str = \"{:016x}\";\n", version.finish());
    table.push_str("/// The name, the bytes, and the same with gzip.\nstatic FILES: &[(&str, &[u8], &[u8])] = &[\n");
    for (name, bytes) in &files {
        let (plain, packed) = (out.join(name), out.join(format!("{name}.gz")));
        fs::write(&plain, bytes).expect("OUT_DIR can be written");
        fs::write(&packed, gzip(bytes)).expect("OUT_DIR can be written");
        writeln!(table, "    ({name:?}, include_bytes!({plain:?}), include_bytes!({packed:?})),").expect("a String");
    }
    table.push_str("];\n");
    fs::write(out.join("console_files.rs"), table).expect("OUT_DIR can be written");
}

fn read(folder: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_served =
            [".js", ".css", ".html", ".svg"].iter().any(|end| name.ends_with(end)) && !name.starts_with('.');
        if let (true, Ok(bytes)) = (is_served, fs::read(entry.path())) {
            into.insert(name, bytes);
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(bytes).and_then(|()| packer.finish()).expect("memory can be written")
}
