//! `salt-module build`, cached by the content of its inputs.
#![allow(clippy::disallowed_methods, reason = "tests start the programs that they test")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use brine_kit::process::{Output, run_with};
use brine_kit::programs::{program, program_folder};

/// Returns a path in the source tree.
pub(crate) fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap().join(path)
}

/// Returns the folder that is kept between runs.
pub(crate) fn folder() -> PathBuf {
    let folder = program_folder().join("../languages");
    fs::create_dir_all(&folder).unwrap();
    folder.canonicalize().unwrap()
}

/// Runs `salt-module` with its tools below the target folder.
pub(crate) fn salt_module(args: &[&str], env: &[(&str, &str)]) -> Output {
    let (cache, cargo) = (folder().join("cache"), folder().join("cargo"));
    let mut all = vec![("XDG_CACHE_HOME", cache.to_str().unwrap()), ("CARGO_TARGET_DIR", cargo.to_str().unwrap())];
    all.extend(env);
    run_with(&program("salt-module"), args, &all)
}

/// Returns the component of the module in this folder of the source tree. `name` identifies it in the cache.
pub(crate) fn built(path: &str, name: &str) -> Vec<u8> {
    let tool = ["lang", "build.rs", "tool.rs", "wit.rs"].map(|path| format!("author/src/{path}"));
    let others = [path, "wit", "sandbox/component/src/docs.rs", "tools/guest-rustc.sh"].map(str::to_owned);
    let mut hasher = DefaultHasher::new();
    tool.iter().chain(&others).for_each(|path| hash(&source(path), &mut hasher));
    let kept = folder().join(format!("{name}-{:016x}.wasm", hasher.finish()));
    // Each test is a separate process and may need the same component.
    let lock = File::create(folder().join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    if !kept.exists() {
        let draft = folder().join(format!("{name}.wasm"));
        let rustc = if source(path).join("Cargo.toml").exists() { guest_rustc() } else { String::new() };
        let env: &[(&str, &str)] = if rustc.is_empty() { &[] } else { &[("RUSTC", rustc.as_str())] };
        let said = salt_module(&["build", source(path).to_str().unwrap(), "-o", draft.to_str().unwrap()], env).exits(0);
        assert!(!said.stderr.contains("slower than it could be"), "{said:?}");
        for entry in fs::read_dir(folder()).unwrap().flatten() {
            if entry.file_name().to_str().is_some_and(|other| other.starts_with(&format!("{name}-"))) {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        fs::rename(draft, &kept).unwrap();
    }
    fs::read(kept).unwrap()
}

/// Returns the rustc for the standard modules, which has the target's library.
pub(crate) fn guest_rustc() -> String {
    let script = source("tools/guest-rustc.sh");
    let output = Command::new(script).arg(program_folder().join("../guest-rustc")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Hashes a file's content, or a folder's names and contents, without build results and documentation.
fn hash(path: &Path, hasher: &mut DefaultHasher) {
    const LEFT_OUT: [&str; 5] = ["bindings", "__pycache__", "target", "disk_report.wasm", "README.md"];
    let name = path.file_name().unwrap_or_default();
    if LEFT_OUT.iter().any(|left_out| OsStr::new(left_out) == name) {
        return;
    }
    name.hash(hasher);
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| hash(entry, hasher));
    } else {
        fs::read(path).unwrap().hash(hasher);
    }
}
